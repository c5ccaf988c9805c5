#include "ha_weir.h"

#include <create_options.h>

#include "graveyard.h"
#include "known_rows.h"
#include "variables.h"
#include "backoff.h"
#include "encryption.h"

namespace
{

// What the server completes after a crash was allowed before, perhaps to a session that had them off; and it goes on to
// drop the table that was there, whether or not the new one got its name.
bool checks_foreign_keys(THD *thd)
{
  return weir_ddl_recovered && !thd_test_options(thd, OPTION_NO_FOREIGN_KEY_CHECKS);
}

weir_redefinition redefinition_of(const std::string &table, const std::string &definition)
{
  weir_redefinition redefinition= {bytes_of(table), bytes_of(definition), nullptr, 0, bytes_of(nullptr, 0), bytes_of(nullptr, 0)};
  return redefinition;
}

// CREATE TABLE ... SELECT that fails drops the table before it rolls back what it has written there. Nothing else is in
// that transaction: the statement has committed what was before it. Whether there was one.
bool give_up_filling(THD *thd, const std::string &table)
{
  Transaction *trx= Transaction::find(thd);
  if (thd_sql_command(thd) != SQLCOM_CREATE_TABLE || is_temporary_name(table) || !trx || !trx->txn())
    return false;
  trx->rollback(true);
  return true;
}

// The name that ALTER gives to the table that its copy replaces.
bool is_backup_name(const std::string &table) { return table.find("/#sql-backup-") != std::string::npos; }

// ALTER takes the table away, puts its copy there, drops what it has taken away, and does not go back if that fails.
// A transaction that has looked into the table for a foreign key holds its definition and no lock of the server's on it: that
// transaction is waited for here, while nothing has changed.
int set_aside(THD *thd, const std::string &table, const std::string &backup)
{
  weir_code code;
  Backoff backoff(thd);
  do
  {
    std::lock_guard<std::mutex> guard(weir_definitions.changing());
    code= weir_table_set_aside(weir_database, bytes_of(table), bytes_of(backup), 0);
    if (code == WEIR_OK)
      weir_known_rows.rename(table, backup);
    Definitions::Pointer known= weir_definitions.find(table);
    if (code != WEIR_OK || !known)
      continue;
    weir_definitions.rename(table, backup, {{table, *known}});
  } while (backoff.again(&code));
  // The server would say that it cannot rename, and not why.
  if (code == WEIR_LOCK_TIMEOUT)
    my_error(ER_LOCK_WAIT_TIMEOUT, MYF(0));
  if (code == WEIR_INTERRUPTED)
    my_error(ER_QUERY_INTERRUPTED, MYF(0));
  return code == WEIR_NOTHING ? HA_ERR_NO_SUCH_TABLE : to_handler_error(thd, code);
}

// What is filled under this name in many transactions, for a table that is there already, or a partition of one. As the
// server has it (the beginning of ALTER's names, sql_table.cc; the end of those of partitions, sql_partition.cc).
bool is_filled_aside(const std::string &table)
{
  if (is_temporary_name(table))
    return false;
  const std::string ending= "#TMP#";
  return table.find("/#sql-alter") != std::string::npos ||
         (table.size() > ending.size() && !table.compare(table.size() - ending.size(), ending.size(), ending));
}

// Whether the server cannot do without this drop any more: it completes what a crash has interrupted, or an ALTER whose
// copy has the place of the table already.
bool must_drop(THD *thd)
{
  return !weir_ddl_recovered || thd_sql_command(thd) == SQLCOM_ALTER_TABLE;
}

bool is_partition_name(const std::string &table)
{
  return table.find("#P#") != std::string::npos || table.find("#p#") != std::string::npos;
}

// Names of foreign keys are unique in a schema. They go to another one with their table, and those that were made up
// change with its name.
int check_constraint_names(const Table_definition &then, const std::string &from, const std::string &to)
{
  for (const Foreign_key_definition &key : then.foreign_keys)
    if (weir_ddl_recovered && weir_definitions.has_constraint(to, key.name, from))
    {
      my_error(ER_DUP_CONSTRAINT_NAME, MYF(0), "FOREIGN KEY", key.name.c_str());
      return HA_ERR_FOUND_DUPP_KEY;
    }
  return 0;
}

// What ALTER copies to a table that is to be called `in_the_end`.
std::string table_copied(THD *thd, const std::string &in_the_end)
{
  const TABLE_LIST *altered= thd->lex->query_tables;
  if (thd_sql_command(thd) != SQLCOM_ALTER_TABLE || !altered)
    return in_the_end;
  return table_name_of(altered->db, altered->table_name);
}

// What a statement asks for and Weir does not have. `true`: it is refused, as InnoDB refuses what it cannot do in strict mode.
bool refuse_option(THD *thd, const char *option, const char *why, bool refuses)
{
  if (refuses)
  {
    my_printf_error(ER_ILLEGAL_HA_CREATE_OPTION, "Table storage engine 'Weir' does not support the create option '%s': %s",
                    MYF(0), option, why);
    return true;
  }
  push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, WARN_OPTION_IGNORED, ER_THD(thd, WARN_OPTION_IGNORED), option);
  return false;
}

