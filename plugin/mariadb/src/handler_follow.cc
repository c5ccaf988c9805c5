// What refers to a row is looked for once the row is gone or changed, and refused, or changed with it: each change may
// go on to other tables.
#include "ha_weir.h"

#include "foreign_keys.h"

// One table that a change comes to, and those before it.
struct Foreign_step
{
  const Foreign_step *above;
  const std::string &table;
  bool deletes;

  uint depth() const { return above ? above->depth() + 1 : 1; }
  bool updates(const std::string &name) const
  {
    return (!deletes && table == name) || (above && above->updates(name));
  }
};

// Another handler's place in a change that has come to its table.
struct Foreign_change
{
  const Foreign_key_definition &key;
  ha_weir *parent;
  const uchar *parent_row;
  bool deletes;
  enum_fk_option action;
};

namespace
{

// InnoDB's, so that what works there works here and the other way round.
const uint DEPTH_MAX= 15;

Field *column_of(const TABLE *table, const std::string &name)
{
  for (Field **field= table->field; *field; field++)
    if (same_column((*field)->field_name.str, name))
      return *field;
  return nullptr;
}

// Gives a column of a child the value of its parent's column. False: it does not fit.
bool assign(Field *from, my_ptrdiff_t offset, Field *to)
{
  from->move_field_offset(offset);
  bool fits= true;
  if (from->is_real_null())
  {
    fits= to->real_maybe_null();
    if (fits)
      to->set_null();
  }
  else
  {
    to->set_notnull();
    if (from->pack_length() == to->pack_length() && from->real_type() == to->real_type() &&
        from->type() != MYSQL_TYPE_BIT)
      memcpy(to->ptr, from->ptr, from->pack_length());
    else if (from->type() == MYSQL_TYPE_BIT)
      fits= to->store(from->val_int(), true) == 0;
    else
    {
      StringBuffer<MAX_FIELD_WIDTH> buffer;
      String *value= from->val_str(&buffer);
      fits= value->numchars() <= to->char_length() && to->store(value->ptr(), value->length(), value->charset()) == 0;
    }
  }
  from->move_field_offset(-offset);
  return fits;
}

} // namespace

// Whether some row refers to a row that is about to go (`record` nullptr) or to change, and forbids it. What counts is
// found afterwards, when none can come to refer to it any more; but InnoDB looks while a row that refers to itself
// is there (unless its entry is gone first), and before it looks for duplicates, and so do the errors here.
int ha_weir::check_refusals(const uchar *before, const uchar *record, const Foreign_step *above,
                            Foreign_failure *why)
{
  Foreign_step here= {above, m_name, record == nullptr};
  for (std::unique_ptr<Foreign_side> &side : m_children)
  {
    const Foreign_key_definition &key= side->reference.key;
    enum_fk_option action= record ? key.on_update : key.on_delete;
    bool goes_round= record && fk_modifies_child(action) && here.updates(side->other);
    if ((fk_modifies_child(action) && !goes_round) || (!record && side->other != m_name) ||
        side->own_entry_goes_first || (record && same_foreign_values(*side, before, record)))
      continue;
    bool is_null;
    weir_code code= look_aside(side.get(), before, nullptr, &is_null);
    if (code == WEIR_OK && !is_null)
      return violation(side->reference, HA_ERR_ROW_IS_REFERENCED, why);
    if (code != WEIR_OK && code != WEIR_NOTHING)
      return fail(code);
  }
  return 0;
}

// Looks after what refers to a row that is gone (`record` nullptr) or has become another.
int ha_weir::check_children(const uchar *before, const uchar *record, const Foreign_step *above,
                            Foreign_failure *why)
{
  m_foreign_busy++;
  int error= 0;
  for (size_t i= 0; i < m_children.size() && !error; i++)
    if (!record || !same_foreign_values(*m_children[i], before, record))
      error= check_child(m_children[i].get(), before, record, above, why);
  m_foreign_busy--;
  return error;
}

int ha_weir::check_child(Foreign_side *side, const uchar *before, const uchar *record, const Foreign_step *above,
                         Foreign_failure *why)
{
  const Foreign_key_definition &key= side->reference.key;
  Foreign_step here= {above, m_name, record == nullptr};
  enum_fk_option action= record ? key.on_update : key.on_delete;
  std::vector<std::string> found;
  bool is_null;
  weir_code code= look_aside(side, before, fk_modifies_child(action) ? &found : nullptr, &is_null);
  if (code == WEIR_NOTHING && !side->table)
    return violation(side->reference, HA_ERR_ROW_IS_REFERENCED, why);
  if (is_null || code == WEIR_NOTHING)
    return 0;
  if (code != WEIR_OK)
    return fail(code);
  bool deletes= !record && action == FK_OPTION_CASCADE;
  // An update that comes back to a table that it has gone through might never end.
  if (!fk_modifies_child(action) || (!deletes && here.updates(side->other)))
    return violation(side->reference, HA_ERR_ROW_IS_REFERENCED, why);
  if (here.depth() >= DEPTH_MAX)
    return violation(side->reference, HA_ERR_FK_DEPTH_EXCEEDED, why);
  ha_weir *child= find_open_child(side->other);
  // It has come to be a child after this statement had opened its tables.
  if (!child)
    return HA_ERR_TABLE_DEF_CHANGED;
  Foreign_change change= {key, this, record, deletes, action};
  for (const std::string &primary : found)
  {
    if (is_killed(ha_thd()))
      return HA_ERR_ABORTED_BY_USER;
    if (int error= child->follow(primary, change, &here, why))
      return error;
  }
  return 0;
}

