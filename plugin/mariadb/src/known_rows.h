// About how many rows tables have that no session has open: what was known when the server closed them (FLUSH TABLES, CREATE
// TRIGGER, a full cache of tables) is known when it opens them again. Lost with the server.
#ifndef WEIR_PLUGIN_KNOWN_ROWS_H
#define WEIR_PLUGIN_KNOWN_ROWS_H

#include <map>
#include <mutex>
#include <string>

#include "server.h"

class Known_rows
{
public:
  // Below zero: not known.
  longlong find(const std::string &table) const;
  void keep(const std::string &table, longlong rows);
  void forget(const std::string &table);
  void rename(const std::string &from, const std::string &to);

private:
  mutable std::mutex m_mutex;
  std::map<std::string, longlong> m_rows;
};

extern Known_rows weir_known_rows;

#endif
