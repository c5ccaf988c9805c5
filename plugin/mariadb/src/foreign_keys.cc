#include "foreign_keys.h"

#include <algorithm>

#include "graveyard.h"
#include "last_errors.h"

Definitions weir_definitions;

namespace
{

void collect_definition(void *context, weir_bytes name, weir_bytes definition, weir_bytes layouts)
{
  std::string table(reinterpret_cast<const char *>(name.data), name.len);
  if (is_temporary_name(table) || is_buried_name(table))
    return;
  Table_definition known= Table_definition::decode(definition.data, definition.len);
  known.layouts= Row_layouts::decode(layouts.data, layouts.len);
  static_cast<Definitions *>(context)->put(table, known);
}

std::string schema_of(const std::string &table) { return table.substr(0, table.find('/')); }

std::string shown(const std::string &encoded)
{
  // Names of the server's own are no encoded ones.
  if (!encoded.compare(0, 4, "#sql"))
    return encoded;
  char name[NAME_LEN + 1];
  return std::string(name, filename_to_tablename(encoded.c_str(), name, sizeof(name), true));
}

std::string encoded(const LEX_CSTRING &name)
{
  char small[NAME_LEN + 1], file[FN_REFLEN];
  strmake(small, name.str, std::min<size_t>(name.length, NAME_LEN));
  if (lower_case_table_names)
    to_lower(small, sizeof(small));
  return std::string(file, tablename_to_filename(small, file, sizeof(file)));
}

std::string quoted(THD *thd, const std::string &name)
{
  StringBuffer<NAME_LEN * 2> out(system_charset_info);
  append_identifier(thd, &out, name.data(), name.size());
  return std::string(out.ptr(), out.length());
}

std::string quoted(THD *thd, const std::vector<std::string> &columns)
{
  std::string out;
  for (const std::string &column : columns)
    out+= (out.empty() ? "" : ", ") + quoted(thd, column);
  return out;
}

const char *action(enum_fk_option option)
{
  switch (option)
  {
  case FK_OPTION_CASCADE:
    return "CASCADE";
  case FK_OPTION_SET_NULL:
    return "SET NULL";
  case FK_OPTION_NO_ACTION:
    return "NO ACTION";
  default:
    return nullptr;
  }
}

std::vector<std::string> names_of(List<Key_part_spec> &columns)
{
  std::vector<std::string> names;
  List_iterator_fast<Key_part_spec> each(columns);
  while (Key_part_spec *column= each++)
    names.emplace_back(column->field_name.str, column->field_name.length);
  return names;
}

Field *find_column(const TABLE *form, const std::string &name)
{
  for (Field **field= form->field; *field; field++)
    if (same_name((*field)->field_name.str, name.c_str()))
      return *field;
  return nullptr;
}

bool changes_child(const Foreign_key_definition &key)
{
  return fk_modifies_child(key.on_update) || key.on_delete == FK_OPTION_SET_NULL;
}

// Whether a stored generated column is computed from `column`: a cascade would not compute it anew.
bool feeds_stored_column(const TABLE *form, const Field *column)
{
  for (Field **field= form->field; *field; field++)
  {
    if (!(*field)->vcol_info || !(*field)->stored_in_db())
      continue;
    TABLE *table= (*field)->table;
    MY_BITMAP *before= table->read_set;
    table->read_set= &table->tmp_set;
    bitmap_clear_all(&table->tmp_set);
    (*field)->vcol_info->expr->walk(&Item::register_field_in_read_map, 1, table);
    bool feeds= bitmap_is_set(&table->tmp_set, column->field_index);
    table->read_set= before;
    if (feeds)
      return true;
  }
  return false;
}

// The numbers of names that no user has chosen: those behind "table_ibfk_", as InnoDB's users know them.
ulonglong generated_number(const std::string &name, const std::string &table)
{
  std::string prefix= shown_table(table) + "_ibfk_";
  if (name.compare(0, prefix.size(), prefix) || name.size() == prefix.size())
    return 0;
  return strtoull(name.c_str() + prefix.size(), nullptr, 10);
}

} // namespace

weir_code Definitions::load() { return weir_table_definitions(weir_database, collect_definition, this); }

bool Definitions::has_partition_altered_as(const std::string &table, const std::string &number) const
{
  std::lock_guard<std::mutex> guard(m_mutex);
  for (const char *mark : {"#P#", "#p#"})
  {
    std::string begin= table + mark;
    for (auto part= m_tables.lower_bound(begin); part != m_tables.end() && !part->first.compare(0, begin.size(), begin); ++part)
      if (!number.empty() && part->second->altered_as == number)
        return true;
  }
  return false;
}