bool is_option(const engine_option_value *option, const char *name)
{
  return same_name(option->name.str, name);
}

bool is_off(const engine_option_value *option)
{
  for (const char *off : {"0", "no", "off", "default"})
    if (!option->value.str || same_name(option->value.str, off))
      return true;
  return false;
}

} // namespace

// A user that asks for rows to be encrypted must not find them in the clear, however the table came to that.
bool refuse_encryption(THD *thd, const engine_option_value *option)
{
  for (; option; option= option->next)
  {
    if (is_off(option))
      continue;
    if (is_option(option, "encrypted") && !weir_encrypts() &&
        refuse_option(thd, "ENCRYPTED", "its files are not encrypted (weir_encrypt); say ENCRYPTED=NO", true))
      return true;
    if (is_option(option, "encryption_key_id") && weir_encrypts() &&
        strtoul(std::string(option->value.str, option->value.length).c_str(), nullptr, 10) != weir_encryption_key_id() &&
        refuse_option(thd, "ENCRYPTION_KEY_ID", "one key encrypts all of its files (weir_encryption_key_id)", true))
      return true;
  }
  return false;
}

namespace
{

// A table that is altered brings with it what it was made with, which no statement has asked for now: that is warned of.
bool refuse_options(THD *thd, const TABLE *form, const HA_CREATE_INFO *info)
{
  bool strict= thd->is_strict_mode(), made= thd_sql_command(thd) == SQLCOM_CREATE_TABLE;
  // What a partition asks for by itself is in the form alone.
  if (refuse_encryption(thd, info->option_list) || refuse_encryption(thd, form->s->option_list))
    return true;
  for (const engine_option_value *option= info->option_list; option; option= option->next)
    if (!is_off(option) && is_option(option, "page_compressed") &&
        refuse_option(thd, "PAGE_COMPRESSED", "its pages are not compressed", strict && made))
      return true;
  if ((info->row_type == ROW_TYPE_COMPRESSED || info->key_block_size) &&
      refuse_option(thd, info->row_type == ROW_TYPE_COMPRESSED ? "ROW_FORMAT=COMPRESSED" : "KEY_BLOCK_SIZE",
                    "its pages are not compressed",
                    strict && (info->used_fields & (HA_CREATE_USED_ROW_FORMAT | HA_CREATE_USED_KEY_BLOCK_SIZE))))
    return true;
  if ((info->row_type == ROW_TYPE_FIXED || info->row_type == ROW_TYPE_PAGE) &&
      refuse_option(thd, info->row_type == ROW_TYPE_FIXED ? "ROW_FORMAT=FIXED" : "ROW_FORMAT=PAGE",
                    "rows are as long as their values", strict && (info->used_fields & HA_CREATE_USED_ROW_FORMAT)))
    return true;
  if (made)
    warn_of_options(thd, info);
  if (info->data_file_name &&
      refuse_option(thd, "DATA DIRECTORY", "all tables lie in the directory #weir", strict && made))
    return true;
  return info->index_file_name && refuse_option(thd, "INDEX DIRECTORY", "its indexes lie with it", strict && made);
}

} // namespace

