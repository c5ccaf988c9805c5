// A class whose members lie elsewhere than its headers say is memory corruption, or an answer that is silently another one
// (MariaDB 11.8 has repacked Alter_inplace_info between two of its patch releases: every ALTER was "not supported"). Most
// of the server's classes have no object whose size its binary tells (layout_check.cc): so the server is made to make some,
// and they are looked at through the headers. What it exports for that: constructors, create_tmp_table, and accessors of
// sessions.
#include "layout_guard.h"

#include <cstring>
#include <thread>

#include "server.h"
#include <sql_parse.h>
#include <sql_select.h>

// In the server's sql_class.cc, and in none of its headers.
MYSQL_THD create_background_thd();
void *thd_attach_thd(MYSQL_THD thd);
void thd_detach_thd(void *own);
void destroy_background_thd(MYSQL_THD thd);
extern "C" unsigned long long thd_start_utime(const MYSQL_THD thd);

namespace
{

// What no member is set to by a constructor.
const int UNTOUCHED= 0xAA;
// More than any of the classes has, in any version.
const size_t ROOM_BYTES= 16384;

// Collects what does not fit. What comes behind something that does not is not looked at any more.
class Misfits
{
public:
  void expect(bool fits, const char *what)
  {
    if (!fits)
      m_named+= (m_named.empty() ? "" : ", ") + std::string(what);
  }
  bool none() const { return m_named.empty(); }
  const std::string &named() const { return m_named; }

private:
  std::string m_named;
};

// Whether `read`, a function of the server, sees what is written to `member`. What was there is put back, also where it
// was another member's.
template <typename Member, typename Read> bool is_seen(Member &member, Member value, Read read)
{
  Member before= member;
  member= value;
  bool seen= read() == static_cast<decltype(read())>(value);
  member= before;
  return seen;
}

void check_session(THD *thd, Misfits *misfits)
{
  misfits->expect(is_seen<query_id_t>(thd->query_id, 4711, [&] { return thd_query_id(thd); }), "THD::query_id");
  misfits->expect(is_seen<my_thread_id>(thd->thread_id, 815, [&] { return thd_get_thread_id(thd); }), "THD::thread_id");
  for (int level : {ISO_READ_COMMITTED, ISO_SERIALIZABLE})
    misfits->expect(is_seen(thd->tx_isolation, static_cast<enum_tx_isolation>(level), [&] { return thd_tx_isolation(thd); }),
                    "THD::tx_isolation");
  for (bool only : {false, true})
    misfits->expect(is_seen(thd->tx_read_only, only, [&] { return thd_tx_is_read_only(thd) != 0; }), "THD::tx_read_only");
  misfits->expect(is_seen<ulonglong>(thd->variables.option_bits, OPTION_NOT_AUTOCOMMIT,
                                     [&] { return static_cast<ulonglong>(thd_test_options(thd, ~0LL)); }),
                  "THD::variables");
  // Behind the session's own LEX, whose size this says, too. The text lies in what is pointed to: nothing is read there.
  misfits->expect(thd->get_stmt_da()->message() == thd_get_error_message(thd), "THD::m_stmt_da or LEX");
  // What is pointed to is looked at only where the pointers are.
  if (!misfits->none())
    return;
  misfits->expect(is_seen(thd->lex->sql_command, SQLCOM_CHECKSUM, [&] { return thd_sql_command(thd); }), "THD::lex");
  killed_state killed= thd->killed;
  thd->killed= KILL_QUERY_HARD;
  misfits->expect(thd_killed(thd), "THD::killed");
  thd->killed= killed;
  thd->start_time_sec_part= 0;
  misfits->expect(is_seen<my_time_t>(thd->start_time, 4711, [&] { return my_time_t(thd_start_utime(thd) / 1000000); }),
                  "THD::start_time");
  // The number of an engine's data, and where they lie.
  void *mark= misfits;
  misfits->expect(heap_hton->slot < MAX_HA && is_seen(thd->ha_data[heap_hton->slot].ha_ptr, mark,
                                                      [&] { return thd_get_ha_data(thd, heap_hton); }),
                  "THD::ha_data or handlerton::slot");
  // What comes behind the transaction's own lists.
  XID &implicit= thd->transaction->implicit_xid, before= implicit;
  MYSQL_XID seen;
  implicit.set(static_cast<ulonglong>(4711));
  thd_get_xid(thd, &seen);
  misfits->expect(seen.formatID == implicit.formatID && seen.gtrid_length == implicit.gtrid_length &&
                      !memcmp(seen.data, implicit.data, implicit.gtrid_length),
                  "THD::transaction");
  implicit= before;
}

void check_handlerton(Misfits *misfits)
{
  misfits->expect(heap_hton->db_type == DB_TYPE_HEAP && myisam_hton->db_type == DB_TYPE_MYISAM, "handlerton::db_type");
  misfits->expect(heap_hton->flags & HTON_CAN_RECREATE, "handlerton::flags");
  misfits->expect(heap_hton->create && myisam_hton->create, "handlerton::create");
  // What is pointed to is looked at only where the pointers are.
  if (!misfits->none())
    return;
  const char **files= myisam_hton->tablefile_extensions;
  misfits->expect(files && (!strcmp(files[0], ".MYI") || !strcmp(files[0], ".MYD")), "handlerton::tablefile_extensions");
}

// Constructed over memory that is no member's value.
void check_alter(THD *thd, Misfits *misfits)
{
  alignas(16) static uchar room[ROOM_BYTES];
  memset(room, UNTOUCHED, sizeof(room));
  HA_CREATE_INFO *create= reinterpret_cast<HA_CREATE_INFO *>(room + ROOM_BYTES - 8);
  Alter_info *said= reinterpret_cast<Alter_info *>(room + ROOM_BYTES - 16);
  KEY *keys= reinterpret_cast<KEY *>(room + ROOM_BYTES - 24);
  partition_info *parts= reinterpret_cast<partition_info *>(room + ROOM_BYTES - 32);
  Alter_inplace_info *info= new (room) Alter_inplace_info(create, said, keys, 3, parts, true, true);
  bool fits= info->create_info == create && info->alter_info == said && info->key_info_buffer == keys &&
             info->key_count == 3 && !info->index_drop_buffer && !info->index_add_buffer && !info->index_drop_count &&
             !info->index_add_count && !info->handler_ctx && !info->group_commit_ctx && !info->handler_flags &&
             info->modified_part_info == parts && !info->inplace_alter_table_committed && !info->unsupported_reason &&
             !info->rename_keys.size() && info->ignore && info->error_if_not_empty && !info->online;
  // Nothing of it lies behind its end, and its end is where it is said to be.
  size_t end= ROOM_BYTES - 32;
  while (end && room[end - 1] == UNTOUCHED)
    end--;
  fits&= end <= sizeof(Alter_inplace_info) && end + sizeof(void *) > sizeof(Alter_inplace_info);
  misfits->expect(fits, "Alter_inplace_info");
}

// Pointers are compared before they are followed: what does not fit must be reported, not met.
void look_at_table(THD *thd, const TABLE *table, Misfits *misfits)
{
  const TABLE_SHARE *share= table->s;
  misfits->expect(table->in_use == thd && share && table->file && table->field && table->record[0] && table->record[1] &&
                      !table->key_info && !table->found_next_number_field,
                  "TABLE");
  if (!misfits->none())
    return;
  misfits->expect(share->fields == 1 && share->tmp_table == INTERNAL_TMP_TABLE &&
                      share->table_category == TABLE_CATEGORY_TEMPORARY && share->primary_key == MAX_KEY && !share->keys &&
                      !share->blob_fields && share->reclength && share->reclength < 64 && !share->versioned &&
                      !share->long_unique_table && !share->sequence && !share->tabledef_version.length,
                  "TABLE_SHARE");
  if (!misfits->none())
    return;
  misfits->expect(table->field[0] && !table->field[1] && table->def_read_set.n_bits == 1 && table->tmp_set.n_bits == 1 &&
                      table->read_set && table->write_set,
                  "TABLE");
  if (!misfits->none())
    return;
  const Field *field= table->field[0];
  misfits->expect(field->table == table && field->orig_table == table && field->ptr >= table->record[0] &&
                      field->ptr < table->record[0] + share->reclength && field->field_index == 0 &&
                      field->field_length <= 21 && field->stored_in_db(),
                  "Field");
  const handler *file= table->file;
  misfits->expect(file->ht == heap_hton && !file->ref && file->ref_length && file->ref_length <= 16 &&
                      file->active_index == MAX_KEY && file->keyread == MAX_KEY && file->inited == handler::NONE &&
                      file->lookup_errkey == static_cast<uint>(-1) && file->pushed_idx_cond_keyno == MAX_KEY &&
                      !file->auto_inc_intervals_count && !file->m_psi && !file->row_logging &&
                      file->ha_table_flags() & HA_NO_TRANSACTIONS,
                  "handler");
}

// A temporary table of one number, as the server makes it: its TABLE, TABLE_SHARE, Field and handler.
void check_table(THD *thd, Misfits *misfits)
{
  TMP_TABLE_PARAM param;
  param.init();
  param.field_count= 1;
  param.func_count= 1;
  List<Item> columns;
  columns.push_back(new (thd->mem_root) Item_int(thd, 7), thd->mem_root);
  LEX_CSTRING name= {STRING_WITH_LEN("weir_layout")};
  // In memory, whatever the server's settings have of such tables (big_tables, tmp_memory_table_size=0).
  thd->variables.tmp_memory_table_size= 1 << 20;
  TABLE *table= create_tmp_table(thd, &param, columns, nullptr, false, false, TMP_TABLE_ALL_COLUMNS | SELECT_SMALL_RESULT,
                                 HA_POS_ERROR, &name, true);
  if (!table)
  {
    misfits->expect(false, "create_tmp_table");
    return;
  }
  look_at_table(thd, table, misfits);
  free_tmp_table(thd, table);
}

// The session is one of the server's own for work in the background: its size is the server's affair, too.
void check_all(Misfits *misfits)
{
  my_thread_init();
  THD *thd= create_background_thd();
  void *own= thd_attach_thd(thd);
  lex_start(thd);
  check_handlerton(misfits);
  if (misfits->none())
    check_session(thd, misfits);
  if (misfits->none())
    check_alter(thd, misfits);
  if (misfits->none())
    check_table(thd, misfits);
  if (misfits->none())
    thd->free_items();
  thd_detach_thd(own);
  destroy_background_thd(thd);
  my_thread_end();
}

} // namespace

bool layout_can_be_looked_at()
{
  return heap_hton && myisam_hton;
}

std::string layout_misfit()
{
  Misfits misfits;
  std::thread(check_all, &misfits).join();
  return misfits.named();
}
