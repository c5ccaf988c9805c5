#include "binlog_groups.h"

#include <system_error>

namespace
{

using micros= Group_plan::micros;

micros now() { return std::chrono::duration_cast<micros>(std::chrono::steady_clock::now().time_since_epoch()); }

} // namespace

Binlog_groups weir_binlog_groups;

// Without the thread groups are as the server makes them.
void Binlog_groups::start()
{
  m_runs= true;
  try
  {
    m_thread= std::thread(&Binlog_groups::run, this);
  }
  catch (const std::system_error &)
  {
    m_runs= false;
  }
}

void Binlog_groups::stop()
{
  {
    std::lock_guard<std::mutex> guard(m_mutex);
    m_runs= false;
  }
  m_changed.notify_one();
  if (m_thread.joinable())
    m_thread.join();
}

void Binlog_groups::run()
{
  my_thread_init();
  pthread_setname_np(pthread_self(), "weir-groups");
  std::unique_lock<std::mutex> guard(m_mutex);
  while (m_runs)
  {
    if (m_is_wanted)
    {
      guard.unlock();
      hold();
      guard.lock();
    }
    else
      m_changed.wait(guard);
  }
  guard.unlock();
  my_thread_end();
}

void Binlog_groups::hold()
{
  // Behind the group that is being written; nothing is held that its leader could want.
  mysql_mutex_t *log= mysql_bin_log.get_log_lock();
  mysql_mutex_lock(log);
  {
    std::unique_lock<std::mutex> guard(m_mutex);
    m_plan.written(now());
    m_is_wanted= false;
    m_holds= true;
    m_changed.wait_for(guard, m_plan.wait_limit(), [this]() { return m_plan.is_complete() || !m_runs; });
    m_holds= false;
    m_plan.has_waited();
  }
  mysql_mutex_unlock(log);
}

ulonglong Binlog_groups::joins()
{
  std::lock_guard<std::mutex> guard(m_mutex);
  ulonglong place= m_plan.joins();
  if (m_holds && m_plan.is_complete())
    m_changed.notify_one();
  return place;
}

// A replica's threads are no clients that come back.
void Binlog_groups::begins()
{
  const THD *thd= current_thd;
  std::lock_guard<std::mutex> guard(m_mutex);
  if (!m_plan.begins(now()) || !m_runs || m_plan.wait_limit() == micros(0) || opt_binlog_commit_wait_count || !thd ||
      thd->system_thread != NON_SYSTEM_THREAD)
    return;
  m_is_wanted= true;
  m_changed.notify_one();
}

void Binlog_groups::written(ulonglong place)
{
  std::lock_guard<std::mutex> guard(m_mutex);
  m_plan.written(now(), place);
}
