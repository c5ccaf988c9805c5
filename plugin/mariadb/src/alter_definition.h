// What an ALTER without a copy says of a table: which of its parts are altered, which keys come, which names change, and
// what the engine's definition is to be.
#ifndef WEIR_PLUGIN_ALTER_DEFINITION_H
#define WEIR_PLUGIN_ALTER_DEFINITION_H

#include <string>
#include <utility>
#include <vector>

#include "ha_weir.h"

const alter_table_operations ADDS= ALTER_ADD_INDEX | ALTER_ADD_NON_UNIQUE_NON_PRIM_INDEX | ALTER_ADD_UNIQUE_INDEX;
const alter_table_operations DROPS=
    ALTER_DROP_INDEX | ALTER_DROP_NON_UNIQUE_NON_PRIM_INDEX | ALTER_DROP_UNIQUE_INDEX;

// What changes the engine's definition of the table and nothing else of it.
const alter_table_operations RENAMES= ALTER_COLUMN_NAME | ALTER_RENAME_INDEX;

// Columns that come, go, move or grow without a row being written.
const alter_table_operations STORED_COLUMNS= ALTER_ADD_STORED_BASE_COLUMN | ALTER_DROP_STORED_COLUMN |
                                             ALTER_STORED_COLUMN_ORDER | ALTER_COLUMN_TYPE_CHANGE_BY_ENGINE |
                                             ALTER_COLUMN_NULLABLE | ALTER_COLUMN_NOT_NULLABLE;
const alter_table_operations COLUMNS= STORED_COLUMNS | ALTER_ADD_VIRTUAL_COLUMN | ALTER_DROP_VIRTUAL_COLUMN |
                                      ALTER_COLUMN_ORDER | ALTER_VIRTUAL_COLUMN_ORDER | ALTER_RENAME_COLUMN |
                                      ALTER_COLUMN_INDEX_LENGTH;
// Those after which a snapshot from before may not be read as of the new table.
const alter_table_operations NULLS= ALTER_COLUMN_NULLABLE | ALTER_COLUMN_NOT_NULLABLE;

// A table that is altered, or a partition of one.
struct Altered_part : public inplace_alter_handler_ctx
{
  explicit Altered_part(ha_weir *part) : handler(part), rewrites(false) {}
  ha_weir *handler;
  // Its rows are written anew.
  bool rewrites;
};

inline bool rewrites(const Alter_inplace_info *info)
{
  return info->handler_ctx && static_cast<const Altered_part *>(info->handler_ctx)->rewrites;
}

// All that are altered as one: the partitions of a table, or the table itself.
std::vector<ha_weir *> altered_parts(ha_weir *own, const Alter_inplace_info *info);
// The place of one among them: of partitions, the one that it has in the table.
size_t place_of(ha_weir *own, const Alter_inplace_info *info);

const KEY *find_key(const TABLE *table, const char *name);
std::vector<const KEY *> added_keys(const TABLE *altered, const Alter_inplace_info *info);
std::vector<weir_new_name> renamed_indexes(const TABLE *table, const Alter_inplace_info *info);

// Columns with other names: from, to.
typedef std::vector<std::pair<std::string, std::string>> New_names;

New_names renamed_columns(const Alter_info *said);
void rename_columns(const New_names &names, std::vector<std::string> *columns);

// Whether the statement drops the foreign key of this name.
bool is_dropped_key(const Alter_info *said, const std::string &name);

// What the table's definition is to be, rows aside; and with how they lie.
Table_definition definition_without_rows(const Table_definition &now, const std::string &name, const TABLE *altered,
                                         const Alter_inplace_info *info);
Table_definition altered_definition(const Table_definition &now, const std::string &name, const TABLE *table,
                                    TABLE *altered, const Alter_inplace_info *info);

// Definitions as the engine takes them, in memory of their own.
class Redefinitions
{
public:
  // The codec is that of a statement that changes it, or NULL.
  void add(const std::string &name, const Table_definition &definition, const std::vector<weir_new_name> *renamed,
           const char *codec);
  const weir_redefinition *data();
  size_t size() const { return m_all.size(); }

private:
  struct One
  {
    std::string name, definition, layouts;
    const std::vector<weir_new_name> *renamed;
    const char *codec;
  };
  std::vector<One> m_all;
  std::vector<weir_redefinition> m_views;
};

#endif
