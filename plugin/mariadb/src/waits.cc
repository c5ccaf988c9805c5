#include "waits.h"

#include "engine.h"
#include "transaction.h"
#include "variables.h"

// In none of the server's headers.
extern "C" int thd_need_wait_reports(const MYSQL_THD thd);
extern "C" int thd_deadlock_victim_preference(const MYSQL_THD one, const MYSQL_THD other);
extern "C" int thd_rpl_deadlock_check(MYSQL_THD thd, MYSQL_THD other_thd);

namespace
{

// A replica's threads commit in the order of the primary: of two, the later one is made to give way if the earlier
// one waits for it. A primary keeps in its binary log that a transaction has waited.
bool on_wait(void *, uint32_t event, uint64_t waiter, uint64_t holder)
{
  // Threads of the engine's own do not wait for rows of sessions in the server's sight.
  THD *thd= current_thd;
  if (!thd)
    return false;
  switch (event)
  {
  case WEIR_WAIT_BEGINS:
    thd_wait_begin(thd, THD_WAIT_ROW_LOCK);
    if (!thd_need_wait_reports(thd))
      return false;
    thd_rpl_deadlock_check(thd, nullptr);
    // Else all that the server keeps is that it has waited.
    return thd->rgi_slave || opt_binlog_commit_wait_count;
  case WEIR_WAIT_FOR:
    Transaction::show_sessions(waiter, holder, [](THD *one, THD *other) { return thd_rpl_deadlock_check(one, other); });
    return true;
  case WEIR_WAIT_RATHER:
    return thd->rgi_slave &&
           Transaction::show_sessions(waiter, holder, [](THD *one, THD *other) {
             return thd_deadlock_victim_preference(one, other);
           }) < 0;
  case WEIR_WAIT_ENDS:
    thd_wait_end(thd);
    return false;
  default:
    return false;
  }
}

// Any thread of the engine's may come here, also one that holds a page: it writes a line and goes on.
void is_noticed(void *, uint32_t notice, weir_bytes text)
{
  const int len= static_cast<int>(text.len);
  const char *words= reinterpret_cast<const char *>(text.data);
  if (notice == WEIR_NOTICE_PAGE_REPAIRED)
  {
    sql_print_warning("Weir: %.*s: nothing is lost, but the disk is worth a look", len, words);
    return;
  }
  if (notice != WEIR_NOTICE_HALTED)
  {
    sql_print_error("Weir: %.*s: the rest of the database can be read; CHECK TABLE says which table it is", len, words);
    return;
  }
  sql_print_error("Weir has halted: %.*s. Nothing is written any more, and nothing that was committed is lost: mend the "
                  "cause and restart the server", len, words);
  if (weir_abort_on_halt())
  {
    sql_print_error("Weir: the server ends here (weir_abort_on_halt)");
    abort();
  }
}

} // namespace

void report_waits()
{
  if (weir_on_wait(weir_database, on_wait, nullptr) != WEIR_OK)
    sql_print_warning("Weir: %s", weir_message());
}

void report_notices()
{
  if (weir_on_notice(weir_database, is_noticed, nullptr) != WEIR_OK)
    sql_print_warning("Weir: %s", weir_message());
}
