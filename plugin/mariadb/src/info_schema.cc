// Tables of the information schema: what the engine measures, which sessions have a transaction open, which hold and wait for
// which locks, how the checkpoint stands, how large tables and indexes are, and by which key they are encrypted. All but the
// numbers want the PROCESS privilege.
#include "info_schema.h"

#include <cmath>
#include <set>
#include <vector>

#include "encryption.h"
#include "engine.h"
#include "transaction.h"

// In the server's sql_show.h and sql_parse.h, which want more of its private headers.
bool schema_table_store_record(THD *thd, TABLE *table);
bool check_global_access(THD *thd, privilege_t want_access, bool no_errors);

namespace
{

using Show::CEnd;
using Show::Column;
using Show::Double;
using Show::STiny;
using Show::ULonglong;
using Show::Varchar;

st_mysql_information_schema schema_table= {MYSQL_INFORMATION_SCHEMA_INTERFACE_VERSION};

void store(Field *field, weir_bytes text)
{
  field->set_notnull();
  field->store(reinterpret_cast<const char *>(text.data), text.len, system_charset_info);
}

void store(Field *field, const std::string &text) { store(field, bytes_of(text)); }

void store(Field *field, ulonglong value)
{
  field->set_notnull();
  field->store(value, true);
}

// An infinite number is shown as NULL: there is no limit.
void store_real(Field *field, double value)
{
  if (std::isfinite(value))
  {
    field->set_notnull();
    field->store(value);
  }
  else
    field->set_null();
}

std::string hex(weir_bytes bytes)
{
  static const char digits[]= "0123456789ABCDEF";
  std::string text;
  for (size_t i= 0; i < bytes.len && i < 256; i++)
  {
    text+= digits[bytes.data[i] >> 4];
    text+= digits[bytes.data[i] & 15];
  }
  return text;
}

// A row that is being made.
struct Output
{
  THD *thd;
  TABLE *table;
  bool failed;

