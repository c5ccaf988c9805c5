#include "ha_weir.h"

#include "alter_stage.h"
#include "engine_stats.h"

namespace
{
// A copy by ALTER commits after so many rows: no session sees the copy before it is whole.
const uint COPY_BATCH= 10000;

// The copy's index entries are loaded.
struct Loading
{
  Loading(THD *session, ulonglong rows, uint indexes) : thd(session), stage(session, rows, rows * indexes, false) {}
  THD *thd;
  Alter_stage stage;
};

bool is_loading_wanted(void *context)
{
  Loading *loading= static_cast<Loading *>(context);
  loading->stage.step();
  return !is_killed(loading->thd);
}
} // namespace

// A record as the engine keeps it; `out->key` of a table without a primary key is the caller's to set.
void ha_weir::encode(const uchar *record, Encoded_row *out, const uchar *other)
{
  if (has_primary())
  {
    out->key.clear();
    m_primary.encode_record(record, &out->key);
  }
  out->row.clear();
  m_row.encode(record, &out->row);
  size_t count= m_indexes.size() - (has_primary() ? 1 : 0) + m_announced.size();
  out->entry_keys.resize(count);
  out->payloads.resize(count);
  out->entries.resize(count);
  for (const Weir_index &index : m_indexes)
    if (index.place != WEIR_ROWS)
      encode_entry(index, record, out, other);
  for (const std::unique_ptr<Announced_index> &announced : m_announced)
    encode_entry(announced->index, record, out, other);
  out->view.key= bytes_of(out->key);
  out->view.row= bytes_of(out->row);
  out->view.entries= out->entries.data();
  out->view.entry_count= count;
}

void ha_weir::encode_entry(const Weir_index &index, const uchar *record, Encoded_row *out, const uchar *other)
{
  std::string *key= &out->entry_keys[index.place], *payload= &out->payloads[index.place];
  key->clear();
  payload->clear();
  weir_entry *entry= &out->entries[index.place];
  entry->has_null= index.key.encode_record(record, key);
  if (index.fulltext && !(other && index.fulltext->same(record, other)))
    index.fulltext->encode_record(record, payload);
  if (index.spatial)
    index.spatial->encode_record(record, payload);
  if (index.covers)
    index.payload.encode(record, payload);
  entry->key= bytes_of(*key);
  entry->payload= bytes_of(*payload);
}

bool ha_weir::keeps_key(const uchar *a, const uchar *b) const
{
  if (!has_primary())
    return true;
  std::string left, right;
  m_primary.encode_record(a, &left);
  m_primary.encode_record(b, &right);
  return left == right;
}

int ha_weir::map_duplicate(weir_code code, int32_t duplicate)
{
  if (code != WEIR_DUPLICATE)
    return fail(code);
  m_duplicate= table_share->primary_key;
  for (uint i= 0; i < m_indexes.size(); i++)
    if (m_indexes[i].place == duplicate)
      m_duplicate= i;
  m_trx->note_duplicate(table_share, m_duplicate);
  return HA_ERR_FOUND_DUPP_KEY;
}

// Whether an update changes nothing of what is kept: the rest of a row is made of that.
bool ha_weir::is_same_row() const
{
  return m_old.key == m_new.key && m_old.row == m_new.row && m_old.entry_keys == m_new.entry_keys &&
         m_old.payloads == m_new.payloads;
}

// Sees to it that a number that a row has brought with it is not given out.
int ha_weir::note_number(const uchar *record)
{
  Field *field= table->found_next_number_field;
  if (!field || record != table->record[0] || table_share->next_number_keypart)
    return 0;
  longlong value= field->val_int();
  if (value == 0 || (value < 0 && !(field->flags & UNSIGNED_FLAG)))
    return 0;
  ulonglong max= field->get_max_int_value();
  weir_code code= m_share->pass_number(m_table, txn(), std::min<ulonglong>(value, max), max);
  return code == WEIR_OK ? 0 : fail(code);
}

