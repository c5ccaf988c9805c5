#include "ha_weir.h"

#include <algorithm>

#include <sql_parse.h>

#include "known_rows.h"
#include "variables.h"

ha_weir::ha_weir(handlerton *hton, TABLE_SHARE *share)
    : Server_handler(hton, share), m_share(nullptr), m_table(nullptr), m_trx(nullptr), m_own(nullptr), m_trx_found(false),
      m_lock_mark(0), m_lock_end(0), m_unlocks(false), m_semi_consistent(false), m_read_unlocked(false), m_lock(WEIR_LOCK_NONE),
      m_table_lock(WEIR_LOCK_NONE), m_skip_locked(false), m_keyread(false), m_copying(false), m_copy(nullptr), m_replaces(false), m_copied(0),
      m_scan(nullptr), m_scan_part(0), m_window(nullptr), m_found(), m_place(WEIR_ROWS), m_down(false), m_on(false), m_bounded(false),
      m_beyond(0), m_by_handler(false), m_row_id(), m_mrr_of_join(false), m_row_bytes(0), m_row_bytes_min(1),
      m_row_changes_place(0), m_number_error(0), m_duplicate(MAX_KEY), m_foreign_epoch(0), m_foreign_busy(0), m_has_late(false)
{
  memset(&m_lock_data, 0, sizeof(m_lock_data));
}

ha_weir::~ha_weir()
{
  close_scan();
  drop_own();
  weir_table_close(m_table);
}

// Whether the server's table is a partitioned one, of which this is a part.
bool ha_weir::is_partition() const
{
#ifdef WITH_PARTITION_STORAGE_ENGINE
  return table_share && table_share->partition_info_str;
#else
  return false;
#endif
}

ulonglong ha_weir::table_flags() const
{
  // The engine looks for duplicates in the order in which indexes were made. Where that is another one than the
  // server's, REPLACE must not take the last key that it knows for the last one that can meet one.
  // Of a partitioned table all partitions must say the same, and EXCHANGE brings in one of another order.
  ulonglong order= is_partition() ? HA_DUPLICATE_KEY_NOT_IN_ORDER : 0;
  int32_t last= WEIR_ROWS;
  for (const Weir_index &index : m_indexes)
    if (index.unique && index.place != WEIR_ROWS)
    {
      if (index.place < last)
        order= HA_DUPLICATE_KEY_NOT_IN_ORDER;
      last= index.place;
    }
  // A range that is empty is not locked at these levels: what the server itself sees to as unique (USING HASH, WITHOUT
  // OVERLAPS) it is to look at once the row is there for others to meet.
  const THD *thd= ha_thd();
  ulonglong unique= thd && thd_tx_isolation(thd) <= ISO_READ_COMMITTED ? HA_CHECK_UNIQUE_AFTER_WRITE : 0;
  // From REPEATABLE READ on, what a statement that changes rows has read stays as it was until its commit, ranges included
  // (reads_with_locks): replayed in the order of the commits, statements do the same again. Below, they need not.
  ulonglong statements= thd && thd_tx_isolation(thd) >= ISO_REPEATABLE_READ ? HA_BINLOG_STMT_CAPABLE : 0;
  return order | unique | statements | HA_BINLOG_ROW_CAPABLE | HA_REC_NOT_IN_SEQ | HA_NULL_IN_KEY | HA_CAN_INDEX_BLOBS |
         HA_CAN_VIRTUAL_COLUMNS | HA_REQUIRES_KEY_COLUMNS_FOR_DELETE | HA_PRIMARY_KEY_REQUIRED_FOR_POSITION |
         HA_PRIMARY_KEY_IN_READ_INDEX | HA_PARTIAL_COLUMN_READ | HA_TABLE_SCAN_ON_INDEX | HA_CAN_SQL_HANDLER |
         HA_CAN_SKIP_LOCKED | HA_CAN_TABLES_WITHOUT_ROLLBACK | HA_CAN_GEOMETRY | HA_CAN_BIT_FIELD |
         HA_CAN_ONLINE_BACKUPS | HA_ONLINE_ANALYZE | HA_CONCURRENT_OPTIMIZE | HA_CAN_FULLTEXT | HA_CAN_FULLTEXT_EXT |
         HA_CAN_RTREEKEYS | HA_CAN_EXPORT;
}

