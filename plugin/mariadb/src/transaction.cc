#include "transaction.h"

#include <set>

#include "binlog_gate.h"
#include "graveyard.h"
#include "ha_weir.h"
#include "variables.h"

namespace
{

// Of all sessions that have one; taken before any transaction's own mutex.
std::mutex all_mutex;
std::set<Transaction *> all_transactions;

// Both CHECK TABLE and ALTER TABLE ... CHECK PARTITION are transactions of their own.
bool is_check(THD *thd)
{
  int command= thd_sql_command(thd);
  return command == SQLCOM_CHECK || (command == SQLCOM_ALTER_TABLE &&
                                     (thd->lex->alter_info.partition_flags & ALTER_PARTITION_ADMIN));
}

} // namespace

Transaction *Transaction::find(THD *thd)
{
  return static_cast<Transaction *>(thd_get_ha_data(thd, weir_hton));
}

Transaction *Transaction::of(THD *thd)
{
  Transaction *trx= find(thd);
  if (!trx)
  {
    trx= new Transaction(thd);
    thd_set_ha_data(thd, weir_hton, trx);
  }
  return trx;
}

Transaction::Transaction(THD *thd)
    : m_thd(thd), m_answer(thd), m_txn(nullptr), m_isolation(0), m_begun(0), m_in_statement(false),
      m_has_savepoint(false), m_savepoint(0), m_tables(0), m_prepared(false), m_prepared_number(0), m_held(nullptr),
      m_prepared_at(0), m_place(0), m_commit(WEIR_OK), m_committed(false), m_owed(0), m_part(0)
{
  std::lock_guard<std::mutex> guard(all_mutex);
  all_transactions.insert(this);
}

Transaction::~Transaction()
{
  {
    std::lock_guard<std::mutex> guard(all_mutex);
    all_transactions.erase(this);
  }
  // A prepared one outlives the session.
  weir_prepared_txn_free(m_held);
  weir_txn *txn;
  take_txn(&txn);
  if (txn)
  {
    m_row_changes.give_back();
    weir_txn_rollback(txn);
  }
  drop_left();
}

bool Transaction::drop_at_end(const std::string &table)
{
  if (m_txn)
    m_to_drop.push_back(table);
  return m_txn;
}

// Those that cannot be dropped now the next start drops. The server gives their names to no other table.
void Transaction::drop_left()
{
  for (const std::string &table : m_to_drop)
    weir_table_drop(weir_database, bytes_of(table), 0);
  m_to_drop.clear();
}

void Transaction::take_txn(weir_txn **out)
{
  std::lock_guard<std::mutex> guard(m_mutex);
  *out= m_txn;
  m_txn= nullptr;
  m_prepared_number= 0;
}

bool Transaction::is_real(bool all) const
{
  return all || !thd_test_options(m_thd, OPTION_NOT_AUTOCOMMIT | OPTION_BEGIN);
}

int Transaction::begin()
{
  if (m_txn)
    return 0;
  uint32_t isolation= WEIR_REPEATABLE_READ;
  switch (thd_tx_isolation(m_thd))
  {
  case ISO_READ_UNCOMMITTED:
    isolation= WEIR_READ_UNCOMMITTED;
    break;
  case ISO_READ_COMMITTED:
    isolation= WEIR_READ_COMMITTED;
    break;
  case ISO_SERIALIZABLE:
    // A statement of its own that only reads is in order by its snapshot alone.
    if (thd_test_options(m_thd, OPTION_NOT_AUTOCOMMIT | OPTION_BEGIN) ||
        thd_sql_command(m_thd) != SQLCOM_SELECT)
      isolation= WEIR_SERIALIZABLE;
    break;
  default:
    break;
  }
  // What a check compares agrees in one snapshot. As InnoDB, it meets no writer at work, and locks nothing.
  if (is_check(m_thd))
    isolation= WEIR_REPEATABLE_READ;
  weir_txn *txn;
  weir_code code= weir_txn_begin(weir_database, isolation, weir_lock_wait_millis(m_thd), &txn);
  if (code != WEIR_OK)
    return to_handler_error(m_thd, code);
  std::lock_guard<std::mutex> guard(m_mutex);
  m_txn= txn;
  m_isolation= isolation;
  m_begun= m_thd->start_utime;
  m_prepared= m_committed= false;
  return 0;
}

