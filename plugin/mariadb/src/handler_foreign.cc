// Foreign keys: which ones a table has part in, and what it takes to look into the other table of one. What a row refers
// to is looked for with a lock that others may share, once the row is there (handler_follow.cc has the other direction).
// So the session that comes second to a parent's entry waits there for the first. What a statement has done to a row is taken
// back if it fails here.
#include "ha_weir.h"

#include <algorithm>

#include "foreign_keys.h"
#include "last_errors.h"
#include "backoff.h"

namespace
{

const KEY *key_with_columns(const TABLE *table, const std::vector<std::string> &columns)
{
  for (uint i= 0; i < table->s->keys; i++)
  {
    const KEY *key= &table->key_info[i];
    bool fits= key->user_defined_key_parts >= columns.size() && key->algorithm != HA_KEY_ALG_LONG_HASH &&
               !is_unordered(key);
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

void note_name(void *context, weir_bytes name, weir_bytes)
{
  static_cast<std::vector<std::string> *>(context)->emplace_back(reinterpret_cast<const char *>(name.data),
                                                                  name.len);
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
  if (m_set && m_trx->txn() && !weir_txn_has_ended(m_trx->txn()))
    m_trx->savepoint_release(m_point);
}

int Row_point::take_back(int error)
{
  if (m_set && m_trx->txn() && !weir_txn_has_ended(m_trx->txn()))
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
    // The server opens the table that ALTER copies into as a temporary one; keys that are new in it are looked after.
    if (table_share->tmp_table == NO_TMP_TABLE || m_copying)
    {
      Table_definition own= definition();
      for (const Foreign_key_definition &key : in_order(own))
        if (!key.carried || !is_intermediate_name(m_name))
          add_side(&m_parents, Reference{m_name, key}, key.parent, key.columns, key.parent_columns);
      // Where it was made anew with other types, nothing of it is referred to: as with one that has no index for it.
      for (const Reference &reference : weir_definitions.referring_to(m_name))
        if (serves(own, reference))
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
  const KEY *beside= other == m_name ? key_with_columns(table, other_columns) : nullptr;
  side->own_entry_goes_first= beside && beside <= key;
  for (size_t i= 0; i < columns.size(); i++)
    side->columns.emplace_back(&key->key_part[i]);
  to->push_back(std::move(side));
}

// Opens the other table. WEIR_NOTHING: there is none, or no index for values as they are here. What the open table says
// of its indexes is how they were when it was opened, as its places for them are.
weir_code ha_weir::open_side(Foreign_side *side)
{
  if (side->table)
    return WEIR_OK;
  weir_table *other;
  weir_code code;
  // A copy that takes its place is waited for. A session that held what is set aside meanwhile would keep ALTER from dropping it.
  Backoff backoff(ha_thd(), "Waiting for a table whose copy takes its place");
  do
    code= weir_definitions.open(side->other, &other);
  while (backoff.again(&code));
  if (code != WEIR_OK)
    return code;
  side->table= other;
  uint64_t version;
  weir_bytes said= {nullptr, 0};
  weir_table_definition(other, &version, &said);
  Table_definition defined= Table_definition::decode(said.data, said.len);
  std::vector<std::string> kinds;
  for (const Key_part_codec &column : side->columns)
    kinds.push_back(column.kind_of_values());
  // What its rows will be is not known while it has none.
  const Index_definition *index= defined.discarded ? nullptr : defined.find_index(side->other_columns, &kinds);
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
  {
    // A parent may have very many children.
    if (is_killed(ha_thd()))
    {
      code= WEIR_INTERRUPTED;
      break;
    }
    found->emplace_back(reinterpret_cast<const char *>(at.primary_key.data), at.primary_key.len);
  }
  weir_scan_close(scan);
  if (found && code == WEIR_NOTHING && !found->empty())
    return WEIR_OK;
  return code;
}

// As walk_side, for the values of a row. WEIR_NOTHING: no row has them. `is_null`: none needs to.
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
  note_foreign_error(ha_thd(), (error == HA_ERR_NO_REFERENCED_ROW ? "No row is referred to by: " : "A row is referred to by: ") +
                                   why->words);
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
    // The parent, which no session has locked as a table, may have other names than when this was looked up.
    if (code == WEIR_NOTHING && !m_foreign_busy && m_foreign_epoch != weir_definitions.epoch())
      return has_foreign_keys() ? check_parents(record, before, except, why) : 0;
    if (code == WEIR_NOTHING)
      return violation(side->reference, HA_ERR_NO_REFERENCED_ROW, why);
    if (code != WEIR_OK)
      return fail(code);
  }
  return 0;
}
