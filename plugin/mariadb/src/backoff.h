// How changes of definitions wait for transactions that the server's own locks do not keep away.
#ifndef WEIR_PLUGIN_BACKOFF_H
#define WEIR_PLUGIN_BACKOFF_H

#include "engine.h"

// Prepared transactions of XA whose session has gone, or that a restart has found, hold locks of the engine's on a
// table and none of the server's; so do those that have looked into it for a foreign key. A session that changes its definition
// tries again and again, and holds nothing meanwhile: a KILL is heard, and changes of other tables do not wait.
class Backoff
{
public:
  explicit Backoff(THD *thd, const char *waiting= "Waiting for transactions that hold the definition");
  ~Backoff();

  // Whether to try once more, after a while. If not, `code` is what has become of it.
  bool again(weir_code *code);

private:
  THD *m_thd;
  const char *m_waiting;
  ulonglong m_begun;
  ulonglong m_nap_micros;
  bool m_has_waited;
  const char *m_state;
};

#endif
