// Foreign keys as rows are written: what a row refers to is looked for with a lock that others may share, once the row
// is there; what refers to a row is looked for once the row is gone or changed, and refused, or changed with it. So
// whoever comes second to a parent's entry waits there for the first. What a statement has done to a row is taken back
// if it fails here.
#include "ha_weir.h"

#include <algorithm>

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

const KEY *key_with_columns(const TABLE *table, const std::vector<std::string> &columns)
{
  for (uint i= 0; i < table->s->keys; i++)
  {
    const KEY *key= &table->key_info[i];
    bool fits= key->user_defined_key_parts >= columns.size() && key->algorithm != HA_KEY_ALG_LONG_HASH;
    for (size_t at= 0; fits && at < columns.size(); at++)
    {
      const KEY_PART_INFO *part= &key->key_part[at];
      const Field *column= table->field[part->fieldnr - 1];
      fits= same_column(column->field_name.str, columns[at]) && !(column->flags & BLOB_FLAG) &&
            part->length == column->key_length();
    }
    if (fits)
      return key;
  }
  return nullptr;
}

Field *column_of(const TABLE *table, const std::string &name)
{
  for (Field **field= table->field; *field; field++)
    if (same_column((*field)->field_name.str, name))
      return *field;
  return nullptr;
}

std::vector<Foreign_key_definition> in_order(const Table_definition &definition)
{
  std::vector<Foreign_key_definition> keys= definition.foreign_keys;
  std::sort(keys.begin(), keys.end(),
            [](const Foreign_key_definition &a, const Foreign_key_definition &b) { return a.name < b.name; });
  return keys;
}

void note_name(void *context, weir_bytes name, weir_bytes)
{
  static_cast<std::vector<std::string> *>(context)->emplace_back(reinterpret_cast<const char *>(name.data),
                                                                  name.len);
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

bool same_value(Field *column, const uchar *a, const uchar *b)
{
  if (column->is_null_in_record(a) != column->is_null_in_record(b))
    return false;
  if (column->is_null_in_record(a))
    return true;
  my_ptrdiff_t at= column->ptr - column->table->record[0];
  return column->cmp_binary(a + at, b + at) == 0;
}

} // namespace

Row_point::Row_point(Transaction *trx, bool wanted) : m_trx(trx), m_set(false), m_point(0)
{
  if (wanted)
    m_set= trx->savepoint_set(&m_point) == 0;
}

Row_point::~Row_point()
{
  if (m_set && m_trx->txn() && !weir_txn_is_over(m_trx->txn()))
    m_trx->savepoint_release(m_point);
}

int Row_point::take_back(int error)
{
  if (m_set && m_trx->txn() && !weir_txn_is_over(m_trx->txn()))
    m_trx->savepoint_rollback(m_point);
  return error;
}

Foreign_side::~Foreign_side() { weir_table_close(table); }

Table_definition ha_weir::definition() const
{
  Definitions::Pointer known= weir_definitions.find(m_name);
  return known ? *known : Table_definition();
}

// Finds out which foreign keys this table has part in, if that may have changed. Whether there are any to be
// looked after now.
bool ha_weir::has_foreign_keys()
{
  if (thd_test_options(ha_thd(), OPTION_NO_FOREIGN_KEY_CHECKS))
    return false;
  ulonglong epoch= weir_definitions.epoch();
  if (epoch != m_foreign_epoch && !m_foreign_busy)
  {
    m_parents.clear();
    m_children.clear();
    if (table_share->tmp_table == NO_TMP_TABLE)
    {
      for (const Foreign_key_definition &key : in_order(definition()))
        if (!key.carried || !is_intermediate_name(m_name))
          add_side(&m_parents, Reference{m_name, key}, key.parent, key.columns, key.parent_columns);
      for (const Reference &reference : weir_definitions.referring_to(m_name))
        add_side(&m_children, reference, reference.child, reference.key.parent_columns, reference.key.columns);
      // As InnoDB goes through them: index after index of this table.
      for (std::vector<std::unique_ptr<Foreign_side>> *sides : {&m_parents, &m_children})
        std::stable_sort(sides->begin(), sides->end(),
                         [](const std::unique_ptr<Foreign_side> &a, const std::unique_ptr<Foreign_side> &b)
                         { return a->own_index < b->own_index; });
    }
    m_foreign_epoch= epoch;
  }
  return !m_parents.empty() || !m_children.empty();
}

void ha_weir::add_side(std::vector<std::unique_ptr<Foreign_side>> *to, const Reference &reference,
                       const std::string &other, const std::vector<std::string> &columns,
                       const std::vector<std::string> &other_columns)
{
  const KEY *key= key_with_columns(table, columns);
  // A parent that was made anew without it: nothing of it is referred to.
  if (!key)
    return;
  std::unique_ptr<Foreign_side> side(new Foreign_side(reference, other, other_columns));
  side->own_index= static_cast<uint>(key - table->key_info);
  for (size_t i= 0; i < columns.size(); i++)
    side->columns.emplace_back(&key->key_part[i]);
  to->push_back(std::move(side));
}

