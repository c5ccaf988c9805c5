#include "engine_stats.h"

namespace
{

thread_local bool is_counting= false;

} // namespace

void Engine_stats::begin(ha_handler_stats *stats)
{
  if (is_counting)
    return;
  is_counting= true;
  m_stats= stats;
  weir_thread_counts_now(&m_before);
}

void Engine_stats::end()
{
  is_counting= false;
  weir_thread_counts now;
  weir_thread_counts_now(&now);
  m_stats->pages_read_count+= now.pages_read - m_before.pages_read;
  m_stats->pages_read_time+=
      static_cast<ulonglong>(timer_tracker_frequency() / 1e6 * static_cast<double>(now.read_micros - m_before.read_micros));
  m_stats->undo_records_read+= now.versions_read - m_before.versions_read;
}
