// What the engine keeps for the server of a table: how often ALTER has changed it in place, how the keys of its indexes
// are made, and its foreign keys.
#ifndef WEIR_PLUGIN_DEFINITION_H
#define WEIR_PLUGIN_DEFINITION_H

#include <string>
#include <vector>

#include "key_codec.h"
#include "row_layout.h"
#include "server.h"

// A column of an index.
struct Part_definition
{
  std::string column;
  // Two columns of the same kind have the same bytes for the same values (Key_part_codec::kind_of_values).
  std::string kind;
  bool nullable;
  bool descending;
  // Not only the beginning of the column.
  bool whole;
};

struct Index_definition
{
  std::string name;
  bool unique;
  // It is the rows themselves.
  bool primary;
  std::vector<Part_definition> parts;
};

// A foreign key, kept with the table that it is of.
struct Foreign_key_definition
{
  std::string name;
  // "db/table", as the engine's names of tables are.
  std::string parent;
  std::vector<std::string> columns, parent_columns;
  enum_fk_option on_delete, on_update;
  // ALTER has taken it over from the table that it copies, whose rows were looked at before.
  bool carried;
};

struct Table_definition
{
  ulonglong version= 1;
  // WITH SYSTEM VERSIONING: rows that are history have no part in foreign keys, which is not done here.
  bool versioned= false;
  std::vector<Index_definition> indexes;
  std::vector<Foreign_key_definition> foreign_keys;
  // The last columns that rows hold: those that ALTER has added without writing the rows anew, in order.
  std::vector<Added_column> added;
  // More than that, from the first column on that was not added behind the others: then `added` is empty. nullptr: rows are
  // of one layout. Kept by the engine beside the rest, as long as it keeps the rows.
  Layouts_pointer layouts;
  // Of a copy that ALTER makes under another name than that of the table it is made from: that table.
  std::string replaces;
  // Of a partition: the server's number for the definition of the whole table that the last ALTER without a copy gave
  // it, by which the server's recovery can tell whether that was done.
  std::string altered_as;
  // ALTER TABLE ... DISCARD TABLESPACE has taken its rows away, and none have been imported yet.
  bool discarded= false;

  // An index whose first columns are these, in this order; one that is of the rows, then one that is unique, before
  // others. `kinds`, if given: what the values of the columns must be. nullptr: there is none.
  const Index_definition *find_index(const std::vector<std::string> &columns,
                                     const std::vector<std::string> *kinds) const;
  std::string encode() const;
  // What is shorter, of an older version of the plugin, knows of no indexes.
  static Table_definition decode(const uchar *bytes, size_t length);
};

// What an open table says of itself; no foreign keys.
Table_definition describe(const TABLE *table);

bool same_column(const std::string &a, const std::string &b);

#endif
