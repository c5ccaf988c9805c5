#include "ha_weir.h"

#include "variables.h"

ha_weir::ha_weir(handlerton *hton, TABLE_SHARE *share)
    : handler(hton, share), m_share(nullptr), m_table(nullptr), m_trx(nullptr), m_lock(WEIR_LOCK_NONE),
      m_skip_locked(false), m_keyread(false), m_copying(false), m_copied(0), m_scan(nullptr), m_found(),
      m_place(WEIR_ROWS), m_down(false), m_on(false), m_bounded(false), m_row_id(), m_duplicate(MAX_KEY)
{
  memset(&m_lock_data, 0, sizeof(m_lock_data));
}

ha_weir::~ha_weir()
{
  close_scan();
  weir_table_close(m_table);
}

ulonglong ha_weir::table_flags() const
{
  // No HA_BINLOG_STMT_CAPABLE: below SERIALIZABLE plain reads take no locks, so statements replayed in the
  // order of their commits need not do the same again.
  return HA_BINLOG_ROW_CAPABLE | HA_REC_NOT_IN_SEQ | HA_NULL_IN_KEY | HA_CAN_INDEX_BLOBS |
         HA_CAN_VIRTUAL_COLUMNS | HA_REQUIRES_KEY_COLUMNS_FOR_DELETE | HA_PRIMARY_KEY_REQUIRED_FOR_POSITION |
         HA_PRIMARY_KEY_IN_READ_INDEX | HA_PARTIAL_COLUMN_READ | HA_TABLE_SCAN_ON_INDEX | HA_CAN_SQL_HANDLER |
         HA_CAN_SKIP_LOCKED | HA_CAN_TABLES_WITHOUT_ROLLBACK | HA_CAN_GEOMETRY | HA_CAN_BIT_FIELD |
         HA_CAN_ONLINE_BACKUPS | HA_ONLINE_ANALYZE | HA_CONCURRENT_OPTIMIZE;
}

ulong ha_weir::index_flags(uint index, uint part, bool all_parts) const
{
  ulong flags= HA_READ_NEXT | HA_READ_PREV | HA_READ_ORDER | HA_READ_RANGE;
  // Asked while the key is half built: nothing beyond `part` may be touched.
  const KEY *key= &table_share->key_info[index];
  bool covers= true;
  for (uint i= all_parts ? 0 : part; i <= part && i < key->user_defined_key_parts; i++)
  {
    const KEY_PART_INFO *info= &key->key_part[i];
    const Field *field= info->fieldnr ? table_share->field[info->fieldnr - 1] : nullptr;
    if ((info->key_part_flag & (HA_BLOB_PART | HA_PART_KEY_SEG)) ||
        (field && ((field->flags & BLOB_FLAG) || info->length != field->key_length())))
      covers= false;
  }
  if (covers)
    flags|= HA_KEYREAD_ONLY;
  if (index == table_share->primary_key)
    flags|= HA_CLUSTERED_INDEX;
  else if (covers)
    flags|= HA_DO_INDEX_COND_PUSHDOWN;
  return flags;
}

void ha_weir::make_codecs()
{
  if (has_primary())
    m_primary= Key_codec(&table->key_info[table_share->primary_key]);
  m_row= Row_codec(table, &m_primary);
  m_indexes.clear();
  int32_t place= 0;
  for (uint i= 0; i < table_share->keys; i++)
  {
    const KEY *info= &table->key_info[i];
    Weir_index index;
    index.key= Key_codec(info);
    index.payload= Row_codec(table, &index.key, &m_primary);
    index.covers= index_flags(i, info->user_defined_key_parts - 1, true) & HA_KEYREAD_ONLY;
    index.unique= (info->flags & HA_NOSAME) && info->algorithm != HA_KEY_ALG_LONG_HASH;
    index.place= i == table_share->primary_key ? WEIR_ROWS : place++;
    m_indexes.push_back(index);
  }
  ref_length= has_primary() ? table->key_info[table_share->primary_key].key_length : sizeof(m_row_id);
}

int ha_weir::open(const char *name, int, uint)
{
  m_name= table_name_of(name);
  lock_shared_ha_data();
  m_share= static_cast<Weir_share *>(get_ha_share_ptr());
  if (!m_share)
  {
    m_share= new Weir_share(m_name);
    set_ha_share_ptr(m_share);
  }
  unlock_shared_ha_data();
  weir_code code= m_share->open(&m_table);
  if (code != WEIR_OK)
    return code == WEIR_NOTHING ? HA_ERR_NO_SUCH_TABLE : fail(code);
  make_codecs();
  // A scan of all rows goes by the primary key: who changes it meanwhile must not meet the row again.
  key_used_on_scan= table_share->primary_key;
  return info(HA_STATUS_NO_LOCK | HA_STATUS_VARIABLE | HA_STATUS_CONST);
}