weir_code Definitions::open(const std::string &table, weir_table **out)
{
  weir_code code= weir_table_open(weir_database, bytes_of(table), out);
  if (code != WEIR_NOTHING)
    return code;
  // It may have been renamed a moment ago: the session that did that has noted it here.
  std::lock_guard<std::mutex> changing_guard(m_changing);
  {
    std::lock_guard<std::mutex> guard(m_mutex);
    if (m_aside.count(table))
      return WEIR_WOULD_WAIT;
  }
  return weir_table_open(weir_database, bytes_of(table), out);
}

Definitions::Pointer Definitions::find(const std::string &table) const
{
  std::lock_guard<std::mutex> guard(m_mutex);
  std::map<std::string, std::string>::const_iterator aside= m_aside.find(table);
  std::map<std::string, Pointer>::const_iterator at= m_tables.find(aside == m_aside.end() ? table : aside->second);
  return at == m_tables.end() ? Pointer() : at->second;
}

// Empty: it is a copy that others do not know of yet, or no longer.
std::string Definitions::name_for_others(const std::string &table) const
{
  if (!is_intermediate_name(table))
    return table;
  for (const std::pair<const std::string, std::string> &aside : m_aside)
    if (aside.second == table)
      return aside.first;
  return std::string();
}

std::vector<Reference> Definitions::referring_to(const std::string &table) const
{
  std::vector<Reference> all;
  {
    std::lock_guard<std::mutex> guard(m_mutex);
    std::map<std::string, std::set<std::string>>::const_iterator children= m_children.find(table);
    if (children == m_children.end())
      return all;
    for (const std::string &child : children->second)
    {
      std::string name= name_for_others(child);
      for (const Foreign_key_definition &key : m_tables.at(child)->foreign_keys)
        if (key.parent == table && !name.empty())
          all.push_back(Reference{name, key});
    }
  }
  // The order in which InnoDB goes through them.
  std::sort(all.begin(), all.end(), [](const Reference &a, const Reference &b) {
    return schema_of(a.child) + "/" + a.key.name < schema_of(b.child) + "/" + b.key.name;
  });
  return all;
}

bool Definitions::is_referred_to(const std::string &table) const
{
  std::lock_guard<std::mutex> guard(m_mutex);
  std::map<std::string, std::set<std::string>>::const_iterator children= m_children.find(table);
  if (children != m_children.end())
    for (const std::string &child : children->second)
      if (!name_for_others(child).empty())
        return true;
  return false;
}

std::set<std::string> Definitions::speaking_of(const std::string &table) const
{
  std::lock_guard<std::mutex> guard(m_mutex);
  std::map<std::string, std::set<std::string>>::const_iterator children= m_children.find(table);
  return children == m_children.end() ? std::set<std::string>() : children->second;
}

bool Definitions::has_constraint(const std::string &table, const std::string &name,
                                 const std::string &except) const
{
  std::lock_guard<std::mutex> guard(m_mutex);
  std::string prefix= schema_of(table) + "/";
  for (std::map<std::string, Pointer>::const_iterator at= m_tables.lower_bound(prefix);
       at != m_tables.end() && !at->first.compare(0, prefix.size(), prefix); ++at)
  {
    std::string known_as= name_for_others(at->first);
    if (known_as.empty() || known_as == except)
      continue;
    for (const Foreign_key_definition &key : at->second->foreign_keys)
      if (same_column(key.name, name))
        return true;
  }
  return false;
}

void Definitions::unlink(const std::string &table)
{
  std::map<std::string, Pointer>::iterator at= m_tables.find(table);
  if (at == m_tables.end())
    return;
  for (const Foreign_key_definition &key : at->second->foreign_keys)
    m_children[key.parent].erase(table);
  if (!at->second->foreign_keys.empty() || m_children.count(table))
    m_epoch.fetch_add(1, std::memory_order_acq_rel);
  m_tables.erase(at);
}

void Definitions::link(const std::string &table, const Table_definition &definition)
{
  if (is_temporary_name(table))
    return;
  unlink(table);
  m_tables[table]= std::make_shared<const Table_definition>(definition);
  m_aside.erase(table);
  for (const Foreign_key_definition &key : definition.foreign_keys)
    m_children[key.parent].insert(table);
  if (!definition.foreign_keys.empty() || m_children.count(table))
    m_epoch.fetch_add(1, std::memory_order_acq_rel);
}