bool index_covers(const TABLE_SHARE *share, const KEY *key, uint first, uint last)
{
  for (uint i= first; i <= last && i < key->user_defined_key_parts; i++)
  {
    const KEY_PART_INFO *part= &key->key_part[i];
    const Field *field= part->fieldnr ? share->field[part->fieldnr - 1] : nullptr;
    if ((part->key_part_flag & (HA_BLOB_PART | HA_PART_KEY_SEG)) ||
        (field && ((field->flags & BLOB_FLAG) || part->length != field->key_length())))
      return false;
  }
  return true;
}

ulong ha_weir::index_flags(uint index, uint part, bool all_parts) const
{
  // It has windows, in no order: not that of rows either.
  if (is_spatial(&table_share->key_info[index]))
    return HA_READ_RANGE | HA_KEY_SCAN_NOT_ROR;
  if (is_unordered(&table_share->key_info[index]))
    return 0;
  ulong flags= HA_READ_NEXT | HA_READ_PREV | HA_READ_ORDER | HA_READ_RANGE;
  // Asked while the key is half built: nothing beyond `part` may be touched.
  bool covers= index_covers(table_share, &table_share->key_info[index], all_parts ? 0 : part, part);
  if (covers)
    flags|= HA_KEYREAD_ONLY;
  if (index == table_share->primary_key)
    flags= (flags | HA_CLUSTERED_INDEX) & ~CLUSTERED_LACKS;
  else
    // What is pushed down and cannot be judged is given back (idx_cond_push).
    flags|= HA_DO_INDEX_COND_PUSHDOWN | (covers ? HA_DO_RANGE_FILTER_PUSHDOWN : 0);
  return flags;
}

typedef std::vector<std::pair<std::string, std::string>> Names_and_definitions;

static void collect_index(void *context, weir_bytes name, weir_bytes definition)
{
  static_cast<Names_and_definitions *>(context)->emplace_back(
      std::string(reinterpret_cast<const char *>(name.data), name.len),
      std::string(reinterpret_cast<const char *>(definition.data), definition.len));
}

// False: there are no such columns.
bool ha_weir::make_fulltext(const std::vector<uint> &columns, const Fulltext_definition &made, Weir_index *index)
{
  std::vector<Field *> fields;
  for (uint column : columns)
    if (column >= 1 && column <= table_share->fields)
      fields.push_back(table->field[column - 1]);
  index->covers= index->unique= false;
  if (fields.empty() || fields.size() != columns.size())
    return false;
  index->fulltext= std::make_shared<Fulltext_codec>(fields, made);
  return true;
}

bool ha_weir::make_spatial(uint column, Weir_index *index)
{
  index->covers= index->unique= false;
  if (column < 1 || column > table_share->fields)
    return false;
  index->spatial= std::make_shared<Spatial_codec>(table->field[column - 1]);
  return true;
}

// A FULLTEXT or SPATIAL key, from what the engine keeps of it.
int ha_weir::make_unordered(const KEY *key, const std::string &definition, Weir_index *index)
{
  Fulltext_definition words;
  Spatial_definition cells;
  if (is_spatial(key) ? cells.decode(definition) && make_spatial(key->key_part[0].fieldnr, index)
                      : words.decode(definition) && make_fulltext(column_numbers(key), words, index))
    return 0;
  sql_print_error("Weir: key %s of table %s was made by a later version", key->name.str, m_name.c_str());
  return HA_ERR_CRASHED;
}

// False: it is another key.
bool ha_weir::make_announced_unordered(const std::string &definition, Weir_index *index)
{
  Fulltext_definition words;
  Spatial_definition cells;
  if (words.decode(definition))
    return make_fulltext(words.columns, words, index);
  return cells.decode(definition) && make_spatial(cells.column, index);
}

std::vector<uint> column_numbers(const KEY *key)
{
  std::vector<uint> columns;
  for (uint part= 0; part < key->user_defined_key_parts; part++)
    columns.push_back(key->key_part[part].fieldnr);
  return columns;
}

// What the engine keeps of an index, one that is being made included, now.
std::string ha_weir::index_definition(const KEY *key)
{
  weir_table *now;
  if (m_share->open(&now) != WEIR_OK)
    return std::string();
  Names_and_definitions kept;
  weir_table_indexes(now, collect_index, &kept);
  weir_table_close(now);
  for (const std::pair<std::string, std::string> &index : kept)
    if (index.first == std::string(key->name.str, key->name.length))
      return index.second;
  return std::string();
}

Weir_index ha_weir::make_index(const KEY *key, int32_t place)
{
  Weir_index index;
  index.key= Key_codec(key);
  index.payload= Row_codec(table, &index.key, &m_primary, m_row);
  index.covers= index_covers(table_share, key, 0, key->user_defined_key_parts - 1);
  index.unique= (key->flags & HA_NOSAME) && key->algorithm != HA_KEY_ALG_LONG_HASH;
  index.place= place;
  return index;
}

