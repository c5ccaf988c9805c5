#include "alter_definition.h"

#include <algorithm>

#include "alter_columns.h"

std::vector<ha_weir *> altered_parts(ha_weir *own, const Alter_inplace_info *info)
{
  std::vector<ha_weir *> parts;
  if (info->group_commit_ctx)
    for (inplace_alter_handler_ctx **part= info->group_commit_ctx; *part; part++)
      parts.push_back(static_cast<Altered_part *>(*part)->handler);
  else
    parts.push_back(own);
  return parts;
}

size_t place_of(ha_weir *own, const Alter_inplace_info *info)
{
  std::vector<ha_weir *> parts= altered_parts(own, info);
  return std::find(parts.begin(), parts.end(), own) - parts.begin();
}

const KEY *find_key(const TABLE *table, const char *name)
{
  for (uint i= 0; i < table->s->keys; i++)
    if (same_name(table->key_info[i].name.str, name))
      return &table->key_info[i];
  return nullptr;
}

std::vector<const KEY *> added_keys(const TABLE *altered, const Alter_inplace_info *info)
{
  std::vector<const KEY *> keys;
  if (info->handler_flags & ADDS)
    for (uint i= 0; i < info->index_add_count; i++)
      keys.push_back(find_key(altered, info->key_info_buffer[info->index_add_buffer[i]].name.str));
  return keys;
}

std::vector<weir_new_name> renamed_indexes(const TABLE *table, const Alter_inplace_info *info)
{
  std::vector<weir_new_name> renamed;
  for (const Alter_inplace_info::Rename_key_pair &pair : info->rename_keys)
  {
    const LEX_CSTRING &from= pair.old_key->name, &to= pair.new_key->name;
    if (pair.old_key != primary_of(table))
      renamed.push_back(weir_new_name{bytes_of(reinterpret_cast<const uchar *>(from.str), from.length),
                                      bytes_of(reinterpret_cast<const uchar *>(to.str), to.length)});
  }
  return renamed;
}

New_names renamed_columns(const Alter_info *said)
{
  New_names names;
  List_iterator_fast<Create_field> each(const_cast<Alter_info *>(said)->create_list);
  while (Create_field *column= each++)
    if (column->field && column->change.str)
      names.emplace_back(std::string(column->field->field_name.str, column->field->field_name.length),
                         std::string(column->field_name.str, column->field_name.length));
  return names;
}

void rename_columns(const New_names &names, std::vector<std::string> *columns)
{
  for (std::string &column : *columns)
    for (const std::pair<std::string, std::string> &name : names)
      if (same_column(column, name.first))
      {
        column= name.second;
        break;
      }
}

bool is_dropped_key(const Alter_info *said, const std::string &name)
{
  List_iterator_fast<Alter_drop> each(const_cast<Alter_info *>(said)->drop_list);
  while (Alter_drop *drop= each++)
    if (drop->type == Alter_drop::FOREIGN_KEY && same_column(name_text(drop->name), name))
      return true;
  return false;
}

Table_definition definition_without_rows(const Table_definition &now, const std::string &name, const TABLE *altered,
                                         const Alter_inplace_info *info)
{
  Table_definition then= describe(altered);
  then.version= now.version + 1;
  if (altered->part_info)
    then.altered_as= text_of(altered->s->tabledef_version);
  then.added= now.added;
  then.layouts= now.layouts;
  New_names names= renamed_columns(info->alter_info);
  for (Foreign_key_definition key : now.foreign_keys)
  {
    if (is_dropped_key(info->alter_info, key.name))
      continue;
    rename_columns(names, &key.columns);
    if (key.parent == name)
      rename_columns(names, &key.parent_columns);
    then.foreign_keys.push_back(key);
  }
  return then;
}

Table_definition altered_definition(const Table_definition &now, const std::string &name, const TABLE *table,
                                    TABLE *altered, const Alter_inplace_info *info)
{
  Table_definition then= definition_without_rows(now, name, altered, info);
  if (info->handler_flags & COLUMNS)
    lay_out(table, altered, info->alter_info, now, &then);
  return then;
}

void Redefinitions::add(const std::string &name, const Table_definition &definition, const std::vector<weir_new_name> *renamed,
                        const char *codec)
{
  m_all.push_back(
      {name, definition.encode(), definition.layouts ? definition.layouts->encode() : std::string(), renamed, codec});
}

const weir_redefinition *Redefinitions::data()
{
  m_views.clear();
  for (const One &one : m_all)
    m_views.push_back(weir_redefinition{bytes_of(one.name), bytes_of(one.definition),
                                        one.renamed ? one.renamed->data() : nullptr,
                                        one.renamed ? one.renamed->size() : 0, bytes_of(one.layouts),
                                        bytes_of(one.codec)});
  return m_views.data();
}

const KEY *primary_of(const TABLE *table)
{
  return table->s->primary_key == MAX_KEY ? nullptr : &table->key_info[table->s->primary_key];
}
