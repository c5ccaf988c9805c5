// ALTER TABLE without a copy: indexes are built from the rows while others read and write, and come into use, with the
// new definition, in one transaction of the engine. Names change, and foreign keys go, by the definition alone.
#include "ha_weir.h"

#include <algorithm>

#include "alter_columns.h"
#include "alter_stage.h"
#include "foreign_keys.h"
#include "backoff.h"
#include "variables.h"

namespace
{

const alter_table_operations ADDS= ALTER_ADD_INDEX | ALTER_ADD_NON_UNIQUE_NON_PRIM_INDEX | ALTER_ADD_UNIQUE_INDEX;
const alter_table_operations DROPS=
    ALTER_DROP_INDEX | ALTER_DROP_NON_UNIQUE_NON_PRIM_INDEX | ALTER_DROP_UNIQUE_INDEX;

// What comes along with those; indexes are found by name.
const alter_table_operations HARMLESS=
    ALTER_INDEX_ORDER | ALTER_INDEX_IGNORABILITY | ALTER_RENAME_INDEX | ALTER_DROP_FOREIGN_KEY | ALTER_PARTITIONED;

// A partition of a table that is altered.
struct Altered_part : public inplace_alter_handler_ctx
{
  explicit Altered_part(ha_weir *part) : handler(part) {}
  ha_weir *handler;
};

// All that are altered as one: the partitions of a table, or the table itself.
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

// What changes the engine's definition of the table and nothing else of it.
const alter_table_operations RENAMES= ALTER_COLUMN_NAME | ALTER_RENAME_INDEX;

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

// Makes the entries of new indexes from the rows as they are.
struct Builder
{
  Builder(TABLE *altered, const std::vector<const KEY *> &keys, const Table_definition &definition, ulonglong rows)
      : table(altered), stage(altered->in_use, rows, rows * keys.size(), true), primary(primary_of(altered) ? Key_codec(primary_of(altered)) : Key_codec()),
        row(altered, &primary, definition)
  {
    for (const KEY *key : keys)
    {
      is_unique.push_back(key->flags & HA_NOSAME);
      indexes.emplace_back(key);
      payloads.emplace_back(altered, &indexes.back(), &primary, row);
    }
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
  std::vector<Row_codec> payloads;
  std::vector<bool> covers;
  std::string key, payload;
  // The row made last, which the record points into: of a duplicate it is told when the engine's own bytes have gone.
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

// Columns that come, go, move or grow without a row being written.
const alter_table_operations STORED_COLUMNS= ALTER_ADD_STORED_BASE_COLUMN | ALTER_DROP_STORED_COLUMN |
                                             ALTER_STORED_COLUMN_ORDER | ALTER_COLUMN_TYPE_CHANGE_BY_ENGINE |
                                             ALTER_COLUMN_NULLABLE | ALTER_COLUMN_NOT_NULLABLE;
const alter_table_operations COLUMNS= STORED_COLUMNS | ALTER_ADD_VIRTUAL_COLUMN | ALTER_DROP_VIRTUAL_COLUMN |
                                      ALTER_COLUMN_ORDER | ALTER_VIRTUAL_COLUMN_ORDER | ALTER_RENAME_COLUMN |
                                      ALTER_COLUMN_INDEX_LENGTH;
// Those after which a snapshot from before may not be read as of the new table.
const alter_table_operations NULLS= ALTER_COLUMN_NULLABLE | ALTER_COLUMN_NOT_NULLABLE;

typedef std::vector<std::pair<std::string, std::string>> New_names;

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

// What the table's definition is to be, rows aside.
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
    // What that does to columns is told of them.
    info->used_fields&= ~(HA_CREATE_USED_CHARSET | HA_CREATE_USED_DEFAULT_CHARSET);
    if (type != ROW_TYPE_COMPRESSED && !info->key_block_size)
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

const KEY *primary_of(const TABLE *table)
{
  return table->s->primary_key == MAX_KEY ? nullptr : &table->key_info[table->s->primary_key];
}

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

ulonglong ha_weir::table_version() const
{
  Definitions::Pointer known= weir_definitions.find(m_name);
  return known ? known->version : table_definition_version(m_table);
}

void ha_weir::fail_alter(weir_code code) { print_error(fail(code), MYF(0)); }

// Says why an algorithm that the statement asks for cannot be had.
static bool refuses(Alter_inplace_info *info, const char *why)
{
  if (why && *why)
    info->unsupported_reason= why;
  return why != nullptr;
}

enum_alter_inplace_result ha_weir::check_if_supported_inplace_alter(TABLE *altered, Alter_inplace_info *info)
{
  if (table->part_info)
  {
    info->handler_ctx= new (ha_thd()->mem_root) Altered_part(this);
    if (!info->handler_ctx)
      return HA_ALTER_ERROR;
  }
  alter_table_operations wanted= info->handler_flags;
  if (wanted & ALTER_STORED_COLUMN_TYPE)
    info->unsupported_reason= my_get_err_msg(ER_ALTER_OPERATION_NOT_SUPPORTED_REASON_COLUMN_TYPE);
  if (!(wanted & (ADDS | DROPS)))
    return check_change_of_names(altered, info);
  Table_definition defined= definition();
  // What it is that cannot be, is told of the column then.
  if (thd_test_options(ha_thd(), OPTION_NO_FOREIGN_KEY_CHECKS) && changes_foreign_column(defined, table, m_name, info))
    return HA_ALTER_INPLACE_NOT_SUPPORTED;
  if (info->index_drop_count &&
      takes_needed_index(defined, definition_without_rows(defined, m_name, altered, info), m_name, info))
    return HA_ALTER_ERROR;
  if (table_share->tmp_table != NO_TMP_TABLE || changes_foreign_column(defined, table, m_name, info))
    return HA_ALTER_INPLACE_NOT_SUPPORTED;
  if (wanted & COLUMNS)
  {
    // Who writes while an index is built knows the columns as they were.
    if ((wanted & (ADDS | ALTER_VIRTUAL_GCOL_EXPR)) || info->error_if_not_empty ||
        refuses(info, why_not_as_they_are(table, altered, info->alter_info, defined)))
      return HA_ALTER_INPLACE_NOT_SUPPORTED;
    wanted&= ~(COLUMNS | ALTER_COLUMN_DEFAULT | ALTER_COLUMN_OPTION);
  }
  if ((wanted & ~(ADDS | DROPS | HARMLESS)) || (info->handler_flags & NULLS))
    return HA_ALTER_INPLACE_NOT_SUPPORTED;
  if (info->ignore || !keeps_primary(table, altered))
    return HA_ALTER_INPLACE_NOT_SUPPORTED;
  for (uint i= 0; i < info->index_add_count; i++)
  {
    const KEY *key= find_key(altered, info->key_info_buffer[info->index_add_buffer[i]].name.str);
    if (!key || key->algorithm == HA_KEY_ALG_LONG_HASH || is_unordered(key))
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

// Brings new names, and what has gone of the foreign keys, into the definitions of this table and of those who refer
// to it, all at once.
bool ha_weir::commit_change_of_names(TABLE *altered, Alter_inplace_info *info)
{
  std::vector<ha_weir *> parts= altered_parts(this, info);
  // What is left of an index speaks of columns by their places, and has a name that may be wanted.
  for (ha_weir *part : parts)
    if (part->drop_leftovers())
      return true;
  weir_code code;
  Backoff backoff(ha_thd());
  do
  {
    std::lock_guard<std::mutex> guard(weir_definitions.changing());
    std::map<std::string, Table_definition> changed;
    for (ha_weir *part : parts)
      changed[part->m_name]= altered_definition(part->definition(), part->m_name, table, altered, info);
    New_names names= renamed_columns(info->alter_info);
    for (const std::string &child : weir_definitions.speaking_of(m_name))
    {
      if (changed.count(child))
        continue;
      changed[child]= *weir_definitions.find(child);
      for (Foreign_key_definition &key : changed[child].foreign_keys)
        if (key.parent == m_name)
          rename_columns(names, &key.parent_columns);
    }
    std::vector<weir_new_name> renamed= renamed_indexes(table, info);
    std::vector<std::string> encoded, layouts;
    for (const std::pair<const std::string, Table_definition> &one : changed)
    {
      encoded.push_back(one.second.encode());
      layouts.push_back(one.second.layouts ? one.second.layouts->encode() : std::string());
    }
    auto is_own= [&](const std::string &name) {
      return std::any_of(parts.begin(), parts.end(), [&](ha_weir *part) { return part->m_name == name; });
    };
    std::vector<weir_redefinition> redefinitions;
    for (const std::pair<const std::string, Table_definition> &one : changed)
    {
      bool own= is_own(one.first);
      weir_redefinition redefinition= {bytes_of(one.first), bytes_of(encoded[redefinitions.size()]),
                                       own ? renamed.data() : nullptr, own ? renamed.size() : 0,
                                       bytes_of(layouts[redefinitions.size()])};
      redefinitions.push_back(redefinition);
    }
    code= info->handler_flags & NULLS
              ? weir_table_redefine_anew(weir_database, redefinitions.data(), redefinitions.size(), 0)
              : weir_table_redefine(weir_database, redefinitions.data(), redefinitions.size());
    if (code == WEIR_OK)
      for (const std::pair<const std::string, Table_definition> &one : changed)
        weir_definitions.put(one.first, one.second);
  } while (backoff.again(&code));
  if (code != WEIR_OK)
  {
    fail_alter(code);
    return true;
  }
  // Whoever opens it next finds the indexes by their new names.
  for (ha_weir *part : parts)
    part->m_share->forget(false);
  return false;
}

// Changes what the engine knows of the table's indexes, when those have ended who hold that. Says so if it fails.
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

// An ALTER that failed beside a transaction that did not end has left its indexes. Nobody else has the table in use.
bool ha_weir::drop_leftovers()
{
  return fails_to_change([this]() { return weir_table_abandon_indexes(weir_database, bytes_of(m_name), 0); });
}

// Nobody else has the table in use now, but for who is prepared and in no session, who is waited for. Nobody who writes from
// now on writes a NULL that is not noted.
bool ha_weir::watch_nulls(const Alter_inplace_info *info)
{
  if (fails_to_change([this]() { return weir_table_filled(weir_database, bytes_of(m_name), 0); }))
    return true;
  std::vector<uint> columns;
  for (const Field *field : not_null_columns(table, info->alter_info))
    columns.push_back(field->field_index);
  m_share->watch_nulls(columns);
  return false;
}

// Looks at all rows, as they are now, for NULLs where there are to be none. Says so if there is one.
bool ha_weir::finds_null(const Alter_inplace_info *info)
{
  weir_table *now= nullptr;
  weir_txn *txn= nullptr;
  weir_code code= m_share->open(&now);
  if (code == WEIR_OK)
    code= weir_txn_begin(weir_database, WEIR_READ_COMMITTED, 0, &txn);
  bool found= code != WEIR_OK;
  if (found)
    fail_alter(code);
  else
    found= finds_null_in(now, txn, not_null_columns(table, info->alter_info));
  if (txn)
    weir_txn_rollback(txn);
  weir_table_close(now);
  return found;
}

bool ha_weir::finds_null_in(weir_table *now, weir_txn *txn, const std::vector<Field *> &columns)
{
  weir_range all= {WEIR_ROWS, bytes_of(nullptr, 0), bytes_of(nullptr, 0), false, false, false, WEIR_LOCK_NONE};
  weir_scan *scan= nullptr;
  weir_code code= weir_scan_open(now, txn, &all, &scan);
  weir_found row= weir_found();
  bool stops= false;
  for (ulong nth= 1; code == WEIR_OK && !stops; nth++)
  {
    code= weir_scan_next(scan, txn, &row);
    if (code != WEIR_OK)
      break;
    uchar *record= table->record[0];
    if (decode(record, row.tree_key.data, row.tree_key.len, row.row.data, row.row.len))
      code= WEIR_DAMAGED;
    for (const Field *field : columns)
      if (code == WEIR_OK && !stops && field->is_null_in_record(record))
      {
        my_error(WARN_DATA_TRUNCATED, MYF(0), field->field_name.str, nth);
        stops= true;
      }
    if (!stops && nth % 1024 == 0 && is_killed(ha_thd()))
      code= WEIR_INTERRUPTED;
  }
  weir_scan_close(scan);
  if (code == WEIR_OK || code == WEIR_NOTHING)
    return stops;
  fail_alter(code);
  return true;
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

// Nobody else has the table in use now. All who come after the downgrade of the lock know the new indexes.
bool ha_weir::prepare_inplace_alter_table(TABLE *altered, Alter_inplace_info *info)
{
  if (info->handler_flags & ALTER_COLUMN_NOT_NULLABLE)
    return watch_nulls(info);
  std::vector<const KEY *> keys= added_keys(altered, info);
  if (keys.empty())
    return false;
  std::vector<std::string> definitions;
  for (const KEY *key : keys)
    definitions.push_back(Announced_key::describe(key));
  std::vector<weir_index> indexes;
  for (const KEY *key : keys)
  {
    weir_index index;
    index.name= bytes_of(reinterpret_cast<const uchar *>(key->name.str), key->name.length);
    index.unique= key->flags & HA_NOSAME;
    index.definition= bytes_of(definitions[indexes.size()]);
    indexes.push_back(index);
  }
  if (drop_leftovers())
    return true;
  return fails_to_change(
      [&]() { return weir_table_announce_indexes(weir_database, bytes_of(m_name), indexes.data(), indexes.size(), 0); });
}

bool ha_weir::inplace_alter_table(TABLE *altered, Alter_inplace_info *info)
{
  if (info->handler_flags & ALTER_COLUMN_NOT_NULLABLE)
    return finds_null(info);
  if (!(info->handler_flags & ADDS))
    return false;
  if (fill_indexes(altered, info))
    return true;
  std::vector<ha_weir *> parts= altered_parts(this, info);
  if (parts.back() != this)
    return false;
  // What has been written to other partitions since theirs were filled, so that little is left to do beside no writer.
  for (ha_weir *part : parts)
    if (part != this && part->fill_indexes(altered, info))
      return true;
  return false;
}

bool ha_weir::fill_indexes(TABLE *altered, Alter_inplace_info *info)
{
  std::vector<const KEY *> keys= added_keys(altered, info);
  Builder build(altered, keys, definition(), m_share->rows(m_table));
  for (const KEY *key : keys)
    build.covers.push_back(index_covers(altered->s, key, 0, key->user_defined_key_parts - 1));
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

// Drops what was announced, when those who write to the table now have ended.
void ha_weir::abandon_indexes()
{
  const ulonglong wait_millis= 1000;
  if (weir_table_abandon_indexes(weir_database, bytes_of(m_name), wait_millis) != WEIR_OK)
    sql_print_warning("Weir: what ALTER has made of indexes of %s stays until it is altered, or the next start: %s",
                      m_name.c_str(), weir_message());
  m_share->forget(false);
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
    if (!of_names && info->index_add_count)
      abandon_indexes();
    return false;
  }
  if (info->handler_flags & ALTER_COLUMN_NOT_NULLABLE)
    for (ha_weir *part : parts)
      if (part->m_share->has_seen_null())
      {
        my_error(WARN_DATA_TRUNCATED, MYF(0), not_null_columns(table, info->alter_info)[0]->field_name.str, 1UL);
        return true;
      }
  bool failed= of_names ? (info->handler_flags & (RENAMES | COLUMNS | ALTER_DROP_FOREIGN_KEY)) &&
                              commit_change_of_names(altered, info)
                        : commit_indexes(parts, altered, info);
  if (!failed && of_names && (info->create_info->used_fields & HA_CREATE_USED_AUTO))
    if (int error= begin_numbers_at(info->create_info->auto_increment_value))
    {
      print_error(error, MYF(0));
      failed= true;
    }
  // All partitions are done, so that the server need not ask the others.
  info->group_commit_ctx= nullptr;
  return failed;
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
    std::vector<std::string> encoded, layouts;
    for (ha_weir *part : parts)
    {
      then.push_back(altered_definition(part->definition(), part->m_name, table, altered, info));
      encoded.push_back(then.back().encode());
      layouts.push_back(then.back().layouts ? then.back().layouts->encode() : std::string());
    }
    std::vector<weir_redefinition> redefinitions;
    for (size_t i= 0; i < parts.size(); i++)
      redefinitions.push_back(
          weir_redefinition{bytes_of(parts[i]->m_name), bytes_of(encoded[i]), renamed.data(), renamed.size(),
                            bytes_of(layouts[i])});
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
