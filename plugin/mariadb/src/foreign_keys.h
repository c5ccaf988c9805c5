// Which tables there are and which refer to which, in memory: what the engine's catalog says, and nothing else.
#ifndef WEIR_PLUGIN_FOREIGN_KEYS_H
#define WEIR_PLUGIN_FOREIGN_KEYS_H

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "definition.h"
#include "engine.h"

// A foreign key with the table that it is of.
struct Reference
{
  std::string child;
  Foreign_key_definition key;
};

// The definitions of all tables but temporary ones. Changes go to the engine's catalog first.
//
// ALTER lets its copy take a table's place in two steps: the table is set aside under an intermediate name, then the
// copy gets its name. In between other sessions, which have locked another table of the foreign key and not this one, see all as
// it was: the table is known, and found, by the name that it had.
class Definitions
{
public:
  typedef std::shared_ptr<const Table_definition> Pointer;

  weir_code load();
  // As weir_table_open; WEIR_WOULD_WAIT while the table is set aside and its copy has not got its place.
  weir_code open(const std::string &table, weir_table **out);
  // nullptr: there is no such table, or it is a temporary one.
  Pointer find(const std::string &table) const;
  // The foreign keys of others, and its own, that refer to a table, in the order of their names.
  std::vector<Reference> referring_to(const std::string &table) const;
  bool is_referred_to(const std::string &table) const;
  // All whose definitions speak of a table, and so change with its names: ALTER's unfinished copies too.
  std::set<std::string> speaking_of(const std::string &table) const;
  // Whether a table of the schema of `table`, but `except`, has a foreign key of this name.
  bool has_constraint(const std::string &table, const std::string &name, const std::string &except) const;
  // Whether an ALTER without a copy has given this partitioned table's partitions a definition of this number.
  bool has_partition_altered_as(const std::string &table, const std::string &number) const;
  // Another number with each change that concerns foreign keys.
  ulonglong epoch() const { return m_epoch.load(std::memory_order_acquire); }

  // Of the session that changes a definition; held over the change in the catalog too.
  std::mutex &changing() { return m_changing; }
  void put(const std::string &table, const Table_definition &definition);
  void remove(const std::string &table);
  // A table has got another name, and these, by their old names, other definitions.
  void rename(const std::string &from, const std::string &to,
              const std::map<std::string, Table_definition> &changed);

private:
  void link(const std::string &table, const Table_definition &definition);
  void unlink(const std::string &table);
  std::string name_for_others(const std::string &table) const;

  std::mutex m_changing;
  mutable std::mutex m_mutex;
  std::map<std::string, Pointer> m_tables;
  // What is set aside: its name, and the intermediate one that it has now.
  std::map<std::string, std::string> m_aside;
  // By parent: the tables that refer to it.
  std::map<std::string, std::set<std::string>> m_children;
  std::atomic<ulonglong> m_epoch{1};
};

extern Definitions weir_definitions;

// The name of a table that only ALTER or a failed statement knows.
bool is_intermediate_name(const std::string &table);
// The engine's name of a table from the server's names, and back: of the schema, of the table.
std::string table_name_of(const LEX_CSTRING &db, const LEX_CSTRING &table);
std::string shown_schema(const std::string &table);
std::string shown_table(const std::string &table);

// By name.
std::vector<Foreign_key_definition> in_order(const Table_definition &definition);
// As it stands in SHOW CREATE TABLE; on a line of its own if `newline`.
std::string show_foreign_key(THD *thd, const std::string &child, const Foreign_key_definition &key, bool newline);
// "`db`.`child`, CONSTRAINT ...": what an error says.
std::string show_violation(THD *thd, const std::string &child, const Foreign_key_definition &key);

// Adds what CREATE or ALTER TABLE says of foreign keys to `definition`, whose indexes are described already. `table`:
// the name by which others know it; `before`: what ALTER starts from, or nullptr. An error of the server's.
int collect_foreign_keys(THD *thd, const Alter_info *said, const TABLE *form, const std::string &table,
                         const Table_definition *before, Table_definition *definition);
// Whether a parent of this definition has an index for a foreign key: one whose keys are made of the child's values.
bool serves(const Table_definition &parent, const Reference &reference);
// Whether the tables that refer to `table` find their index in `definition`; else says which does not, and gives the error.
int check_referrers(THD *thd, const std::string &table, const Table_definition &definition);
// `definition` with all that speaks of a table by its old name speaking of it by its new one.
Table_definition with_new_name(const Table_definition &definition, const std::string &holder,
                               const std::string &from, const std::string &to);

#endif
