#include "variables.h"

#include <cmath>

#include "engine.h"
#include "fulltext.h"
#include <set_var.h>
#include <sql_parse.h>
#include "transaction.h"

namespace
{

ulonglong memory, log_capacity;
uint ft_min_token_size, ft_max_token_size;
my_bool deferred_answers, gate, abort_on_halt;
double recovery_seconds;

const char *durability_names[]= {"SYNCED", "WRITTEN", "LAZY", NullS};

TYPELIB typelib_of(const char *name, const char **names, uint count)
{
  // Has more members in some versions.
  TYPELIB typelib= TYPELIB();
  typelib.count= count;
  typelib.name= name;
  typelib.type_names= names;
  return typelib;
}

TYPELIB durability_typelib= typelib_of("weir_durability", durability_names, array_elements(durability_names) - 1);

const char *store_names[]= {"ANY", "IN_PLACE", "LOG", NullS};
TYPELIB store_typelib= typelib_of("weir_store", store_names, array_elements(store_names) - 1);
ulong store;
my_bool encrypts;
uint encryption_key_id, force_recovery;

int check_log_capacity(THD *, st_mysql_sys_var *, void *save, st_mysql_value *value)
{
  longlong wanted;
  if (value->val_int(value, &wanted))
    return 1;
  ulonglong bytes= value->is_unsigned(value) ? wanted : std::max<longlong>(wanted, 0);
  if (weir_set_log_bytes(weir_database, bytes) != WEIR_OK)
  {
    my_printf_error(ER_WRONG_VALUE_FOR_VAR, "Weir: %s", MYF(0), weir_message());
    return 1;
  }
  *static_cast<ulonglong *>(save)= bytes;
  return 0;
}

void update_log_capacity(THD *, st_mysql_sys_var *, void *, const void *save)
{
  log_capacity= *static_cast<const ulonglong *>(save);
}

int check_memory(THD *, st_mysql_sys_var *, void *save, st_mysql_value *value)
{
  longlong wanted;
  if (value->val_int(value, &wanted))
    return 1;
  ulonglong bytes= value->is_unsigned(value) ? wanted : std::max<longlong>(wanted, 0);
  // Takes as long as the pages need that have to be written first.
  if (weir_set_pool_bytes(weir_database, bytes) != WEIR_OK)
  {
    my_printf_error(ER_WRONG_VALUE_FOR_VAR, "Weir: %s", MYF(0), weir_message());
    return 1;
  }
  *static_cast<ulonglong *>(save)= bytes;
  return 0;
}

void update_memory(THD *, st_mysql_sys_var *, void *, const void *save)
{
  memory= *static_cast<const ulonglong *>(save);
}

void update_recovery_seconds(THD *, st_mysql_sys_var *, void *, const void *save)
{
  recovery_seconds= *static_cast<const double *>(save);
  // The server has checked the bounds.
  weir_set_recovery_seconds(weir_database, recovery_seconds);
}

void update_deferred_answers(THD *, st_mysql_sys_var *, void *, const void *save)
{
  deferred_answers= *static_cast<const my_bool *>(save);
  report_deferred_answers();
}

char *metrics_address, *create_checkpoint;

// Setting it makes the copy: of what the session's transaction sees, or of what is committed now.
int check_create_checkpoint(THD *thd, st_mysql_sys_var *, void *save, st_mysql_value *value)
{
  *static_cast<const char **>(save)= nullptr;
  char buffer[FN_REFLEN];
  int len= sizeof(buffer);
  const char *directory= value->val_str(value, buffer, &len);
  if (!directory || !len)
    return 0;
  // It writes where the server may: what SELECT ... INTO OUTFILE asks for is asked for here.
  if (check_global_access(thd, FILE_ACL))
    return 1;
  if (!is_secure_file_path(const_cast<char *>(std::string(directory, len).c_str())))
  {
    my_error(ER_OPTION_PREVENTS_STATEMENT, MYF(0), "--secure-file-priv");
    return 1;
  }
  weir_txn *own= nullptr, *txn= nullptr;
  if (Transaction *trx= Transaction::find(thd))
    own= trx->txn();
  weir_code code= WEIR_OK;
  if (!own && (code= weir_txn_begin(weir_database, WEIR_REPEATABLE_READ, 0, &txn)) == WEIR_OK)
    code= weir_txn_take_snapshot(txn);
  if (code == WEIR_OK)
    code= weir_txn_copy(own ? own : txn, bytes_of(std::string(directory, len)));
  if (code != WEIR_OK)
    my_printf_error(ER_WRONG_VALUE_FOR_VAR, "Weir: no copy in '%s': %s", MYF(0), directory, weir_message());
  if (txn)
    weir_txn_rollback(txn);
  return code != WEIR_OK;
}

// What was asked for is done; there is nothing to remember.
void update_create_checkpoint(THD *, st_mysql_sys_var *, void *, const void *) {}

MYSQL_SYSVAR_STR(metrics_address, metrics_address, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY,
                 "Where /metrics is served to Prometheus, for this machine alone: 127.0.0.1:9600 or :9600. Empty: nowhere",
                 nullptr, nullptr, "");
MYSQL_SYSVAR_STR(create_checkpoint, create_checkpoint, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_NOCMDOPT,
                 "Setting it copies the database to this directory, which must not exist: as the session's transaction "
                 "sees it, or as committed now",
                 check_create_checkpoint, update_create_checkpoint, nullptr);
MYSQL_SYSVAR_BOOL(deferred_answers, deferred_answers, PLUGIN_VAR_OPCMDARG,
                  "The answer to a commit is sent by the thread that syncs the log, while the session goes on. OFF: the "
                  "session waits for the sync itself. Either way no client hears of a commit that is not durable",
                  nullptr, update_deferred_answers, true);
MYSQL_SYSVAR_BOOL(binlog_gate, gate, PLUGIN_VAR_OPCMDARG | PLUGIN_VAR_READONLY,
                  "The writer of the binary log is kept behind the engine's log, so that a group needs one sync of each "
                  "less (it comes in through the server's instruments of files). OFF: what is prepared is synced first",
                  nullptr, nullptr, true);
MYSQL_SYSVAR_BOOL(abort_on_halt, abort_on_halt, PLUGIN_VAR_OPCMDARG,
                  "The server ends when the engine halts (a disk that fails), so that what watches it starts it anew. OFF: it "
                  "goes on, with tables that can be read and not written",
                  nullptr, nullptr, false);
MYSQL_SYSVAR_ULONGLONG(memory, memory, PLUGIN_VAR_RQCMDARG,
                       "Memory for pages, in bytes. 0, at the start: 1 GiB, or a quarter of what the machine or its "
                       "container has where that is less",
                       check_memory, update_memory, 0, 0, 1ULL << 46, 0);
MYSQL_SYSVAR_ENUM(store, store, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY,
                  "Where a new database keeps its pages: IN_PLACE, each at a place of its own, written twice; LOG, "
                  "packed in segments, where less is written. ANY: as the database has it, in place if it is new",
                  nullptr, nullptr, WEIR_STORE_ANY, &store_typelib);
MYSQL_SYSVAR_BOOL(encrypt, encrypts, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY,
                  "The engine's files are encrypted, all of them, with a key of the server's key management. It is decided when they are "
                  "made: the server does not start with another answer",
                  nullptr, nullptr, FALSE);
MYSQL_SYSVAR_UINT(encryption_key_id, encryption_key_id, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY,
                  "The key of the server's key management that encrypts the engine's files (weir_encrypt); its newest version is taken "
                  "while the server runs",
                  nullptr, nullptr, 1, 1, UINT_MAX32, 0);
MYSQL_SYSVAR_UINT(force_recovery, force_recovery, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY,
                  "For a database that is damaged, to dump what can be read: nothing is changed, and changes are refused. 1: rows that "
                  "cannot be read are passed over, and unfinished transactions are left, and not seen; 2: those whose undo cannot be read "
                  "count as committed; 3: the log is applied up to the first damage in it; 4: it is not applied. 0: as ever",
                  nullptr, nullptr, 0, 0, 4, 0);
MYSQL_SYSVAR_ULONGLONG(log_capacity, log_capacity, PLUGIN_VAR_RQCMDARG,
                       "Bytes of redo log. More of it means fewer page writes and a longer recovery",
                       check_log_capacity, update_log_capacity, 1ULL << 30, 640 << 10, 1ULL << 40, 0);
MYSQL_SYSVAR_DOUBLE(recovery_seconds, recovery_seconds, PLUGIN_VAR_RQCMDARG,
                    "Seconds that opening after a crash may take: the checkpoint is kept young enough for it, with more "
                    "page writes. 0: weir_log_capacity alone decides",
                    nullptr, update_recovery_seconds, 0, 0, 3600, 0);
MYSQL_THDVAR_ENUM(durability, PLUGIN_VAR_RQCMDARG,
                  "When a commit returns: SYNCED, once it is on stable storage; WRITTEN, once the operating "
                  "system has it; LAZY, at once. A prepared (XA, binlog) transaction is always synced",
                  nullptr, nullptr, 0, &durability_typelib);
MYSQL_THDVAR_ULONG(lock_wait_timeout, PLUGIN_VAR_RQCMDARG, "Seconds that the lock of a row is waited for",
                   nullptr, nullptr, 50, 0, 1073741824, 0);
MYSQL_SYSVAR_UINT(ft_min_token_size, ft_min_token_size, PLUGIN_VAR_RQCMDARG,
                  "Characters that a word of a FULLTEXT key has at least: of keys that are made from now on", nullptr, nullptr,
                  3, 0, 16, 0);
MYSQL_SYSVAR_UINT(ft_max_token_size, ft_max_token_size, PLUGIN_VAR_RQCMDARG,
                  "Characters that a word of a FULLTEXT key has at most: of keys that are made from now on", nullptr, nullptr,
                  84, 10, 84, 0);
MYSQL_THDVAR_STR(ft_stopwords, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_MEMALLOC,
                 "Words that a FULLTEXT key leaves out, with spaces between them: of keys that are made from now on. Empty: none",
                 nullptr, nullptr, DEFAULT_STOPWORDS);
MYSQL_THDVAR_BOOL(snapshot_isolation, PLUGIN_VAR_OPCMDARG,
                  "At REPEATABLE READ: what the transaction would change or lock, and what another one has changed since its first "
                  "consistent read, is refused with an error (1020), and the transaction rolled back (innodb_snapshot_isolation)",
                  nullptr, nullptr, SNAPSHOT_ISOLATION_DEFAULT);

} // namespace