void warn_of_options(THD *thd, const HA_CREATE_INFO *info)
{
  static const struct { ulong used; const char *name; } ignored[]= {{HA_CREATE_USED_STATS_PERSISTENT, "STATS_PERSISTENT"},
                                                                    {HA_CREATE_USED_STATS_AUTO_RECALC, "STATS_AUTO_RECALC"},
                                                                    {HA_CREATE_USED_STATS_SAMPLE_PAGES, "STATS_SAMPLE_PAGES"}};
  for (const auto &option : ignored)
    if (info->used_fields & option.used)
      refuse_option(thd, option.name, nullptr, false);
}

namespace
{

// What a FULLTEXT key may be of; the error says what not.
bool refuse_fulltext(const TABLE *form, const KEY *key, bool temporary)
{
  const char *why= nullptr;
  if (temporary)
    why= "of a temporary table";
  if (key->flags & HA_USES_PARSER)
    why= "WITH PARSER";
  for (uint part= 0; part < key->user_defined_key_parts; part++)
    if (!form->field[key->key_part[part].fieldnr - 1]->stored_in_db())
    {
      my_error(ER_UNSUPPORTED_ACTION_ON_GENERATED_COLUMN, MYF(0));
      return true;
    }
  if (why)
    my_printf_error(ER_ILLEGAL_HA_CREATE_OPTION, "Table storage engine 'Weir' does not support a FULLTEXT key %s ('%s')", MYF(0),
                    why, key->name.str);
  return why != nullptr;
}

} // namespace

// In place it is kept, for a copy of the database whose pages are packed, and the user is warned.
void ha_weir::warn_of_codec(const char *codec) const
{
  bool packs= false;
  if (*codec && weir_packs_pages(weir_database, &packs) == WEIR_OK && !packs)
    push_warning_printf(ha_thd(), Sql_condition::WARN_LEVEL_WARN, WARN_OPTION_IGNORED,
                        "<%s> option ignored: pages are kept in place (weir_store) and none are packed", "CODEC");
}

int ha_weir::create(const char *name, TABLE *form, HA_CREATE_INFO *info)
{
  if (weir_refuses_changes())
    return HA_ERR_TABLE_READONLY;
  THD *thd= ha_thd();
  std::string table= table_name_of(name);
  // ALTER has its copy under another name. Partitions, one by one, have no part in foreign keys.
  if (refuse_options(thd, form, info))
    return HA_WRONG_CREATE_OPTION;
  bool copies= is_intermediate_name(table) && !is_temporary_name(table) && !is_partition_name(table);
  std::string in_the_end= copies ? table_name_of(form->s->db, form->s->table_name) : table;
  std::lock_guard<std::mutex> guard(weir_definitions.changing());
  // What others call it until it is there under its new name.
  std::string known_as= copies ? table_copied(thd, in_the_end) : table;
  Definitions::Pointer before;
  if (copies)
    before= weir_definitions.find(known_as);
  Table_definition defined= describe(form);
  if (known_as != in_the_end)
    defined.replaces= known_as;
  if (int error= collect_foreign_keys(thd, info->alter_info, form, known_as, before.get(), &defined))
    return error;
  if (!is_temporary_name(table) && checks_foreign_keys(thd))
    if (int error= check_referrers(thd, known_as, defined))
      return error;
  std::vector<weir_index> indexes;
  std::string words, cells= Spatial_definition().encode();
  for (uint i= 0; i < form->s->keys; i++)
    if (is_fulltext(&form->key_info[i]))
    {
      if (refuse_fulltext(form, &form->key_info[i], is_temporary_name(table)))
        return HA_WRONG_CREATE_OPTION;
      words= Fulltext_definition::of_settings(thd).encode();
    }
  TABLE_SHARE *share= form->s;
  for (uint i= 0; i < share->keys; i++)
  {
    if (i == share->primary_key)
      continue;
    const KEY *key= &form->key_info[i];
    weir_index index;
    index.name= bytes_of(reinterpret_cast<const uchar *>(key->name.str), key->name.length);
    index.unique= (key->flags & HA_NOSAME) && key->algorithm != HA_KEY_ALG_LONG_HASH;
    index.several= has_several_entries(key);
    index.definition= is_fulltext(key) ? bytes_of(words) : is_spatial(key) ? bytes_of(cells) : bytes_of(nullptr, 0);
    indexes.push_back(index);
  }
  std::string definition= defined.encode(), codec= weir_codec_asked(form);
  weir_code code= weir_table_create(weir_database, bytes_of(table), bytes_of(definition), indexes.data(),
                                    indexes.size(), bytes_of(codec));
  if (code != WEIR_OK)
    return fail(code);
  warn_of_codec(codec.c_str());
  weir_definitions.put(table, defined);
  weir_known_rows.forget(table);
  if (info->auto_increment_value > 1)
  {
    weir_table *made;
    code= weir_table_open(weir_database, bytes_of(table), &made);
    if (code == WEIR_OK)
    {
      code= weir_table_reset_numbers(made, info->auto_increment_value);
      weir_table_close(made);
    }
  }
  return code == WEIR_OK ? 0 : fail(code);
}

