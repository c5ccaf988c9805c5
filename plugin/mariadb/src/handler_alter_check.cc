// Which ALTERs need no copy, and why the others do.
#include "ha_weir.h"

#include <algorithm>

#include "alter_columns.h"
#include "alter_definition.h"
#include "foreign_keys.h"
#include "variables.h"

namespace
{

// What comes along with those; indexes are found by name.
const alter_table_operations HARMLESS=
    ALTER_INDEX_ORDER | ALTER_INDEX_IGNORABILITY | ALTER_RENAME_INDEX | ALTER_DROP_FOREIGN_KEY | ALTER_PARTITIONED;

// Whether an index goes that a foreign key cannot do without; the error says which.
bool takes_needed_index(const Table_definition &now, const Table_definition &then, const std::string &table,
                        const Alter_inplace_info *info)
{
  std::vector<std::vector<std::string>> needed;
  for (const Foreign_key_definition &key : then.foreign_keys)
    needed.push_back(key.columns);
  for (const Reference &reference : weir_definitions.referring_to(table))
    if (reference.child != table || !is_dropped_key(info->alter_info, reference.key.name))
      needed.push_back(reference.key.parent_columns);
  for (const std::vector<std::string> &columns : needed)
  {
    const Index_definition *used= now.find_index(columns, nullptr);
    if (used && !then.find_index(columns, nullptr))
    {
      my_error(ER_DROP_INDEX_FK, MYF(0), used->name.c_str());
      return true;
    }
  }
  return false;
}

// Whether a column of a foreign key goes or becomes another. The server says so, where rows are copied.
bool changes_foreign_column(const Table_definition &now, const TABLE *table, const std::string &name,
                          const Alter_inplace_info *info)
{
  for (const Foreign_key_definition &key : now.foreign_keys)
    if (!is_dropped_key(info->alter_info, key.name) && changes_one_of(info->alter_info, table, key.columns))
      return true;
  for (const Reference &reference : weir_definitions.referring_to(name))
    if (changes_one_of(info->alter_info, table, reference.key.parent_columns))
      return true;
  return false;
}

// Rows lie by their primary key, which may also be the first unique key without NULLs.
bool keeps_primary(const TABLE *table, const TABLE *altered)
{
  const KEY *now= primary_of(table), *then= primary_of(altered);
  return !now == !then && (!now || same_name(now->name.str, then->name.str));
}

// What is not kept in rows, or is set when the rest is done: the default character set, the format of rows, the next number.
struct Without_options
{
  Without_options(const TABLE *table, HA_CREATE_INFO *given) : info(given), used(given->used_fields), type(given->row_type)
  {
    // Partitions have their numbers from the table.
    if (table->found_next_number_field && !table->s->next_number_keypart && !table->part_info)
      info->used_fields&= ~HA_CREATE_USED_AUTO;
    // What that does to columns is flagged on them.
    info->used_fields&= ~(HA_CREATE_USED_CHARSET | HA_CREATE_USED_DEFAULT_CHARSET);
    // What is refused or warned of is so where a table is made.
    if (type != ROW_TYPE_COMPRESSED && type != ROW_TYPE_FIXED && type != ROW_TYPE_PAGE && !info->key_block_size)
      info->row_type= table->s->row_type;
  }
  ~Without_options()
  {
    info->used_fields= used;
    info->row_type= type;
  }
  HA_CREATE_INFO *info;
  ulong used;
  row_type type;
};

} // namespace

bool ha_weir::can_convert_nocopy(const Field &field, const Column_definition &then) const
{
  return can_grow(field, then);
}

// A key is of the same entries when a column of it may be longer.
Compare_keys ha_weir::compare_key_parts(const Field &field, const Column_definition &then, const KEY_PART_INFO &part,
                                        const KEY_PART_INFO &part_then) const
{
  if (field.is_equal(then))
    return part.length == part_then.length ? Compare_keys::Equal : Compare_keys::NotEqual;
  if (!can_grow(field, then) || then.charset != field.charset())
    return Compare_keys::NotEqual;
  if (part.length == part_then.length)
    return Compare_keys::Equal;
  bool whole= part.length == field.key_length() && part_then.length == then.length;
  return whole && field.real_type() == MYSQL_TYPE_VARCHAR ? Compare_keys::EqualButKeyPartLength : Compare_keys::NotEqual;
}

