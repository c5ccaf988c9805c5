// The last deadlock and the last error of a foreign key, for people: see last_errors.cc.
#ifndef WEIR_PLUGIN_LAST_ERRORS_H
#define WEIR_PLUGIN_LAST_ERRORS_H

#include <string>

#include "server.h"

// The session's transaction was chosen as the victim of one; the engine has just returned that error.
void note_deadlock(THD *victim);
// Empty: there was none.
std::string last_deadlock();

// A row of the session's statement violates a foreign key, or its definition of one cannot be: `words` say which.
void note_foreign_error(THD *thd, const std::string &words);
// Empty: there was none.
std::string last_foreign_error();

#endif
