// The server's headers, in the one order that works, with the definitions that fix the layout of its classes.
// layout_check.cc compares the outcome with the server's binary.
#ifndef WEIR_PLUGIN_SERVER_H
#define WEIR_PLUGIN_SERVER_H

#define MYSQL_SERVER 1
#include <my_global.h>
#include <sql_class.h>
#include <handler.h>
#include <key.h>
#include <table.h>
#include <sql_base.h>
#include <sql_table.h>
#include <sql_partition.h>
#include <sql_show.h>
#include <log.h>
#include <mysql/plugin.h>
#include <mysql/psi/mysql_table.h>

#undef min
#undef max

// ---- What differs between the servers that this is compiled for: 10.11 and 11.8. No other file asks for the version. ----

#if MYSQL_VERSION_ID >= 110700

// A function of a transaction's as the handlerton has it.
#define WEIR_PARTICIPANT(function) function

// Keys that no engine keeps in order: full text, geometries, vectors.
inline bool is_unordered(const KEY *key)
{
  return key->algorithm == HA_KEY_ALG_FULLTEXT || key->algorithm == HA_KEY_ALG_RTREE || key->algorithm == HA_KEY_ALG_VECTOR;
}

inline bool is_fulltext(const KEY *key) { return key->algorithm == HA_KEY_ALG_FULLTEXT; }

inline bool is_spatial(const KEY *key) { return key->algorithm == HA_KEY_ALG_RTREE; }

inline bool is_binlog(const Ha_trx_info *member) { return member->ht() == &binlog_tp; }

// The engine of a table, or nullptr where there is none, or none is known.
inline handlerton *engine_of(THD *thd, const LEX_CSTRING *db, const LEX_CSTRING *name)
{
  handlerton *engine= nullptr;
  return ha_table_exists(thd, db, name, nullptr, &engine) ? engine : nullptr;
}

inline bool same_name(const char *a, const char *b)
{
  return system_charset_info->streq(Lex_cstring_strlen(a), Lex_cstring_strlen(b));
}

// In lower case, as the names of files are; `room` bytes at `name`.
inline void to_lower(char *name, size_t room)
{
  size_t length= strlen(name);
  char *copy= static_cast<char *>(my_alloca(length + 1));
  memcpy(copy, name, length + 1);
  files_charset_info->casedn_z(copy, length, name, room);
}

// The costs that the optimizer gets of the engine's work for a row or an entry, in milliseconds.
struct Server_costs
{
  double row_next, row_lookup, entry_next, entry_lookup, row_copy;
};

template <const Server_costs &COSTS> void announce_costs(handlerton *hton)
{
  hton->update_optimizer_costs= [](OPTIMIZER_COSTS *costs) {
    costs->row_next_find_cost= COSTS.row_next;
    costs->row_lookup_cost= COSTS.row_lookup;
    costs->key_next_find_cost= COSTS.entry_next;
    costs->key_lookup_cost= COSTS.entry_lookup;
    costs->row_copy_cost= COSTS.row_copy;
  };
}

// Reading a clustered key is reading the row: the flag of a key alone is not its.
const ulong CLUSTERED_LACKS= HA_KEYREAD_ONLY;
// By what an engine divides the rows for each value of a key.
const double ROWS_PER_KEY_DIVISOR= 1;
// Whether the hash column of a long unique key is computed only where a statement touches what it is of.
const bool LEAVES_HASH_COLUMNS= true;
// innodb_snapshot_isolation.
const bool SNAPSHOT_ISOLATION_DEFAULT= true;

// What the handler has of the server's cost model and of ranges.
template <class Engine> class Server_handler : public handler
{
public:
  using handler::handler;
  ha_rows multi_range_read_info_const(uint keyno, RANGE_SEQ_IF *seq, void *context, uint ranges, uint *size, uint *flags,
                                      ha_rows limit, Cost_estimate *cost) override
  {
    DsMrr_impl *mrr= static_cast<Engine *>(this)->ranges_of_constants(flags);
    return mrr->dsmrr_info_const(keyno, seq, context, ranges, size, flags, limit, cost);
  }
};

