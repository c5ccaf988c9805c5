// ALTER TABLE without a copy: indexes are built from the rows while others read, and come into use, with the new
// definition, in one transaction of the engine.
#include "ha_weir.h"

namespace
{

const alter_table_operations ADDS= ALTER_ADD_INDEX | ALTER_ADD_NON_UNIQUE_NON_PRIM_INDEX | ALTER_ADD_UNIQUE_INDEX;
const alter_table_operations DROPS=
    ALTER_DROP_INDEX | ALTER_DROP_NON_UNIQUE_NON_PRIM_INDEX | ALTER_DROP_UNIQUE_INDEX;

// What comes along with those; indexes are found by name.
const alter_table_operations HARMLESS= ALTER_INDEX_ORDER | ALTER_INDEX_IGNORABILITY;

const KEY *find_key(const TABLE *table, const char *name)
{
  for (uint i= 0; i < table->s->keys; i++)
    if (!my_strcasecmp(system_charset_info, table->key_info[i].name.str, name))
      return &table->key_info[i];
  return nullptr;
}

const KEY *primary_of(const TABLE *table)
{
  return table->s->primary_key == MAX_KEY ? nullptr : &table->key_info[table->s->primary_key];
}

// Makes the entries of new indexes from the rows as they are.
struct Builder
{
  Builder(TABLE *altered, const std::vector<const KEY *> &keys)
      : table(altered), primary(primary_of(altered) ? Key_codec(primary_of(altered)) : Key_codec()),
        row(altered, &primary)
  {
    for (const KEY *key : keys)
    {
      indexes.emplace_back(key);
      payloads.emplace_back(altered, &indexes.back(), &primary);
    }
  }

  TABLE *table;
  Key_codec primary;
  Row_codec row;
  std::vector<Key_codec> indexes;
  std::vector<Row_codec> payloads;
  std::vector<bool> covers;
  std::string key, payload;
};

int make_new_entry(void *context, size_t nth, weir_bytes key, weir_bytes row, weir_entry *entry)
{
  Builder *build= static_cast<Builder *>(context);
  uchar *record= build->table->record[0];
  if (thd_killed(build->table->in_use) ||
      (primary_of(build->table) && !build->primary.decode(key.data, key.len, record)) ||
      !build->row.decode(row.data, row.len, record))
    return 1;
  build->key.clear();
  build->payload.clear();
  entry->has_null= build->indexes[nth].encode_record(record, &build->key);
  if (build->covers[nth])
    build->payloads[nth].encode(record, &build->payload);
  entry->key= bytes_of(build->key);
  entry->payload= bytes_of(build->payload);
  return 0;
}

} // namespace

ulonglong ha_weir::table_version() const { return table_definition_version(m_table); }

void ha_weir::fail_alter(weir_code code)
{
  int error= fail(code);
  if (code != WEIR_INPUT || !thd_killed(ha_thd()))
    print_error(error, MYF(0));
}

enum_alter_inplace_result ha_weir::check_if_supported_inplace_alter(TABLE *altered, Alter_inplace_info *info)
{
  alter_table_operations wanted= info->handler_flags;
  if (!(wanted & (ADDS | DROPS)) || (wanted & ~(ADDS | DROPS | HARMLESS)))
    return handler::check_if_supported_inplace_alter(altered, info);
  if (info->ignore || table->part_info || table_share->tmp_table != NO_TMP_TABLE)
    return HA_ALTER_INPLACE_NOT_SUPPORTED;
  // Rows lie by their primary key, which may also be the first unique key without NULLs.
  const KEY *now= primary_of(table), *then= primary_of(altered);
  if (!now != !then || (now && my_strcasecmp(system_charset_info, now->name.str, then->name.str)))
    return HA_ALTER_INPLACE_NOT_SUPPORTED;
  for (uint i= 0; i < info->index_add_count; i++)
  {
    const KEY *key= find_key(altered, info->key_info_buffer[info->index_add_buffer[i]].name.str);
    if (!key || key->algorithm == HA_KEY_ALG_LONG_HASH || (key->flags & (HA_FULLTEXT | HA_SPATIAL)))
      return HA_ALTER_INPLACE_NOT_SUPPORTED;
    for (uint part= 0; part < key->user_defined_key_parts; part++)
      if (key->key_part[part].field->vcol_info)
        return HA_ALTER_INPLACE_NOT_SUPPORTED;
    // A key that goes and comes with the same name is not told apart by it.
    for (uint d= 0; d < info->index_drop_count; d++)
      if (!my_strcasecmp(system_charset_info, info->index_drop_buffer[d]->name.str, key->name.str))
        return HA_ALTER_INPLACE_NOT_SUPPORTED;
  }
  return info->index_add_count ? HA_ALTER_INPLACE_NOCOPY_LOCK : HA_ALTER_INPLACE_NOCOPY_NO_LOCK;
}

bool ha_weir::inplace_alter_table(TABLE *altered, Alter_inplace_info *info)
{
  if (!(info->handler_flags & ADDS) || !info->index_add_count)
    return false;
  std::vector<const KEY *> keys;
  std::vector<weir_index> indexes;
  std::vector<bool> covers;
  for (uint i= 0; i < info->index_add_count; i++)
  {
    const KEY *key= find_key(altered, info->key_info_buffer[info->index_add_buffer[i]].name.str);
    keys.push_back(key);
    weir_index index;
    index.name= bytes_of(reinterpret_cast<const uchar *>(key->name.str), key->name.length);
    index.unique= key->flags & HA_NOSAME;
    index.definition= bytes_of(nullptr, 0);
    indexes.push_back(index);
    covers.push_back(index_covers(altered->s, key, 0, key->user_defined_key_parts - 1));
  }
  Builder build(altered, keys);
  build.covers= covers;
  int32_t duplicate= 0;
  weir_code code= weir_table_build_indexes(weir_database, bytes_of(m_name), indexes.data(), indexes.size(),
                                           make_new_entry, &build, &duplicate);
  if (code == WEIR_OK)
    return false;
  if (code == WEIR_DUPLICATE)
  {
    // The row that an entry was made of last is the one that met another.
    print_keydup_error(altered, const_cast<KEY *>(keys[duplicate]), MYF(0));
  }
  else
    fail_alter(code);
  return true;
}

bool ha_weir::commit_inplace_alter_table(TABLE *, Alter_inplace_info *info, bool commit)
{
  if (!(info->handler_flags & (ADDS | DROPS)))
    return false;
  if (!commit)
  {
    weir_table_abandon_indexes(weir_database, bytes_of(m_name));
    return false;
  }
  std::vector<weir_bytes> drops;
  for (uint i= 0; i < info->index_drop_count; i++)
  {
    const LEX_CSTRING &name= info->index_drop_buffer[i]->name;
    drops.push_back(bytes_of(reinterpret_cast<const uchar *>(name.str), name.length));
  }
  std::string definition= table_definition(table_version() + 1);
  weir_code code= weir_table_finish_indexes(weir_database, bytes_of(m_name), bytes_of(definition), drops.data(),
                                            drops.size());
  if (code == WEIR_OK)
    return false;
  fail_alter(code);
  weir_table_abandon_indexes(weir_database, bytes_of(m_name));
  return true;
}