// The engine keeps indexes in the order in which they were made, the server in one of its own.
int ha_weir::make_codecs()
{
  Names_and_definitions kept;
  weir_code code= weir_table_indexes(m_table, collect_index, &kept);
  if (code != WEIR_OK)
    return fail(code);
  if (has_primary())
    m_primary= Key_codec(&table->key_info[table_share->primary_key]);
  Definitions::Pointer known= weir_definitions.find(m_name);
  m_row= Row_codec(table, &m_primary, known ? *known : Table_definition());
  if (!m_row.is_sound())
  {
    sql_print_error("Weir: the rows of table %s are laid out as a later version, or the server, does not know", m_name.c_str());
    return HA_ERR_CRASHED;
  }
  m_indexes.clear();
  m_announced.clear();
  std::vector<bool> known_to_server(kept.size());
  for (uint i= 0; i < table_share->keys; i++)
  {
    const KEY *info= &table->key_info[i];
    int32_t place= WEIR_ROWS;
    std::string definition;
    if (i != table_share->primary_key)
    {
      std::string name(info->name.str, info->name.length);
      size_t nth= 0;
      while (nth < kept.size() && kept[nth].first != name)
        nth++;
      if (nth == kept.size())
      {
        sql_print_error("Weir: table %s has no index %s", m_name.c_str(), info->name.str);
        return HA_ERR_CRASHED;
      }
      known_to_server[nth]= true;
      place= static_cast<int32_t>(nth);
      definition= kept[nth].second;
    }
    if (has_several_entries(info))
    {
      m_indexes.push_back(Weir_index());
      m_indexes.back().place= place;
      if (int error= make_unordered(info, definition, &m_indexes.back()))
        return error;
      continue;
    }
    m_indexes.push_back(make_index(info, place));
    m_indexes.back().search= Search_codec(info, has_primary() ? &table->key_info[table_share->primary_key] : nullptr);
  }
  for (size_t nth= 0; nth < kept.size(); nth++)
  {
    if (known_to_server[nth])
      continue;
    std::unique_ptr<Announced_index> announced(new Announced_index);
    if (make_announced_unordered(kept[nth].second, &announced->index))
    {
      announced->index.place= static_cast<int32_t>(nth);
      m_announced.push_back(std::move(announced));
      continue;
    }
    if (!announced->key.read(table, kept[nth].second))
    {
      sql_print_error("Weir: index %s of table %s is not known here", kept[nth].first.c_str(), m_name.c_str());
      return HA_ERR_CRASHED;
    }
    announced->index= make_index(announced->key.key(), static_cast<int32_t>(nth));
    m_announced.push_back(std::move(announced));
  }
  ref_length= has_primary() ? table->key_info[table_share->primary_key].key_length : sizeof(m_row_id);
  return 0;
}

handler *ha_weir::clone(const char *name, MEM_ROOT *root)
{
  ha_weir *other= static_cast<ha_weir *>(handler::clone(name, root));
  if (other)
  {
    // The server does not say to the clone how it is to lock.
    other->m_lock= m_lock;
    other->m_skip_locked= m_skip_locked;
  }
  return other;
}

int ha_weir::open(const char *name, int, uint)
{
  m_name= table_name_of(name);
  lock_shared_ha_data();
  m_share= static_cast<Weir_share *>(get_ha_share_ptr());
  if (!m_share)
  {
    m_share= new Weir_share(m_name);
    Definitions::Pointer known= weir_definitions.find(m_name);
    m_share->set_discarded(known && known->discarded);
    longlong rows= weir_known_rows.find(m_name);
    if (rows >= 0)
      m_share->set_rows(rows);
    set_ha_share_ptr(m_share);
  }
  unlock_shared_ha_data();
  weir_code code= m_share->open(&m_table);
  if (code != WEIR_OK)
    return code == WEIR_NOTHING ? HA_ERR_NO_SUCH_TABLE : fail(code);
  if (int error= make_codecs())
    return error;
  // A scan of all rows goes by the primary key: a statement that changes it meanwhile must not meet the row again.
  key_used_on_scan= table_share->primary_key;
  set_row_bytes();
  return info(HA_STATUS_NO_LOCK | HA_STATUS_VARIABLE | HA_STATUS_CONST);
}