st_mysql_sys_var *weir_variables[]= {MYSQL_SYSVAR(memory), MYSQL_SYSVAR(store), MYSQL_SYSVAR(encrypt),
                                     MYSQL_SYSVAR(encryption_key_id), MYSQL_SYSVAR(force_recovery),
                                     MYSQL_SYSVAR(log_capacity), MYSQL_SYSVAR(durability),
                                     MYSQL_SYSVAR(lock_wait_timeout), MYSQL_SYSVAR(recovery_seconds),
                                     MYSQL_SYSVAR(metrics_address), MYSQL_SYSVAR(create_checkpoint),
                                     MYSQL_SYSVAR(deferred_answers), MYSQL_SYSVAR(binlog_gate),
                                     MYSQL_SYSVAR(abort_on_halt), MYSQL_SYSVAR(snapshot_isolation),
                                     MYSQL_SYSVAR(ft_min_token_size), MYSQL_SYSVAR(ft_max_token_size), MYSQL_SYSVAR(ft_stopwords),
                                     nullptr};

bool weir_deferred_answers() { return deferred_answers; }

void report_deferred_answers()
{
  sql_print_information(deferred_answers
                            ? "Weir: answers to commits are sent by the thread that syncs the log (weir_deferred_answers)"
                            : "Weir: sessions wait for the sync of their commits themselves (weir_deferred_answers is OFF)");
}

