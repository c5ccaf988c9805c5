#include "binlog_groups.h"

#include <algorithm>
#include <system_error>

namespace
{

using micros= Group_plan::micros;

// Where a group takes less, waiting brings nothing: all wait for the disk together, then for the processors.
constexpr micros SLOW(2000);
// No client waits longer for others, however slow the disk.
constexpr micros PATIENCE_MAX(20000);
constexpr int PATIENCE_PERCENT= 150;
// A limited disk stands still now and then: what a group takes is a mean of so many.
constexpr int GROUPS= 32;
// Where one more did not come, so many groups do not wait for one more.
constexpr uint REST= 4;

micros now() { return std::chrono::duration_cast<micros>(std::chrono::steady_clock::now().time_since_epoch()); }

} // namespace

Binlog_groups weir_binlog_groups;

bool Group_plan::begins(micros now)
{
  if (m_is_writing || m_in_line == m_closed)
    return false;
  m_is_writing= true;
  m_begun= now;
  m_closed_before= m_closed;
  m_closed= m_in_line;
  return true;
}

void Group_plan::written(micros now)
{
  if (!m_is_writing)
    return;
  m_is_writing= false;
  m_expected= m_in_line - m_closed_before;
  // One more, so that groups grow as long as somebody comes; but who was alone is alone.
  if (m_rests > 0)
    m_rests--;
  else if (m_expected > 1)
    m_expected++;
  m_takes+= (now - m_begun - m_takes) / GROUPS;
}

void Group_plan::has_waited()
{
  if (!is_complete())
    m_rests= REST;
}

void Group_plan::written(micros now, ulonglong place)
{
  if (place > m_closed_before)
    written(now);
}

micros Group_plan::patience() const
{
  if (m_takes < SLOW || m_expected < 2)
    return micros(0);
  return std::min<micros>(m_takes * PATIENCE_PERCENT / 100, PATIENCE_MAX);
}

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
    m_changed.wait_for(guard, m_plan.patience(), [this]() { return m_plan.is_complete() || !m_runs; });
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
  if (!m_plan.begins(now()) || !m_runs || m_plan.patience() == micros(0) || opt_binlog_commit_wait_count || !thd ||
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
