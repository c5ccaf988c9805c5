#include "row_count.h"

#include <algorithm>

Prepared_changes weir_prepared_changes;

void Row_count::found(ulonglong rows)
{
  longlong unknown= -1;
  m_rows.compare_exchange_strong(unknown, static_cast<longlong>(rows));
}

void Row_count::change(longlong by)
{
  longlong known= m_rows;
  while (known >= 0 && !m_rows.compare_exchange_weak(known, std::max<longlong>(known + by, 0)))
  {
  }
}

size_t Row_changes::place_of(const std::shared_ptr<Row_count> &of)
{
  size_t place= 0;
  while (place < m_changes.size() && m_changes[place].of != of)
    place++;
  if (place == m_changes.size())
    m_changes.push_back({of, 0});
  return place;
}

void Row_changes::add(const std::shared_ptr<Row_count> &of, longlong by, size_t *place)
{
  of->change(by);
  if (*place >= m_changes.size() || m_changes[*place].of != of)
    *place= place_of(of);
  m_changes[*place].by+= by;
}

void Row_changes::mark(uint64_t point)
{
  m_marks.push_back({point, m_then.size()});
  for (const Change &change : m_changes)
    m_then.push_back(change.by);
}

void Row_changes::go_back(uint64_t point)
{
  while (!m_marks.empty() && m_marks.back().point > point)
  {
    m_then.resize(m_marks.back().first);
    m_marks.pop_back();
  }
  if (m_marks.empty() || m_marks.back().point != point)
    return;
  size_t then= m_marks.back().first;
  for (Change &change : m_changes)
  {
    longlong by= then < m_then.size() ? m_then[then++] : 0;
    change.of->change(by - change.by);
    change.by= by;
  }
}

void Row_changes::release(uint64_t point)
{
  size_t nth= m_marks.size();
  while (nth > 0 && m_marks[nth - 1].point > point)
    nth--;
  if (nth == 0 || m_marks[nth - 1].point != point)
    return;
  size_t first= m_marks[nth - 1].first, end= nth < m_marks.size() ? m_marks[nth].first : m_then.size();
  m_then.erase(m_then.begin() + first, m_then.begin() + end);
  for (size_t later= nth; later < m_marks.size(); later++)
    m_marks[later].first-= end - first;
  m_marks.erase(m_marks.begin() + (nth - 1));
}

void Row_changes::give_back()
{
  for (const Change &change : m_changes)
    change.of->change(-change.by);
  forget();
}

void Row_changes::forget()
{
  m_changes.clear();
  m_marks.clear();
  m_then.clear();
}

void Prepared_changes::keep(const std::string &name, Row_changes *changes)
{
  std::lock_guard<std::mutex> guard(m_mutex);
  m_by_name[name]= std::move(*changes);
  changes->forget();
}

void Prepared_changes::give_back(const std::string &name)
{
  std::lock_guard<std::mutex> guard(m_mutex);
  auto found= m_by_name.find(name);
  if (found == m_by_name.end())
    return;
  found->second.give_back();
  m_by_name.erase(found);
}

void Prepared_changes::forget(const std::string &name)
{
  std::lock_guard<std::mutex> guard(m_mutex);
  m_by_name.erase(name);
}
