#include "ha_weir.h"

namespace
{

// The engine does not enforce foreign keys; to take one and drop it silently would be worse than to refuse.
bool has_foreign_key(THD *thd)
{
  List_iterator_fast<Key> keys(thd->lex->alter_info.key_list);
  while (Key *key= keys++)
    if (key->type == Key::FOREIGN_KEY)
      return true;
  return false;
}

} // namespace

int ha_weir::create(const char *name, TABLE *form, HA_CREATE_INFO *info)
{
  THD *thd= ha_thd();
  if (has_foreign_key(thd))
  {
    my_error(ER_CHECK_NOT_IMPLEMENTED, MYF(0), "FOREIGN KEY with ENGINE=Weir");
    return HA_WRONG_CREATE_OPTION;
  }
  std::vector<weir_index> indexes;
  TABLE_SHARE *share= form->s;
  for (uint i= 0; i < share->keys; i++)
  {
    if (i == share->primary_key)
      continue;
    const KEY *key= &form->key_info[i];
    weir_index index;
    index.name= bytes_of(reinterpret_cast<const uchar *>(key->name.str), key->name.length);
    index.unique= (key->flags & HA_NOSAME) && key->algorithm != HA_KEY_ALG_LONG_HASH;
    index.definition= bytes_of(nullptr, 0);
    indexes.push_back(index);
  }
  std::string table= table_name_of(name);
  std::string definition= table_definition(1);
  weir_code code= weir_table_create(weir_database, bytes_of(table), bytes_of(definition), indexes.data(),
                                    indexes.size());
  if (code != WEIR_OK)
    return fail(code);
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
  std::string table= table_name_of(name);
  weir_code code= weir_table_drop(weir_database, bytes_of(table));
  if (code == WEIR_NOTHING)
    return HA_ERR_NO_SUCH_TABLE;
  return code == WEIR_OK ? 0 : fail(code);
}

int ha_weir::rename_table(const char *from, const char *to)
{
  std::string old_name= table_name_of(from), new_name= table_name_of(to);
  weir_code code= weir_table_rename(weir_database, bytes_of(old_name), bytes_of(new_name));
  if (code == WEIR_NOTHING)
    return HA_ERR_NO_SUCH_TABLE;
  return code == WEIR_OK ? 0 : fail(code);
}

int ha_weir::truncate()
{
  close_scan();
  weir_code code= weir_table_truncate(weir_database, bytes_of(m_name));
  if (code != WEIR_OK)
    return fail(code);
  m_share->forget(true);
  weir_table_close(m_table);
  m_table= nullptr;
  code= m_share->open(&m_table);
  if (code == WEIR_OK)
    code= weir_table_reset_numbers(m_table, 1);
  return code == WEIR_OK ? 0 : fail(code);
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
