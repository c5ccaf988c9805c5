// ALTER TABLE without a copy: what is done before, while and after others read and write the table.
#include "ha_weir.h"

#include <algorithm>

#include "alter_columns.h"
#include "alter_definition.h"
#include "backoff.h"
#include "encryption.h"

ulonglong ha_weir::table_version() const
{
  Definitions::Pointer known= weir_definitions.find(m_name);
  return known ? known->version : table_definition_version(m_table);
}

void ha_weir::fail_alter(weir_code code) { print_error(fail(code), MYF(0)); }

// Changes what the engine knows of the table's indexes, when the transactions that hold it have ended. Says so if it fails.
bool ha_weir::fails_to_change(const std::function<weir_code()> &change)
{
  weir_code code;
  Backoff backoff(ha_thd());
  do
    code= change();
  while (backoff.again(&code));
  m_share->forget(false);
  if (code == WEIR_OK)
    return false;
  fail_alter(code);
  return true;
}

// An ALTER that failed beside a transaction that did not end has left its indexes. No other session has the table in use.
bool ha_weir::drop_leftovers()
{
  return fails_to_change([this]() { return weir_table_abandon_indexes(weir_database, bytes_of(m_name), 0); });
}

// As InnoDB, not below what there is.
int ha_weir::begin_numbers_at(ulonglong value)
{
  uint64_t next= 0;
  weir_code code= weir_table_next_number(m_table, &next);
  if (code != WEIR_OK)
    return fail(code);
  if (value < next)
  {
    uint index= table->s->next_number_index;
    bool down= table->key_info[index].key_part[0].key_part_flag & HA_REVERSE_SORT;
    Field *field= table->found_next_number_field;
    my_ptrdiff_t offset= table->record[1] - table->record[0];
    MY_BITMAP *before= tmp_use_all_columns(table, &table->read_set);
    int error= ha_index_init(index, true);
    if (!error)
      error= down ? ha_index_first(table->record[1]) : ha_index_last(table->record[1]);
    if (!error && !field->is_null(offset))
    {
      longlong last= field->val_int_offset(offset);
      if (last > 0 || (field->flags & UNSIGNED_FLAG))
        value= std::max<ulonglong>(value, static_cast<ulonglong>(last) + 1);
    }
    ha_index_end();
    tmp_restore_column_map(&table->read_set, before);
    if (error && error != HA_ERR_END_OF_FILE && error != HA_ERR_KEY_NOT_FOUND)
      return error;
  }
  code= weir_table_reset_numbers(m_table, std::max<ulonglong>(value, 1));
  return code == WEIR_OK ? 0 : fail(code);
}

// The lock is the statement's own here: all that open the table after it has been made weaker know what is being made.
bool ha_weir::prepare_inplace_alter_table(TABLE *altered, Alter_inplace_info *info)
{
  if (rewrites(info))
    return announce_rewrite(altered, info);
  return info->handler_flags & ALTER_COLUMN_NOT_NULLABLE ? watch_nulls(info) : announce_indexes(altered, info);
}

bool ha_weir::inplace_alter_table(TABLE *altered, Alter_inplace_info *info)
{
  auto fill= [&](ha_weir *part) {
    return rewrites(info) ? part->fill_rewrite(altered, info) : part->fill_indexes(altered, info);
  };
  if (!rewrites(info) && (info->handler_flags & ALTER_COLUMN_NOT_NULLABLE))
    return finds_null(info);
  if (!rewrites(info) && !(info->handler_flags & ADDS))
    return false;
  if (fill(this))
    return true;
  std::vector<ha_weir *> parts= altered_parts(this, info);
  if (parts.back() != this)
    return false;
  // What has been written to other partitions since theirs were filled, so that little is left to do beside no writer.
  for (ha_weir *part : parts)
    if (part != this && fill(part))
      return true;
  return false;
}

bool ha_weir::commit_inplace_alter_table(TABLE *altered, Alter_inplace_info *info, bool commit)
{
  std::vector<ha_weir *> parts= altered_parts(this, info);
  bool of_names= !(info->handler_flags & (ADDS | DROPS));
  for (ha_weir *part : parts)
    part->m_share->stop_watching();
  if (!commit)
  {
    // Each partition is asked by itself.
    if (rewrites(info) || (!of_names && info->index_add_count))
      abandon_indexes();
    return false;
  }
  if (!rewrites(info) && (info->handler_flags & ALTER_COLUMN_NOT_NULLABLE))
    for (ha_weir *part : parts)
      if (part->m_share->has_seen_null())
      {
        my_error(WARN_DATA_TRUNCATED, MYF(0), not_null_columns(table, info->alter_info)[0]->field_name.str, 1UL);
        return true;
      }
  const char *codec= weir_new_codec(table, altered, 0);
  bool failed= rewrites(info) ? commit_rewrite(parts, altered, info)
               : of_names     ? (codec || (info->handler_flags & (RENAMES | COLUMNS | ALTER_DROP_FOREIGN_KEY))) &&
                              commit_change_of_names(altered, info)
                        : commit_indexes(parts, altered, info);
  if (!failed && of_names && !rewrites(info) && (info->create_info->used_fields & HA_CREATE_USED_AUTO))
    if (int error= begin_numbers_at(info->create_info->auto_increment_value))
    {
      print_error(error, MYF(0));
      failed= true;
    }
  if (!failed && codec)
    warn_of_codec(codec);
  // All partitions are done, so that the server need not ask the others.
  info->group_commit_ctx= nullptr;
  return failed;
}
