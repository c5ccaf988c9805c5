// A table whose rows are written anew while others read and write it: FORCE and OPTIMIZE, another primary key, columns
// together with indexes, indexes of virtual columns. Writers only note which rows they change; the engine asks for what
// becomes of each (weir_table_fill_rewrite).
#include "ha_weir.h"

#include <deque>

#include "alter_columns.h"
#include "alter_definition.h"
#include "alter_stage.h"
#include "backoff.h"
#include "encryption.h"
#include "foreign_keys.h"
#include "variables.h"

namespace
{

// Keys of the new table but for the primary one, in their order.
std::vector<const KEY *> keys_besides_primary(const TABLE *altered)
{
  std::vector<const KEY *> keys;
  for (uint i= 0; i < altered->s->keys; i++)
    if (i != altered->s->primary_key)
      keys.push_back(&altered->key_info[i]);
  return keys;
}

// The definition of a table none of whose rows is of an older layout.
Table_definition definition_anew(const Table_definition &now, const std::string &name, const TABLE *altered,
                                 const Alter_inplace_info *info)
{
  Table_definition then= definition_without_rows(now, name, altered, info);
  then.added.clear();
  then.layouts= nullptr;
  return then;
}

// What becomes of rows, of the table or of a partition of it.
class Row_maker
{
public:
  Row_maker(ha_weir *part, TABLE *table, TABLE *altered, const Alter_info *said, const Table_definition &then)
      : m_part(part), m_altered(altered), m_record(table->record[0]), m_rows(0),
        m_primary(primary_of(altered) ? Key_codec(primary_of(altered)) : Key_codec()), m_row(altered, &m_primary, then)
  {
    for (const KEY *key : keys_besides_primary(altered))
    {
      m_keys.emplace_back(key);
      m_payloads.emplace_back(altered, &m_keys.back(), &m_primary, m_row);
      m_covers.push_back(index_covers(altered->s, key, 0, key->user_defined_key_parts - 1));
    }
    m_entry_keys.resize(m_keys.size());
    m_entry_payloads.resize(m_keys.size());
    m_entries.resize(m_keys.size());
    m_columns= columns_kept(altered, said);
    // Its handler, which has nothing open, gets no signal.
    altered->column_bitmaps_set_no_signal(&altered->s->all_set, &altered->s->all_set);
    for (Field *column : columns_that_come(altered, said))
      take_value(column);
  }

  // False: the row is damaged, a virtual column cannot be worked out, or, which is reported, there is a NULL where there may be none.
  bool make(weir_bytes key, weir_bytes row, weir_row *made)
  {
    m_rows++;
    if (m_part->decode_for_rewrite(m_record, key, row))
      return false;
    for (const std::pair<Field *, Field *> &column : m_columns)
    {
      if (column.first->is_real_null() && !column.second->real_maybe_null())
      {
        my_error(WARN_DATA_TRUNCATED, MYF(0), column.second->field_name.str, m_rows);
        return false;
      }
      if (column.first->is_real_null())
        column.second->set_null();
      else
      {
        column.second->set_notnull();
        field_conv(column.second, column.first);
      }
    }
    if (m_altered->vfield && m_altered->update_virtual_fields(m_altered->file, VCOL_UPDATE_FOR_WRITE))
      return false;
    encode(key, made);
    return true;
  }

private:
  void encode(weir_bytes key, weir_row *made)
  {
    const uchar *record= m_altered->record[0];
    m_key.clear();
    if (primary_of(m_altered))
      m_primary.encode_record(record, &m_key);
    else
      m_key.assign(reinterpret_cast<const char *>(key.data), key.len);
    m_bytes.clear();
    m_row.encode(record, &m_bytes);
    for (size_t i= 0; i < m_keys.size(); i++)
    {
      m_entry_keys[i].clear();
      m_entry_payloads[i].clear();
      m_entries[i].has_null= m_keys[i].encode_record(record, &m_entry_keys[i]);
      if (m_covers[i])
        m_payloads[i].encode(record, &m_entry_payloads[i]);
      m_entries[i].key= bytes_of(m_entry_keys[i]);
      m_entries[i].payload= bytes_of(m_entry_payloads[i]);
    }
    made->key= bytes_of(m_key);
    made->row= bytes_of(m_bytes);
    made->entries= m_entries.data();
    made->entry_count= m_entries.size();
  }