#else

template <typename Function, Function *FUNCTION> struct Of_handlerton;
template <typename Result, typename... Arguments, Result (*FUNCTION)(Arguments...)>
struct Of_handlerton<Result(Arguments...), FUNCTION>
{
  static Result call(handlerton *, Arguments... arguments) { return FUNCTION(arguments...); }
};
#define WEIR_PARTICIPANT(function) Of_handlerton<decltype(function), function>::call

inline bool is_unordered(const KEY *key) { return key->flags & (HA_FULLTEXT | HA_SPATIAL); }

inline bool is_fulltext(const KEY *key) { return key->flags & HA_FULLTEXT; }

inline bool is_spatial(const KEY *key) { return key->flags & HA_SPATIAL; }

inline bool is_binlog(const Ha_trx_info *member) { return member->ht() == binlog_hton; }

inline handlerton *engine_of(THD *thd, const LEX_CSTRING *db, const LEX_CSTRING *name)
{
  handlerton *engine= nullptr;
  return ha_table_exists(thd, db, name, nullptr, nullptr, &engine) ? engine : nullptr;
}

inline bool same_name(const char *a, const char *b) { return !my_strcasecmp(system_charset_info, a, b); }

inline void to_lower(char *name, size_t) { my_casedn_str(files_charset_info, name); }

struct Server_costs
{
  double row_next, row_lookup, entry_next, entry_lookup, row_copy;
};

// The cost model is that of pages.
template <const Server_costs &> void announce_costs(handlerton *) {}

const ulong CLUSTERED_LACKS= 0;
// As InnoDB: the server likes scans too much, so keys are said to be twice as good.
const double ROWS_PER_KEY_DIVISOR= 2;
const bool LEAVES_HASH_COLUMNS= false;
const bool SNAPSHOT_ISOLATION_DEFAULT= false;

template <class Engine> class Server_handler : public handler
{
public:
  using handler::handler;
  ha_rows multi_range_read_info_const(uint keyno, RANGE_SEQ_IF *seq, void *context, uint ranges, uint *size, uint *flags,
                                      Cost_estimate *cost) override
  {
    DsMrr_impl *mrr= static_cast<Engine *>(this)->ranges_of_constants(flags);
    return mrr->dsmrr_info_const(keyno, seq, context, ranges, size, flags, cost);
  }
  // What SHOW INDEX calls it; in 11.8 the server knows, and says HASH of what was made so.
  const char *index_type(uint index) override
  {
    const KEY *key= &table_share->key_info[index];
    return is_fulltext(key) ? "FULLTEXT" : is_spatial(key) ? "SPATIAL" : "BTREE";
  }
  double scan_time() override { return static_cast<Engine *>(this)->pages_of_scan(); }
  double read_time(uint index, uint ranges, ha_rows rows) override
  {
    if (index != table_share->primary_key)
      return handler::read_time(index, ranges, rows);
    return static_cast<Engine *>(this)->pages_of_primary(ranges, rows);
  }
};

#endif

#ifdef WEIR_OLD_COPY_NAMES
// In 11.8.6, which Debian 13 has, an ALTER's copy alone is said to begin, and not that of an ALTER IGNORE.
const ha_extra_function HA_EXTRA_BEGIN_COPY= HA_EXTRA_BEGIN_ALTER_COPY, HA_EXTRA_END_COPY= HA_EXTRA_END_ALTER_COPY,
                        HA_EXTRA_ABORT_COPY= HA_EXTRA_ABORT_ALTER_COPY;
#endif

// A name that is a C string in one version and has its length with it in the other.
inline const char *name_text(const char *name) { return name; }
inline const char *name_text(const LEX_CSTRING &name) { return name.str; }

// A key of several entries a row, of words or of cells: the engine keeps it as an index of its own kind.
inline bool has_several_entries(const KEY *key) { return is_fulltext(key) || is_spatial(key); }

#endif
