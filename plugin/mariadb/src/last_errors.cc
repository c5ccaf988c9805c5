// The report of the last foreign key that was violated or could not be: which, and the statement.
//
// The report of the last deadlock: which transaction waited for which, and the statement of each. Those of the others are what their
// sessions are at when the victim notes it: by then one of them may have gone on.
#include "last_errors.h"

#include <mutex>
#include <vector>

#include "engine.h"
#include "transaction.h"

// In none of the server's headers for plugins.
extern "C" size_t thd_query_safe(MYSQL_THD thd, char *buffer, size_t length);

namespace
{

std::mutex mutex;
std::string deadlock, foreign_error;

const size_t STATEMENT_BYTES_MAX= 1024;

std::string statement_of(THD *thd)
{
  char buffer[STATEMENT_BYTES_MAX];
  size_t length= thd_query_safe(thd, buffer, sizeof(buffer));
  return length ? std::string(buffer, length) : "(no statement just now)";
}

std::string moment()
{
  char buffer[32];
  struct tm now;
  time_t seconds= my_time(0);
  localtime_r(&seconds, &now);
  return std::string(buffer, strftime(buffer, sizeof(buffer), "%F %T", &now));
}

} // namespace

void note_deadlock(THD *victim)
{
  std::string words= weir_message();
  std::string text= moment() + " " + words + "\n";
  text+= "rolled back: session " + std::to_string(thd_get_thread_id(victim)) + ": " + statement_of(victim) + "\n";
  std::vector<Transaction::Seen> all;
  Transaction::see_all(&all);
  for (const Transaction::Seen &seen : all)
  {
    std::string waits= std::to_string(seen.number) + " waits for ";
    size_t at= words.find(waits);
    // Not the tail of a longer number.
    if (!seen.number || seen.session == thd_get_thread_id(victim) || at == std::string::npos ||
        (at > 0 && isdigit(static_cast<uchar>(words[at - 1]))))
      continue;
    if (THD *other= find_thread_by_id(static_cast<longlong>(seen.session)))
    {
      text+= "session " + std::to_string(seen.session) + ", transaction " + std::to_string(seen.number) + ": " +
             statement_of(other) + "\n";
      mysql_mutex_unlock(&other->LOCK_thd_kill);
    }
  }
  std::lock_guard<std::mutex> guard(mutex);
  deadlock= text;
}

std::string last_deadlock()
{
  std::lock_guard<std::mutex> guard(mutex);
  return deadlock;
}

void note_foreign_error(THD *thd, const std::string &words)
{
  std::string text= moment() + " session " + std::to_string(thd_get_thread_id(thd)) + ": " + statement_of(thd) + "\n" +
                    words + "\n";
  std::lock_guard<std::mutex> guard(mutex);
  foreign_error= text;
}

std::string last_foreign_error()
{
  std::lock_guard<std::mutex> guard(mutex);
  return foreign_error;
}
