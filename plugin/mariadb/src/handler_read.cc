#include "ha_weir.h"

#include "engine_stats.h"

namespace
{
// The engine keeps so much of a row beside its key, at least.
const uint FRONT_BYTES_MIN= 128;
} // namespace

void ha_weir::close_scan()
{
  weir_scan_close(m_scan);
  m_scan= nullptr;
  weir_window_close(m_window);
  m_window= nullptr;
  m_on= m_read_unlocked= false;
}

// Gives the walk up with its transaction, and keeps where it stood: HANDLER goes on there in another one.
void ha_weir::suspend_scan()
{
  if (m_scan && m_on)
    m_at.assign(reinterpret_cast<const char *>(m_found.tree_key.data), m_found.tree_key.len);
  close_scan();
}

// Keeps in mind what is locked before a row is read that the statement may not want.
void ha_weir::mark_locks()
{
  if (m_unlocks && m_lock != WEIR_LOCK_NONE)
    weir_txn_lock_mark(txn(), &m_lock_mark);
  m_lock_end= m_lock_mark;
}

// And behind it: by the time that the server does not want the row, others of the join may have locked theirs.
void ha_weir::mark_locks_end()
{
  if (m_unlocks && m_lock != WEIR_LOCK_NONE && txn())
    weir_txn_lock_mark(txn(), &m_lock_end);
}

// The row that was read last does not fit: others may have it. From REPEATABLE READ on, no other transaction may make it fit.
void ha_weir::unlock_row()
{
  if (m_read_unlocked)
    m_read_unlocked= false;
  else if (m_unlocks && m_lock != WEIR_LOCK_NONE)
    weir_table_release_locks(m_table, txn(), m_lock_mark, m_lock_end);
  m_lock_end= m_lock_mark;
}

// An UPDATE need not wait for a row that another transaction has if it would not change it anyway.
void ha_weir::try_semi_consistent_read(bool yes)
{
  m_semi_consistent= yes && m_unlocks && m_lock == WEIR_LOCK_UPDATE;
  if (m_scan && m_place == WEIR_ROWS)
    weir_scan_semi_consistent(m_scan, m_semi_consistent);
}

// The server wants a row that was only shown: the next read is of the same one, with its lock.
bool ha_weir::was_semi_consistent_read() { return m_read_unlocked; }

// Begins a walk over the rows or an index, from `from` on and below `to`.
int ha_weir::open_scan(int32_t place, const std::string &from, const std::string *to, bool down)
{
  Engine_stats counts(handler_stats);
  close_scan();
  if (int error= begin_own())
    return error;
  weir_range range;
  range.index= place;
  range.from= bytes_of(from);
  range.to= to ? bytes_of(*to) : range.from;
  range.has_to= to != nullptr;
  range.down= down;
  range.skip_locked= m_skip_locked;
  range.lock= lock();
  m_place= place;
  m_down= down;
  m_bounded= false;
  m_beyond= 0;
  weir_code code= weir_scan_open(m_table, txn(), &range, &m_scan);
  if (refreshed(code))
    code= weir_scan_open(m_table, txn(), &range, &m_scan);
  if (code != WEIR_OK)
    return fail(code);
  m_scan_part= m_trx->part();
  if (m_semi_consistent && place == WEIR_ROWS)
    weir_scan_semi_consistent(m_scan, true);
  if (reads_fronts())
    weir_scan_fronts(m_scan, true);
  return 0;
}

// Whether of a long row what lies beside its key may be enough. Not when it is read to be changed, nor where it may be gone
// before the rest is asked for.
bool ha_weir::reads_fronts() const
{
  return (table_share->blob_fields || table_share->reclength > FRONT_BYTES_MIN) && lock() == WEIR_LOCK_NONE && !m_own &&
         !m_keyread && m_trx->isolation() != WEIR_READ_UNCOMMITTED;
}

bool ha_weir::decode_key(uchar *buf, const uchar *key, size_t length)
{
  if (has_primary())
    return m_primary.decode(key, length, buf);
  if (length != sizeof(m_row_id))
    return false;
  memcpy(m_row_id, key, sizeof(m_row_id));
  return true;
}

// Decodes what the statement wants from the first bytes of a row. False: it wants more.
bool ha_weir::decode_front(uchar *buf, weir_bytes key, weir_bytes row)
{
  size_t wanted= m_row.wanted();
  if (wanted == m_row.columns())
    return false;
  m_kept.assign(reinterpret_cast<const char *>(row.data), row.len);
  // The server looks at the length of a string before it asks where the bytes end.
  m_kept.append(sizeof(uint32), '\0');
  return decode_key(buf, key.data, key.len) &&
         m_row.decode_front(reinterpret_cast<const uchar *>(m_kept.data()), row.len, wanted, buf);
}

