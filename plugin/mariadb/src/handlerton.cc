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
    if (xid_of_name(reinterpret_cast<const uchar *>(name.data()), name.size(), &list[count]))
      count++;
    to_recover.pop_back();
  }
  if (to_recover.empty() && count < room)
    recovering= false;
  return static_cast<int>(count);
}

// The server decides what it has named itself when it starts, and never later.
bool left_for_a_start()
{
  std::vector<std::string> names;
  if (!mysqld_server_started || weir_prepared(weir_database, collect, &names) != WEIR_OK)
    return false;
  for (const std::string &name : names)
  {
    XID xid;
    if (xid_of_name(reinterpret_cast<const uchar *>(name.data()), name.size(), &xid) && xid.get_my_xid())
      return true;
  }
  return false;
}

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

bool open_database()
{
  weir_options options= {weir_memory(), weir_log_capacity(), 0, WEIR_IF_MISSING, uint32_t(weir_store_kind()),
                        weir_encryption_key_id(), weir_encrypts() ? &weir_server_keys : nullptr};
  std::string directory= std::string("./") + WEIR_DIRECTORY;
  if (weir_open(bytes_of(directory), &options, &weir_database) != WEIR_OK)
  {
    sql_print_error("Weir: %s", weir_message());
    return false;
  }
  report_notices();
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
WEIR_SCHEMA_PLUGIN("WEIR_SIZES", "About how large tables and indexes are", weir_init_sizes)
maria_declare_plugin_end;