int Transaction::begin_statement()
{
  if (int error= begin())
    return error;
  if (m_in_statement)
    return 0;
  m_in_statement= true;
  trans_register_ha(m_thd, false, weir_hton, 0);
  if (thd_test_options(m_thd, OPTION_NOT_AUTOCOMMIT | OPTION_BEGIN))
    trans_register_ha(m_thd, true, weir_hton, 0);
  weir_txn_begin_statement(m_txn);
  weir_txn_set_lock_wait(m_txn, weir_lock_wait_millis(m_thd));
  weir_txn_set_first_updater_wins(m_txn, weir_snapshot_isolation(m_thd));
  if (weir_txn_has_ended(m_txn))
    return 0;
  weir_code code= weir_txn_savepoint(m_txn, &m_savepoint);
  m_has_savepoint= code == WEIR_OK;
  if (m_has_savepoint)
    m_row_changes.mark(m_savepoint);
  return to_handler_error(m_thd, code);
}

void Transaction::forget_statement()
{
  if (m_txn)
  {
    if (m_has_savepoint)
    {
      weir_txn_release(m_txn, m_savepoint);
      m_row_changes.release(m_savepoint);
    }
    weir_txn_end_statement(m_txn);
  }
  m_in_statement= m_has_savepoint= false;
}

void Transaction::enter_table() { m_tables++; }

int Transaction::leave_table()
{
  if (m_tables > 0 && --m_tables > 0)
    return 0;
  // No session commits what the server has read for itself.
  if (m_txn && !m_in_statement && is_real(false))
    return commit(false);
  return 0;
}

void Transaction::take_snapshot() { weir_txn_take_snapshot(m_txn); }

void Transaction::set_lock_wait(bool waits)
{
  weir_txn_set_lock_wait(m_txn, waits ? weir_lock_wait_millis(m_thd) : 0);
}

int Transaction::end(weir_code code)
{
  m_in_statement= m_has_savepoint= m_prepared= m_committed= false;
  m_owed= 0;
  m_row_changes.forget();
  if (m_held)
    weir_prepared_txn_free(m_held);
  m_held= nullptr;
  m_prepared_at= m_place= 0;
  m_xid.clear();
  drop_left();
  return to_handler_error(nullptr, code);
}

int Transaction::commit(bool all)
{
  if (int error= m_late_words.write())
  {
    rollback(all);
    return error;
  }
  if (!is_real(all))
  {
    forget_statement();
    return 0;
  }
  if (m_prepared)
  {
    weir_code code= m_commit;
    if (!m_committed)
      code= commit_prepared(weir_durability_of(m_thd));
    // Committed in binlog order: if it is lost in a crash the binlog has it, up to the next checkpoint. But recovery
    // looks there for names of the server's own alone.
    thd_wakeup_subsequent_commits(m_thd, 0);
    if (m_committed && code == WEIR_OK)
      code= m_prepared_at ? weir_wait(weir_database, m_prepared_at, WEIR_SYNCED) : sync_decision();
    return end(complete_filled(code == WEIR_NOTHING ? WEIR_OK : code));
  }
  weir_txn *txn;
  take_txn(&txn);
  if (!txn)
    return end(WEIR_OK);
  uint64_t position= 0;
  weir_code code= weir_txn_commit_visible(txn, &position);
  owe(position);
  thd_wakeup_subsequent_commits(m_thd, code != WEIR_OK);
  if (code != WEIR_OK)
    m_row_changes.give_back();
  else
    code= make_durable();
  return end(complete_filled(code));
}

// What was filled is there for all snapshots that are taken from now on. Older ones show the table empty, which it never was
// for any session: they get the error that it is new.
weir_code Transaction::complete_filled(weir_code code)
{
  ha_weir *table= m_fills;
  m_fills= nullptr;
  if (code == WEIR_OK && table)
    table->filled();
  return code;
}

// Or sees to it that nothing is sent to the client before it is.
weir_code Transaction::make_durable()
{
  uint32_t durability= weir_durability_of(m_thd);
  if (m_owed && durability == WEIR_SYNCED && m_answer.owe(m_owed))
    return WEIR_OK;
  return weir_wait(weir_database, m_owed, durability);
}