bool weir_binlog_gate() { return gate; }

bool weir_abort_on_halt() { return abort_on_halt; }

void weir_ft_token_sizes(uint *shortest, uint *longest)
{
  *shortest= ft_min_token_size;
  *longest= ft_max_token_size;
}

// The setting is in the server's character set for what it knows: utf8mb3, which is utf8mb4 as well.
std::string weir_ft_stopwords(THD *thd)
{
  const char *words= THDVAR(thd, ft_stopwords);
  return words ? words : "";
}

bool weir_snapshot_isolation(THD *thd) { return THDVAR(thd, snapshot_isolation); }

const char *weir_metrics_address() { return metrics_address; }

ulonglong weir_memory() { return memory; }

ulong weir_store_kind() { return store; }

bool weir_encrypts() { return encrypts; }

uint weir_encryption_key_id() { return encryption_key_id; }

uint weir_force_recovery() { return force_recovery; }

bool weir_refuses_changes()
{
  if (!force_recovery)
    return false;
  my_printf_error(ER_OPTION_PREVENTS_STATEMENT,
                  "Weir: nothing can be changed with weir_force_recovery=%u. Dump what is to be kept (mariadb-dump), or have 'weir "
                  "salvage' make a new database of the files, and start the server without it",
                  MYF(0), force_recovery);
  return true;
}

