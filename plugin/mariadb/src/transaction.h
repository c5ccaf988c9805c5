// What the engine knows of a session.
#ifndef WEIR_PLUGIN_TRANSACTION_H
#define WEIR_PLUGIN_TRANSACTION_H

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include "answer.h"
#include "engine.h"
#include "late_words.h"
#include "row_count.h"

class ha_weir;

// The transaction of a session, made when the session first touches a table. Only the session's thread uses
// it, save `interrupt` and the commit in binlog order.
class Transaction
{
public:
  explicit Transaction(THD *thd);
  ~Transaction();

  static Transaction *of(THD *thd);
  static Transaction *find(THD *thd);

  // A table comes into use, or goes out of it.
  void enter_table();
  int leave_table();
  // Registers the engine with the server as a participant, and begins what has to be begun.
  int begin_statement();
  int begin();
  void take_snapshot();

  int commit(bool all);
  int rollback(bool all);
  int prepare(bool all);
  void prepare_ordered(bool all);
  void commit_ordered(bool all);

  int savepoint_set(uint64_t *savepoint);
  int savepoint_rollback(uint64_t savepoint);
  int savepoint_release(uint64_t savepoint);

  // What others may know of an open one.
  struct Seen
  {
    ulonglong session;
    // The engine's number; 0: it has neither locked nor changed anything.
    ulonglong number;
    // A weir_isolation.
    uint32_t isolation;
    // By microsecond_interval_timer.
    ulonglong begun;
  };
  // Shows the sessions whose transactions have these numbers, if both are there; neither ends meanwhile. Returns what
  // `show` does, or 0.
  static int show_sessions(ulonglong one, ulonglong other, int (*show)(THD *one, THD *other));
  // Those of all sessions.
  static void see_all(std::vector<Seen> *out);

  void interrupt();
  weir_txn *txn() const { return m_txn; }
  Answer &answer() { return m_answer; }
  Late_words &late_words() { return m_late_words; }
  // A weir_isolation.
  uint32_t isolation() const { return m_isolation; }
  void set_lock_wait(bool waits);
  // The commit waits until the log is durable up to here, whatever it has itself. (What is prepared lies behind it.)
  void owe(uint64_t position) { m_owed= std::max(m_owed, position); }
  // Rows have come to a table or have gone from it. `place` is the caller's, for Row_changes.
  void rows_changed(const std::shared_ptr<Row_count> &of, longlong by, size_t *place)
  {
    m_row_changes.add(of, by, place);
  }
  // The table of the last duplicate, and the key. A statement that moves a row to another partition gets it from the handler of
  // the one that it was in (ha_weir::info).
  void note_duplicate(const TABLE_SHARE *table, uint key)
  {
    m_duplicate_of= table;
    m_duplicate= key;
  }
  uint duplicate_of(const TABLE_SHARE *table) const { return m_duplicate_of == table ? m_duplicate : MAX_KEY; }
  // CREATE TABLE ... SELECT fills this table, which its commit completes while it is still open.
  void fills(ha_weir *table) { m_fills= table; }
  // A temporary table that the session has dropped goes when its transaction ends, which holds it if it has used it.
  // `false`: no transaction is open.
  bool drop_at_end(const std::string &table);
  // Commits what was done so far and goes on: a copy by ALTER is not rolled back. Walks that are under way have
  // to be begun anew: they are of a part.
  int commit_part();
  ulonglong part() const { return m_part; }

private:
  const TABLE_SHARE *m_duplicate_of= nullptr;
  uint m_duplicate= MAX_KEY;
  ha_weir *m_fills= nullptr;
  weir_code complete_filled(weir_code code);
  bool is_real(bool all) const;
  void take_txn(weir_txn **out);
  // With m_mutex held.
  ulonglong number() const;
  void forget_number();
  int end(weir_code code);
  weir_code make_durable();
  weir_code commit_prepared(uint32_t durability);
  weir_code sync_decision();
  int wait_for_turn();
  void forget_statement();
  void drop_left();

  THD *m_thd;
  Answer m_answer;
  // Guards m_txn itself and what is seen of it, against `interrupt` and `see_all`.
  std::mutex m_mutex;
  weir_txn *m_txn;
  uint32_t m_isolation;
  ulonglong m_begun;
  // The server knows that this statement takes part.
  bool m_in_statement;
  bool m_has_savepoint;
  uint64_t m_savepoint;
  uint m_tables;
  bool m_prepared;
  // The number of one that is prepared; guarded as m_txn is.
  ulonglong m_prepared_number;
  // Prepared under a name of the server's own, it stays in hand. One of XA is decided by its name: nullptr.
  weir_prepared_txn *m_held;
  std::string m_xid;
  // Where the log has to be durable for it to be prepared, if no thread has waited for that; 0: one has.
  uint64_t m_prepared_at;
  // Its place among those that are queued for the binary log; 0: it does not.
  ulonglong m_place;
  // How the commit in binlog order went: it may not say so itself.
  weir_code m_commit;
  bool m_committed;
  uint64_t m_owed;
  ulonglong m_part;
  Row_changes m_row_changes;
  Late_words m_late_words;
  std::vector<std::string> m_to_drop;
};

// Decide a transaction that is prepared and in no session's hand.
weir_code commit_by_name(const std::string &name, uint32_t durability);
weir_code rollback_by_name(const std::string &name);

// The name under which a transaction is prepared.
std::string xid_name(const XID *xid);
bool xid_of_name(const uchar *name, size_t length, XID *xid);

#endif
