#include "group_plan.h"

#include <algorithm>

namespace
{

using micros= Group_plan::micros;

// Where a group takes less, waiting brings nothing: all wait for the disk together, then for the processors.
constexpr micros SLOW(2000);
// No client waits longer for others, however slow the disk.
constexpr micros WAIT_LIMIT_MAX(20000);
constexpr int WAIT_GROUPS= 3;
// So slower makes no difference, and would be remembered for longer.
constexpr micros SLOWEST= WAIT_LIMIT_MAX / WAIT_GROUPS;
// A limited disk lets some 25 groups through and stands still for the rest of a tenth of a second: what a group takes is
// a mean of so many, and those that had to stand count in full, or between two standstills the disk passes for a quick one.
constexpr int GROUPS= 32;
// Waiting relieves the disk, which is no reason to stop: that it was slow is forgotten over more groups than it is learned
// over. On a quick disk both are moments, too short for the few groups that find it busy.
constexpr int LEARNED_IN= 128, FORGOTTEN_IN= 512;
// Where one more did not come, so many groups do not wait for one more.
constexpr unsigned REST= 16;

} // namespace

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
  // One more, so that groups grow as long as commits come; but a commit that was alone is alone.
  if (m_rests > 0)
    m_rests--;
  else if (m_expected > 1)
    m_expected++;
  m_takes_now+= (now - m_begun - m_takes_now) / GROUPS;
  micros took= std::min(m_takes_now, SLOWEST);
  m_takes+= (took - m_takes) / (took > m_takes ? LEARNED_IN : FORGOTTEN_IN);
}

void Group_plan::written(micros now, place whose)
{
  if (whose > m_closed_before)
    written(now);
}

micros Group_plan::wait_limit() const
{
  if (m_takes < SLOW || m_expected < 2)
    return micros(0);
  return m_takes * WAIT_GROUPS;
}

void Group_plan::has_waited()
{
  if (!is_complete())
    m_rests= REST;
}