int Transaction::rollback(bool all)
{
  m_late_words.forget();
  if (!is_real(all))
  {
    weir_code code= WEIR_OK;
    if (m_txn && m_has_savepoint && !weir_txn_has_ended(m_txn))
    {
      code= weir_txn_rollback_to(m_txn, m_savepoint);
      m_row_changes.go_back(m_savepoint);
    }
    forget_statement();
    return to_handler_error(nullptr, code);
  }
  m_fills= nullptr;
  m_row_changes.give_back();
  if (m_prepared)
  {
    forget_number();
    weir_code code= m_held ? weir_prepared_txn_rollback(m_held) : rollback_by_name(m_xid);
    if (code == WEIR_OK)
      code= sync_decision();
    return end(code == WEIR_NOTHING ? WEIR_OK : code);
  }
  weir_txn *txn;
  take_txn(&txn);
  return end(txn ? weir_txn_rollback(txn) : WEIR_OK);
}

weir_code Transaction::commit_prepared(uint32_t durability)
{
  forget_number();
  return m_held ? weir_prepared_txn_commit(m_held, durability) : commit_by_name(m_xid, durability);
}

// What the user has decided of XA is not prepared again after a crash: no client would decide it a second time.
weir_code Transaction::sync_decision()
{
  return !m_held && weir_durability_of(m_thd) != WEIR_LAZY ? weir_sync(weir_database) : WEIR_OK;
}

// A replica's threads commit in the primary's order. Of a transaction over two engines (this one, and where the replica
// keeps its position) MariaDB 10.11.18 sees to that while it is written to the binary log, and not at all if nothing of
// it is: what depends on an earlier one would be there before that, and be overwritten by it. Here it can still be made
// to give way.
int Transaction::wait_for_turn()
{
  bool is_logged= m_thd->variables.option_bits & OPTION_BIN_LOG;
  if (likely(!m_thd->rgi_slave) || is_logged || m_thd->transaction->xid_state.is_explicit_XA())
    return 0;
  return m_thd->wait_for_prior_commit() ? HA_ERR_ABORTED_BY_USER : 0;
}

int Transaction::prepare(bool all)
{
  if (int error= m_late_words.write())
    return error;
  if (!is_real(all))
  {
    forget_statement();
    return 0;
  }
  weir_txn *txn= m_txn;
  if (!txn)
    return 0;
  if (int error= wait_for_turn())
    return error;
  {
    // A transaction that waits for its rows meanwhile finds it by its number, before it is prepared and after.
    std::lock_guard<std::mutex> guard(m_mutex);
    m_prepared_number= weir_txn_number(txn);
    m_txn= nullptr;
  }
  XID xid;
  thd_get_xid(m_thd, reinterpret_cast<MYSQL_XID *>(&xid));
  m_xid= xid_name(&xid);
  // What the server names itself it decides at once, after a crash before any client connects.
  weir_code code;
  if (!xid.get_my_xid())
    code= weir_txn_prepare(txn, bytes_of(m_xid));
  else if (comes_to_binlog_gate(m_thd, all))
    code= weir_txn_begin_prepare_owned(txn, bytes_of(m_xid), &m_held, &m_prepared_at);
  else
    code= weir_txn_prepare_owned(txn, bytes_of(m_xid), &m_held);
  m_prepared= code == WEIR_OK;
  m_committed= false;
  if (m_prepared && !m_held)
    weir_prepared_changes.keep(m_xid, &m_row_changes);
  return to_handler_error(m_thd, code);
}

void Transaction::prepare_ordered(bool all)
{
  if (m_prepared_at && is_real(all))
    m_place= enqueue(m_prepared_at);
}

void Transaction::commit_ordered(bool all)
{
  if (!m_prepared || !is_real(all))
    return;
  if (is_durable_behind_binlog(m_prepared_at, m_place))
    m_prepared_at= 0;
  m_commit= commit_prepared(WEIR_LAZY);
  m_committed= true;
}