// Whether a row that replication brings, or a statement that does without, has no geometry where a SPATIAL key is to have one.
static bool lacks_geometry(const TABLE *table, const uchar *record)
{
  const uint32 srid_bytes= 4;
  for (uint i= 0; i < table->s->keys; i++)
  {
    const KEY *key= &table->key_info[i];
    if (!is_spatial(key))
      continue;
    const Field_blob *column= static_cast<const Field_blob *>(table->field[key->key_part[0].fieldnr - 1]);
    if (column->get_length(static_cast<uint>(record - table->record[0])) <= srid_bytes)
      return true;
  }
  return false;
}

int ha_weir::write_row(const uchar *record)
{
  Engine_stats counts(handler_stats);
  if (lacks_geometry(table, record))
    return HA_ERR_NULL_IN_SPATIAL;
  if (int error= take_part())
    return error;
  if (int error= begin_filling())
    return error;
  m_number_error= 0;
  if (table->next_number_field && record == table->record[0])
    if (int error= update_auto_increment())
      return m_number_error ? m_number_error : error;
  if (has_foreign_keys() && !m_parents.empty())
  {
    Row_point point(m_trx, true);
    if (int error= insert_row(record))
      return error;
    m_failure= Foreign_failure();
    if (int error= check_parents(record, nullptr, nullptr, &m_failure))
      return point.take_back(error);
  }
  else if (int error= insert_row(record))
    return error;
  if (int error= note_late_words())
    return error;
  if (int error= end_own())
    return error;
  count_row(1);
  if (unlikely(thd_sql_command(ha_thd()) == SQLCOM_CREATE_TABLE) && !is_temporary_name(m_name))
    m_trx->fills(this);
  if (int error= note_number(record))
    return error;
  if (m_copying && ++m_copied % COPY_BATCH == 0)
    return m_trx->commit_part();
  return 0;
}

// ALTER begins to copy rows to this table, which is new and empty. Where each row is looked at beside others while they are
// copied, they are inserted one by one. So they are in partitions: each would have memory for sorting of its own.
void ha_weir::begin_copy()
{
  bool looks= table_share->long_unique_table || (has_foreign_keys() && !m_parents.empty());
  if (m_copying && !table->part_info && !looks && weir_copy_begin(m_table, &m_copy) != WEIR_OK)
    m_copy= nullptr;
}

int ha_weir::end_copy()
{
  if (!m_copy)
    return 0;
  int32_t duplicate= WEIR_ROWS;
  weir_bytes key= {nullptr, 0}, row;
  uint indexes= table_share->keys - (table_share->primary_key != MAX_KEY);
  Loading loading(ha_thd(), m_copied, indexes);
  weir_code code= weir_copy_finish(m_copy, is_loading_wanted, &loading, &duplicate, &key);
  // The error says the values of the row that is one too many.
  if (code == WEIR_DUPLICATE && weir_table_get(m_table, txn(), key, WEIR_LOCK_SHARE, &row) == WEIR_OK)
    decode(table->record[0], key.data, key.len, row.data, row.len);
  int error= code == WEIR_OK ? 0 : map_duplicate(code, duplicate);
  give_up_copy();
  return error;
}

void ha_weir::give_up_copy()
{
  if (m_copy)
    weir_copy_close(m_copy);
  m_copy= nullptr;
}

void ha_weir::filled()
{
  // No other session can have used it yet.
  if (weir_table_filled(weir_database, bytes_of(m_name), 0) != WEIR_OK)
    sql_print_warning("Weir: %s: snapshots from before show it empty: %s", m_name.c_str(), weir_message());
  // The next to use the table may use this very handler.
  refreshed(WEIR_CHANGED);
}

// Locks the key of a row, or of its entry in a unique index, whichever row has it. WEIR_NOTHING: none has.
weir_code ha_weir::lock_key(int32_t place, const Encoded_row &row, uint32_t lock)
{
  if (place == WEIR_ROWS)
  {
    weir_bytes found;
    return weir_table_get(m_table, txn(), row.view.key, lock, &found);
  }
  std::string to= row.entry_keys[place];
  weir_range range;
  range.index= place;
  range.from= row.entries[place].key;
  range.has_to= after_prefix(&to);
  range.to= bytes_of(to);
  range.down= range.skip_locked= false;
  range.lock= lock;
  weir_scan *scan;
  weir_code code= weir_scan_open(m_table, txn(), &range, &scan);
  if (code != WEIR_OK)
    return code;
  weir_found found;
  code= weir_scan_next(scan, txn(), &found);
  weir_scan_close(scan);
  return code;
}

