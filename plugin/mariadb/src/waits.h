// Reports to the server which transactions wait for whose rows, and to its error log what an operator must hear of at once.
#ifndef WEIR_PLUGIN_WAITS_H
#define WEIR_PLUGIN_WAITS_H

// From now on, for the database that is open.
void report_waits();
void report_notices();

#endif
