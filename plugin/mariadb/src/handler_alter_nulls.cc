// NULL to NOT NULL: all rows are looked at while others write, and what is written meanwhile is watched.
#include "ha_weir.h"

#include "alter_columns.h"

// No other session has the table in use now. A prepared transaction, which is in no session, is waited for: each that writes
// from then on notes that it has written a NULL.
bool ha_weir::watch_nulls(const Alter_inplace_info *info)
{
  if (fails_to_change([this]() { return weir_table_filled(weir_database, bytes_of(m_name), 0); }))
    return true;
  std::vector<uint> columns;
  for (const Field *field : not_null_columns(table, info->alter_info))
    columns.push_back(field->field_index);
  m_share->watch_nulls(columns);
  return false;
}

// Looks at all rows, as they are now, for NULLs where there are to be none. Says so if there is one.
bool ha_weir::finds_null(const Alter_inplace_info *info)
{
  weir_table *now= nullptr;
  weir_txn *txn= nullptr;
  weir_code code= m_share->open(&now);
  if (code == WEIR_OK)
    code= weir_txn_begin(weir_database, WEIR_READ_COMMITTED, 0, &txn);
  bool found= code != WEIR_OK;
  if (found)
    fail_alter(code);
  else
    found= finds_null_in(now, txn, not_null_columns(table, info->alter_info));
  if (txn)
    weir_txn_rollback(txn);
  weir_table_close(now);
  return found;
}

bool ha_weir::finds_null_in(weir_table *now, weir_txn *txn, const std::vector<Field *> &columns)
{
  weir_range all= {WEIR_ROWS, bytes_of(nullptr, 0), bytes_of(nullptr, 0), false, false, false, WEIR_LOCK_NONE};
  weir_scan *scan= nullptr;
  weir_code code= weir_scan_open(now, txn, &all, &scan);
  weir_found row= weir_found();
  bool stops= false;
  for (ulong nth= 1; code == WEIR_OK && !stops; nth++)
  {
    code= weir_scan_next(scan, txn, &row);
    if (code != WEIR_OK)
      break;
    uchar *record= table->record[0];
    if (decode(record, row.tree_key.data, row.tree_key.len, row.row.data, row.row.len))
      code= WEIR_DAMAGED;
    for (const Field *field : columns)
      if (code == WEIR_OK && !stops && field->is_null_in_record(record))
      {
        my_error(WARN_DATA_TRUNCATED, MYF(0), field->field_name.str, nth);
        stops= true;
      }
    if (!stops && nth % 1024 == 0 && is_killed(ha_thd()))
      code= WEIR_INTERRUPTED;
  }
  weir_scan_close(scan);
  if (code == WEIR_OK || code == WEIR_NOTHING)
    return stops;
  fail_alter(code);
  return true;
}
