// About how many rows a table has, and what a transaction gives back of that when it rolls back.
#ifndef WEIR_PLUGIN_ROW_COUNT_H
#define WEIR_PLUGIN_ROW_COUNT_H

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server.h"

// Of a table. A transaction that has changed it may outlive the handlers of the table, so it is shared.
class Row_count
{
public:
  Row_count() : m_rows(-1) {}

  // Below zero: not looked at yet.
  longlong known() const { return m_rows; }
  // What was found, unless another thread was faster.
  void found(ulonglong rows);
  void set(ulonglong rows) { m_rows= static_cast<longlong>(rows); }
  void forget() { m_rows= -1; }
  // Not below nothing: the table may have been emptied since it was counted.
  void change(longlong by);

private:
  std::atomic<longlong> m_rows;
};

// Of a transaction: by how much it has changed which counts, now and at each of its points to go back to. Later points
// have greater numbers.
class Row_changes
{
public:
  // `place` is the caller's to keep: where its table was found here last.
  void add(const std::shared_ptr<Row_count> &of, longlong by, size_t *place);

  void mark(uint64_t point);
  // Gives back what was added since the point, which stays; later ones are gone.
  void go_back(uint64_t point);
  void release(uint64_t point);
  void give_back();
  // They are not given back any more.
  void forget();

private:
  struct Change
  {
    std::shared_ptr<Row_count> of;
    longlong by;
  };
  // m_then has what the changes came to, from `first` on: as many as there were.
  struct Mark
  {
    uint64_t point;
    size_t first;
  };
  size_t place_of(const std::shared_ptr<Row_count> &of);

  // A table that is in here stays, so places do until the end.
  std::vector<Change> m_changes;
  std::vector<Mark> m_marks;
  std::vector<longlong> m_then;
};

// Of XA transactions that are prepared, by their names: any session may decide one. What was prepared
// before the server started is not here: then the tables' rows are estimated with it, until ANALYZE.
class Prepared_changes
{
public:
  void keep(const std::string &name, Row_changes *changes);
  void give_back(const std::string &name);
  void forget(const std::string &name);

private:
  std::mutex m_mutex;
  std::map<std::string, Row_changes> m_by_name;
};

extern Prepared_changes weir_prepared_changes;

#endif