void Definitions::put(const std::string &table, const Table_definition &definition)
{
  std::lock_guard<std::mutex> guard(m_mutex);
  link(table, definition);
}

void Definitions::remove(const std::string &table)
{
  std::lock_guard<std::mutex> guard(m_mutex);
  unlink(table);
  m_aside.erase(name_for_others(table));
}

void Definitions::rename(const std::string &from, const std::string &to,
                         const std::map<std::string, Table_definition> &changed)
{
  std::lock_guard<std::mutex> guard(m_mutex);
  std::map<std::string, Pointer>::const_iterator at= m_tables.find(from);
  // The table that a copy with another name was made from is in no session's hands any more.
  if (at != m_tables.end() && !is_intermediate_name(to))
    m_aside.erase(at->second->replaces);
  unlink(from);
  m_aside.erase(name_for_others(from));
  for (const std::pair<const std::string, Table_definition> &one : changed)
    link(one.first == from ? to : one.first, one.second);
  if (is_intermediate_name(to) && !is_intermediate_name(from))
    m_aside[from]= to;
}

bool is_intermediate_name(const std::string &table) { return table.find("/#sql") != std::string::npos; }

std::string table_name_of(const LEX_CSTRING &db, const LEX_CSTRING &table)
{
  return encoded(db) + "/" + encoded(table);
}

std::string shown_schema(const std::string &table) { return shown(schema_of(table)); }

std::string shown_table(const std::string &table) { return shown(table.substr(table.find('/') + 1)); }

std::vector<Foreign_key_definition> in_order(const Table_definition &definition)
{
  std::vector<Foreign_key_definition> keys= definition.foreign_keys;
  std::sort(keys.begin(), keys.end(),
            [](const Foreign_key_definition &a, const Foreign_key_definition &b) { return a.name < b.name; });
  return keys;
}

std::string show_foreign_key(THD *thd, const std::string &child, const Foreign_key_definition &key, bool newline)
{
  std::string out= newline ? ",\n " : ",";
  out+= " CONSTRAINT " + quoted(thd, key.name) + " FOREIGN KEY (" + quoted(thd, key.columns) + ") REFERENCES ";
  if (schema_of(child) != schema_of(key.parent))
    out+= quoted(thd, shown_schema(key.parent)) + ".";
  out+= quoted(thd, shown_table(key.parent)) + " (" + quoted(thd, key.parent_columns) + ")";
  if (const char *what= action(key.on_delete))
    out+= std::string(" ON DELETE ") + what;
  if (const char *what= action(key.on_update))
    out+= std::string(" ON UPDATE ") + what;
  return out;
}

std::string show_violation(THD *thd, const std::string &child, const Foreign_key_definition &key)
{
  return quoted(thd, shown_schema(child)) + "." + quoted(thd, shown_table(child)) +
         show_foreign_key(thd, child, key, false);
}

namespace
{

// Says why a foreign key cannot be; gives the error.
int cannot_add(THD *thd, const std::string &child, const Foreign_key_definition &key, const std::string &why,
               int error= HA_ERR_CANNOT_ADD_FOREIGN)
{
  std::string words= show_violation(thd, child, key) + ": " + why;
  push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, ER_CANNOT_ADD_FOREIGN, "Weir: %s", words.c_str());
  note_foreign_error(thd, "Cannot add: " + words);
  return error;
}

// Why what a foreign key refers to is no Weir table. Another engine would not ask Weir before it takes a row away.
std::string why_no_parent(THD *thd, const std::string &parent, bool *of_another_engine)
{
  std::string schema= shown_schema(parent), table= shown_table(parent);
  LEX_CSTRING db= {schema.data(), schema.size()}, name= {table.data(), table.size()};
  handlerton *engine= engine_of(thd, &db, &name);
  *of_another_engine= engine != nullptr;
  if (!engine)
    return "there is no Weir table " + quoted(thd, table) + " that can be referred to";
  if (engine->db_type == DB_TYPE_PARTITION_DB)
    return "the table " + quoted(thd, table) + " is partitioned, and such a one cannot be referred to";
  return "the table " + quoted(thd, table) + " is one of " + hton_name(engine)->str +
         ", and a foreign key cannot go from one engine to another: change one of both tables with ALTER TABLE ... ENGINE= first";
}

