// Tells the server who waits for whose rows.
#ifndef WEIR_PLUGIN_WAITS_H
#define WEIR_PLUGIN_WAITS_H

// From now on, for the database that is open.
void report_waits();

#endif
