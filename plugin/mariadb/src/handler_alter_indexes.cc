// Indexes that are built from the rows while others read and write, and come into use in one transaction of the engine.
#include "ha_weir.h"

#include "alter_columns.h"
#include "alter_definition.h"
#include "alter_stage.h"
#include "backoff.h"
#include "encryption.h"
#include "foreign_keys.h"
#include "variables.h"

namespace
{

// Makes the entries of new indexes from the rows as they are.
struct Builder
{
  // `made`: of FULLTEXT keys, what the engine keeps of them.
  Builder(TABLE *altered, const std::vector<const KEY *> &keys, const std::vector<std::string> &made,
          const Table_definition &definition, ulonglong rows)
      : table(altered), stage(altered->in_use, rows, rows * keys.size(), true), primary(primary_of(altered) ? Key_codec(primary_of(altered)) : Key_codec()),
        row(altered, &primary, definition)
  {
    for (const KEY *key : keys)
    {
      is_unique.push_back(key->flags & HA_NOSAME);
      words.emplace_back();
      spaces.emplace_back(is_spatial(key) ? new Spatial_codec(altered->field[key->key_part[0].fieldnr - 1]) : nullptr);
      covers.push_back(!has_several_entries(key) && index_covers(altered->s, key, 0, key->user_defined_key_parts - 1));
      if (has_several_entries(key))
      {
        indexes.emplace_back();
        payloads.emplace_back();
        if (is_fulltext(key))
          add_words(key, made[words.size() - 1]);
        continue;
      }
      indexes.emplace_back(key);
      payloads.emplace_back(altered, &indexes.back(), &primary, row);
    }
  }

  void add_words(const KEY *key, const std::string &definition)
  {
    Fulltext_definition how;
    std::vector<Field *> columns;
    for (uint column : column_numbers(key))
      columns.push_back(table->field[column - 1]);
    if (how.decode(definition))
      words.back()= std::make_shared<Fulltext_codec>(columns, how);
  }

  bool decode_row(size_t nth, weir_bytes bytes, uchar *record)
  {
    if (!is_unique[nth] || !table->s->blob_fields)
      return row.decode(bytes.data, bytes.len, record);
    last.assign(reinterpret_cast<const char *>(bytes.data), bytes.len);
    return row.decode(reinterpret_cast<const uchar *>(last.data()), last.size(), record);
  }

  TABLE *table;
  Alter_stage stage;
  Key_codec primary;
  Row_codec row;
  std::vector<bool> is_unique;
  std::vector<Key_codec> indexes;
  // Of FULLTEXT keys; nullptr: of others.
  std::vector<std::shared_ptr<const Fulltext_codec>> words;
  // Of SPATIAL keys.
  std::vector<std::unique_ptr<const Spatial_codec>> spaces;
  std::vector<Row_codec> payloads;
  std::vector<bool> covers;
  std::string key, payload;
  // The row made last, which the record points into: a duplicate is reported when the engine's own bytes have gone.
  std::string last;
};

int make_new_entry(void *context, size_t nth, weir_bytes key, weir_bytes row, weir_entry *entry)
{
  Builder *build= static_cast<Builder *>(context);
  build->stage.has_read();
  uchar *record= build->table->record[0];
  if ((primary_of(build->table) && !build->primary.decode(key.data, key.len, record)) ||
      !build->decode_row(nth, row, record))
    return 1;
  build->key.clear();
  build->payload.clear();
  entry->has_null= build->indexes[nth].encode_record(record, &build->key);
  if (build->words[nth])
    build->words[nth]->encode_record(record, &build->payload);
  if (build->spaces[nth])
    build->spaces[nth]->encode_record(record, &build->payload);
  if (build->covers[nth])
    build->payloads[nth].encode(record, &build->payload);
  entry->key= bytes_of(build->key);
  entry->payload= bytes_of(build->payload);
  return 0;
}

bool is_build_wanted(void *context)
{
  Builder *build= static_cast<Builder *>(context);
  build->stage.step();
  return !is_killed(build->table->in_use);
}

} // namespace