int ha_weir::delete_table(const char *name)
{
  if (weir_refuses_changes())
    return HA_ERR_TABLE_READONLY;
  THD *thd= ha_thd();
  std::string table= table_name_of(name);
  weir_code code;
  Backoff backoff(thd);
  bool again;
  do
  {
    std::lock_guard<std::mutex> guard(weir_definitions.changing());
    if (checks_foreign_keys(thd) && !is_temporary_name(table) && weir_definitions.find(table))
      for (const Reference &reference : weir_definitions.referring_to(table))
        if (reference.child != table &&
            (thd_sql_command(thd) != SQLCOM_DROP_DB || shown_schema(reference.child) != shown_schema(table)))
          return HA_ERR_ROW_IS_REFERENCED;
    code= weir_table_drop(weir_database, bytes_of(table), 0);
    weir_known_rows.forget(table);
    if (code == WEIR_OK || code == WEIR_NOTHING)
      weir_definitions.remove(table);
    if (code == WEIR_WOULD_WAIT && is_temporary_name(table) && Transaction::of(thd)->drop_at_end(table))
      return 0;
    again= code == WEIR_WOULD_WAIT && give_up_filling(thd, table);
    // Only a client can decide what is prepared, and no client is there.
    if (code == WEIR_WOULD_WAIT && !weir_ddl_recovered)
      break;
  } while (again || backoff.again(&code));
  if ((code == WEIR_WOULD_WAIT || code == WEIR_LOCK_TIMEOUT || code == WEIR_INTERRUPTED) && must_drop(thd))
  {
    std::lock_guard<std::mutex> guard(weir_definitions.changing());
    code= bury(table);
    if (code == WEIR_OK)
      weir_definitions.remove(table);
  }
  if (code == WEIR_NOTHING)
    return HA_ERR_NO_SUCH_TABLE;
  return code == WEIR_OK ? 0 : fail(code);
}