// Whether `code` says that this handle is older than the definition, and now it is not: ALTER builds an index, or
// has given it up. What the snapshot is too old for stays so.
bool ha_weir::refreshed(weir_code code)
{
  if (code != WEIR_CHANGED)
    return false;
  m_share->forget(false);
  weir_table *table;
  if (m_share->open(&table) != WEIR_OK)
    return false;
  weir_table_close(m_table);
  m_table= table;
  return make_codecs() == 0;
}

int ha_weir::close()
{
  m_mrr.dsmrr_close();
  close_scan();
  drop_own();
  give_up_copy();
  m_parents.clear();
  m_children.clear();
  m_foreign_epoch= 0;
  weir_table_close(m_table);
  m_table= nullptr;
  return 0;
}

int ha_weir::fail(weir_code code) { return to_handler_error(ha_thd(), code); }

bool ha_weir::get_error_message(int error, String *buf)
{
  if (error == HA_ERR_ROW_IS_REFERENCED || error == HA_ERR_NO_REFERENCED_ROW || error == HA_ERR_FK_DEPTH_EXCEEDED)
    buf->append(m_failure.words.data(), m_failure.words.size());
  if (error < WEIR_ERROR_BASE)
    return false;
  // The words are kept for the thread, and this is the thread that got the error.
  buf->append(weir_message(), strlen(weir_message()));
  return false;
}

// Whether what a statement reads on its way is read as committed last, with shared locks.
static bool reads_with_locks(THD *thd)
{
  int command= thd_sql_command(thd);
  // The table may be copied. A transaction that is prepared and has no session any more holds no lock of the server's,
  // and has its changes in what is copied: a read with locks waits for it. They are kept for a part of the copy.
  if (command == SQLCOM_ALTER_TABLE || command == SQLCOM_CREATE_INDEX || command == SQLCOM_DROP_INDEX)
    return true;
  // Else all but plain SELECTs, as InnoDB's users know it: building on a snapshot would be building on what is gone.
  switch (command)
  {
  // Below REPEATABLE READ, these build on what is committed when they come to it.
  case SQLCOM_INSERT_SELECT:
  case SQLCOM_REPLACE_SELECT:
  case SQLCOM_UPDATE:
  case SQLCOM_CREATE_TABLE:
    return thd_tx_isolation(thd) >= ISO_REPEATABLE_READ;
  case SQLCOM_SELECT:
  case SQLCOM_CHECKSUM:
  case SQLCOM_ANALYZE:
  case SQLCOM_OPTIMIZE:
  case SQLCOM_CHECK:
  case SQLCOM_REPAIR:
  case SQLCOM_CREATE_SEQUENCE:
  case SQLCOM_HA_OPEN:
  case SQLCOM_HA_READ:
  case SQLCOM_HA_CLOSE:
  // The server reads for itself.
  case SQLCOM_CHANGE_MASTER:
  case SQLCOM_SLAVE_START:
    return false;
  // A condition in a procedure; or the server reads for itself, too.
  case SQLCOM_END:
    return thd->spcont != nullptr;
  default:
    return !(sql_command_flags[command] & CF_STATUS_COMMAND);
  }
}

// Rows of the result are missing where something cannot be read: the statement that shows it has a warning.
static void warn_of_passed_over(THD *thd)
{
  if (!weir_force_recovery())
    return;
  static thread_local uint64_t warned_of= 0;
  weir_thread_counts now;
  weir_thread_counts_now(&now);
  if (now.passed_over == warned_of)
    return;
  push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, ER_OPTION_PREVENTS_STATEMENT,
                      "Weir: rows are missing here: at %llu places something cannot be read, and was passed over "
                      "(weir_force_recovery); the error log names the pages",
                      static_cast<ulonglong>(now.passed_over - warned_of));
  warned_of= now.passed_over;
}

