// The few settings, and the numbers of SHOW STATUS.
#ifndef WEIR_PLUGIN_VARIABLES_H
#define WEIR_PLUGIN_VARIABLES_H

#include <string>

#include "server.h"

extern st_mysql_sys_var *weir_variables[];
extern st_mysql_show_var weir_status_variables[];

bool weir_deferred_answers();
// Says in the server's log how answers to commits are sent.
void report_deferred_answers();
bool weir_binlog_gate();
// Whether a halt of the engine ends the server.
bool weir_abort_on_halt();
// Where metrics are served; empty: nowhere.
const char *weir_metrics_address();
ulonglong weir_memory();
ulong weir_store_kind();
// Whether the engine's files are encrypted, and by which key of the server's key management.
bool weir_encrypts();
uint weir_encryption_key_id();
// The step with which a damaged database is opened to be read alone; 0: it is not.
uint weir_force_recovery();
// Whether nothing may be changed because of it: says so, then, in words that name the setting.
bool weir_refuses_changes();
ulonglong weir_log_capacity();
double weir_recovery_seconds();
// A weir_durability.
uint32_t weir_durability_of(THD *thd);
// Whether what is newer than the snapshot must not be changed at REPEATABLE READ.
bool weir_snapshot_isolation(THD *thd);
// What FULLTEXT keys that are made now have: the fewest and most characters of their words, and the words left out, in utf8mb4
// with spaces between them.
void weir_ft_token_sizes(uint *shortest, uint *longest);
std::string weir_ft_stopwords(THD *thd);
// Milliseconds that a row's lock is waited for. NOWAIT and WAIT n come in here too.
ulonglong weir_lock_wait_millis(THD *thd);

#endif
