// Windows by a SPATIAL key: which rows lie so to a rectangle. What is read of the key is the engine's (weir_window_next); the
// server looks at each row's geometry itself.
#include "ha_weir.h"

#include "engine_stats.h"

namespace
{

// How a row lies to the window; the server says how the window lies to the row. False: it is no such read.
bool relation_of(ha_rkey_function find, uint32_t *relation)
{
  switch (find)
  {
  case HA_READ_MBR_INTERSECT:
    *relation= WEIR_INTERSECTS;
    return true;
  case HA_READ_MBR_CONTAIN:
    *relation= WEIR_WITHIN;
    return true;
  case HA_READ_MBR_WITHIN:
    *relation= WEIR_CONTAINS;
    return true;
  case HA_READ_MBR_DISJOINT:
    *relation= WEIR_DISJOINT;
    return true;
  case HA_READ_MBR_EQUAL:
    *relation= WEIR_EQUAL;
    return true;
  default:
    return false;
  }
}

} // namespace

weir_window ha_weir::window_of(uint index, const uchar *key, ha_rkey_function find)
{
  weir_window what;
  what.index= m_indexes[index].place;
  what.mbr= mbr_of_image(key);
  what.relation= WEIR_INTERSECTS;
  relation_of(find, &what.relation);
  what.lock= lock();
  what.skip_locked= m_skip_locked;
  what.go_on= is_check_wanted;
  what.context= this;
  return what;
}

weir_code ha_weir::open_window(const uchar *key, ha_rkey_function find, weir_bytes *first)
{
  weir_window_close(m_window);
  m_window= nullptr;
  weir_window what= window_of(active_index, key, find);
  weir_code code= weir_window_open(&what, &m_window);
  m_scan_part= m_trx->part();
  return code == WEIR_OK ? weir_window_next(m_window, m_table, txn(), first) : code;
}

int ha_weir::window_read(uchar *buf, const uchar *key, ha_rkey_function find)
{
  Engine_stats counts(handler_stats);
  uint32_t relation;
  if (!relation_of(find, &relation))
    return HA_ERR_WRONG_COMMAND;
  close_scan();
  if (int error= begin_own())
    return error;
  mark_locks();
  weir_bytes first;
  weir_code code= open_window(key, find, &first);
  if (refreshed(code))
    code= open_window(key, find, &first);
  if (code == WEIR_NOTHING)
    return HA_ERR_KEY_NOT_FOUND;
  if (code != WEIR_OK)
    return fail(code);
  int error= read_windowed(buf, first);
  return error == HA_ERR_KEY_NOT_FOUND ? window_next(buf) : error;
}

// Reads a row that was found. HA_ERR_KEY_NOT_FOUND: it has gone since, or is passed over.
int ha_weir::read_windowed(uchar *buf, weir_bytes key)
{
  int error= read_row(buf, key.data, key.len);
  mark_locks_end();
  if (error == HA_ERR_KEY_NOT_FOUND)
    unlock_row();
  return error;
}

int ha_weir::window_next(uchar *buf)
{
  Engine_stats counts(handler_stats);
  for (;;)
  {
    if (is_killed(ha_thd()))
      return HA_ERR_ABORTED_BY_USER;
    if (m_scan_part != m_trx->part())
      return HA_ERR_WRONG_COMMAND;
    mark_locks();
    weir_bytes key;
    weir_code code= weir_window_next(m_window, m_table, txn(), &key);
    if (code == WEIR_NOTHING)
      return HA_ERR_END_OF_FILE;
    if (code != WEIR_OK)
      return fail(code);
    int error= read_windowed(buf, key);
    if (error != HA_ERR_KEY_NOT_FOUND)
      return error;
  }
}

// About how many rows a window finds.
ha_rows ha_weir::window_rows(uint index, const uchar *key, ha_rkey_function find)
{
  weir_window what= window_of(index, key, find);
  uint64_t rows= 0;
  if (what.relation == WEIR_DISJOINT)
    return std::max<ha_rows>(m_share->rows(m_table), 1);
  if (weir_window_estimate(m_table, &what, &rows) != WEIR_OK)
    return HA_POS_ERROR;
  return std::max<uint64_t>(std::min<uint64_t>(rows, m_share->rows(m_table)), 1);
}
