#include "binlog_gate.h"

#include <atomic>

#include <mysql/psi/psi.h>

#include "binlog_groups.h"

namespace
{

// How far the log has to be durable for all who stand in line, and how far the gate has found it.
std::atomic<uint64_t> in_line(0), passed(0);
// The binary log was seen to come by.
std::atomic<bool> is_proved(false);
// Somebody got into the binary log without coming by.
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

// Nobody may go through, and this is called where the server asks for nothing that could fail.
void end_server()
{
  sql_print_error("Weir: the log cannot be synced (%s): the server ends here, before the binary log says that transactions "
                  "are committed which the engine does not have. They are taken back when it is started again.",
                  weir_message());
  abort();
}

void pass_gate()
{
  is_proved.store(true, std::memory_order_relaxed);
  uint64_t position= in_line.load(std::memory_order_acquire);
  weir_binlog_groups.begins();
  if (position <= passed.load(std::memory_order_relaxed))
    return;
  if (weir_wait(weir_database, position, WEIR_SYNCED) != WEIR_OK)
    end_server();
  raise_to(&passed, position);
}

// The server is about to use a file. Who writes the binary log has its lock, and so knows its number.
PSI_file_locker *file_comes_by(PSI_file_locker_state *state, File file, PSI_file_operation operation)
{
  if (operation == PSI_FILE_WRITE && file == mysql_bin_log.get_log_file()->file)
    pass_gate();
  return before->get_thread_file_descriptor_locker(state, file, operation);
}

} // namespace

void raise_binlog_gate()
{
  if (!PSI_server)
    return;
  before= PSI_server;
  with_gate= *before;
  with_gate.get_thread_file_descriptor_locker= file_comes_by;
  PSI_server= &with_gate;
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
    if (member->ht() != weir_hton && member->ht() != binlog_hton)
      return false;
    is_logged|= member->ht() == binlog_hton;
  }
  return is_logged;
}

ulonglong stand_in_line(uint64_t position)
{
  raise_to(&in_line, position);
  return weir_binlog_groups.joins();
}

bool came_through_binlog_gate(uint64_t position, ulonglong place)
{
  weir_binlog_groups.written(place);
  if (position <= passed.load(std::memory_order_acquire))
    return true;
  if (!is_passed_by.exchange(true))
    sql_print_warning("Weir: the binary log was written behind the engine's back: from now on each transaction waits for the "
                      "log itself");
  return false;
}
