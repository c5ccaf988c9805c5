// What a client says is taken from its socket in one system call, not in four.
#ifndef WEIR_PLUGIN_REQUESTS_H
#define WEIR_PLUGIN_REQUESTS_H

#include <chrono>

#include "engine.h"

// What comes from a session's client. The server asks its socket for a packet's head, is told that nothing is there,
// waits by poll, asks again, and then for the rest. Here one call waits, and takes all that has come
// (docs/decisions/requests.md), and where a client is alone and quick, does so awake. Only the session's thread uses it.
class Requests
{
public:
  // Of a session that has none yet, from its next packet on. Not of those that are encrypted, whose sockets are
  // instrumented or that a pool's threads wait for: these are read as they were.
  explicit Requests(THD *thd);
  Requests(const Requests &)= delete;

private:
  using steady_clock= std::chrono::steady_clock;

  static size_t read(Vio *vio, uchar *out, size_t len);
  size_t take(uchar *out, size_t len);
  ssize_t receive(uchar *out, size_t len);
  ssize_t linger(uchar *out, size_t len, steady_clock::time_point start);
  bool is_patient_for(int millis);

  // The connection whose packets come by here; nullptr: none.
  Vio *m_vio;
  // How long the socket itself lets a call wait; -1: for ever.
  int m_patience_millis;
  // What was waited for last came soon; and so many times nobody else's client has said anything meanwhile.
  bool m_is_prompt;
  unsigned m_in_a_row;
  // What has come and was not asked for yet.
  size_t m_begin, m_end;
  uchar m_bytes[4096];
};

#endif
