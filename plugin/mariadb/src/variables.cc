#include "variables.h"

#include "engine.h"

namespace
{

ulonglong memory, log_capacity;

const char *durability_names[]= {"SYNCED", "WRITTEN", "LAZY", NullS};
TYPELIB durability_typelib= {array_elements(durability_names) - 1, "weir_durability", durability_names,
                             nullptr};

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

MYSQL_SYSVAR_ULONGLONG(memory, memory, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY, "Memory for pages, in bytes",
                       nullptr, nullptr, 1ULL << 30, 1 << 20, 1ULL << 46, 0);
MYSQL_SYSVAR_ULONGLONG(log_capacity, log_capacity, PLUGIN_VAR_RQCMDARG,
                       "Bytes of redo log. More of it means fewer page writes and a longer recovery",
                       check_log_capacity, update_log_capacity, 1ULL << 30, 640 << 10, 1ULL << 40, 0);
MYSQL_THDVAR_ENUM(durability, PLUGIN_VAR_RQCMDARG,
                  "When a commit returns: SYNCED, once it is on stable storage; WRITTEN, once the operating "
                  "system has it; LAZY, at once. A prepared (XA, binlog) transaction is always synced",
                  nullptr, nullptr, 0, &durability_typelib);
MYSQL_THDVAR_ULONG(lock_wait_timeout, PLUGIN_VAR_RQCMDARG, "Seconds that the lock of a row is waited for",
                   nullptr, nullptr, 50, 0, 1073741824, 0);

} // namespace

st_mysql_sys_var *weir_variables[]= {MYSQL_SYSVAR(memory), MYSQL_SYSVAR(log_capacity), MYSQL_SYSVAR(durability),
                                     MYSQL_SYSVAR(lock_wait_timeout), nullptr};

ulonglong weir_memory() { return memory; }

ulonglong weir_log_capacity() { return log_capacity; }

uint32_t weir_durability_of(THD *thd)
{
  static const uint32_t codes[]= {WEIR_SYNCED, WEIR_WRITTEN, WEIR_LAZY};
  return codes[THDVAR(thd, durability)];
}

ulonglong weir_lock_wait_millis(THD *thd)
{
  ulonglong own= THDVAR(thd, lock_wait_timeout);
  // SELECT ... NOWAIT and WAIT n set the server's variable for the statement.
  return 1000 * std::min<ulonglong>(own, thd->variables.lock_wait_timeout);
}

namespace
{

const uint STATUS_MAX= 64;

struct Status_values
{
  st_mysql_show_var list[STATUS_MAX + 1];
  ulonglong values[STATUS_MAX];
  uint count;
};

void add_number(void *context, const char *name, uint64_t value)
{
  Status_values *all= static_cast<Status_values *>(context);
  if (all->count == STATUS_MAX)
    return;
  all->values[all->count]= value;
  st_mysql_show_var *var= &all->list[all->count];
  var->name= name;
  var->value= reinterpret_cast<char *>(&all->values[all->count]);
  var->type= SHOW_ULONGLONG;
  all->count++;
}

int show_weir(THD *thd, st_mysql_show_var *var, void *, system_status_var *, enum_var_type)
{
  Status_values *all= static_cast<Status_values *>(thd->alloc(sizeof(Status_values)));
  var->type= SHOW_ARRAY;
  if (!all)
    return 1;
  all->count= 0;
  if (weir_database)
    weir_stats(weir_database, add_number, all);
  memset(&all->list[all->count], 0, sizeof(all->list[0]));
  var->value= reinterpret_cast<char *>(all->list);
  return 0;
}

} // namespace

st_mysql_show_var weir_status_variables[]= {SHOW_FUNC_ENTRY("Weir", &show_weir), {nullptr, nullptr, SHOW_UNDEF}};
