// The one open database, and how its answers become the server's.
#ifndef WEIR_PLUGIN_ENGINE_H
#define WEIR_PLUGIN_ENGINE_H

#include <string>

#include "server.h"
#include "weir.h"

extern handlerton *weir_hton;
extern weir_db *weir_database;
// Whether the server has completed, or rolled back, the changes of definitions that a crash has interrupted.
extern bool weir_ddl_recovered;

// Where the database lies, below the server's data directory. The server must not take it for a schema.
#define WEIR_DIRECTORY "#weir"

// The engine's codes that no error of the server says as well: see ha_weir::get_error_message.
const int WEIR_ERROR_BASE= HA_ERR_LAST + 100;

inline weir_bytes bytes_of(const std::string &s)
{
  weir_bytes b= {reinterpret_cast<const uint8_t *>(s.data()), s.size()};
  return b;
}

inline std::string text_of(const LEX_CUSTRING &s) { return std::string(reinterpret_cast<const char *>(s.str), s.length); }

// Of a name that ends in a zero byte; NULL, which says nothing, stays so.
inline weir_bytes bytes_of(const char *name)
{
  return weir_bytes{reinterpret_cast<const uint8_t *>(name), name ? strlen(name) : 0};
}

inline weir_bytes bytes_of(const uchar *data, size_t len)
{
  weir_bytes b= {data, len};
  return b;
}

// The engine's name of a table: "db/table" for "./db/table", and the whole path of a temporary one.
std::string table_name_of(const char *path);

// How often ALTER has changed a table in place (Table_definition::version). The server asks after a crash whether its
// last ALTER got through.
ulonglong table_definition_version(const weir_table *table);

// Whether a table of this name cannot outlive the server.
bool is_temporary_name(const std::string &name);

// Whether the statement is to end: KILL, be it SOFT, or max_statement_time. Loops of the engine's ask this; a statement that has seen
// enough rows (LIMIT ROWS EXAMINED) is ended by the server, without an error.
bool is_killed(THD *thd);

// An error of the server's for a code of the engine's. Where the transaction or the statement has to be given
// up, it is marked so.
int to_handler_error(THD *thd, weir_code code);

#endif