// Says why an algorithm that the statement asks for cannot be had.
static bool refuses(Alter_inplace_info *info, const char *why)
{
  if (why && *why)
    info->unsupported_reason= why;
  return why != nullptr;
}

enum_alter_inplace_result ha_weir::check_if_supported_inplace_alter(TABLE *altered, Alter_inplace_info *info)
{
  if (weir_refuses_changes())
    return HA_ALTER_ERROR;
  if (!is_partition())
    warn_of_options(ha_thd(), info->create_info);
  if (refuse_encryption(ha_thd(), info->create_info->option_list))
    return HA_ALTER_ERROR;
  Altered_part *part= new (ha_thd()->mem_root) Altered_part(this);
  info->handler_ctx= part;
  if (!part)
    return HA_ALTER_ERROR;
  enum_alter_inplace_result result= check_without_rewrite(altered, info);
  if (primary_of(table) && !primary_of(altered))
    info->unsupported_reason= my_get_err_msg(ER_ALTER_OPERATION_NOT_SUPPORTED_REASON_NOPK);
  if (result != HA_ALTER_INPLACE_NOT_SUPPORTED || !can_rewrite(altered, info))
    return result;
  part->rewrites= true;
  return HA_ALTER_INPLACE_COPY_NO_LOCK;
}

// Whether the rows can be written anew beside others, as those of the new table.
bool ha_weir::can_rewrite(const TABLE *altered, const Alter_inplace_info *info)
{
  const alter_table_operations possible= ADDS | DROPS | HARMLESS | STORED_COLUMNS | ALTER_ADD_VIRTUAL_COLUMN |
                                         ALTER_DROP_VIRTUAL_COLUMN | ALTER_COLUMN_ORDER | ALTER_VIRTUAL_COLUMN_ORDER |
                                         ALTER_COLUMN_INDEX_LENGTH | ALTER_ADD_PK_INDEX | ALTER_DROP_PK_INDEX |
                                         ALTER_RECREATE_TABLE | ALTER_COLUMN_DEFAULT | ALTER_COLUMN_OPTION |
                                         ALTER_CHANGE_CREATE_OPTION;
  const ulong options= HA_CREATE_USED_ENGINE;
  if ((info->handler_flags & ~possible) || (info->create_info->used_fields & ~options) || info->ignore ||
      info->error_if_not_empty)
    return false;
  // Elsewhere NULLs become something else.
  if ((info->handler_flags & ALTER_COLUMN_NOT_NULLABLE) && !ha_thd()->is_strict_mode())
    return false;
  if (table_share->tmp_table != NO_TMP_TABLE || table_share->sequence || table->versioned() || altered->versioned() ||
      table_share->long_unique_table || altered->s->long_unique_table)
    return false;
  // Without a primary key rows are known by numbers, which they keep.
  if (primary_of(table) && !primary_of(altered))
    return false;
  for (uint i= 0; i < altered->s->keys; i++)
    if (is_unordered(&altered->key_info[i]))
      return false;
  const Table_definition defined= definition();
  // The server looks, where it copies, whether a foreign key can do without an index.
  if (info->index_drop_count && (!defined.foreign_keys.empty() || !weir_definitions.referring_to(m_name).empty()))
    return false;
  return !changes_foreign_column(defined, table, m_name, info) && can_be_written_anew(altered, info->alter_info);
}