// The server opens what a statement may change by foreign keys along with its tables.
ha_weir *ha_weir::find_open_child(const std::string &name)
{
  for (TABLE *open= ha_thd()->open_tables; open; open= open->next)
  {
    if (open->file->ht != weir_hton || !open->pos_in_table_list ||
        open->pos_in_table_list->prelocking_placeholder != TABLE_LIST::PRELOCK_FK)
      continue;
    ha_weir *child= static_cast<ha_weir *>(open->file);
    if (child->m_name != name)
      continue;
    child->m_trx= m_trx;
    child->has_foreign_keys();
    return child;
  }
  return nullptr;
}

void ha_weir::compute_virtual_columns()
{
  for (Field **field= table->vfield; field && *field; field++)
    if (!(*field)->stored_in_db())
      table->update_virtual_field(*field, true);
}

// Deletes or changes a row of this table because its parent was. No trigger is called, nothing is logged for
// replication: a replica that replays the parent's change does this too.
int ha_weir::follow(const std::string &primary, const Foreign_change &change, const Foreign_step *above,
                    Foreign_failure *why)
{
  uchar *record= table->record[0];
  weir_bytes row;
  weir_code code= weir_table_get(m_table, m_trx->txn(), bytes_of(primary), WEIR_LOCK_UPDATE, &row);
  if (refreshed(code))
    code= weir_table_get(m_table, m_trx->txn(), bytes_of(primary), WEIR_LOCK_UPDATE, &row);
  // Gone already: rows may refer to each other in a circle.
  if (code == WEIR_NOTHING)
    return 0;
  if (code != WEIR_OK)
    return fail(code);
  if (int error= decode(record, reinterpret_cast<const uchar *>(primary.data()), primary.size(), row.data, row.len))
    return error;
  compute_virtual_columns();
  // Below here this table may be come to again, and its own buffers with it.
  std::vector<uchar> before(record, record + table_share->reclength);
  Encoded_row old_row, new_row;
  old_row.key= new_row.key= primary;
  encode(record, &old_row);
  if (change.deletes)
  {
    if (int error= check_refusals(before.data(), nullptr, above, why))
      return error;
    code= weir_table_delete(m_table, m_trx->txn(), &old_row.view);
    if (code != WEIR_OK)
      return fail(code);
    count_row(-1);
    return check_children(before.data(), nullptr, above, why);
  }
  if (!take_values(change))
    return violation(Reference{m_name, change.key}, HA_ERR_ROW_IS_REFERENCED, why);
  compute_virtual_columns();
  std::vector<uchar> after(record, record + table_share->reclength);
  encode(record, &new_row);
  if (int error= check_refusals(before.data(), after.data(), above, why))
    return error;
  int32_t duplicate= WEIR_ROWS;
  code= weir_table_update(m_table, m_trx->txn(), &old_row.view, &new_row.view, &duplicate);
  if (code == WEIR_DUPLICATE)
  {
    map_duplicate(code, duplicate);
    why->duplicate_table.assign(table_share->table_name.str, table_share->table_name.length);
    why->duplicate_key= table->key_info[m_duplicate].name.str;
    return HA_ERR_FOREIGN_DUPLICATE_KEY;
  }
  if (code != WEIR_OK)
    return fail(code);
  if (int error= check_parents(after.data(), before.data(), &change.key.name, why))
    return error;
  return check_children(before.data(), after.data(), above, why);
}

// Puts what the parent's row has now into the columns of the foreign key, or NULL. False: it does not fit.
bool ha_weir::take_values(const Foreign_change &change)
{
  TABLE *parent= change.parent->table;
  for (size_t i= 0; i < change.key.columns.size(); i++)
  {
    Field *to= column_of(table, change.key.columns[i]);
    Field *from= column_of(parent, change.key.parent_columns[i]);
    if (!to || !from)
      return false;
    if (change.action == FK_OPTION_SET_NULL)
    {
      if (!to->real_maybe_null())
        return false;
      to->reset();
      to->set_null();
    }
    else if (!assign(from, change.parent_row - parent->record[0], to))
      return false;
  }
  return true;
}