// Opens the other table. WEIR_NOTHING: there is none, or not the index.
weir_code ha_weir::open_side(Foreign_side *side)
{
  if (side->table)
    return WEIR_OK;
  weir_table *other;
  weir_code code= weir_table_open(weir_database, bytes_of(side->other), &other);
  if (code != WEIR_OK)
    return code;
  side->table= other;
  Definitions::Pointer defined= weir_definitions.find(side->other);
  const Index_definition *index= defined ? defined->find_index(side->other_columns, nullptr) : nullptr;
  std::vector<std::string> names;
  if (index && !index->primary)
    weir_table_indexes(other, note_name, &names);
  if (index)
  {
    side->parts= index->parts;
    side->place= WEIR_ROWS;
    std::vector<std::string>::iterator name= std::find(names.begin(), names.end(), index->name);
    if (name != names.end())
      side->place= static_cast<int32_t>(name - names.begin());
    if (index->primary || name != names.end())
      return WEIR_OK;
  }
  weir_table_close(other);
  side->table= nullptr;
  return WEIR_NOTHING;
}

// The values of a row's columns as a key of the other table's index. False: one of them is NULL.
bool ha_weir::make_foreign_key(const Foreign_side &side, const uchar *record, std::string *key)
{
  key->clear();
  for (size_t i= 0; i < side.columns.size(); i++)
  {
    size_t before= key->size();
    if (side.parts[i].nullable)
      key->push_back(1);
    if (side.columns[i].encode_value(record, key))
      return false;
    if (side.parts[i].descending)
      for (size_t at= before; at < key->size(); at++)
        (*key)[at]= ~(*key)[at];
  }
  return true;
}

bool ha_weir::same_foreign_values(const Foreign_side &side, const uchar *a, const uchar *b)
{
  for (const Key_part_codec &part : side.columns)
    if (!same_value(table->field[part.field()->field_index], a, b))
      return false;
  return true;
}

// Whether the entry of a row in an index, the primary key behind it included, stays as it is.
bool ha_weir::same_entry(uint index, const uchar *a, const uchar *b)
{
  for (uint key : {index, table_share->primary_key})
    for (uint part= 0; key != MAX_KEY && part < table->key_info[key].user_defined_key_parts; part++)
      if (!same_value(table->field[table->key_info[key].key_part[part].fieldnr - 1], a, b))
        return false;
  return true;
}

// Reads the other table as it is now, with locks: whether it has a row with this key (`found` nullptr), or the
// primary keys of all that have.
weir_code ha_weir::walk_side(Foreign_side *side, const std::string &key, std::vector<std::string> *found)
{
  weir_txn *txn= m_trx->txn();
  uint32_t lock= found ? WEIR_LOCK_UPDATE : WEIR_LOCK_SHARE;
  if (side->place == WEIR_ROWS && side->parts.size() == side->columns.size())
  {
    weir_bytes row;
    weir_code code= weir_table_get(side->table, txn, bytes_of(key), lock, &row);
    if (code == WEIR_OK && found)
      found->push_back(key);
    return code;
  }
  std::string to= key;
  weir_range range;
  range.index= side->place;
  range.from= bytes_of(key);
  range.has_to= after_prefix(&to);
  range.to= bytes_of(to);
  range.down= range.skip_locked= false;
  range.lock= lock;
  weir_scan *scan;
  weir_code code= weir_scan_open(side->table, txn, &range, &scan);
  if (code != WEIR_OK)
    return code;
  weir_found at;
  while ((code= weir_scan_next(scan, txn, &at)) == WEIR_OK && found)
    found->emplace_back(reinterpret_cast<const char *>(at.primary_key.data), at.primary_key.len);
  weir_scan_close(scan);
  if (found && code == WEIR_NOTHING && !found->empty())
    return WEIR_OK;
  return code;
}

// As walk_side, for the values of a row. WEIR_NOTHING: nobody has them. `is_null`: nobody needs to.
weir_code ha_weir::look_aside(Foreign_side *side, const uchar *record, std::vector<std::string> *found,
                              bool *is_null)
{
  *is_null= false;
  for (bool again= false;; again= true)
  {
    std::string key;
    for (const Key_part_codec &part : side->columns)
      if (table->field[part.field()->field_index]->is_null_in_record(record))
      {
        *is_null= true;
        return WEIR_OK;
      }
    weir_code code= open_side(side);
    if (code != WEIR_OK)
      return code;
    make_foreign_key(*side, record, &key);
    code= walk_side(side, key, found);
    if (code != WEIR_CHANGED || again)
      return code;
    // Its definition is another one than when it was opened.
    weir_table_close(side->table);
    side->table= nullptr;
    if (found)
      found->clear();
  }
}

int ha_weir::violation(const Reference &reference, int error, Foreign_failure *why)
{
  why->words= show_violation(ha_thd(), reference.child, reference.key);
  return error;
}

