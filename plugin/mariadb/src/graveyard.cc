#include "graveyard.h"

#include <atomic>
#include <vector>

namespace
{

// No schema has such a name (tablename_to_filename writes '#' otherwise), and it is an intermediate one.
const char BURIED[]= "#weir-dropped/#sql-";

// Whether there may be any. The start looks.
std::atomic<bool> any{true};

void collect(void *context, weir_bytes name)
{
  std::string table(reinterpret_cast<const char *>(name.data), name.len);
  if (is_buried_name(table))
    static_cast<std::vector<std::string> *>(context)->push_back(table);
}

} // namespace

bool is_buried_name(const std::string &table) { return table.compare(0, sizeof(BURIED) - 1, BURIED) == 0; }

weir_code bury(const std::string &table)
{
  weir_code code= WEIR_EXISTS;
  ulonglong number= my_hrtime().val;
  // One that a start has left may have any number.
  for (uint tries= 0; code == WEIR_EXISTS && tries < 1000; tries++)
  {
    std::string name= BURIED + std::to_string(number + tries);
    code= weir_table_rename(weir_database, bytes_of(table), bytes_of(name));
  }
  if (code == WEIR_OK)
  {
    any= true;
    sql_print_information("Weir: %s is dropped, and goes when the transaction that holds it has ended", table.c_str());
  }
  return code;
}

void drop_buried()
{
  if (!any.exchange(false))
    return;
  std::vector<std::string> names;
  if (weir_table_names(weir_database, collect, &names) != WEIR_OK)
    any= true;
  for (const std::string &name : names)
  {
    weir_code code= weir_table_drop(weir_database, bytes_of(name), 0);
    if (code != WEIR_OK && code != WEIR_NOTHING)
      any= true;
  }
}
