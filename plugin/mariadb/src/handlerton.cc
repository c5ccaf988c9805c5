// What the server asks of the engine as a whole.
#include <vector>

#include "alter_stage.h"
#include "binlog_gate.h"
#include "encryption.h"
#include "engine.h"
#include "graveyard.h"
#include "ha_weir.h"
#include "info_schema.h"
#include "last_errors.h"
#include "layout_guard.h"
#include "transaction.h"
#include "variables.h"
#include "waits.h"

// In the server's sql_show.cc, and in none of its headers.
void ignore_db_dirs_append(const char *directory);

namespace
{

// What X/Open calls them.
const int XAER_RMERR= -3, XAER_NOTA= -4;

// For a transaction that may still write to a table that is needed no more. The next start tries again.
const uint64_t LEFTOVER_WAIT_MILLIS= 1000;

handler *create_handler(handlerton *hton, TABLE_SHARE *share, MEM_ROOT *root)
{
  return new (root) ha_weir(hton, share);
}

int close_connection(THD *thd)
{
  // Out of a killer's sight first; setting it waits for a killer that looks at it now.
  Transaction *trx= Transaction::find(thd);
  thd_set_ha_data(thd, weir_hton, nullptr);
  delete trx;
  return 0;
}

void kill_query(handlerton *, THD *thd, thd_kill_levels)
{
  if (Transaction *trx= Transaction::find(thd))
    trx->interrupt();
}

int commit(THD *thd, bool all) { return Transaction::of(thd)->commit(all); }

int rollback(THD *thd, bool all) { return Transaction::of(thd)->rollback(all); }

int prepare(THD *thd, bool all) { return Transaction::of(thd)->prepare(all); }

void prepare_ordered(THD *thd, bool all) { Transaction::of(thd)->prepare_ordered(all); }

void commit_ordered(THD *thd, bool all) { Transaction::of(thd)->commit_ordered(all); }

int savepoint_set(THD *thd, void *savepoint)
{
  return Transaction::of(thd)->savepoint_set(static_cast<uint64_t *>(savepoint));
}

int savepoint_rollback(THD *thd, void *savepoint)
{
  return Transaction::of(thd)->savepoint_rollback(*static_cast<uint64_t *>(savepoint));
}

int savepoint_release(THD *thd, void *savepoint)
{
  return Transaction::of(thd)->savepoint_release(*static_cast<uint64_t *>(savepoint));
}

// Locks of rows stay over ROLLBACK TO SAVEPOINT, and a change of a definition is not to wait for them.
bool savepoint_rollback_can_release_mdl(THD *thd)
{
  Transaction *trx= Transaction::find(thd);
  return !trx || !trx->txn() || weir_txn_number(trx->txn()) == 0;
}

int start_consistent_snapshot(THD *thd)
{
  Transaction *trx= Transaction::of(thd);
  if (int error= trx->begin())
    return error;
  trans_register_ha(thd, true, weir_hton, 0);
  trx->take_snapshot();
  return 0;
}

void commit_checkpoint_request(void *cookie)
{
  // No notice if it failed: then the binlog keeps what recovery needs.
  if (weir_sync(weir_database) == WEIR_OK)
    commit_checkpoint_notify_ha(cookie);
}

// All clients are gone. The binary log is closed next, as one from which nothing need be recovered: so the commits have to
// be durable, and not only what was prepared.
void pre_shutdown()
{
  if (weir_sync(weir_database) != WEIR_OK)
    sql_print_error("Weir: the log cannot be synced (%s)", weir_message());
}

bool flush_logs(handlerton *) { return weir_sync(weir_database) != WEIR_OK; }

void collect(void *context, weir_bytes bytes)
{
  static_cast<std::vector<std::string> *>(context)->emplace_back(reinterpret_cast<const char *>(bytes.data),
                                                                  bytes.len);
}

// What is prepared and was not handed out yet: the server calls until it is given less than it has room for.
std::vector<std::string> to_recover;
bool recovering= false;

int recover(XID *list, uint room)
{
  if (!recovering)
  {
    to_recover.clear();
    if (weir_prepared(weir_database, collect, &to_recover) != WEIR_OK)
      return 0;
    recovering= true;
  }
  uint count= 0;
  while (count < room && !to_recover.empty())
  {
    const std::string &name= to_recover.back();
    // Nothing can be decided where nothing is changed: what the server has named itself it is not asked for.
    if (xid_of_name(reinterpret_cast<const uchar *>(name.data()), name.size(), &list[count]) &&
        !(weir_force_recovery() && list[count].get_my_xid()))
      count++;
    to_recover.pop_back();
  }
  if (to_recover.empty() && count < room)
    recovering= false;
  return static_cast<int>(count);
}

// Whether a crash has left transactions that the server decides, since it has named them itself.
bool has_named_by_server()
{
  std::vector<std::string> names;
  if (weir_prepared(weir_database, collect, &names) != WEIR_OK)
    return false;
  for (const std::string &name : names)
  {
    XID xid;
    if (xid_of_name(reinterpret_cast<const uchar *>(name.data()), name.size(), &xid) && xid.get_my_xid())
      return true;
  }
  return false;
}

// That it does when it starts, and never later.
bool left_for_a_start() { return mysqld_server_started && has_named_by_server(); }

int of_xid(weir_code code)
{
  if (code == WEIR_NOTHING)
    return XAER_NOTA;
  return code == WEIR_OK ? 0 : XAER_RMERR;
}

int commit_by_xid(XID *xid)
{
  return of_xid(commit_by_name(xid_name(xid), WEIR_SYNCED));
}

int rollback_by_xid(XID *xid)
{
  weir_code code= rollback_by_name(xid_name(xid));
  // A user decides once; recovery, which decides of names of the server's own, may do so again.
  if (code == WEIR_OK && !xid->get_my_xid())
    code= weir_sync(weir_database);
  return of_xid(code);
}

// After a crash: 0 if the ALTER that began when the table's version was `before` got through. Of a partitioned table the
// server knows no version; `after` is the number of the definition that it was to have.
int check_version(handlerton *, const char *path, const LEX_CUSTRING *after, ulonglong before)
{
  weir_table *table;
  std::string name= table_name_of(path);
  if (weir_definitions.has_partition_altered_as(name, text_of(*after)))
    return 0;
  if (weir_table_open(weir_database, bytes_of(name), &table) != WEIR_OK)
    return 2;
  ulonglong now= table_definition_version(table);
  weir_table_close(table);
  return now == before ? 1 : 0;
}

struct Status_output
{
  THD *thd;
  stat_print_fn *print;
  bool failed;
};

void print_status(void *context, weir_bytes text)
{
  Status_output *to= static_cast<Status_output *>(context);
  to->failed= to->print(to->thd, "Weir", 4, "", 0, reinterpret_cast<const char *>(text.data), text.len);
}

bool show_status(handlerton *, THD *thd, stat_print_fn *print, ha_stat_type type)
{
  if (type != HA_ENGINE_STATUS)
    return false;
  Status_output to= {thd, print, false};
  if (weir_stats_text(weir_database, print_status, &to) != WEIR_OK || to.failed)
    return true;
  auto shows= [&](const std::string &name, const std::string &text) {
    return !text.empty() && print(thd, "Weir", 4, name.data(), name.size(), text.data(), text.size());
  };
  return shows("last deadlock", last_deadlock()) || shows("last foreign key error", last_foreign_error());
}

// Leftovers of a schema that is being dropped: its tables have been dropped one by one before.
void drop_database(handlerton *, char *path)
{
  std::string prefix= table_name_of(path);
  std::vector<std::string> names;
  weir_table_names(weir_database, collect, &names);
  for (const std::string &name : names)
    if (name.compare(0, prefix.size(), prefix) == 0 &&
        weir_table_drop(weir_database, bytes_of(name), LEFTOVER_WAIT_MILLIS) == WEIR_OK)
      weir_definitions.remove(name);
}

void drop_temporary_tables()
{
  std::vector<std::string> names;
  weir_table_names(weir_database, collect, &names);
  for (const std::string &name : names)
    if (is_temporary_name(name))
      weir_table_drop(weir_database, bytes_of(name), LEFTOVER_WAIT_MILLIS);
}

// What was prepared is decided now, but for the users' own XA transactions.
int ddl_recovery_done(handlerton *)
{
  weir_ddl_recovered= true;
  if (weir_force_recovery())
    return 0;
  if (weir_drop_unfinished_indexes(weir_database, LEFTOVER_WAIT_MILLIS) != WEIR_OK)
    sql_print_warning("Weir: %s", weir_message());
  return 0;
}

weir_endpoint *endpoint= nullptr;

void close_database()
{
  weir_stop_serving(endpoint);
  endpoint= nullptr;
  weir_db *db= weir_database;
  weir_database= nullptr;
  if (db && weir_close(db) != WEIR_OK)
    sql_print_error("Weir: %s", weir_message());
}

void log_remark(void *, weir_bytes text)
{
  sql_print_warning("Weir: %.*s", static_cast<int>(text.len), reinterpret_cast<const char *>(text.data));
}

// What a damaged database is opened without, and what was found.
void report_forced()
{
  static const char *const off[]= {
      "rows that cannot be read are passed over, and unfinished transactions are not rolled back, and not seen",
      "unfinished transactions whose undo cannot be read count as committed",
      "the log is applied up to the first damage in it: rows are of no single moment",
      "the log is not applied, nor are unfinished transactions known: all changes in pages count as committed"};
  sql_print_warning("Weir: weir_force_recovery=%u: the tables can be read, and nothing is changed, purged or written",
                    weir_force_recovery());
  for (uint step= 0; step < weir_force_recovery(); step++)
    sql_print_warning("Weir: %s", off[step]);
  weir_recovery_remarks(weir_database, log_remark, nullptr);
  sql_print_warning("Weir: dump what is to be kept (mariadb-dump); 'weir salvage' finds more: what lies behind damaged inner pages, or "
                    "has lost its name");
}

void report_not_opened(weir_code code)
{
  sql_print_error("Weir: %s", weir_message());
  if (code != WEIR_DAMAGED)
    return;
  uint step= weir_force_recovery();
  if (step < 4)
    sql_print_error("Weir: to dump what can be read, start the server with weir_force_recovery=%u, on a copy of the data directory, "
                    "without the binary log (--skip-log-bin)", step + 1);
  sql_print_error("Weir: 'weir salvage' makes a new database of all that can be read of the files in '" WEIR_DIRECTORY "'%s",
                  step == 4 ? ": no step opens it" : "");
}

// As it is, without anything that would change it.
bool open_damaged()
{
  report_forced();
  // The server would take its last binary log for recovered, and the next start roll back what it holds.
  if (opt_bin_log && has_named_by_server())
  {
    sql_print_error("Weir: a crash has left transactions that the binary log decides, and with weir_force_recovery nothing is decided: start "
                    "the server without the binary log (--skip-log-bin)");
    return false;
  }
  if (weir_definitions.load() != WEIR_OK)
    sql_print_warning("Weir: not all tables' definitions can be read: %s", weir_message());
  return true;
}

bool open_database()
{
  weir_options options= {weir_memory(), weir_log_capacity(), 0, WEIR_IF_MISSING, uint32_t(weir_store_kind()),
                        weir_encryption_key_id(), weir_encrypts() ? &weir_server_keys : nullptr, weir_force_recovery(), 0};
  std::string directory= std::string("./") + WEIR_DIRECTORY;
  weir_code code= weir_open(bytes_of(directory), &options, &weir_database);
  if (code != WEIR_OK)
  {
    report_not_opened(code);
    return false;
  }
  report_notices();
  if (weir_force_recovery())
    return open_damaged();
  if (left_for_a_start())
  {
    sql_print_error("Weir: a crash has left transactions half committed, which the server completes only as it starts: "
                    "start it with plugin-load-add=ha_weir, and with the log-bin that it had");
    return false;
  }
  // An existing database keeps the capacity that it has: the setting is what counts.
  if (weir_set_log_bytes(weir_database, weir_log_capacity()) != WEIR_OK)
    sql_print_warning("Weir: %s", weir_message());
  weir_set_recovery_seconds(weir_database, weir_recovery_seconds());
  std::string address= weir_metrics_address() ? weir_metrics_address() : "";
  // The server starts all the same: a look at the metrics says that there are none.
  if (!address.empty() && weir_serve_metrics(weir_database, bytes_of(address), &endpoint) != WEIR_OK)
    sql_print_error("Weir: weir_metrics_address: %s", weir_message());
  drop_temporary_tables();
  drop_buried();
  if (weir_definitions.load() == WEIR_OK)
    return true;
  sql_print_error("Weir: %s", weir_message());
  return false;
}

// As InnoDB, from which plans are not to differ; the server's own way of measuring them (check_costs.pl).
constexpr Server_costs COSTS= {0.00007013, 0.00076597, 0.00009900, 0.00079112, 0.00006087};

int init(void *p)
{
  // After the others, then.
  if (!layout_can_be_looked_at())
    return HA_ERR_RETRY_INIT;
  std::string misfit= layout_misfit();
  if (!misfit.empty())
  {
    sql_print_error("Weir: this plugin is not for this server (%s): it was compiled with headers in which these lie elsewhere: "
                    "%s. It has to be built anew, with this server's own source",
                    server_version, misfit.c_str());
    return 1;
  }
  weir_hton= static_cast<handlerton *>(p);
  if (!open_database())
  {
    close_database();
    return 1;
  }
  ignore_db_dirs_append(WEIR_DIRECTORY);
  report_waits();
  register_alter_stages();
  report_deferred_answers();
  if (weir_binlog_gate())
    raise_binlog_gate();

  weir_hton->db_type= DB_TYPE_AUTOASSIGN;
  weir_hton->flags= HTON_SUPPORTS_EXTENDED_KEYS | HTON_REQUIRES_CLOSE_AFTER_TRUNCATE |
                    HTON_TRUNCATE_REQUIRES_EXCLUSIVE_USE;
  announce_costs<COSTS>(weir_hton);
  weir_hton->create= create_handler;
  weir_hton->table_options= weir_table_options;
  weir_hton->close_connection= WEIR_PARTICIPANT(close_connection);
  weir_hton->kill_query= kill_query;
  weir_hton->commit= WEIR_PARTICIPANT(commit);
  weir_hton->rollback= WEIR_PARTICIPANT(rollback);
  weir_hton->prepare= WEIR_PARTICIPANT(prepare);
  weir_hton->prepare_ordered= WEIR_PARTICIPANT(prepare_ordered);
  weir_hton->commit_ordered= WEIR_PARTICIPANT(commit_ordered);
  weir_hton->savepoint_offset= sizeof(uint64_t);
  weir_hton->savepoint_set= WEIR_PARTICIPANT(savepoint_set);
  weir_hton->savepoint_rollback= WEIR_PARTICIPANT(savepoint_rollback);
  weir_hton->savepoint_release= WEIR_PARTICIPANT(savepoint_release);
  weir_hton->savepoint_rollback_can_release_mdl= WEIR_PARTICIPANT(savepoint_rollback_can_release_mdl);
  weir_hton->start_consistent_snapshot= WEIR_PARTICIPANT(start_consistent_snapshot);
  weir_hton->commit_checkpoint_request= commit_checkpoint_request;
  weir_hton->flush_logs= flush_logs;
  weir_hton->pre_shutdown= pre_shutdown;
  weir_hton->recover= WEIR_PARTICIPANT(recover);
  weir_hton->commit_by_xid= WEIR_PARTICIPANT(commit_by_xid);
  weir_hton->rollback_by_xid= WEIR_PARTICIPANT(rollback_by_xid);
  weir_hton->show_status= show_status;
  weir_hton->drop_database= drop_database;
  weir_hton->check_version= check_version;
  weir_hton->signal_ddl_recovery_done= ddl_recovery_done;
  return 0;
}

int deinit(void *)
{
  lower_binlog_gate();
  close_database();
  return 0;
}

st_mysql_storage_engine storage_engine= {MYSQL_HANDLERTON_INTERFACE_VERSION};

} // namespace

