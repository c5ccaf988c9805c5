// What the engine knows of a session.
#ifndef WEIR_PLUGIN_TRANSACTION_H
#define WEIR_PLUGIN_TRANSACTION_H

#include <mutex>
#include <string>

#include "engine.h"

// The transaction of a session, made when the session first touches a table. Only the session's thread uses
// it, save `interrupt` and the commit in binlog order.
class Transaction
{
public:
  explicit Transaction(THD *thd) : m_thd(thd), m_txn(nullptr), m_in_statement(false), m_has_savepoint(false),
                                   m_savepoint(0), m_tables(0), m_prepared(false), m_commit(WEIR_OK),
                                   m_committed(false) {}
  ~Transaction();

  static Transaction *of(THD *thd);
  static Transaction *find(THD *thd);

  // A table comes into use, or goes out of it.
  void enter_table();
  int leave_table();
  // Tells the server that the engine takes part, and begins what has to be begun.
  int begin_statement();
  int begin();
  void take_snapshot();

  int commit(bool all);
  int rollback(bool all);
  int prepare(bool all);
  void commit_ordered(bool all);

  int savepoint_set(uint64_t *savepoint);
  int savepoint_rollback(uint64_t savepoint);
  int savepoint_release(uint64_t savepoint);

  void interrupt();
  weir_txn *txn() const { return m_txn; }
  void set_lock_wait(bool waits);
  // Commits what was done so far and goes on: a copy by ALTER is nobody's to take back.
  int commit_part();

private:
  bool is_real(bool all) const;
  void take_txn(weir_txn **out);
  int end(weir_code code);
  void forget_statement();

  THD *m_thd;
  // Guards m_txn itself, against `interrupt`.
  std::mutex m_mutex;
  weir_txn *m_txn;
  // The server knows that this statement takes part.
  bool m_in_statement;
  bool m_has_savepoint;
  uint64_t m_savepoint;
  uint m_tables;
  bool m_prepared;
  std::string m_xid;
  // How the commit in binlog order went: it may not say so itself.
  weir_code m_commit;
  bool m_committed;
};

// The name under which a transaction is prepared.
std::string xid_name(const XID *xid);
bool xid_of_name(const uchar *name, size_t length, XID *xid);

#endif