// A table that refers to this one speaks of it by its name, so all of them change with it, at once. To ALTER's intermediate
// names no table refers: one that refers to the table refers to the copy that takes its place, and to its new name if it gets
// one there.
int ha_weir::rename_table(const char *from, const char *to)
{
  if (weir_refuses_changes())
    return HA_ERR_TABLE_READONLY;
  std::string old_name= table_name_of(from), new_name= table_name_of(to);
  if (is_backup_name(new_name))
    return set_aside(ha_thd(), old_name, new_name);
  std::lock_guard<std::mutex> guard(weir_definitions.changing());
  std::map<std::string, Table_definition> changed;
  Definitions::Pointer own= weir_definitions.find(old_name);
  // CONVERT TABLE ... TO PARTITION, before which the server does not ask as it does before EXCHANGE.
  if (own && is_partition_name(new_name) &&
      (!own->foreign_keys.empty() || weir_definitions.is_referred_to(old_name)))
  {
    my_error(ER_PARTITION_EXCHANGE_FOREIGN_KEY, MYF(0), shown_table(old_name).c_str());
    return HA_ERR_CANNOT_ADD_FOREIGN;
  }
  bool copied= own && is_intermediate_name(old_name);
  std::string known_as= copied ? own->replaces : old_name;
  if (own && !known_as.empty() && !is_intermediate_name(new_name))
  {
    changed[old_name]= with_new_name(*own, known_as, known_as, new_name);
    changed[old_name].replaces.clear();
    if (int error= check_constraint_names(changed[old_name], known_as, new_name))
      return error;
    for (const std::string &child : weir_definitions.speaking_of(known_as))
      if (child != known_as && child != old_name)
        changed[child]= with_new_name(*weir_definitions.find(child), child, known_as, new_name);
  }
  if (own && !is_intermediate_name(new_name) && checks_foreign_keys(ha_thd()))
  {
    int error= check_referrers(ha_thd(), new_name, *own);
    if (!error && copied)
      error= check_referrers(ha_thd(), known_as, *own);
    if (error)
      return error;
  }
  std::vector<std::string> encoded;
  for (const std::pair<const std::string, Table_definition> &one : changed)
    encoded.push_back(one.second.encode());
  std::vector<weir_redefinition> redefinitions;
  for (const std::pair<const std::string, Table_definition> &one : changed)
    redefinitions.push_back(redefinition_of(one.first, encoded[redefinitions.size()]));
  weir_code code= weir_table_rename_with(weir_database, bytes_of(old_name), bytes_of(new_name),
                                         redefinitions.data(), redefinitions.size(), is_filled_aside(old_name));
  if (code == WEIR_NOTHING)
    return HA_ERR_NO_SUCH_TABLE;
  if (code != WEIR_OK)
    return fail(code);
  if (own)
    changed.insert(std::make_pair(old_name, *own));
  weir_definitions.rename(old_name, new_name, changed);
  weir_known_rows.rename(old_name, new_name);
  return 0;
}

int ha_weir::truncate()
{
  if (weir_refuses_changes())
    return HA_ERR_TABLE_READONLY;
  if (m_share->is_discarded())
  {
    my_error(ER_TABLESPACE_DISCARDED, MYF(0), table_share->table_name.str);
    return HA_ERR_TABLESPACE_MISSING;
  }
  close_scan();
  weir_code code;
  Backoff backoff(ha_thd());
  do
  {
    code= weir_table_abandon_indexes(weir_database, bytes_of(m_name), 0);
    if (code == WEIR_OK)
      code= weir_table_truncate(weir_database, bytes_of(m_name), 1, 0);
  } while (backoff.again(&code));
  if (code != WEIR_OK)
    return fail(code);
  {
    // The layouts that older rows had have gone with them.
    std::lock_guard<std::mutex> guard(weir_definitions.changing());
    Definitions::Pointer known= weir_definitions.find(m_name);
    if (known && known->layouts)
    {
      Table_definition now= *known;
      now.layouts= nullptr;
      weir_definitions.put(m_name, now);
    }
  }
  m_share->forget(true);
  weir_known_rows.forget(m_name);
  weir_table_close(m_table);
  m_table= nullptr;
  code= m_share->open(&m_table);
  return code == WEIR_OK ? make_codecs() : fail(code);
}

void ha_weir::update_create_info(HA_CREATE_INFO *create)
{
  if (!(create->used_fields & HA_CREATE_USED_AUTO))
  {
    info(HA_STATUS_AUTO);
    create->auto_increment_value= stats.auto_increment_value;
  }
}

bool ha_weir::check_if_incompatible_data(HA_CREATE_INFO *info, uint table_changes)
{
  if (table_changes != IS_EQUAL_YES)
    return COMPATIBLE_DATA_NO;
  // A new start for the numbers is written by the copy.
  if (info->used_fields & HA_CREATE_USED_AUTO)
    return COMPATIBLE_DATA_NO;
  return COMPATIBLE_DATA_YES;
}