// Decodes the row that the walk has come to. HA_ERR_KEY_NOT_FOUND: it has gone.
int ha_weir::decode_found(uchar *buf)
{
  if (m_found.front)
  {
    if (decode_front(buf, m_found.tree_key, m_found.row))
      return 0;
    weir_code code= weir_scan_whole(m_scan, txn(), &m_found);
    if (code == WEIR_NOTHING)
      return HA_ERR_KEY_NOT_FOUND;
    if (code != WEIR_OK)
    {
      m_on= false;
      return fail(code);
    }
  }
  return decode(buf, m_found.tree_key.data, m_found.tree_key.len, m_found.row.data, m_found.row.len);
}

int ha_weir::decode(uchar *buf, const uchar *key, size_t key_length, const uchar *row, size_t row_length)
{
  if (table_share->blob_fields)
  {
    // The engine may move what blobs would point to; it is the handler's until the next row is read.
    m_kept.assign(reinterpret_cast<const char *>(row), row_length);
    row= reinterpret_cast<const uchar *>(m_kept.data());
  }
  return decode_key(buf, key, key_length) && m_row.decode(row, row_length, buf) ? 0 : HA_ERR_CRASHED;
}

// Reads the row of a primary key. HA_ERR_KEY_NOT_FOUND: there is none, or it is locked and to be passed over.
int ha_weir::read_row(uchar *buf, const uchar *key, size_t length)
{
  Engine_stats counts(handler_stats);
  weir_bytes row;
  if (reads_fronts() && m_row.wanted() < m_row.columns())
  {
    bool front;
    weir_code code= weir_table_get_front(m_table, txn(), bytes_of(key, length), &row, &front);
    if (refreshed(code))
      code= weir_table_get_front(m_table, txn(), bytes_of(key, length), &row, &front);
    if (code != WEIR_OK)
      return fail(code);
    if (!front)
      return decode(buf, key, length, row.data, row.len);
    if (decode_front(buf, bytes_of(key, length), row))
      return 0;
  }
  if (m_skip_locked)
    m_trx->set_lock_wait(false);
  weir_code code= weir_table_get(m_table, txn(), bytes_of(key, length), lock(), &row);
  if (refreshed(code))
    code= weir_table_get(m_table, txn(), bytes_of(key, length), lock(), &row);
  if (m_skip_locked)
    m_trx->set_lock_wait(true);
  if (code == WEIR_WOULD_WAIT && m_skip_locked)
    return HA_ERR_KEY_NOT_FOUND;
  if (code != WEIR_OK)
    return fail(code);
  return decode(buf, key, length, row.data, row.len);
}

// The virtual columns of an index, from a row that was read.
void ha_weir::compute_virtual_parts(const Weir_index &index)
{
  // The server empties this set for it, and may be reading by it.
  MY_BITMAP *set= &table->tmp_set;
  std::vector<my_bitmap_map> kept(set->bitmap, set->bitmap + no_words_in_map(set));
  for (const Key_part_codec &part : index.key.parts())
  {
    Field *field= table->field[part.field()->field_index];
    if (!field->stored_in_db())
      table->update_virtual_field(field, true);
  }
  std::copy(kept.begin(), kept.end(), set->bitmap);
}

// Whether the row that was read still is what the entry says. Locks and snapshots see to that by themselves.
bool ha_weir::is_of_entry(uchar *buf)
{
  if (m_lock != WEIR_LOCK_NONE || m_trx->isolation() != WEIR_READ_UNCOMMITTED)
    return true;
  const Weir_index &index= m_indexes[active_index];
  compute_virtual_parts(index);
  std::string key;
  index.key.encode_record(buf, &key);
  const weir_bytes of_entry= m_found.index_key;
  return key.size() == of_entry.len && memcmp(key.data(), of_entry.data, of_entry.len) == 0;
}

// Moves the walk on and reads what it comes to.
int ha_weir::step(uchar *buf)
{
  Engine_stats counts(handler_stats);
  int error= step_on(buf);
  mark_locks_end();
  return error;
}

