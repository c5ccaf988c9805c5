#include "engine.h"

#include "last_errors.h"

handlerton *weir_hton= nullptr;
weir_db *weir_database= nullptr;
bool weir_ddl_recovered= false;

std::string table_name_of(const char *path)
{
  if (path[0] == FN_CURLIB && path[1] == FN_LIBCHAR)
    path+= 2;
  return path;
}

ulonglong table_definition_version(const weir_table *table)
{
  uint64_t changes;
  weir_bytes definition;
  if (weir_table_definition(table, &changes, &definition) != WEIR_OK || definition.len < 8)
    return 0;
  return uint8korr(definition.data);
}

bool is_temporary_name(const std::string &name)
{
  return name[0] == FN_LIBCHAR || name.find("#sql-temptable") != std::string::npos;
}

bool is_killed(THD *thd)
{
  return thd_kill_level(thd) != THD_IS_NOT_KILLED && killed_mask_hard(thd->killed) != ABORT_QUERY;
}

int to_handler_error(THD *thd, weir_code code)
{
  switch (code)
  {
  case WEIR_OK:
    return 0;
  case WEIR_NOTHING:
    return HA_ERR_KEY_NOT_FOUND;
  case WEIR_DUPLICATE:
    return HA_ERR_FOUND_DUPP_KEY;
  case WEIR_DEADLOCK:
    if (thd)
    {
      note_deadlock(thd);
      thd->mark_transaction_to_rollback(true);
    }
    return HA_ERR_LOCK_DEADLOCK;
  case WEIR_LOCK_TIMEOUT:
  case WEIR_WOULD_WAIT:
    if (thd)
      thd->mark_transaction_to_rollback(false);
    return HA_ERR_LOCK_WAIT_TIMEOUT;
  case WEIR_INTERRUPTED:
    return HA_ERR_ABORTED_BY_USER;
  case WEIR_CONFLICT:
    if (thd)
      thd->mark_transaction_to_rollback(true);
    return HA_ERR_RECORD_CHANGED;
  case WEIR_CHANGED:
    return HA_ERR_TABLE_DEF_CHANGED;
  case WEIR_EXHAUSTED:
    return HA_ERR_AUTOINC_ERANGE;
  case WEIR_EXISTS:
    return HA_ERR_TABLE_EXIST;
  case WEIR_DISK_FULL:
    return HA_ERR_RECORD_FILE_FULL;
  case WEIR_TOO_MANY_LOCKS:
    // The engine would let it go on. Applications know from InnoDB that its locks are gone with this error.
    if (thd)
      thd->mark_transaction_to_rollback(true);
    return HA_ERR_LOCK_TABLE_FULL;
  case WEIR_ENDED:
    return HA_ERR_ROLLBACK;
  case WEIR_TOO_LARGE:
  case WEIR_INPUT:
  case WEIR_DAMAGED:
  case WEIR_HALTED:
  case WEIR_IO:
  case WEIR_PANIC:
  case WEIR_CLOSED:
  case WEIR_READ_ONLY:
    break;
  }
  return WEIR_ERROR_BASE + code;
}