int ha_weir::external_lock(THD *thd, int lock_type)
{
  if (lock_type == F_UNLCK)
  {
    suspend_scan();
    end_export();
    warn_of_passed_over(thd);
    give_up_copy();
    int error= commit_own();
    Transaction *trx= m_trx_found ? nullptr : m_trx;
    m_trx= nullptr;
    m_trx_found= false;
    m_lock= m_table_lock= WEIR_LOCK_NONE;
    int error_of_end= trx ? trx->leave_table() : 0;
    return error ? error : error_of_end;
  }
  if (lock_type == F_WRLCK && weir_refuses_changes())
    return HA_ERR_TABLE_READONLY;
  if (m_share->is_discarded() && !thd->tablespace_op)
  {
    my_error(ER_TABLESPACE_DISCARDED, MYF(0), table_share->table_name.str);
    return HA_ERR_TABLESPACE_MISSING;
  }
  if (lock_type == F_RDLCK && is_exported(thd))
    if (int error= export_table())
      return error;
  m_trx= Transaction::of(thd);
  m_trx_found= false;
  m_trx->enter_table();
  if (lock_type == F_WRLCK)
    m_lock= m_table_lock= WEIR_LOCK_UPDATE;
  // What ALTER fills is not seen, nor rolled back row by row, before it gets its name.
  // A user's table may have such a name too, but not as a file's.
  m_copying= lock_type == F_WRLCK && m_name.compare(m_name.find('/') + 1, 10, "#sql-alter") == 0;
  m_copied= 0;
  read_temporary_with_locks();
  m_unlocks= thd_tx_isolation(thd) <= ISO_READ_COMMITTED;
  m_by_handler= thd_sql_command(thd) == SQLCOM_HA_READ;
  return m_trx->begin_statement();
}

// Under LOCK TABLES, and within what a statement calls: whether others' reads are locked was settled with the tables.
int ha_weir::start_stmt(THD *thd, thr_lock_type lock_type)
{
  m_trx= Transaction::of(thd);
  m_skip_locked= lock_type == TL_READ_SKIP_LOCKED || lock_type == TL_WRITE_SKIP_LOCKED;
  if (lock_type >= TL_FIRST_WRITE)
    m_lock= WEIR_LOCK_UPDATE;
  else if (lock_type == TL_READ_WITH_SHARED_LOCKS || lock_type == TL_READ_SKIP_LOCKED)
    m_lock= WEIR_LOCK_SHARE;
  else if (thd_sql_command(thd) == SQLCOM_SELECT && lock_type == TL_READ)
    m_lock= WEIR_LOCK_NONE;
  else
    m_lock= m_table_lock;
  read_temporary_with_locks();
  m_unlocks= thd_tx_isolation(thd) <= ISO_READ_COMMITTED;
  return m_trx->begin_statement();
}

// A sequence's own handler passes on neither start_stmt under LOCK TABLES nor that a new temporary one is in use.
int ha_weir::take_part()
{
  if (m_trx && m_trx->txn())
    return begin_own();
  m_trx_found|= !m_trx;
  m_trx= Transaction::of(ha_thd());
  read_temporary_with_locks();
  int error= m_trx->begin_statement();
  return error ? error : begin_own();
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
  // No row changes, and what transactions without an end have locked stays so.
  if (weir_force_recovery())
    m_lock= WEIR_LOCK_NONE;
  else if (lock_type == TL_READ_WITH_SHARED_LOCKS || lock_type == TL_READ_SKIP_LOCKED)
    m_lock= WEIR_LOCK_SHARE;
  else if (lock_type >= TL_FIRST_WRITE)
    m_lock= WEIR_LOCK_UPDATE;
  else if (reads_with_locks(thd))
    m_lock= WEIR_LOCK_SHARE;
  // A function reads it whose statement is logged as such, whatever command calls the function.
  else if (lock_type == TL_READ_NO_INSERT && thd_sql_command(thd) == SQLCOM_SELECT &&
           thd_tx_isolation(thd) >= ISO_REPEATABLE_READ)
    m_lock= WEIR_LOCK_SHARE;
  else
    m_lock= WEIR_LOCK_NONE;
  m_table_lock= m_lock;
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
  case HA_EXTRA_BEGIN_COPY:
    begin_copy();
    break;
  case HA_EXTRA_END_COPY:
    return end_copy();
  case HA_EXTRA_ABORT_COPY:
    give_up_copy();
    break;
  case HA_EXTRA_INSERT_WITH_UPDATE:
  case HA_EXTRA_WRITE_CAN_REPLACE:
    m_replaces= true;
    break;
  case HA_EXTRA_NO_IGNORE_DUP_KEY:
  case HA_EXTRA_WRITE_CANNOT_REPLACE:
    m_replaces= false;
    break;
  default:
    break;
  }
  return 0;
}

int ha_weir::reset()
{
  // The end of a statement has written them, or rolled it back. This is for a way of the server's that is not known here.
  if (unlikely(m_has_late) && m_trx->late_words().write())
    ha_thd()->mark_transaction_to_rollback(false);
  m_late.clear();
  m_mrr.dsmrr_close();
  close_scan();
  drop_own();
  if (m_trx_found)
  {
    m_trx= nullptr;
    m_trx_found= false;
  }
  m_keyread= m_skip_locked= m_semi_consistent= m_replaces= false;
  m_kept.clear();
  return 0;
}
