// What one table of one statement has cost in the engine: for the slow log (log_slow_verbosity=engine) and ANALYZE FORMAT=JSON.
#ifndef WEIR_PLUGIN_ENGINE_STATS_H
#define WEIR_PLUGIN_ENGINE_STATS_H

#include "engine.h"

// While it lives, what this thread reads in the engine is added to the numbers of the handler that it was made for. One made
// within another one's life counts nothing: a handler's functions call each other.
class Engine_stats
{
public:
  // `stats`: the handler's; null where no user has asked for them.
  explicit Engine_stats(ha_handler_stats *stats)
  {
    if (unlikely(stats != nullptr))
      begin(stats);
  }
  ~Engine_stats()
  {
    if (unlikely(m_stats != nullptr))
      end();
  }
  Engine_stats(const Engine_stats &)= delete;

private:
  void begin(ha_handler_stats *stats);
  void end();

  ha_handler_stats *m_stats= nullptr;
  weir_thread_counts m_before;
};

#endif