int ha_weir::close()
{
  close_scan();
  weir_table_close(m_table);
  m_table= nullptr;
  return 0;
}

int ha_weir::fail(weir_code code) { return to_handler_error(ha_thd(), code); }

bool ha_weir::get_error_message(int error, String *buf)
{
  if (error < WEIR_ERROR_BASE)
    return false;
  // The words are kept for the thread, and this is the thread that was told.
  buf->append(weir_message(), strlen(weir_message()));
  return false;
}

// Whether what a statement reads on its way to a change is read as committed last, with shared locks: from
// REPEATABLE READ on, as InnoDB's users know it. Reading from the snapshot would build on what is gone.
static bool reads_for_change(THD *thd)
{
  if (thd_tx_isolation(thd) < ISO_REPEATABLE_READ)
    return false;
  switch (thd_sql_command(thd))
  {
  case SQLCOM_INSERT:
  case SQLCOM_INSERT_SELECT:
  case SQLCOM_REPLACE:
  case SQLCOM_REPLACE_SELECT:
  case SQLCOM_UPDATE:
  case SQLCOM_UPDATE_MULTI:
  case SQLCOM_DELETE:
  case SQLCOM_DELETE_MULTI:
  case SQLCOM_CREATE_TABLE:
    return true;
  default:
    return false;
  }
}

int ha_weir::external_lock(THD *thd, int lock_type)
{
  if (lock_type == F_UNLCK)
  {
    suspend_scan();
    Transaction *trx= m_trx;
    m_trx= nullptr;
    m_lock= WEIR_LOCK_NONE;
    return trx ? trx->leave_table() : 0;
  }
  m_trx= Transaction::of(thd);
  m_trx->enter_table();
  if (lock_type == F_WRLCK)
    m_lock= WEIR_LOCK_UPDATE;
  // What ALTER fills is nobody's to see, or to take back row by row, before it gets its name.
  m_copying= lock_type == F_WRLCK && !strncmp(table_share->table_name.str, "#sql-alter", 10);
  m_copied= 0;
  read_temporary_with_locks();
  return m_trx->begin_statement();
}

int ha_weir::start_stmt(THD *thd, thr_lock_type lock_type)
{
  m_trx= Transaction::of(thd);
  if (lock_type >= TL_FIRST_WRITE)
    m_lock= WEIR_LOCK_UPDATE;
  else if (lock_type == TL_READ_WITH_SHARED_LOCKS || reads_for_change(thd))
    m_lock= WEIR_LOCK_SHARE;
  else
    m_lock= WEIR_LOCK_NONE;
  read_temporary_with_locks();
  return m_trx->begin_statement();
}

// A temporary table may be newer than the snapshot of the one transaction that can see it.
void ha_weir::read_temporary_with_locks()
{
  if (m_lock == WEIR_LOCK_NONE && table_share->tmp_table != NO_TMP_TABLE)
    m_lock= WEIR_LOCK_SHARE;
}

THR_LOCK_DATA **ha_weir::store_lock(THD *thd, THR_LOCK_DATA **to, thr_lock_type lock_type)
{
  // No table locks are asked for (lock_count): rows have locks of their own, and definitions are guarded by
  // the server. What the statement wants of rows is all that matters.
  if (lock_type == TL_IGNORE)
    return to;
  m_skip_locked= lock_type == TL_READ_SKIP_LOCKED || lock_type == TL_WRITE_SKIP_LOCKED;
  if (lock_type == TL_READ_WITH_SHARED_LOCKS || lock_type == TL_READ_SKIP_LOCKED)
    m_lock= WEIR_LOCK_SHARE;
  else if (lock_type >= TL_FIRST_WRITE)
    m_lock= WEIR_LOCK_UPDATE;
  else if (reads_for_change(thd))
    m_lock= WEIR_LOCK_SHARE;
  else
    m_lock= WEIR_LOCK_NONE;
  return to;
}

int ha_weir::extra(ha_extra_function operation)
{
  switch (operation)
  {
  case HA_EXTRA_KEYREAD:
    m_keyread= true;
    break;
  case HA_EXTRA_NO_KEYREAD:
    m_keyread= false;
    break;
  default:
    break;
  }
  return 0;
}

int ha_weir::reset()
{
  close_scan();
  m_keyread= m_skip_locked= false;
  m_kept.clear();
  return 0;
}
