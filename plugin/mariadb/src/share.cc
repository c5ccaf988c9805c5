#include "share.h"

#include <algorithm>

#include "known_rows.h"

Weir_share::~Weir_share()
{
  if (!is_temporary_name(m_name))
    weir_known_rows.keep(m_name, m_rows->known());
  weir_table_close(m_table);
}

weir_code Weir_share::open(weir_table **out)
{
  std::lock_guard<std::mutex> guard(m_mutex);
  if (!m_table)
  {
    weir_code code= weir_table_open(weir_database, bytes_of(m_name), &m_table);
    if (code != WEIR_OK)
      return code;
  }
  return weir_table_clone(m_table, out);
}

void Weir_share::forget(bool emptied)
{
  std::lock_guard<std::mutex> guard(m_mutex);
  weir_table_close(m_table);
  m_table= nullptr;
  // Indexes may have other places.
  m_rows_per_key.reset();
  if (emptied)
    m_rows->forget();
}

ulonglong Weir_share::rows(weir_table *table)
{
  longlong known= m_rows->known();
  if (known >= 0)
    return known;
  uint64_t rows= 0;
  uint32_t kind= WEIR_EXACT;
  weir_bytes all= {nullptr, 0};
  if (weir_table_estimate(table, WEIR_ROWS, all, nullptr, &rows, &kind) != WEIR_OK)
    return 2;
  m_rows->found(rows);
  return rows;
}

void Weir_share::watch_nulls(const std::vector<uint> &columns)
{
  m_watched= columns;
  m_null_seen.store(false, std::memory_order_release);
  m_watching.store(true, std::memory_order_release);
}

void Weir_share::look_for_nulls(const TABLE *table, const uchar *record)
{
  for (uint column : m_watched)
    if (column < table->s->fields && table->field[column]->is_null_in_record(record))
      m_null_seen.store(true, std::memory_order_release);
}

Weir_share::Rows_per_key Weir_share::rows_per_key(ulonglong rows)
{
  std::lock_guard<std::mutex> guard(m_mutex);
  // As much change as InnoDB takes new statistics after.
  ulonglong changed= rows > m_rows_then ? rows - m_rows_then : m_rows_then - rows;
  return changed > m_rows_then / 10 ? Rows_per_key() : m_rows_per_key;
}

void Weir_share::set_rows_per_key(const Rows_per_key &found, ulonglong rows)
{
  std::lock_guard<std::mutex> guard(m_mutex);
  m_rows_per_key= found;
  m_rows_then= rows;
}

weir_code Weir_share::reserve_numbers(weir_table *table, weir_txn *txn, ulonglong offset, ulonglong increment,
                                      ulonglong wanted, ulonglong max, ulonglong *first, ulonglong *count)
{
  // The definition is locked before the mutex: an ALTER that waits for another writer may stand before this one, and
  // that writer may want a number.
  weir_code code= weir_table_lock_definition(table, txn);
  if (code != WEIR_OK)
    return code;
  std::lock_guard<std::mutex> guard(m_mutex);
  uint64_t next= 0;
  code= weir_table_next_number(table, &next);
  if (code != WEIR_OK)
    return code;
  if (increment == 0)
    increment= 1;
  // The server ignores an offset above the increment.
  if (offset > increment)
    offset= 0;
  ulonglong start= std::max<ulonglong>(next, std::max<ulonglong>(offset, 1));
  ulonglong behind= (start - offset) % increment;
  if (behind)
    start= start > ULONGLONG_MAX - (increment - behind) ? ULONGLONG_MAX : start + increment - behind;
  if (start > max || start == ULONGLONG_MAX)
  {
    // The server finds out that this does not fit, and says which column it is.
    *first= max == ULONGLONG_MAX ? max : max + 1;
    *count= 1;
    return WEIR_OK;
  }
  ulonglong fit= (max - start) / increment + 1;
  *count= std::max<ulonglong>(1, std::min(wanted, fit));
  *first= start;
  // As InnoDB has it, the next number is a whole increment on, also for a session that counts otherwise.
  ulonglong last= start + (*count - 1) * increment;
  ulonglong used= last > ULONGLONG_MAX - increment ? last : last + increment - 1;
  return weir_table_pass_number(table, txn, used, max);
}

weir_code Weir_share::pass_number(weir_table *table, weir_txn *txn, ulonglong used, ulonglong max)
{
  std::lock_guard<std::mutex> guard(m_mutex);
  uint64_t next;
  weir_code code= weir_table_next_number(table, &next);
  if (code != WEIR_OK || used < next)
    return code;
  return weir_table_pass_number(table, txn, used, max);
}
