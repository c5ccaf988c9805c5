// Tables that the server has dropped where there was no way back, and that a transaction still holds: one that is prepared,
// whose client may decide it at any time. They have no name of the server's any more, and go when no transaction holds them.
#ifndef WEIR_PLUGIN_GRAVEYARD_H
#define WEIR_PLUGIN_GRAVEYARD_H

#include <string>

#include "engine.h"

// Takes the table's name away without waiting for the transactions that hold it. The caller holds Definitions::changing.
weir_code bury(const std::string &table);

bool is_buried_name(const std::string &table);

// Drops those that no transaction holds now: at the start, and whenever a prepared transaction was decided.
void drop_buried();

#endif