int ha_weir::step_on(uchar *buf)
{
  for (;;)
  {
    if (is_killed(ha_thd()))
      return HA_ERR_ABORTED_BY_USER;
    mark_locks();
    if (m_by_handler && m_on)
      m_at.assign(reinterpret_cast<const char *>(m_found.tree_key.data), m_found.tree_key.len);
    weir_code code= m_read_unlocked ? weir_scan_lock_current(m_scan, txn(), &m_found)
                              : weir_scan_next(m_scan, txn(), &m_found);
    m_read_unlocked= false;
    if (code == WEIR_NOTHING)
    {
      // What it stood on is gone with the step.
      m_on= false;
      if (!m_bounded)
        m_beyond= m_down ? -1 : 1;
      return HA_ERR_END_OF_FILE;
    }
    if (code != WEIR_OK)
    {
      // Nor does it stand on anything now, and what it stood on may be gone. The next step tries again.
      m_on= false;
      return fail(code);
    }
    m_on= true;
    m_read_unlocked= m_found.unlocked;
    if (m_place == WEIR_ROWS)
    {
      int error= decode_found(buf);
      if (error == HA_ERR_KEY_NOT_FOUND)
        continue;
      return error;
    }
    bool condition= pushed_idx_cond && pushed_idx_cond_keyno == active_index;
    bool filter= pushed_rowid_filter && rowid_filter_is_active && m_indexes[active_index].covers;
    if (condition || filter)
    {
      // Most entries that do not fit cost no look at their row.
      if (int error= decode_entry(buf))
        return error;
      check_result_t fits= condition ? check_condition() : CHECK_POS;
      if (fits == CHECK_POS && filter)
        fits= handler_rowid_filter_check(this);
      if (fits == CHECK_NEG)
      {
        mark_locks_end();
        unlock_row();
        continue;
      }
      if (fits != CHECK_POS)
        return fits == CHECK_OUT_OF_RANGE ? HA_ERR_END_OF_FILE : HA_ERR_ABORTED_BY_USER;
    }
    bool from_entry= m_keyread && m_indexes[active_index].covers;
    if (from_entry && m_lock != WEIR_LOCK_UPDATE)
      return decode_entry(buf);
    // A statement that is about to change the row needs its lock, also if the entry has all that is asked for.
    int error= read_row(buf, m_found.primary_key.data, m_found.primary_key.len);
    if (!error && from_entry)
      return decode_entry(buf);
    // The server takes them to have come with the entry.
    if (!error && m_keyread)
      compute_virtual_parts(m_indexes[active_index]);
    // Not there, or another one by now: at READ UNCOMMITTED, its writer is at work. Or it is passed over.
    if (error != HA_ERR_KEY_NOT_FOUND && (error || is_of_entry(buf)))
      return error;
  }
}

// As `step`, in a direction: another walk is begun where this one cannot go.
int ha_weir::step_to(uchar *buf, bool down)
{
  if (active_index != MAX_KEY && m_indexes[active_index].spatial)
    return HA_ERR_WRONG_COMMAND;
  if (m_beyond)
  {
    if (m_beyond > 0 ? !down : down)
      return HA_ERR_END_OF_FILE;
    int error= open_scan(m_place, std::string(), nullptr, down);
    return error ? error : step(buf);
  }
  if (!goes_on() || m_down != down || m_bounded)
  {
    suspend_scan();
    std::string at= m_at;
    int error;
    if (down)
      error= open_scan(m_place, std::string(), &at, true);
    else
      error= open_scan(m_place, at.append(1, '\0'), nullptr, false);
    if (error)
      return error;
  }
  return step(buf);
}

int ha_weir::rnd_init(bool scan)
{
  close_scan();
  m_at.clear();
  active_index= MAX_KEY;
  if (int error= take_part())
    return error;
  return scan ? open_scan(WEIR_ROWS, std::string(), nullptr, false) : 0;
}

int ha_weir::rnd_end()
{
  m_mrr.dsmrr_close();
  close_scan();
  return end_own();
}

int ha_weir::rnd_next(uchar *buf) { return goes_on() ? step(buf) : step_to(buf, false); }

void ha_weir::position(const uchar *record)
{
  if (has_primary())
    key_copy(ref, record, &table->key_info[table_share->primary_key], 0, true);
  else
    memcpy(ref, m_row_id, sizeof(m_row_id));
}

int ha_weir::rnd_pos(uchar *buf, uchar *pos)
{
  std::string key;
  if (has_primary())
    m_primary.encode_image(pos, HA_WHOLE_KEY, &key);
  else
    key.assign(reinterpret_cast<char *>(pos), sizeof(m_row_id));
  mark_locks();
  int error= read_row(buf, reinterpret_cast<const uchar *>(key.data()), key.size());
  mark_locks_end();
  return error;
}

int ha_weir::cmp_ref(const uchar *a, const uchar *b)
{
  if (!has_primary())
    return memcmp(a, b, sizeof(m_row_id));
  std::string left, right;
  m_primary.encode_image(a, HA_WHOLE_KEY, &left);
  m_primary.encode_image(b, HA_WHOLE_KEY, &right);
  return left.compare(right);
}

int ha_weir::index_init(uint index, bool)
{
  close_scan();
  active_index= index;
  m_place= m_indexes[index].place;
  m_beyond= 0;
  return take_part();
}