// What is wrong with the columns that a foreign key refers to; empty: nothing. `kinds`: of the child's columns.
std::string misfit(THD *thd, const Table_definition &parent, const Foreign_key_definition &key,
                   const std::vector<std::string> &kinds)
{
  if (key.parent_columns.size() != key.columns.size())
    return "it refers to another number of columns than it has";
  if (parent.find_index(key.parent_columns, &kinds))
    return "";
  const Index_definition *index= parent.find_index(key.parent_columns, nullptr);
  if (!index)
    return "no index of " + quoted(thd, shown_table(key.parent)) + " begins with (" +
           quoted(thd, key.parent_columns) + ")";
  size_t at= 0;
  while (at + 1 < kinds.size() && index->parts[at].kind == kinds[at])
    at++;
  return "the column " + quoted(thd, key.columns[at]) + " is of another type than the column " +
         quoted(thd, key.parent_columns[at]) + " that it refers to";
}

// Whether the columns of both tables fit each other. `own`: the definition of the table that the key is of.
int check_columns(THD *thd, const TABLE *form, const std::string &table, const Table_definition &own,
                  const Foreign_key_definition &key)
{
  const Index_definition *index= own.find_index(key.columns, nullptr);
  if (!index)
    return cannot_add(thd, table, key, "no index of the table begins with its columns");
  std::vector<std::string> kinds;
  for (size_t i= 0; i < key.columns.size(); i++)
  {
    const Field *column= find_column(form, key.columns[i]);
    bool set_null= key.on_delete == FK_OPTION_SET_NULL || key.on_update == FK_OPTION_SET_NULL;
    if (!column || (set_null && !column->real_maybe_null()))
      return cannot_add(thd, table, key, "SET NULL, and the column " + quoted(thd, key.columns[i]) + " is NOT NULL");
    if (changes_child(key) && feeds_stored_column(form, column))
      return cannot_add(thd, table, key, "it would change the column " + quoted(thd, key.columns[i]) +
                                             ", which a stored column is generated from");
    kinds.push_back(index->parts[i].kind);
  }
  Definitions::Pointer other= weir_definitions.find(key.parent);
  const Table_definition *parent= key.parent == table ? &own : other.get();
  if (!parent)
  {
    // One that was there already was reported when its parent went. What is not there yet may be made later, as a Weir table.
    if (key.carried)
      return 0;
    bool of_another_engine;
    std::string why= why_no_parent(thd, key.parent, &of_another_engine);
    bool may_miss= !of_another_engine && thd_test_options(thd, OPTION_NO_FOREIGN_KEY_CHECKS);
    return may_miss ? 0 : cannot_add(thd, table, key, why);
  }
  if (parent->versioned || own.versioned)
    return cannot_add(thd, table, key, "it cannot be of or refer to a table WITH SYSTEM VERSIONING");
  std::string why= misfit(thd, *parent, key, kinds);
  return why.empty() ? 0 : cannot_add(thd, table, key, why);
}

bool is_dropped(const Alter_info *said, const std::string &name)
{
  List_iterator_fast<Alter_drop> each(const_cast<Alter_info *>(said)->drop_list);
  while (Alter_drop *drop= each++)
    if (drop->type == Alter_drop::FOREIGN_KEY && same_column(name_text(drop->name), name))
      return true;
  return false;
}

Foreign_key_definition read_foreign_key(Foreign_key *said, const TABLE *form)
{
  Foreign_key_definition key;
  if (said->constraint_name.str)
    key.name.assign(said->constraint_name.str, said->constraint_name.length);
  key.parent= table_name_of(said->ref_db.str ? said->ref_db : form->s->db, said->ref_table);
  key.columns= names_of(said->columns);
  key.parent_columns= names_of(said->ref_columns);
  key.on_delete= said->delete_opt;
  key.on_update= said->update_opt;
  key.carried= false;
  return key;
}

// Gives the columns the letters that they have in the definitions of their tables.
void spell_columns(const TABLE *form, std::vector<std::string> *columns)
{
  for (std::string &name : *columns)
    if (const Field *column= find_column(form, name))
      name.assign(column->field_name.str, column->field_name.length);
}

void spell_parent_columns(const Table_definition *parent, std::vector<std::string> *columns)
{
  const Index_definition *index= parent ? parent->find_index(*columns, nullptr) : nullptr;
  for (size_t i= 0; index && i < columns->size(); i++)
    (*columns)[i]= index->parts[i].column;
}

} // namespace