  void begin() { restore_record(table, s->default_values); }
  void put() { failed= failed || schema_table_store_record(thd, table); }
};

bool may_see(THD *thd) { return !check_global_access(thd, PROCESS_ACL, true); }

// ---- weir_metrics ---------------------------------------------------------------------------------------------

ST_FIELD_INFO metrics_fields[]= {Column("NAME", Varchar(64), NOT_NULL),
                                 Column("KIND", Varchar(8), NOT_NULL),
                                 Column("UNIT", Varchar(16), NOT_NULL),
                                 Column("VALUE", Double(22), NULLABLE),
                                 Column("HELP", Varchar(256), NOT_NULL),
                                 CEnd()};

void put_metric(void *context, const weir_metric *metric)
{
  Output *out= static_cast<Output *>(context);
  Field **field= out->table->field;
  out->begin();
  store(field[0], metric->name);
  store(field[1], std::string(metric->is_counter ? "counter" : "gauge"));
  store(field[2], metric->unit);
  store_real(field[3], metric->value);
  store(field[4], metric->help);
  out->put();
}

int fill_metrics(THD *thd, TABLE_LIST *tables, COND *)
{
  Output out= {thd, tables->table, false};
  return weir_metrics(weir_database, put_metric, &out) != WEIR_OK || out.failed;
}

// ---- weir_checkpoint ------------------------------------------------------------------------------------------

// Columns of one row, and the metrics that they are.
const char *const checkpoint_metrics[]= {
    "weir_checkpoint_age_bytes",      "weir_checkpoint_age_limit_bytes", "weir_checkpoint_age_max_bytes",
    "weir_log_capacity_bytes",        "weir_checkpoint_position_bytes",  "weir_log_durable_bytes",
    "weir_redo_bytes",                "weir_pool_dirty_pages",           "weir_deadline_target_pages",
    "weir_capacity_estimate_pages",   "weir_admission_limit_bytes"};

ST_FIELD_INFO checkpoint_fields[]= {Column("AGE_BYTES", Double(22), NOT_NULL),
                                    Column("AGE_LIMIT_BYTES", Double(22), NOT_NULL),
                                    Column("AGE_MAX_BYTES", Double(22), NOT_NULL),
                                    Column("LOG_CAPACITY_BYTES", Double(22), NOT_NULL),
                                    Column("CHECKPOINT_POSITION", Double(22), NOT_NULL),
                                    Column("DURABLE_POSITION", Double(22), NOT_NULL),
                                    Column("LOG_END_POSITION", Double(22), NOT_NULL),
                                    Column("DIRTY_PAGES", Double(22), NOT_NULL),
                                    Column("PAGES_PER_SECOND_WANTED", Double(22), NOT_NULL),
                                    Column("PAGES_PER_SECOND_POSSIBLE", Double(22), NOT_NULL),
                                    Column("REDO_PER_SECOND_ADMITTED", Double(22), NULLABLE),
                                    CEnd()};

void put_checkpoint(void *context, const weir_metric *metric)
{
  Output *out= static_cast<Output *>(context);
  for (uint i= 0; i < array_elements(checkpoint_metrics); i++)
    if (metric->name.len == strlen(checkpoint_metrics[i]) &&
        !memcmp(metric->name.data, checkpoint_metrics[i], metric->name.len))
      store_real(out->table->field[i], metric->value);
}

int fill_checkpoint(THD *thd, TABLE_LIST *tables, COND *)
{
  Output out= {thd, tables->table, false};
  if (!may_see(thd))
    return 0;
  out.begin();
  if (weir_metrics(weir_database, put_checkpoint, &out) != WEIR_OK)
    return 1;
  out.put();
  return out.failed;
}

// ---- weir_locks -----------------------------------------------------------------------------------------------

ST_FIELD_INFO locks_fields[]= {Column("TRANSACTION", ULonglong(), NOT_NULL),
                               Column("TABLE_NAME", Varchar(512), NOT_NULL),
                               Column("INDEX_NAME", Varchar(64), NULLABLE),
                               Column("KIND", Varchar(9), NOT_NULL),
                               Column("STATE", Varchar(8), NOT_NULL),
                               Column("IS_RANGE", STiny(1), NOT_NULL),
                               Column("KEY_FROM", Varchar(512), NOT_NULL),
                               Column("KEY_TO", Varchar(512), NULLABLE),
                               CEnd()};

void put_lock(void *context, const weir_seen_lock *lock)
{
  Output *out= static_cast<Output *>(context);
  Field **field= out->table->field;
  out->begin();
  store(field[0], ulonglong(lock->owner));
  store(field[1], lock->table);
  if (lock->index.len)
    store(field[2], lock->index);
  store(field[3], std::string(lock->is_shared ? "shared" : "exclusive"));
  store(field[4], std::string(lock->is_waiting ? "waiting" : "held"));
  store(field[5], ulonglong(lock->is_range));
  store(field[6], hex(lock->key));
  if (lock->has_to)
    store(field[7], hex(lock->to));
  out->put();
}

int fill_locks(THD *thd, TABLE_LIST *tables, COND *)
{
  Output out= {thd, tables->table, false};
  if (!may_see(thd))
    return 0;
  return weir_locks(weir_database, put_lock, &out) != WEIR_OK || out.failed;
}

// ---- weir_transactions ----------------------------------------------------------------------------------------

ST_FIELD_INFO transactions_fields[]= {Column("SESSION", ULonglong(), NULLABLE),
                                      Column("TRANSACTION", ULonglong(), NULLABLE),
                                      Column("STATE", Varchar(8), NOT_NULL),
                                      Column("ISOLATION", Varchar(16), NULLABLE),
                                      Column("SECONDS", Double(22), NULLABLE),
                                      Column("XID", Varchar(512), NULLABLE),
                                      CEnd()};

void note_waiting(void *context, const weir_seen_lock *lock)
{
  if (lock->is_waiting)
    static_cast<std::set<ulonglong> *>(context)->insert(lock->owner);
}

void put_prepared(void *context, weir_bytes xid)
{
  Output *out= static_cast<Output *>(context);
  out->begin();
  store(out->table->field[2], std::string("prepared"));
  store(out->table->field[5], hex(xid));
  out->put();
}

int fill_transactions(THD *thd, TABLE_LIST *tables, COND *)
{
  static const char *const isolations[]= {"READ-UNCOMMITTED", "READ-COMMITTED", "REPEATABLE-READ", "SNAPSHOT",
                                          "SERIALIZABLE"};
  Output out= {thd, tables->table, false};
  if (!may_see(thd))
    return 0;
  std::set<ulonglong> waiting;
  if (weir_locks(weir_database, note_waiting, &waiting) != WEIR_OK)
    return 1;
  std::vector<Transaction::Seen> all;
  Transaction::see_all(&all);
  ulonglong now= microsecond_interval_timer();
  for (const Transaction::Seen &seen : all)
  {
    Field **field= tables->table->field;
    out.begin();
    store(field[0], seen.session);
    if (seen.number)
      store(field[1], seen.number);
    store(field[2], std::string(waiting.count(seen.number) ? "waiting" : "open"));
    store(field[3], std::string(isolations[seen.isolation]));
    store_real(field[4], now > seen.begun ? (now - seen.begun) / 1e6 : 0);
    out.put();
  }
  return weir_prepared(weir_database, put_prepared, &out) != WEIR_OK || out.failed;
}

// ---- weir_sizes -----------------------------------------------------------------------------------------------

ST_FIELD_INFO sizes_fields[]= {Column("TABLE_NAME", Varchar(512), NOT_NULL),
                               Column("INDEX_NAME", Varchar(64), NULLABLE),
                               Column("LEAF_PAGES", ULonglong(), NOT_NULL),
                               Column("INNER_PAGES", ULonglong(), NOT_NULL),
                               Column("VALUE_PAGES", ULonglong(), NOT_NULL),
                               Column("BYTES", ULonglong(), NOT_NULL),
                               CEnd()};

void note_name(void *context, weir_bytes name)
{
  static_cast<std::vector<std::string> *>(context)->emplace_back(reinterpret_cast<const char *>(name.data), name.len);
}

void note_index(void *context, weir_bytes name, weir_bytes) { note_name(context, name); }

void put_size(Output *out, weir_table *table, const std::string &name, const std::string *index, int32_t place)
{
  uint64_t page_bytes, free_bytes;
  weir_size size;
  if (weir_space(weir_database, &page_bytes, &free_bytes) != WEIR_OK || weir_table_size(table, place, &size) != WEIR_OK)
    return;
  Field **field= out->table->field;
  out->begin();
  store(field[0], name);
  if (index)
    store(field[1], *index);
  store(field[2], ulonglong(size.leaf_pages));
  store(field[3], ulonglong(size.inner_pages));
  store(field[4], ulonglong(size.value_pages));
  store(field[5], ulonglong((size.leaf_pages + size.inner_pages + size.value_pages) * page_bytes));
  out->put();
}

int fill_sizes(THD *thd, TABLE_LIST *tables, COND *)
{
  Output out= {thd, tables->table, false};
  if (!may_see(thd))
    return 0;
  std::vector<std::string> names;
  if (weir_table_names(weir_database, note_name, &names) != WEIR_OK)
    return 1;
  for (const std::string &name : names)
  {
    weir_table *table;
    // Dropped meanwhile.
    if (weir_table_open(weir_database, bytes_of(name), &table) != WEIR_OK)
      continue;
    put_size(&out, table, name, nullptr, WEIR_ROWS);
    std::vector<std::string> indexes;
    weir_table_indexes(table, note_index, &indexes);
    for (size_t i= 0; i < indexes.size(); i++)
      put_size(&out, table, name, &indexes[i], static_cast<int32_t>(i));
    weir_table_close(table);
    if (out.failed || is_killed(thd))
      return 1;
  }
  return 0;
}

// ---- weir_encryption ------------------------------------------------------------------------------------------

ST_FIELD_INFO encryption_fields[]= {Column("TABLE_NAME", Varchar(512), NOT_NULL),
                                    Column("ENCRYPTION_SCHEME", STiny(1), NOT_NULL),
                                    Column("KEY_ID", ULonglong(), NULLABLE),
                                    Column("KEY_VERSION", ULonglong(), NULLABLE),
                                    Column("CURRENT_KEY_VERSION", ULonglong(), NULLABLE),
                                    CEnd()};

// All tables or none are encrypted, by one key: it is shown with each, as InnoDB's users look for it.
int fill_encryption(THD *thd, TABLE_LIST *tables, COND *)
{
  Output out= {thd, tables->table, false};
  if (!may_see(thd))
    return 0;
  std::vector<std::string> names;
  uint32_t key_id, key_version, newest;
  if (weir_key(weir_database, &key_id, &key_version) != WEIR_OK || weir_table_names(weir_database, note_name, &names) != WEIR_OK)
    return 1;
  bool has_newest= key_id && !weir_server_keys.newest_version(nullptr, key_id, &newest);
  for (const std::string &name : names)
  {
    Field **field= out.table->field;
    out.begin();
    store(field[0], name);
    store(field[1], ulonglong(key_id != 0));
    if (key_id)
    {
      store(field[2], ulonglong(key_id));
      store(field[3], ulonglong(key_version));
    }
    if (has_newest)
      store(field[4], ulonglong(newest));
    out.put();
    if (out.failed || is_killed(thd))
      return 1;
  }
  return 0;
}

int init_table(void *p, ST_FIELD_INFO *fields, int (*fill)(THD *, TABLE_LIST *, COND *))
{
  ST_SCHEMA_TABLE *table= static_cast<ST_SCHEMA_TABLE *>(p);
  table->fields_info= fields;
  table->fill_table= fill;
  return 0;
}

} // namespace

void *const weir_schema_table= &schema_table;
int weir_init_metrics(void *p) { return init_table(p, metrics_fields, fill_metrics); }
int weir_init_transactions(void *p) { return init_table(p, transactions_fields, fill_transactions); }
int weir_init_locks(void *p) { return init_table(p, locks_fields, fill_locks); }
int weir_init_sizes(void *p) { return init_table(p, sizes_fields, fill_sizes); }
int weir_init_checkpoint(void *p) { return init_table(p, checkpoint_fields, fill_checkpoint); }
int weir_init_encryption(void *p) { return init_table(p, encryption_fields, fill_encryption); }