// What needs no row to be written anew.
enum_alter_inplace_result ha_weir::check_without_rewrite(TABLE *altered, Alter_inplace_info *info)
{
  alter_table_operations wanted= info->handler_flags;
  if (wanted & ALTER_STORED_COLUMN_TYPE)
    info->unsupported_reason= my_get_err_msg(ER_ALTER_OPERATION_NOT_SUPPORTED_REASON_COLUMN_TYPE);
  if (!(wanted & (ADDS | DROPS)))
    return check_change_of_names(altered, info);
  Table_definition defined= definition();
  // The error then says what about the column cannot be.
  if (thd_test_options(ha_thd(), OPTION_NO_FOREIGN_KEY_CHECKS) && changes_foreign_column(defined, table, m_name, info))
    return HA_ALTER_INPLACE_NOT_SUPPORTED;
  if (info->index_drop_count &&
      takes_needed_index(defined, definition_without_rows(defined, m_name, altered, info), m_name, info))
    return HA_ALTER_ERROR;
  if (table_share->tmp_table != NO_TMP_TABLE || changes_foreign_column(defined, table, m_name, info))
    return HA_ALTER_INPLACE_NOT_SUPPORTED;
  if (wanted & COLUMNS)
  {
    // A session that writes while an index is built knows the columns as they were.
    if ((wanted & (ADDS | ALTER_VIRTUAL_GCOL_EXPR)) || info->error_if_not_empty ||
        refuses(info, why_not_as_they_are(table, altered, info->alter_info, defined)))
      return HA_ALTER_INPLACE_NOT_SUPPORTED;
    wanted&= ~(COLUMNS | ALTER_COLUMN_DEFAULT | ALTER_COLUMN_OPTION);
  }
  // The engine's own options (CODEC) are no fields of the server's, and come with the definition.
  if (!info->create_info->used_fields)
    wanted&= ~ALTER_CHANGE_CREATE_OPTION;
  if ((wanted & ~(ADDS | DROPS | HARMLESS)) || (info->handler_flags & NULLS))
    return HA_ALTER_INPLACE_NOT_SUPPORTED;
  if (info->ignore || !keeps_primary(table, altered))
    return HA_ALTER_INPLACE_NOT_SUPPORTED;
  for (uint i= 0; i < info->index_add_count; i++)
  {
    const KEY *key= find_key(altered, info->key_info_buffer[info->index_add_buffer[i]].name.str);
    // What is refused of a FULLTEXT or SPATIAL key is where a table is made.
    if (!key || key->algorithm == HA_KEY_ALG_LONG_HASH || (is_unordered(key) && !has_several_entries(key)) || (key->flags & HA_USES_PARSER))
      return HA_ALTER_INPLACE_NOT_SUPPORTED;
    for (uint part= 0; part < key->user_defined_key_parts; part++)
      if (!key->key_part[part].field->stored_in_db())
        return HA_ALTER_INPLACE_NOT_SUPPORTED;
    // A key that goes and comes with the same name is not told apart by it.
    for (uint d= 0; d < info->index_drop_count; d++)
      if (same_name(info->index_drop_buffer[d]->name.str, key->name.str))
        return HA_ALTER_INPLACE_NOT_SUPPORTED;
    for (const Alter_inplace_info::Rename_key_pair &pair : info->rename_keys)
      if (same_name(pair.old_key->name.str, key->name.str))
        return HA_ALTER_INPLACE_NOT_SUPPORTED;
  }
  return HA_ALTER_INPLACE_NOCOPY_NO_LOCK;
}

// What neither adds nor drops an index.
enum_alter_inplace_result ha_weir::check_change_of_names(TABLE *altered, Alter_inplace_info *info)
{
  alter_table_operations wanted= info->handler_flags;
  // Entries of indexes are made of what the old expression gave.
  if ((wanted & ALTER_VIRTUAL_GCOL_EXPR) ||
      ((wanted & (RENAMES | COLUMNS | ALTER_DROP_FOREIGN_KEY)) && table_share->tmp_table != NO_TMP_TABLE))
    return HA_ALTER_INPLACE_NOT_SUPPORTED;
  Table_definition defined= definition();
  if (wanted & COLUMNS)
  {
    if (info->error_if_not_empty || info->ignore || !keeps_primary(table, altered) ||
        changes_foreign_column(defined, table, m_name, info) ||
        refuses(info, why_not_as_they_are(table, altered, info->alter_info, defined)))
      return HA_ALTER_INPLACE_NOT_SUPPORTED;
    // Elsewhere NULLs become something else.
    if ((wanted & ALTER_COLUMN_NOT_NULLABLE) && !ha_thd()->is_strict_mode())
      return HA_ALTER_INPLACE_NOT_SUPPORTED;
  }
  Without_options without(table, info->create_info);
  info->handler_flags&= ~(ALTER_DROP_FOREIGN_KEY | COLUMNS | ALTER_INDEX_ORDER | ALTER_CONVERT_TO);
  enum_alter_inplace_result result= handler::check_if_supported_inplace_alter(altered, info);
  info->handler_flags= wanted;
  if (result != HA_ALTER_INPLACE_NO_LOCK)
    return result;
  return wanted & ALTER_COLUMN_NOT_NULLABLE ? HA_ALTER_INPLACE_NOCOPY_NO_LOCK : HA_ALTER_INPLACE_INSTANT;
}