bool ha_weir::announce_indexes(TABLE *altered, const Alter_inplace_info *info)
{
  std::vector<const KEY *> keys= added_keys(altered, info);
  if (keys.empty())
    return false;
  std::vector<std::string> definitions;
  for (const KEY *key : keys)
  {
    if (is_fulltext(key))
    {
      Fulltext_definition made= Fulltext_definition::of_settings(ha_thd());
      made.columns= column_numbers(key);
      definitions.push_back(made.encode());
    }
    else if (is_spatial(key))
    {
      Spatial_definition made;
      made.column= key->key_part[0].fieldnr;
      definitions.push_back(made.encode());
    }
    else
      definitions.push_back(Announced_key::describe(key));
  }
  std::vector<weir_index> indexes;
  for (const KEY *key : keys)
  {
    weir_index index;
    index.name= bytes_of(reinterpret_cast<const uchar *>(key->name.str), key->name.length);
    index.unique= key->flags & HA_NOSAME;
    index.several= has_several_entries(key);
    index.definition= bytes_of(definitions[indexes.size()]);
    indexes.push_back(index);
  }
  if (drop_leftovers())
    return true;
  weir_bytes codec= bytes_of(weir_new_codec(table, altered, place_of(this, info)));
  return fails_to_change(
      [&]() { return weir_table_announce_indexes(weir_database, bytes_of(m_name), indexes.data(), indexes.size(), codec, 0); });
}

bool ha_weir::fill_indexes(TABLE *altered, Alter_inplace_info *info)
{
  std::vector<const KEY *> keys= added_keys(altered, info);
  std::vector<std::string> made;
  for (const KEY *key : keys)
    made.push_back(is_fulltext(key) ? index_definition(key) : std::string());
  Builder build(altered, keys, made, definition(), m_share->rows(m_table));
  for (size_t i= 0; i < keys.size(); i++)
    if (is_fulltext(keys[i]) && !build.words[i])
    {
      fail_alter(WEIR_CHANGED);
      return true;
    }
  int32_t duplicate= 0;
  weir_code code= weir_table_fill_indexes(weir_database, bytes_of(m_name), make_new_entry, is_build_wanted, &build,
                                          &duplicate, weir_lock_wait_millis(ha_thd()));
  if (code == WEIR_OK)
    return false;
  if (code == WEIR_DUPLICATE)
    print_keydup_error(altered, const_cast<KEY *>(keys[duplicate]), MYF(0));
  else
    fail_alter(code);
  return true;
}

// Drops what was announced, when the transactions that write to the table now have ended.
void ha_weir::abandon_indexes()
{
  const ulonglong wait_millis= 1000;
  if (weir_table_abandon_indexes(weir_database, bytes_of(m_name), wait_millis) != WEIR_OK)
    sql_print_warning("Weir: what ALTER has made of indexes of %s stays until it is altered, or the next start: %s",
                      m_name.c_str(), weir_message());
  m_share->forget(false);
}

// Brings what was announced into use, and takes what is dropped out of it.
bool ha_weir::commit_indexes(const std::vector<ha_weir *> &parts, TABLE *altered, Alter_inplace_info *info)
{
  std::vector<weir_bytes> drops;
  for (uint i= 0; i < info->index_drop_count; i++)
  {
    const LEX_CSTRING &name= info->index_drop_buffer[i]->name;
    drops.push_back(bytes_of(reinterpret_cast<const uchar *>(name.str), name.length));
  }
  std::vector<weir_new_name> renamed= renamed_indexes(table, info);
  int32_t duplicate= 0;
  weir_code code= WEIR_OK;
  Backoff backoff(ha_thd());
  do
  {
    std::lock_guard<std::mutex> guard(weir_definitions.changing());
    std::vector<Table_definition> then;
    Redefinitions redefinitions;
    for (ha_weir *part : parts)
    {
      then.push_back(altered_definition(part->definition(), part->m_name, table, altered, info));
      redefinitions.add(part->m_name, then.back(), &renamed, weir_new_codec(table, altered, then.size() - 1));
    }
    // What an ALTER that failed may have left half filled must not come into use with a drop.
    code= WEIR_OK;
    for (size_t i= 0; !info->index_add_count && i < parts.size() && code == WEIR_OK; i++)
      code= weir_table_abandon_indexes(weir_database, bytes_of(parts[i]->m_name), 0);
    if (code == WEIR_OK)
      code= weir_table_finish_indexes(weir_database, redefinitions.data(), redefinitions.size(), drops.data(),
                                      drops.size(), &duplicate, 0);
    for (size_t i= 0; i < parts.size() && code == WEIR_OK; i++)
      weir_definitions.put(parts[i]->m_name, then[i]);
  } while (backoff.again(&code));
  if (code == WEIR_OK)
    return false;
  if (code == WEIR_DUPLICATE)
    my_error(ER_DUP_UNKNOWN_IN_INDEX, MYF(0), added_keys(altered, info)[duplicate]->name.str);
  else
    fail_alter(code);
  return true;
}