// As InnoDB: what a row is refused for stays until the transaction ends, and a statement that is to change it instead finds it
// there. WEIR_NOTHING: it has gone meanwhile.
weir_code ha_weir::lock_duplicate(weir_code code, int32_t place, const Encoded_row &row)
{
  // A copy by ALTER has no writer beside it.
  if (code != WEIR_DUPLICATE || m_copying)
    return code;
  weir_code locked= lock_key(place, row, m_replaces ? WEIR_LOCK_UPDATE : WEIR_LOCK_SHARE);
  return locked == WEIR_OK ? code : locked;
}

// At SERIALIZABLE, a transaction that finds a duplicate shares it with others, none of which could change it then: what is to be
// changed is looked for before. WEIR_NOTHING: there is none.
weir_code ha_weir::lock_replaced(int32_t *duplicate)
{
  if (!m_replaces || m_trx->isolation() != WEIR_SERIALIZABLE)
    return WEIR_NOTHING;
  for (const Weir_index &index : m_indexes)
  {
    if (!index.unique || (index.place != WEIR_ROWS && m_new.entries[index.place].has_null))
      continue;
    *duplicate= index.place;
    weir_code code= lock_key(index.place, m_new, WEIR_LOCK_UPDATE);
    if (code != WEIR_NOTHING)
      return code == WEIR_OK ? WEIR_DUPLICATE : code;
  }
  return WEIR_NOTHING;
}

weir_code ha_weir::insert_encoded(int32_t *duplicate)
{
  if (m_copy)
    return weir_copy_row(m_copy, txn(), &m_new.view, duplicate);
  weir_code code= lock_replaced(duplicate);
  if (code != WEIR_NOTHING)
    return code;
  do
  {
    code= weir_table_insert(m_table, txn(), &m_new.view, duplicate);
    code= lock_duplicate(code, *duplicate, m_new);
  } while (code == WEIR_NOTHING);
  return code;
}

weir_code ha_weir::update_encoded(int32_t *duplicate)
{
  weir_code code;
  do
  {
    code= weir_table_update(m_table, txn(), &m_old.view, &m_new.view, duplicate);
    code= lock_duplicate(code, *duplicate, m_new);
  } while (code == WEIR_NOTHING);
  return code;
}

int ha_weir::insert_row(const uchar *record)
{
  if (!has_primary())
  {
    weir_code code= weir_table_take_row_id(m_table, txn(), m_row_id);
    if (refreshed(code))
      code= weir_table_take_row_id(m_table, txn(), m_row_id);
    if (code != WEIR_OK)
      return fail(code);
    m_new.key.assign(reinterpret_cast<char *>(m_row_id), sizeof(m_row_id));
  }
  encode(record, &m_new);
  keep_words_back();
  m_share->note_nulls(table, record);
  int32_t duplicate= WEIR_ROWS;
  weir_code code= insert_encoded(&duplicate);
  if (refreshed(code))
  {
    encode(record, &m_new);
    keep_words_back();
    code= insert_encoded(&duplicate);
  }
  return code == WEIR_OK ? 0 : map_duplicate(code, duplicate);
}

// Computes the hash columns of long unique keys in a record.
static void compute_hashes(TABLE *table, const uchar *record)
{
  bool elsewhere= record != table->record[0];
  if (elsewhere)
    table->move_fields(table->field, record, table->record[0]);
  for (Field **field= table->vfield; field && *field; field++)
    if ((*field)->flags & LONG_UNIQUE_HASH_FIELD)
      table->update_virtual_field(*field, true);
  if (elsewhere)
    table->move_fields(table->field, table->record[0], record);
}