  ha_weir *m_part;
  TABLE *m_altered;
  uchar *m_record;
  ulong m_rows;
  Key_codec m_primary;
  Row_codec m_row;
  // Payload codecs are made with a pointer to the key's.
  std::deque<Key_codec> m_keys;
  std::deque<Row_codec> m_payloads;
  std::vector<bool> m_covers;
  std::vector<std::pair<Field *, Field *>> m_columns;
  std::string m_key, m_bytes;
  std::vector<std::string> m_entry_keys, m_entry_payloads;
  std::vector<weir_entry> m_entries;
};

struct Makers
{
  Makers(THD *session, ulonglong rows, ulonglong entries, bool reads)
      : thd(session), stage(session, rows, entries, reads)
  {
  }
  THD *thd;
  Alter_stage stage;
  std::vector<std::unique_ptr<Row_maker>> parts;
};

int make_row(void *context, size_t nth, weir_bytes key, weir_bytes row, weir_row *made)
{
  Makers *makers= static_cast<Makers *>(context);
  makers->stage.has_read();
  return !makers->parts[nth]->make(key, row, made);
}

bool is_rewrite_wanted(void *context)
{
  Makers *makers= static_cast<Makers *>(context);
  makers->stage.step();
  return !is_killed(makers->thd);
}

const KEY *key_at(TABLE *altered, int32_t place)
{
  return place == WEIR_ROWS ? primary_of(altered) : keys_besides_primary(altered)[place];
}

} // namespace

int ha_weir::decode_for_rewrite(uchar *record, weir_bytes key, weir_bytes row)
{
  return decode(record, key.data, key.len, row.data, row.len);
}

bool ha_weir::announce_rewrite(TABLE *altered, const Alter_inplace_info *info)
{
  std::vector<weir_index> indexes;
  for (const KEY *key : keys_besides_primary(altered))
  {
    weir_index index;
    index.name= bytes_of(reinterpret_cast<const uchar *>(key->name.str), key->name.length);
    index.unique= key->flags & HA_NOSAME;
    index.several= false;
    index.definition= bytes_of(nullptr, 0);
    indexes.push_back(index);
  }
  if (drop_leftovers())
    return true;
  weir_bytes codec= bytes_of(weir_new_codec(table, altered, place_of(this, info)));
  return fails_to_change(
      [&]() { return weir_table_announce_rewrite(weir_database, bytes_of(m_name), indexes.data(), indexes.size(), codec, 0); });
}

// Says which key it was of which two rows have the same.
bool ha_weir::fail_rewrite(weir_code code, TABLE *altered, int32_t duplicate)
{
  if (code == WEIR_DUPLICATE)
    print_keydup_error(altered, const_cast<KEY *>(key_at(altered, duplicate)), MYF(0));
  // What a virtual column is worked out from may have been reported already.
  else if (!ha_thd()->is_error())
    fail_alter(code);
  return true;
}

bool ha_weir::fill_rewrite(TABLE *altered, const Alter_inplace_info *info)
{
  const Table_definition now= definition();
  ulonglong rows= m_share->rows(m_table);
  Makers makers(ha_thd(), rows, rows * altered->s->keys, true);
  makers.parts.emplace_back(
      new Row_maker(this, table, altered, info->alter_info, definition_anew(now, m_name, altered, info)));
  int32_t duplicate= WEIR_ROWS;
  weir_code code= weir_table_fill_rewrite(weir_database, bytes_of(m_name), keeps_order(table, altered, info->alter_info),
                                          make_row, is_rewrite_wanted, &makers, &duplicate,
                                          weir_lock_wait_millis(ha_thd()));
  return code != WEIR_OK && fail_rewrite(code, altered, duplicate);
}

bool ha_weir::commit_rewrite(const std::vector<ha_weir *> &parts, TABLE *altered, const Alter_inplace_info *info)
{
  int32_t duplicate= WEIR_ROWS;
  weir_code code= WEIR_OK;
  Backoff backoff(ha_thd());
  do
  {
    std::lock_guard<std::mutex> guard(weir_definitions.changing());
    Makers makers(ha_thd(), 0, 0, false);
    std::vector<Table_definition> then;
    Redefinitions redefinitions;
    for (ha_weir *part : parts)
    {
      then.push_back(definition_anew(part->definition(), part->m_name, altered, info));
      redefinitions.add(part->m_name, then.back(), nullptr, weir_new_codec(table, altered, then.size() - 1));
      makers.parts.emplace_back(new Row_maker(part, table, altered, info->alter_info, then.back()));
    }
    code= weir_table_finish_rewrite(weir_database, redefinitions.data(), redefinitions.size(), make_row, &makers, &duplicate, 0);
    for (size_t i= 0; i < parts.size() && code == WEIR_OK; i++)
      weir_definitions.put(parts[i]->m_name, then[i]);
  } while (backoff.again(&code));
  if (code != WEIR_OK)
    return fail_rewrite(code, altered, duplicate);
  for (ha_weir *part : parts)
    part->m_share->forget(false);
  return false;
}