int collect_foreign_keys(THD *thd, const Alter_info *said, const TABLE *form, const std::string &table,
                         const Table_definition *before, Table_definition *definition)
{
  ulonglong number= 0;
  if (before)
    for (Foreign_key_definition key : before->foreign_keys)
    {
      number= std::max(number, generated_number(key.name, table));
      if (said && is_dropped(said, key.name))
        continue;
      key.carried= true;
      if (int error= check_columns(thd, form, table, *definition, key))
        return error;
      definition->foreign_keys.push_back(key);
    }
  if (!said)
    return 0;
  List_iterator_fast<Key> each(const_cast<Alter_info *>(said)->key_list);
  while (Key *one= each++)
  {
    if (one->type != Key::FOREIGN_KEY || one->old)
      continue;
    // Before it is given a name: that of a temporary table is a path, which may be too long for one.
    if (is_temporary_name(table))
    {
      push_warning(thd, Sql_condition::WARN_LEVEL_WARN, ER_CANNOT_ADD_FOREIGN,
                   "Weir: a temporary table cannot have foreign keys: leave them out, or create a table that stays");
      return HA_ERR_CANNOT_ADD_FOREIGN;
    }
    Foreign_key_definition key= read_foreign_key(static_cast<Foreign_key *>(one), form);
    if (key.name.empty())
      key.name= shown_table(table) + "_ibfk_" + std::to_string(++number);
    if (key.on_delete == FK_OPTION_SET_DEFAULT || key.on_update == FK_OPTION_SET_DEFAULT)
      return cannot_add(thd, table, key, "SET DEFAULT is not done (InnoDB takes it for RESTRICT): say RESTRICT, CASCADE or SET NULL");
    if (system_charset_info->numchars(key.name.data(), key.name.data() + key.name.size()) > NAME_CHAR_LEN)
    {
      my_error(ER_TOO_LONG_IDENT, MYF(0), key.name.c_str());
      return HA_ERR_CANNOT_ADD_FOREIGN;
    }
    spell_columns(form, &key.columns);
    if (int error= check_columns(thd, form, table, *definition, key))
      return error;
    spell_parent_columns(key.parent == table ? definition : weir_definitions.find(key.parent).get(),
                         &key.parent_columns);
    // As InnoDB: of two in one statement none can be, of one that is there the name is a duplicate.
    for (const Foreign_key_definition &other : definition->foreign_keys)
      if (same_column(other.name, key.name))
        return cannot_add(thd, table, key, "another one has its name",
                          other.carried ? HA_ERR_FOUND_DUPP_KEY : HA_ERR_CANNOT_ADD_FOREIGN);
    if (weir_definitions.has_constraint(table, key.name, table))
      return cannot_add(thd, table, key, "one of another table has its name", HA_ERR_FOUND_DUPP_KEY);
    definition->foreign_keys.push_back(key);
  }
  return 0;
}

bool serves(const Table_definition &parent, const Reference &reference)
{
  Definitions::Pointer child= weir_definitions.find(reference.child);
  const Index_definition *index= child ? child->find_index(reference.key.columns, nullptr) : nullptr;
  if (!index)
    return true;
  std::vector<std::string> kinds;
  for (size_t i= 0; i < reference.key.columns.size(); i++)
    kinds.push_back(index->parts[i].kind);
  return parent.find_index(reference.key.parent_columns, &kinds);
}

int check_referrers(THD *thd, const std::string &table, const Table_definition &definition)
{
  for (const Reference &reference : weir_definitions.referring_to(table))
  {
    if (reference.child == table)
      continue;
    if (definition.versioned)
      return cannot_add(thd, reference.child, reference.key, "a table WITH SYSTEM VERSIONING cannot be referred to");
    if (!serves(definition, reference))
      return cannot_add(thd, reference.child, reference.key,
                        "the table that it refers to would have no index that begins with its columns, of their types");
  }
  return 0;
}

Table_definition with_new_name(const Table_definition &definition, const std::string &holder,
                               const std::string &from, const std::string &to)
{
  Table_definition out= definition;
  for (Foreign_key_definition &key : out.foreign_keys)
  {
    if (key.parent == from)
      key.parent= to;
    ulonglong number= holder == from ? generated_number(key.name, from) : 0;
    if (number)
      key.name= shown_table(to) + "_ibfk_" + std::to_string(number);
  }
  return out;
}
