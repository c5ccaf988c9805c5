// What goes by a transaction of its own.
//
// The row of a sequence is read and written outside of the session's transaction, as InnoDB does: a number that was
// given out stays given out, and no session waits for the end of a transaction that has taken one. The server lets one
// session at a time write it.
//
// So are the rows of CREATE TEMPORARY TABLE ... SELECT: the table stays when the session's transaction is rolled back, and
// so does, as with InnoDB, what it was made of.
#include "ha_weir.h"

#include <sql_sequence.h>

#include "variables.h"

// Begins the transaction of its own that a use of a sequence goes by.
int ha_weir::begin_own()
{
  return table_share->sequence ? begin_own_always() : 0;
}

int ha_weir::begin_own_always()
{
  if (m_own)
    return 0;
  weir_code code= weir_txn_begin(weir_database, WEIR_READ_COMMITTED, weir_lock_wait_millis(ha_thd()), &m_own);
  return code == WEIR_OK ? 0 : fail(code);
}

// Before a row is written: whether it is one that CREATE TEMPORARY TABLE ... SELECT fills the table with. Until the table is
// unlocked.
int ha_weir::begin_filling()
{
  if (likely(thd_sql_command(ha_thd()) != SQLCOM_CREATE_TABLE) || table_share->tmp_table == NO_TMP_TABLE)
    return 0;
  return begin_own_always();
}

// Others see what it has written now. If they may take numbers that it has reserved, it is durable; otherwise the
// session's commit waits for that, so that others can write theirs meanwhile.
int ha_weir::end_own() { return table_share->sequence ? commit_own() : 0; }

int ha_weir::commit_own()
{
  if (!m_own)
    return 0;
  close_scan();
  weir_txn *own= m_own;
  m_own= nullptr;
  if (weir_txn_has_ended(own))
  {
    // The transaction that was in its way has been reported.
    weir_txn_rollback(own);
    return 0;
  }
  uint64_t position= 0;
  weir_code code= weir_txn_commit_visible(own, &position);
  if (code != WEIR_OK)
    return fail(code);
  if (!table_share->sequence)
    return 0;
  m_trx->owe(position);
  if (position && table_share->sequence->cache > 1)
    code= weir_wait(weir_database, position, weir_durability_of(ha_thd()));
  return code == WEIR_OK ? 0 : fail(code);
}

void ha_weir::drop_own()
{
  if (m_own)
    weir_txn_rollback(m_own);
  m_own= nullptr;
}

// What is read is not locked, so that a statement may read a sequence that it takes numbers of: the row is locked now.
int ha_weir::lock_own_row()
{
  if (!m_own || !table_share->sequence)
    return 0;
  weir_bytes row;
  weir_code code= weir_table_get(m_table, m_own, bytes_of(m_row_id, sizeof(m_row_id)), WEIR_LOCK_UPDATE, &row);
  return code == WEIR_OK ? 0 : fail(code);
}
