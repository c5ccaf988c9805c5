// What ALTER makes of a table's columns without writing its rows anew.
#ifndef WEIR_PLUGIN_ALTER_COLUMNS_H
#define WEIR_PLUGIN_ALTER_COLUMNS_H

#include "definition.h"
#include "server.h"

#include <utility>
#include <vector>

const KEY *primary_of(const TABLE *table);

// Whether a column may become this one while its rows stay: only how long its values may be, or how they compare, changes.
bool can_grow(const Field &field, const Column_definition &then);

// Why the rows as they are cannot be read as rows of the new table, if that is worth an error of its own; nullptr: they can. What has
// become NOT NULL has still to be looked at.
const char *why_not_as_they_are(const TABLE *table, const TABLE *altered, const Alter_info *said,
                                const Table_definition &now);

// Whether each row can be made one of the new table: what comes has one value for all, and types stay, or grow.
bool can_be_written_anew(const TABLE *altered, const Alter_info *said);

// Stored columns of the new table that there were, each with what it was: from, to; and those that come, and their value
// for rows that there are, into the record.
std::vector<std::pair<Field *, Field *>> columns_kept(const TABLE *altered, const Alter_info *said);
std::vector<Field *> columns_that_come(const TABLE *altered, const Alter_info *said);
void take_value(Field *column);

// Whether rows of the new table lie in the same order.
bool keeps_order(const TABLE *table, const TABLE *altered, const Alter_info *said);

// Whether one of these columns has gone, or is of another type.
bool changes_one_of(const Alter_info *said, const TABLE *table, const std::vector<std::string> &columns);

// How rows lie in the new table, old ones and new ones.
void lay_out(const TABLE *table, TABLE *altered, const Alter_info *said, const Table_definition &now,
             Table_definition *then);

// The columns of `table` that have become NOT NULL.
std::vector<Field *> not_null_columns(const TABLE *table, const Alter_info *said);

#endif
