#include "binlog_gate.h"

#include <sys/stat.h>

#include <atomic>

#include <mysql/psi/psi.h>

#include "binlog_groups.h"

namespace
{

// How far the log has to be durable for all that are queued; how far those were let through; and how far it is durable,
// as far as the gate knows.
std::atomic<uint64_t> in_line(0), passed(0), durable(0);
// How far this thread found the log written when it wrote to the binary log; and how far the log is durable once the sync of
// the binary log that this thread does next has gone well.
thread_local uint64_t passed_here= 0, synced_here= 0;
// The binary log was seen to come by.
std::atomic<bool> is_proved(false);
// A transaction got into the binary log without coming by.
std::atomic<bool> is_passed_by(false);

// Positions only grow.
void raise_to(std::atomic<uint64_t> *mark, uint64_t position)
{
  uint64_t was= mark->load(std::memory_order_relaxed);
  while (was < position && !mark->compare_exchange_weak(was, position, std::memory_order_release))
  {
  }
}

PSI *before= nullptr;
PSI with_gate;

// No transaction may go through, and this is called where the server asks for nothing that could fail.
void end_server()
{
  sql_print_error("Weir: the log cannot be synced (%s): the server ends here, before the binary log says that transactions "
                  "are committed which the engine does not have. They are rolled back when it is started again.",
                  weir_message());
  abort();
}

// Whether the binary log's own sync makes the engine's log durable as well, and the file is not found longer without it
// (docs/decisions/binlog-sync.md). The next sync may be of another file, in another place.
bool is_synced_with(File binlog)
{
  struct stat about;
  return !my_disable_sync && !fstat(binlog, &about) && weir_is_synced_with(weir_database, about.st_dev);
}

void pass_gate(File binlog)
{
  is_proved.store(true, std::memory_order_relaxed);
  synced_here= 0;
  uint64_t position= in_line.load(std::memory_order_acquire);
  weir_binlog_groups.begins();
  if (position > durable.load(std::memory_order_relaxed))
  {
    bool is_left_to_binlog= sync_binlog_period == 1 && is_synced_with(binlog);
    if ((is_left_to_binlog ? weir_wait_for_device(weir_database, position) : weir_wait(weir_database, position, WEIR_SYNCED)) != WEIR_OK)
      end_server();
    raise_to(&passed, position);
    if (!is_left_to_binlog)
      raise_to(&durable, position);
  }
  passed_here= passed.load(std::memory_order_relaxed);
}

// The server is about to use a file. The thread that writes the binary log has its lock, and so knows its number.
PSI_file_locker *file_comes_by(PSI_file_locker_state *state, File file, PSI_file_operation operation)
{
  if (file == mysql_bin_log.get_log_file()->file)
  {
    if (operation == PSI_FILE_WRITE)
      pass_gate(file);
    else if (operation == PSI_FILE_SYNC && is_synced_with(file))
      synced_here= passed_here;
  }
  return before->get_thread_file_descriptor_locker(state, file, operation);
}

} // namespace

void raise_binlog_gate()
{
  if (!PSI_server)
  {
    sql_print_warning("Weir: the server has no table of instruments: each transaction's prepare is synced before the binary log is "
                      "written, as with weir_binlog_gate=OFF");
    return;
  }
  before= PSI_server;
  with_gate= *before;
  with_gate.get_thread_file_descriptor_locker= file_comes_by;
  PSI_server= &with_gate;
  sql_print_information("Weir: the binary log's writer is kept behind the engine's log (weir_binlog_gate)");
  weir_binlog_groups.start();
}

void lower_binlog_gate()
{
  weir_binlog_groups.stop();
  if (before && PSI_server == &with_gate)
    PSI_server= before;
}

bool comes_to_binlog_gate(THD *thd, bool all)
{
  if (!is_proved.load(std::memory_order_relaxed) || is_passed_by.load(std::memory_order_relaxed))
    return false;
  bool is_logged= false;
  const THD_TRANS &transaction= all ? thd->transaction->all : thd->transaction->stmt;
  for (const Ha_trx_info *member= transaction.ha_list; member; member= member->next())
  {
    if (member->ht() != weir_hton && !is_binlog(member))
      return false;
    is_logged|= is_binlog(member);
  }
  return is_logged;
}

ulonglong enqueue(uint64_t position)
{
  raise_to(&in_line, position);
  return weir_binlog_groups.joins();
}

bool is_durable_behind_binlog(uint64_t position, ulonglong place)
{
  weir_binlog_groups.written(place);
  // The leader of a group comes here first, behind a sync that went well.
  if (synced_here && weir_synced_by_another(weir_database, synced_here) == WEIR_OK)
    raise_to(&durable, synced_here);
  synced_here= 0;
  if (position <= durable.load(std::memory_order_acquire))
    return true;
  if (position > passed.load(std::memory_order_acquire) && !is_passed_by.exchange(true))
    sql_print_warning("Weir: the binary log was written behind the engine's back: from now on each transaction waits for the "
                      "log itself");
  return false;
}
