#include "known_rows.h"

Known_rows weir_known_rows;

longlong Known_rows::find(const std::string &table) const
{
  std::lock_guard<std::mutex> guard(m_mutex);
  std::map<std::string, longlong>::const_iterator at= m_rows.find(table);
  return at == m_rows.end() ? -1 : at->second;
}

void Known_rows::keep(const std::string &table, longlong rows)
{
  if (rows < 0)
    return;
  std::lock_guard<std::mutex> guard(m_mutex);
  m_rows[table]= rows;
}

void Known_rows::forget(const std::string &table)
{
  std::lock_guard<std::mutex> guard(m_mutex);
  m_rows.erase(table);
}

void Known_rows::rename(const std::string &from, const std::string &to)
{
  std::lock_guard<std::mutex> guard(m_mutex);
  std::map<std::string, longlong>::iterator at= m_rows.find(from);
  m_rows.erase(to);
  if (at == m_rows.end())
    return;
  longlong rows= at->second;
  m_rows.erase(at);
  m_rows[to]= rows;
}