int ha_weir::update_row(const uchar *old_record, const uchar *new_record)
{
  if (LEAVES_HASH_COLUMNS && table_share->long_unique_table)
  {
    compute_hashes(table, old_record);
    compute_hashes(table, new_record);
  }
  Engine_stats counts(handler_stats);
  if (lacks_geometry(table, new_record))
    return HA_ERR_NULL_IN_SPATIAL;
  if (int error= write_words_of_all())
    return error;
  if (!has_primary())
  {
    m_old.key.assign(reinterpret_cast<char *>(m_row_id), sizeof(m_row_id));
    m_new.key= m_old.key;
  }
  if (int error= lock_own_row())
    return error;
  bool has_words= false;
  for (const Weir_index &index : m_indexes)
    has_words|= index.fulltext != nullptr;
  bool leaves_words= has_words && keeps_key(old_record, new_record);
  auto encode_both= [&]() {
    encode(old_record, &m_old, leaves_words ? new_record : nullptr);
    encode(new_record, &m_new, leaves_words ? old_record : nullptr);
  };
  encode_both();
  // The server compares rows only if it has read all that it writes; as InnoDB, this is for sessions that count changes.
  if (!table_share->sequence && is_same_row())
    return HA_ERR_RECORD_IS_THE_SAME;
  m_share->note_nulls(table, new_record);
  bool watched= has_foreign_keys();
  m_failure= Foreign_failure();
  if (watched)
    if (int error= check_refusals(old_record, new_record, nullptr, &m_failure))
      return error;
  Row_point point(m_trx, watched);
  int32_t duplicate= WEIR_ROWS;
  weir_code code= update_encoded(&duplicate);
  if (refreshed(code))
  {
    encode_both();
    code= update_encoded(&duplicate);
  }
  if (code != WEIR_OK)
    return map_duplicate(code, duplicate);
  if (watched)
  {
    int error= check_children(old_record, new_record, nullptr, &m_failure);
    if (!error)
      error= check_parents(new_record, old_record, nullptr, &m_failure);
    if (error)
      return point.take_back(error);
  }
  return note_number(new_record);
}

int ha_weir::delete_row(const uchar *record)
{
  Engine_stats counts(handler_stats);
  if (int error= write_words_of_all())
    return error;
  if (!has_primary())
    m_old.key.assign(reinterpret_cast<char *>(m_row_id), sizeof(m_row_id));
  bool referred_to= has_foreign_keys() && !m_children.empty();
  m_failure= Foreign_failure();
  if (referred_to)
    if (int error= check_refusals(record, nullptr, nullptr, &m_failure))
      return error;
  Row_point point(m_trx, referred_to);
  encode(record, &m_old);
  weir_code code= weir_table_delete(m_table, txn(), &m_old.view);
  if (refreshed(code))
  {
    encode(record, &m_old);
    code= weir_table_delete(m_table, txn(), &m_old.view);
  }
  if (code != WEIR_OK)
    return fail(code);
  if (referred_to)
    if (int error= check_children(record, nullptr, nullptr, &m_failure))
      return point.take_back(error);
  count_row(-1);
  return 0;
}

void ha_weir::get_auto_increment(ulonglong offset, ulonglong increment, ulonglong wanted, ulonglong *first,
                                 ulonglong *reserved)
{
  // The second column of a key: numbers are counted for each value of the first.
  if (table_share->next_number_keypart)
  {
    handler::get_auto_increment(offset, increment, wanted, first, reserved);
    return;
  }
  ulonglong max= table->next_number_field->get_max_int_value();
  weir_code code= m_share->reserve_numbers(m_table, txn(), offset, increment, wanted, max, first,
                                           reserved);
  if (refreshed(code))
    code= m_share->reserve_numbers(m_table, txn(), offset, increment, wanted, max, first, reserved);
  if (code != WEIR_OK)
  {
    // All that the server takes here is that there is no number.
    m_number_error= fail(code);
    *first= ULONGLONG_MAX;
    *reserved= 0;
  }
}

int ha_weir::reset_auto_increment(ulonglong value)
{
  weir_code code= weir_table_reset_numbers(m_table, std::max<ulonglong>(value, 1));
  return code == WEIR_OK ? 0 : fail(code);
}
