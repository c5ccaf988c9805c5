// What all handlers of one table share.
#ifndef WEIR_PLUGIN_SHARE_H
#define WEIR_PLUGIN_SHARE_H

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

  // About how many rows there are; writers tell of theirs (row_count).
  ulonglong rows(weir_table *table);
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

private:
  std::string m_name;
  const std::shared_ptr<Row_count> m_rows;
  std::mutex m_mutex;
  Rows_per_key m_rows_per_key;
  ulonglong m_rows_then= 0;
  weir_table *m_table;
};

#endif
