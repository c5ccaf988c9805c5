// Where the disk is slow, transactions that are about to commit wait for one another, so that the binary log writes and
// syncs more of them at once.
#ifndef WEIR_PLUGIN_BINLOG_GROUPS_H
#define WEIR_PLUGIN_BINLOG_GROUPS_H

#include <condition_variable>
#include <mutex>
#include <thread>

#include "engine.h"
#include "group_plan.h"

// The groups of the binary log. While one is written a thread of ours asks for the binary log's lock, has it before
// the leader of the next group, and keeps it until they are all there. (The server has a wait of its own,
// binlog_commit_wait_count, which an operator has to set; then nothing is done here.)
class Binlog_groups
{
public:
  void start();
  void stop();

  // From prepare_ordered, at the gate, and from commit_ordered.
  ulonglong joins();
  void begins();
  void written(ulonglong place);

private:
  void run();
  void hold();

  std::thread m_thread;
  std::mutex m_mutex;
  std::condition_variable m_changed;
  Group_plan m_plan;
  // The thread is there; is to hold the binary log; holds it.
  bool m_runs= false, m_is_wanted= false, m_holds= false;
};

extern Binlog_groups weir_binlog_groups;

#endif
