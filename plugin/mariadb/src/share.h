// What all handlers of one table share.
#ifndef WEIR_PLUGIN_SHARE_H
#define WEIR_PLUGIN_SHARE_H

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine.h"
#include "row_count.h"

class Weir_share : public Handler_share
{
public:
  explicit Weir_share(const std::string &name) : m_name(name), m_rows(new Row_count), m_table(nullptr) {}
  ~Weir_share() override;

  // A handle of the table as it is defined now.
  weir_code open(weir_table **out);
  // The definition has changed: the next handle is a new one. So are the rows, if they were emptied.
  void forget(bool emptied);

  // About how many rows there are; writers report theirs (row_count).
  ulonglong rows(weir_table *table);
  // Whether its rows were taken away (DISCARD TABLESPACE), so that no statement may use it.
  bool is_discarded() const { return m_discarded.load(std::memory_order_acquire); }
  void set_discarded(bool is) { m_discarded.store(is, std::memory_order_release); }
  void set_rows(ulonglong rows) { m_rows->set(rows); }
  const std::shared_ptr<Row_count> &row_count() const { return m_rows; }

  // For each index, rows for each value of its first columns (rows_per_key). nullptr: it is to be found out (anew), since
  // there are `rows` now.
  typedef std::shared_ptr<const std::vector<std::vector<double>>> Rows_per_key;
  Rows_per_key rows_per_key(ulonglong rows);
  void set_rows_per_key(const Rows_per_key &found, ulonglong rows);

  // Reserves numbers for a column that counts by `increment` from `offset`.
  weir_code reserve_numbers(weir_table *table, weir_txn *txn, ulonglong offset, ulonglong increment,
                            ulonglong wanted, ulonglong max, ulonglong *first, ulonglong *count);
  // A row has brought its own number.
  weir_code pass_number(weir_table *table, weir_txn *txn, ulonglong used, ulonglong max);

  // ALTER is to make these columns, by their places, NOT NULL: from now on it is kept in mind when a row is written with one
  // that is. Beside no writer; it ends beside others too.
  void watch_nulls(const std::vector<uint> &columns);
  void stop_watching() { m_watching.store(false, std::memory_order_release); }
  bool has_seen_null() const { return m_null_seen.load(std::memory_order_acquire); }
  void note_nulls(const TABLE *table, const uchar *record)
  {
    if (unlikely(m_watching.load(std::memory_order_acquire)))
      look_for_nulls(table, record);
  }

private:
  void look_for_nulls(const TABLE *table, const uchar *record);

  std::string m_name;
  std::vector<uint> m_watched;
  std::atomic<bool> m_watching{false}, m_null_seen{false}, m_discarded{false};
  const std::shared_ptr<Row_count> m_rows;
  std::mutex m_mutex;
  Rows_per_key m_rows_per_key;
  ulonglong m_rows_then= 0;
  weir_table *m_table;
};

#endif
