// How many rows have equal keys: what the optimizer goes by.
#ifndef WEIR_PLUGIN_STATISTICS_H
#define WEIR_PLUGIN_STATISTICS_H

#include <vector>

#include "engine.h"
#include "key_codec.h"

// About how many rows have the same first part of a key, the same first two, and so on. `parts`: of the key, and those
// of the primary key behind it. Empty: the table is.
std::vector<double> rows_per_key(weir_table *table, int32_t place, const std::vector<Key_part_codec> &parts);

#endif
