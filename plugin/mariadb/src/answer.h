// A client's acknowledgement waits until its commit is durable; the session's thread does not.
#ifndef WEIR_PLUGIN_ANSWER_H
#define WEIR_PLUGIN_ANSWER_H

#include <atomic>

#include "engine.h"

// The answer that a session has under way. As the server's own net_real_write does for engines that commit
// asynchronously, it holds back what is said after a commit: but it leaves that to the thread that syncs the log, and the
// session's thread goes on to wait for what the client says next. So it need not be woken for the sync, which costs a
// small commit as much as all the rest (docs/decisions/acknowledgements.md).
class Answer
{
public:
  explicit Answer(THD *thd);
  // What was left to others has been sent by then.
  ~Answer();
  Answer(const Answer &)= delete;

  // From now on nothing is sent to the client until the log is durable up to `position`. `false`: that cannot be had for
  // this statement or this connection, and a commit has to wait.
  bool owe(uint64_t position);

private:
  enum State
  {
    NONE,
    LEFT,
    // As LEFT, and the session waits for it.
    AWAITED
  };

  static size_t write(Vio *vio, const uchar *bytes, size_t len);
  static void durable(void *context, weir_code code);
  bool watches();
  size_t leave(const uchar *bytes, size_t len);
  void send_now(weir_code code);
  void send_rest(size_t done);
  void is_sent();
  void wait_until_sent();

  THD *m_thd;
  // The connection whose answers come by here; nullptr until there was something to wait for.
  Vio *m_vio;
  // The connection's socket once more: a thread that sends must not meet another one that has got its number.
  int m_socket;
  // Up to where the log has to be durable for what is said next.
  uint64_t m_position;
  std::atomic<State> m_state;
  // What was left, while it is.
  size_t m_len;
  uchar m_bytes[256];
};

#endif
