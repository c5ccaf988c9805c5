// What the plugins of the information schema are made of: see info_schema.cc.
#ifndef WEIR_PLUGIN_INFO_SCHEMA_H
#define WEIR_PLUGIN_INFO_SCHEMA_H

#include "server.h"

extern void *const weir_schema_table;
int weir_init_metrics(void *p);
int weir_init_transactions(void *p);
int weir_init_locks(void *p);
int weir_init_checkpoint(void *p);
int weir_init_sizes(void *p);
int weir_init_encryption(void *p);

#endif
