// The last deadlock, for people: see deadlocks.cc.
#ifndef WEIR_PLUGIN_DEADLOCKS_H
#define WEIR_PLUGIN_DEADLOCKS_H

#include <string>

#include "server.h"

// The session's transaction was chosen to end one; it has just been told so by the engine.
void note_deadlock(THD *victim);
// Empty: there was none.
std::string last_deadlock();

#endif
