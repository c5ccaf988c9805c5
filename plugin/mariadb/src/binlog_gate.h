// Nothing of a transaction is found in the binary log's file before the engine has it durably prepared.
#ifndef WEIR_PLUGIN_BINLOG_GATE_H
#define WEIR_PLUGIN_BINLOG_GATE_H

#include "engine.h"

// With a binary log each commit waits twice, for its prepare to be durable and for the binary log's sync, and sleeps
// and is woken twice. The first of these need not be waited for by each: the one that writes a group of transactions to
// the binary log waits for all of them, before it does. MySQL has a step for that in its group commit. MariaDB has none,
// but tells the performance schema of each write to a file beforehand, by a table of functions. There the gate stands,
// whatever file the binary log is in by then. (docs/decisions/binlog-gate.md) Where the binary log's own sync serves the
// engine's log as well, the gate waits until that is written, and no more. (docs/decisions/binlog-sync.md)
void raise_binlog_gate();
// Before the database is closed.
void lower_binlog_gate();

// Whether a transaction that is about to be prepared need not wait: it will come to the gate, only the binary log
// takes part, and the gate was seen to work.
bool comes_to_binlog_gate(THD *thd, bool all);
// It stands in line to be written, and is durably prepared when the log is up to `position`. Gives its
// place in line.
ulonglong enqueue(uint64_t position);
// Behind the binary log's write and sync, first in the thread that did them: whether the transaction is known to be durably
// prepared. If it did not come through the gate, no transaction relies on that any more.
bool is_durable_behind_binlog(uint64_t position, ulonglong place);

#endif
