// What ALTER makes of a table's columns without writing its rows anew.
#ifndef WEIR_PLUGIN_ALTER_COLUMNS_H
#define WEIR_PLUGIN_ALTER_COLUMNS_H

#include "definition.h"
#include "server.h"

const KEY *primary_of(const TABLE *table);

// Whether a column may become this one while its rows stay: only how long its values may be, or how they compare, changes.
bool can_grow(const Field &field, const Column_definition &then);

// Why the rows as they are cannot be read as rows of the new table, if that is worth telling; nullptr: they can. What has
// become NOT NULL has still to be looked at.
const char *why_not_as_they_are(const TABLE *table, const TABLE *altered, const Alter_info *said,
                                const Table_definition &now);

// Whether one of these columns has gone, or is of another type.
bool changes_one_of(const Alter_info *said, const TABLE *table, const std::vector<std::string> &columns);

// How rows lie in the new table, old ones and new ones.
void lay_out(const TABLE *table, TABLE *altered, const Alter_info *said, const Table_definition &now,
             Table_definition *then);

// The columns of `table` that have become NOT NULL.
std::vector<Field *> not_null_columns(const TABLE *table, const Alter_info *said);

#endif
