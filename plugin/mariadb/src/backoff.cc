#include "backoff.h"

#include <algorithm>

#include "variables.h"

Backoff::Backoff(THD *thd, const char *waiting)
    : m_thd(thd), m_waiting(waiting), m_begun(microsecond_interval_timer()), m_nap_micros(500), m_has_waited(false),
      m_state(nullptr)
{
}

Backoff::~Backoff()
{
  if (m_has_waited)
    thd_proc_info(m_thd, m_state);
}

bool Backoff::again(weir_code *code)
{
  const ulonglong nap_micros_max= 50000;
  if (*code != WEIR_WOULD_WAIT)
    return false;
  if (is_killed(m_thd))
  {
    *code= WEIR_INTERRUPTED;
    return false;
  }
  ulonglong waited= microsecond_interval_timer() - m_begun, limit= 1000 * weir_lock_wait_millis(m_thd);
  if (waited >= limit)
  {
    *code= WEIR_LOCK_TIMEOUT;
    return false;
  }
  if (!m_has_waited)
    m_state= thd_proc_info(m_thd, m_waiting);
  m_has_waited= true;
  my_sleep(static_cast<ulong>(std::min(m_nap_micros, limit - waited)));
  m_nap_micros= std::min(2 * m_nap_micros, nap_micros_max);
  return true;
}