ulonglong weir_log_capacity() { return log_capacity; }

double weir_recovery_seconds() { return recovery_seconds; }

uint32_t weir_durability_of(THD *thd)
{
  static const uint32_t codes[]= {WEIR_SYNCED, WEIR_WRITTEN, WEIR_LAZY};
  return codes[THDVAR(thd, durability)];
}

// SELECT ... NOWAIT and WAIT n set the server's variable for the statement. For a session it is about definitions.
static bool says_how_long(THD *thd)
{
  List_iterator_fast<set_var_base> set(thd->lex->stmt_var_list);
  while (set_var_base *one= set++)
    if (one->is_system() && !strcmp(static_cast<set_var *>(one)->var->name.str, "lock_wait_timeout"))
      return true;
  return false;
}

ulonglong weir_lock_wait_millis(THD *thd)
{
  return 1000 * (says_how_long(thd) ? thd->variables.lock_wait_timeout : THDVAR(thd, lock_wait_timeout));
}

namespace
{

const uint STATUS_MAX= 128;

struct Status_values
{
  st_mysql_show_var list[STATUS_MAX + 1];
  char names[STATUS_MAX][NAME_LEN];
  union { longlong whole; double real; } values[STATUS_MAX];
  uint count;
};

// The metric weir_log_writes is the variable Weir_log_writes: the server adds the beginning.
void add_metric(void *context, const weir_metric *metric)
{
  static const size_t prefix= 5;
  Status_values *all= static_cast<Status_values *>(context);
  size_t len= metric->name.len - prefix;
  if (all->count == STATUS_MAX || len >= NAME_LEN)
    return;
  uint at= all->count++;
  memcpy(all->names[at], metric->name.data + prefix, len);
  all->names[at][len]= '\0';
  st_mysql_show_var *var= &all->list[at];
  var->name= all->names[at];
  var->value= reinterpret_cast<char *>(&all->values[at]);
  bool is_whole= metric->value == std::floor(metric->value) && metric->value < 1e18;
  // No limit is shown as 0.
  double value= std::isfinite(metric->value) ? metric->value : 0;
  if (is_whole)
    all->values[at].whole= static_cast<longlong>(value);
  else
    all->values[at].real= value;
  var->type= is_whole ? SHOW_LONGLONG : SHOW_DOUBLE;
}

int show_weir(THD *thd, st_mysql_show_var *var, void *, system_status_var *, enum_var_type)
{
  Status_values *all= static_cast<Status_values *>(static_cast<void *>(thd->alloc(sizeof(Status_values))));
  var->type= SHOW_ARRAY;
  if (!all)
    return 1;
  all->count= 0;
  if (weir_database)
    weir_metrics(weir_database, add_metric, all);
  memset(&all->list[all->count], 0, sizeof(all->list[0]));
  var->value= reinterpret_cast<char *>(all->list);
  return 0;
}

} // namespace

st_mysql_show_var weir_status_variables[]= {SHOW_FUNC_ENTRY("Weir", &show_weir), {nullptr, nullptr, SHOW_UNDEF}};