// Whether what a new row refers to is there. `before`: the row that it was, or nullptr; `except`: the foreign key by
// which it was changed.
int ha_weir::check_parents(const uchar *record, const uchar *before, const std::string *except,
                           Foreign_failure *why)
{
  for (std::unique_ptr<Foreign_side> &side : m_parents)
  {
    if (except && side->reference.key.name == *except)
      continue;
    // As InnoDB, which looks whenever the entry is written.
    if (before && same_entry(side->own_index, before, record))
      continue;
    bool is_null;
    weir_code code= look_aside(side.get(), record, nullptr, &is_null);
    if (code == WEIR_NOTHING)
      return violation(side->reference, HA_ERR_NO_REFERENCED_ROW, why);
    if (code != WEIR_OK)
      return fail(code);
  }
  return 0;
}

// Whether somebody refers to a row that is about to go (`record` nullptr) or to change, and forbids it. What counts is
// found afterwards, when nobody can come to refer to it any more; but InnoDB looks while a row that refers to itself
// is there, and before it looks for duplicates, and so do the errors here.
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
        (record && same_foreign_values(*side, before, record)))
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
    if (thd_killed(ha_thd()))
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
// replication: who replays the parent's change does this too.
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
    m_share->rows_changed(-1);
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

// ---- what the server asks -------------------------------------------------------------------------

namespace
{

LEX_CSTRING *word(THD *thd, const std::string &s) { return thd->make_clex_string(s.data(), s.size()); }

FOREIGN_KEY_INFO *info_of(THD *thd, const Reference &reference, bool opens)
{
  const Foreign_key_definition &key= reference.key;
  void *room= thd->alloc(sizeof(FOREIGN_KEY_INFO));
  if (!room)
    return nullptr;
  FOREIGN_KEY_INFO *info= new (room) FOREIGN_KEY_INFO();
  info->foreign_id= word(thd, key.name);
  info->foreign_db= word(thd, shown_schema(reference.child));
  info->foreign_table= word(thd, shown_table(reference.child));
  info->referenced_db= word(thd, shown_schema(key.parent));
  info->referenced_table= word(thd, shown_table(key.parent));
  info->update_method= key.on_update == FK_OPTION_UNDEF ? FK_OPTION_RESTRICT : key.on_update;
  info->delete_method= key.on_delete == FK_OPTION_UNDEF ? FK_OPTION_RESTRICT : key.on_delete;
  // A deletion further up may come here as an update; the server would not open this table for it.
  if (opens && fk_modifies_child(info->update_method) && !fk_modifies_child(info->delete_method))
    info->delete_method= info->update_method;
  if (opens && fk_modifies_child(info->delete_method) && !fk_modifies_child(info->update_method))
    info->update_method= info->delete_method;
  info->referenced_key_name= nullptr;
  Definitions::Pointer child= weir_definitions.find(reference.child), parent= weir_definitions.find(key.parent);
  const Index_definition *own= child ? child->find_index(key.columns, nullptr) : nullptr;
  const Index_definition *other= parent ? parent->find_index(key.parent_columns, nullptr) : nullptr;
  if (other)
    info->referenced_key_name= word(thd, other->name);
  uint count= static_cast<uint>(key.columns.size());
  for (uint i= 0; i < count; i++)
  {
    info->foreign_fields.push_back(word(thd, key.columns[i]), thd->mem_root);
    info->referenced_fields.push_back(word(thd, key.parent_columns[i]), thd->mem_root);
    if (own && own->parts[i].nullable)
      info->set_nullable(thd, false, i, count);
    if (other && other->parts[i].nullable)
      info->set_nullable(thd, true, i, count);
  }
  return info;
}

} // namespace

char *ha_weir::get_foreign_key_create_info()
{
  std::string all;
  for (const Foreign_key_definition &key : in_order(definition()))
    all+= show_foreign_key(ha_thd(), m_name, key, true);
  return all.empty() ? nullptr : strdup(all.c_str());
}

void ha_weir::free_foreign_key_create_info(char *text) { free(text); }

int ha_weir::get_foreign_key_list(THD *thd, List<FOREIGN_KEY_INFO> *list)
{
  for (const Foreign_key_definition &key : in_order(definition()))
    if (FOREIGN_KEY_INFO *info= info_of(thd, Reference{m_name, key}, false))
      list->push_back(info, thd->mem_root);
  return 0;
}

int ha_weir::get_parent_foreign_key_list(THD *thd, List<FOREIGN_KEY_INFO> *list)
{
  for (const Reference &reference : weir_definitions.referring_to(m_name))
    if (FOREIGN_KEY_INFO *info= info_of(thd, reference, true))
      list->push_back(info, thd->mem_root);
  return 0;
}

bool ha_weir::referenced_by_foreign_key() const noexcept { return weir_definitions.is_referred_to(m_name); }

bool ha_weir::can_switch_engines()
{
  return definition().foreign_keys.empty() && !weir_definitions.is_referred_to(m_name);
}

bool ha_weir::get_foreign_dup_key(char *table_name, uint table_room, char *key_name, uint key_room)
{
  if (m_failure.duplicate_key.empty())
    return false;
  strmake(table_name, m_failure.duplicate_table.c_str(), table_room - 1);
  strmake(key_name, m_failure.duplicate_key.c_str(), key_room - 1);
  return true;
}
