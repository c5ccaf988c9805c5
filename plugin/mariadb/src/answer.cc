#include "answer.h"

#include <condition_variable>
#include <mutex>
#include <thread>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transaction.h"
#include "variables.h"

namespace
{

// For sessions that wait for their own answers: clients that say more before they have heard.
std::mutex sent_mutex;
std::condition_variable sent;

// What only leads to an answer to the client when it is over. Behind others the server still has something to do that must not be
// on disk before they are: definitions, files.
bool is_change_of_rows(THD *thd)
{
  switch (thd_sql_command(thd))
  {
  case SQLCOM_INSERT:
  case SQLCOM_INSERT_SELECT:
  case SQLCOM_REPLACE:
  case SQLCOM_REPLACE_SELECT:
  case SQLCOM_UPDATE:
  case SQLCOM_UPDATE_MULTI:
  case SQLCOM_DELETE:
  case SQLCOM_DELETE_MULTI:
  case SQLCOM_LOAD:
  case SQLCOM_COMMIT:
    // What a procedure does next, the client may see in other ways.
    return !thd->in_sub_stmt && !thd->spcont && thd->system_thread == NON_SYSTEM_THREAD;
  default:
    return false;
  }
}

} // namespace

Answer::Answer(THD *thd) : m_thd(thd), m_vio(nullptr), m_socket(-1), m_position(0), m_state(NONE), m_len(0) {}

Answer::~Answer()
{
  wait_until_sent();
  if (m_socket >= 0)
    close(m_socket);
}

bool Answer::owe(uint64_t position)
{
  if (!weir_deferred_answers() || !is_change_of_rows(m_thd) || !watches())
    return false;
  m_position= std::max(m_position, position);
  return true;
}

// Whether the connection's answers come by here. Those of plain sockets can: only the session's thread may use
// what encrypts the others.
bool Answer::watches()
{
  Vio *vio= m_thd->net.vio;
  if (!vio)
    return false;
  if (m_vio == vio)
    return true;
  if (m_vio || vio->write != (vio_write) || (m_socket= dup(vio->mysql_socket.fd)) < 0)
    return false;
  m_vio= vio;
  vio->write= &Answer::write;
  return true;
}

size_t Answer::write(Vio *vio, const uchar *bytes, size_t len)
{
  THD *thd= current_thd;
  Transaction *trx= thd ? Transaction::find(thd) : nullptr;
  if (trx && trx->answer().m_vio == vio)
    return trx->answer().leave(bytes, len);
  return (vio_write)(vio, bytes, len);
}

size_t Answer::leave(const uchar *bytes, size_t len)
{
  // In the order in which it was said.
  wait_until_sent();
  uint64_t position= m_position;
  m_position= 0;
  if (position && len <= sizeof(m_bytes))
  {
    memcpy(m_bytes, bytes, len);
    m_len= len;
    m_state= LEFT;
    if (weir_when_durable(weir_database, position, durable, this) == WEIR_OK)
      return len;
    m_state= NONE;
  }
  if (position && weir_wait(weir_database, position, WEIR_SYNCED) != WEIR_OK)
  {
    errno= EIO;
    return static_cast<size_t>(-1);
  }
  return (vio_write)(m_vio, bytes, len);
}

// In the thread that has synced the log for all, which must not be held up.
void Answer::durable(void *context, weir_code code) { static_cast<Answer *>(context)->send_now(code); }

void Answer::send_now(weir_code code)
{
  // What has become of it is not known: so the client hears nothing, and that the connection is gone.
  if (code != WEIR_OK)
    shutdown(m_socket, SHUT_RDWR);
  else
  {
    ssize_t n= send(m_socket, m_bytes, m_len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno != EAGAIN && errno != EINTR)
      shutdown(m_socket, SHUT_RDWR);
    else if (n < static_cast<ssize_t>(m_len))
    {
      // A client that talks on and does not listen has a thread that waits for it alone.
      try
      {
        std::thread(&Answer::send_rest, this, n < 0 ? 0 : n).detach();
        return;
      }
      catch (const std::exception &)
      {
        shutdown(m_socket, SHUT_RDWR);
      }
    }
  }
  is_sent();
}

void Answer::send_rest(size_t done)
{
  const int limit_millis= static_cast<int>(std::min<ulong>(m_thd->variables.net_write_timeout, INT_MAX32 / 1000) * 1000);
  while (done < m_len)
  {
    pollfd ready= {m_socket, POLLOUT, 0};
    int n= poll(&ready, 1, limit_millis);
    ssize_t more= n > 0 ? send(m_socket, m_bytes + done, m_len - done, MSG_NOSIGNAL | MSG_DONTWAIT) : -1;
    if (more > 0)
      done+= static_cast<size_t>(more);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
    {
      shutdown(m_socket, SHUT_RDWR);
      break;
    }
  }
  is_sent();
}

// Nothing of it is touched any more behind this: the session may be gone.
void Answer::is_sent()
{
  if (m_state.exchange(NONE) != AWAITED)
    return;
  std::lock_guard<std::mutex> guard(sent_mutex);
  sent.notify_all();
}

void Answer::wait_until_sent()
{
  if (m_state == NONE)
    return;
  std::unique_lock<std::mutex> guard(sent_mutex);
  State left= LEFT;
  m_state.compare_exchange_strong(left, AWAITED);
  while (m_state != NONE)
    sent.wait(guard);
}