int ha_weir::index_end()
{
  m_mrr.dsmrr_close();
  close_scan();
  active_index= MAX_KEY;
  in_range_check_pushed_down= false;
  return 0;
}

// Where the range that is being read ends: no row behind it is to be locked, or to be judged by what does not show it.
void ha_weir::bound_by_range_end(std::string *to, bool *has_to)
{
  *has_to= false;
  if (!end_range || !end_range->key || (m_lock == WEIR_LOCK_NONE && !judges_by_part()))
    return;
  m_indexes[active_index].search.encode_image(end_range->key, end_range->keypart_map, to);
  *has_to= end_range->flag == HA_READ_BEFORE_KEY || after_prefix(to);
}

int ha_weir::index_read_map(uchar *buf, const uchar *key, key_part_map parts, ha_rkey_function find)
{
  if (!key)
    return find == HA_READ_PREFIX_LAST || find == HA_READ_BEFORE_KEY ? index_last(buf) : index_first(buf);
  const Weir_index &index= m_indexes[active_index];
  if (index.spatial)
    return window_read(buf, key, find);
  std::string from, to;
  index.search.encode_image(key, parts, &from);
  to= from;
  bool has_to= after_prefix(&to);
  int error= 0;
  bool exact= find == HA_READ_KEY_EXACT || find == HA_READ_PREFIX;
  uint given= my_count_bits(parts & ((1ULL << index.key.parts().size()) - 1));
  if (exact && index.place == WEIR_ROWS && given == index.key.parts().size())
  {
    close_scan();
    m_at= from;
    m_place= WEIR_ROWS;
    m_beyond= 0;
    mark_locks();
    int error= read_row(buf, reinterpret_cast<const uchar *>(from.data()), from.size());
    mark_locks_end();
    // Others may make the row that is not there.
    if (error == HA_ERR_KEY_NOT_FOUND)
      unlock_row();
    return error;
  }
  switch (find)
  {
  case HA_READ_KEY_EXACT:
  case HA_READ_PREFIX:
    error= open_scan(index.place, from, has_to ? &to : nullptr, false);
    m_bounded= true;
    m_at= from;
    break;
  case HA_READ_KEY_OR_NEXT:
  case HA_READ_AFTER_KEY:
  {
    if (find == HA_READ_AFTER_KEY)
    {
      if (!has_to)
      {
        // No key is greater: it stands behind the last one.
        close_scan();
        m_place= index.place;
        m_beyond= 1;
        return HA_ERR_KEY_NOT_FOUND;
      }
      from= to;
    }
    std::string end;
    bool has_end;
    bound_by_range_end(&end, &has_end);
    error= open_scan(index.place, from, has_end ? &end : nullptr, false);
    m_bounded= false;
    break;
  }
  case HA_READ_PREFIX_LAST:
    error= open_scan(index.place, from, has_to ? &to : nullptr, true);
    m_bounded= true;
    break;
  case HA_READ_PREFIX_LAST_OR_PREV:
  case HA_READ_KEY_OR_PREV:
    error= open_scan(index.place, std::string(), has_to ? &to : nullptr, true);
    break;
  case HA_READ_BEFORE_KEY:
    error= open_scan(index.place, std::string(), &from, true);
    break;
  default:
    return HA_ERR_WRONG_COMMAND;
  }
  if (error)
    return error;
  error= step(buf);
  return error == HA_ERR_END_OF_FILE ? HA_ERR_KEY_NOT_FOUND : error;
}

int ha_weir::index_read_last_map(uchar *buf, const uchar *key, key_part_map parts)
{
  return index_read_map(buf, key, parts, HA_READ_PREFIX_LAST);
}

int ha_weir::index_next_same(uchar *buf, const uchar *, uint)
{
  // The walk that index_read_map has begun for an exact key ends where the key does. A row read by its whole
  // primary key has no others beside it.
  if (m_window)
    return window_next(buf);
  return m_scan ? step(buf) : HA_ERR_END_OF_FILE;
}

int ha_weir::index_next(uchar *buf) { return step_to(buf, false); }

int ha_weir::index_prev(uchar *buf) { return step_to(buf, true); }

int ha_weir::index_first(uchar *buf)
{
  if (m_indexes[active_index].spatial)
    return HA_ERR_WRONG_COMMAND;
  std::string end;
  bool has_end= false;
  if (judges_by_part())
    bound_by_range_end(&end, &has_end);
  int error= open_scan(m_indexes[active_index].place, std::string(), has_end ? &end : nullptr, false);
  return error ? error : step(buf);
}

int ha_weir::index_last(uchar *buf)
{
  if (m_indexes[active_index].spatial)
    return HA_ERR_WRONG_COMMAND;
  int error= open_scan(m_indexes[active_index].place, std::string(), nullptr, true);
  return error ? error : step(buf);
}