// The tables read the engine, which the server loads first: it stands first here, too.
#define WEIR_SCHEMA_PLUGIN(name, about, init_function) \
  {MYSQL_INFORMATION_SCHEMA_PLUGIN, weir_schema_table, name, "The Weir project", about, PLUGIN_LICENSE_GPL, \
   init_function, nullptr, 0x0001, nullptr, nullptr, "0.1", MariaDB_PLUGIN_MATURITY_EXPERIMENTAL}

maria_declare_plugin(weir)
{
  MYSQL_STORAGE_ENGINE_PLUGIN,
  &storage_engine,
  "Weir",
  "The Weir project",
  "Transactions with a throughput line that is flat",
  PLUGIN_LICENSE_GPL,
  init,
  deinit,
  0x0001,
  weir_status_variables,
  weir_variables,
  "0.1",
  MariaDB_PLUGIN_MATURITY_EXPERIMENTAL
},
WEIR_SCHEMA_PLUGIN("WEIR_METRICS", "All that the engine measures", weir_init_metrics),
WEIR_SCHEMA_PLUGIN("WEIR_TRANSACTIONS", "Open and prepared transactions", weir_init_transactions),
WEIR_SCHEMA_PLUGIN("WEIR_LOCKS", "Explicit locks and the transactions that wait for one", weir_init_locks),
WEIR_SCHEMA_PLUGIN("WEIR_CHECKPOINT", "How far the checkpoint lies back, and what is done about it",
                   weir_init_checkpoint),
WEIR_SCHEMA_PLUGIN("WEIR_SIZES", "About how large tables and indexes are", weir_init_sizes),
WEIR_SCHEMA_PLUGIN("WEIR_ENCRYPTION", "By which key tables are encrypted", weir_init_encryption)
maria_declare_plugin_end;
