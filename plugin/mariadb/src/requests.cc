#include "requests.h"

#include <algorithm>
#include <atomic>

#include <sched.h>
#include <sys/socket.h>

#include "transaction.h"

namespace
{

// A client that says the next thing sooner than this is waited for awake.
constexpr auto LINGER= std::chrono::microseconds(100);

// Who gives the processor away and has it back only then has given it to somebody.
constexpr auto OTHERS= std::chrono::microseconds(10);

// Whose client has spoken last, and how often in a row one has to until it is taken to be alone.
std::atomic<const void *> last;
constexpr unsigned ALONE= 16;

bool is_nothing_yet() { return errno == EAGAIN || errno == EWOULDBLOCK; }

} // namespace

Requests::Requests(THD *thd) : m_vio(nullptr), m_patience_millis(-1), m_is_prompt(false), m_in_a_row(0), m_begin(0), m_end(0)
{
  Vio *vio= thd->net.vio;
  if (!vio || vio->read != (vio_read) || vio->mysql_socket.m_psi || thd->event_scheduler.data ||
      thd->system_thread != NON_SYSTEM_THREAD)
    return;
  my_bool was_blocking;
  if (vio_blocking(vio, true, &was_blocking))
    return;
  m_vio= vio;
  vio->read= &Requests::read;
}

size_t Requests::read(Vio *vio, uchar *out, size_t len)
{
  THD *thd= current_thd;
  Transaction *trx= thd ? Transaction::find(thd) : nullptr;
  if (trx && trx->requests().m_vio == vio)
    return trx->requests().take(out, len);
  return (vio_read)(vio, out, len);
}

// As vio_read: some of it at least, 0 at the end, -1 with errno.
size_t Requests::take(uchar *out, size_t len)
{
  if (m_begin == m_end)
  {
    if (len >= sizeof(m_bytes))
      return static_cast<size_t>(receive(out, len));
    ssize_t n= receive(m_bytes, sizeof(m_bytes));
    if (n <= 0)
      return static_cast<size_t>(n);
    m_begin= 0;
    m_end= static_cast<size_t>(n);
  }
  len= std::min(len, m_end - m_begin);
  memcpy(out, m_bytes + m_begin, len);
  m_begin+= len;
  return len;
}

ssize_t Requests::receive(uchar *out, size_t len)
{
  if (!is_patient_for(m_vio->read_timeout))
    return static_cast<ssize_t>((vio_read)(m_vio, out, len));
  const auto start= steady_clock::now();
  ssize_t n= -1;
  errno= EAGAIN;
  if (m_is_prompt && m_in_a_row >= ALONE)
    n= linger(out, len, start);
  if (n < 0 && is_nothing_yet())
    n= recv(m_vio->mysql_socket.fd, out, len, 0);
  if (n < 0 && is_nothing_yet())
  {
    // As where the server waits itself: what it still has to say to a client that is silent does not hold it up.
    struct linger none= {1, 0};
    setsockopt(m_vio->mysql_socket.fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    errno= ETIMEDOUT;
  }
  m_is_prompt= steady_clock::now() - start < LINGER;
  m_in_a_row= last.exchange(this, std::memory_order_relaxed) == this ? m_in_a_row + 1 : 0;
  return n;
}

// Looks again and again while nobody else wants the processor: to be put to sleep, and woken on a processor that
// sleeps as well, takes several times as long as what a small statement does.
ssize_t Requests::linger(uchar *out, size_t len, steady_clock::time_point start)
{
  for (auto now= start; now - start < LINGER && last.load(std::memory_order_relaxed) == this;)
  {
    sched_yield();
    ssize_t n= recv(m_vio->mysql_socket.fd, out, len, MSG_DONTWAIT);
    if (n >= 0 || !is_nothing_yet())
      return n;
    auto before= now;
    now= steady_clock::now();
    if (now - before > OTHERS)
      break;
  }
  errno= EAGAIN;
  return -1;
}

// Has the socket itself wait so long. `false`: it cannot.
bool Requests::is_patient_for(int millis)
{
  if (millis == m_patience_millis)
    return true;
  // To the socket, nothing is for ever.
  if (millis == 0)
    return false;
  timeval patience= {std::max(millis, 0) / 1000, std::max(millis, 0) % 1000 * 1000};
  if (setsockopt(m_vio->mysql_socket.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience))
    return false;
  m_patience_millis= millis;
  return true;
}