int Transaction::commit_part()
{
  weir_txn *txn;
  take_txn(&txn);
  weir_code code= txn ? weir_txn_commit(txn, WEIR_LAZY) : WEIR_OK;
  m_has_savepoint= false;
  m_part++;
  m_row_changes.forget();
  if (code != WEIR_OK)
    return to_handler_error(m_thd, code);
  return begin();
}

int Transaction::savepoint_set(uint64_t *savepoint)
{
  if (int error= begin())
    return error;
  weir_code code= weir_txn_savepoint(m_txn, savepoint);
  if (code == WEIR_OK)
    m_row_changes.mark(*savepoint);
  return to_handler_error(m_thd, code);
}

int Transaction::savepoint_rollback(uint64_t savepoint)
{
  if (!m_txn)
    return 0;
  weir_code code= weir_txn_rollback_to(m_txn, savepoint);
  if (code == WEIR_OK)
    m_row_changes.go_back(savepoint);
  return to_handler_error(m_thd, code);
}

int Transaction::savepoint_release(uint64_t savepoint)
{
  if (!m_txn)
    return 0;
  m_row_changes.release(savepoint);
  return to_handler_error(m_thd, weir_txn_release(m_txn, savepoint));
}

void Transaction::see_all(std::vector<Seen> *out)
{
  std::lock_guard<std::mutex> all(all_mutex);
  for (Transaction *trx : all_transactions)
  {
    std::lock_guard<std::mutex> guard(trx->m_mutex);
    if (trx->m_txn)
      out->push_back({thd_get_thread_id(trx->m_thd), weir_txn_number(trx->m_txn), trx->m_isolation, trx->m_begun});
  }
}

int Transaction::show_sessions(ulonglong one, ulonglong other, int (*show)(THD *one, THD *other))
{
  THD *found= nullptr;
  std::lock_guard<std::mutex> all(all_mutex);
  for (Transaction *trx : all_transactions)
  {
    std::lock_guard<std::mutex> guard(trx->m_mutex);
    // A session goes only when its transaction has been taken from the list.
    if (one && trx->number() == one)
      found= trx->m_thd;
  }
  for (Transaction *trx : all_transactions)
  {
    // As long as this is held, the other one is no further than that: a replica's thread that is made to give way for a
    // transaction that it has rolled back already would take it for something else, and stop.
    std::lock_guard<std::mutex> guard(trx->m_mutex);
    if (found && other && trx->number() == other)
      return show(found, trx->m_thd);
  }
  return 0;
}

ulonglong Transaction::number() const { return m_txn ? weir_txn_number(m_txn) : m_prepared_number; }

void Transaction::forget_number()
{
  std::lock_guard<std::mutex> guard(m_mutex);
  m_prepared_number= 0;
}

void Transaction::interrupt()
{
  std::lock_guard<std::mutex> guard(m_mutex);
  if (m_txn)
    weir_txn_interrupt(m_txn);
}

weir_code commit_by_name(const std::string &name, uint32_t durability)
{
  weir_code code= weir_commit_prepared(weir_database, bytes_of(name), durability);
  if (code == WEIR_OK)
  {
    weir_prepared_changes.forget(name);
    drop_buried();
  }
  return code;
}

weir_code rollback_by_name(const std::string &name)
{
  weir_code code= weir_rollback_prepared(weir_database, bytes_of(name));
  if (code == WEIR_OK)
  {
    weir_prepared_changes.give_back(name);
    drop_buried();
  }
  return code;
}

std::string xid_name(const XID *xid)
{
  uchar head[6];
  int4store(head, static_cast<uint32>(xid->formatID));
  head[4]= static_cast<uchar>(xid->gtrid_length);
  head[5]= static_cast<uchar>(xid->bqual_length);
  std::string name(reinterpret_cast<char *>(head), sizeof(head));
  return name.append(xid->data, xid->gtrid_length + xid->bqual_length);
}

bool xid_of_name(const uchar *name, size_t length, XID *xid)
{
  if (length < 6 || length != 6U + name[4] + name[5] || length - 6 > XIDDATASIZE)
    return false;
  xid->set(static_cast<int32>(uint4korr(name)), reinterpret_cast<const char *>(name) + 6, name[4],
           reinterpret_cast<const char *>(name) + 6 + name[4], name[5]);
  return true;
}
