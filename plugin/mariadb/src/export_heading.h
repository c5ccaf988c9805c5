// What an exported table is said to be, so that another one can be compared with it.
#ifndef WEIR_PLUGIN_EXPORT_HEADING_H
#define WEIR_PLUGIN_EXPORT_HEADING_H

#include <string>
#include <vector>

#include "server.h"

struct Export_heading
{
  // The name that it had, and the server's version.
  std::string table, server;
  bool versioned= false;
  // Each column with its type, as it is kept, in order; each index with its columns, by name.
  std::vector<std::string> columns, indexes;

  static Export_heading of(const TABLE *table);
  std::string encode() const;
  // False: a later version has written it.
  bool decode(const std::string &bytes);
  // What about `other`, which was exported, is not as here; empty: nothing.
  std::string misfit(const Export_heading &other) const;
};

#endif
