#include "ha_weir.h"

#include <sys/stat.h>

#include "statistics.h"

// The server weighs reads by pages, and what it prefers is known from InnoDB's: so costs are reported in pages of that size,
// filled with rows of InnoDB's form. On the scale of one page or two, all depends on it.
static const ulonglong PAGE_BYTES= 16384, PAGE_ROWS_BYTES= PAGE_BYTES / 16 * 15;

// A row's head; its writer, and where its older version is; a hidden key.
static const ulonglong ROW_HEAD_BYTES= 5, ROW_WRITER_BYTES= 13, ROW_KEY_BYTES= 6;

// How long texts are is not known.
static const ulonglong BLOB_BYTES= 200;

// How many bytes of a column's values vary, about; 0: they are all of one length.
static ulonglong varying_bytes(const Field *field)
{
  if (field->flags & BLOB_FLAG)
    return BLOB_BYTES;
  if (field->real_type() == MYSQL_TYPE_VARCHAR)
    return field->char_length() / 2 + 1;
  // Padded, but characters may have several bytes.
  return field->real_type() == MYSQL_TYPE_STRING && field->charset()->mbmaxlen > 1 ? field->char_length() : 0;
}

// About how many bytes a row takes, and at least.
void ha_weir::set_row_bytes()
{
  ulonglong varying= 0, nullable= 0;
  m_row_bytes_min= ROW_HEAD_BYTES + ROW_WRITER_BYTES + (has_primary() ? 0 : ROW_KEY_BYTES);
  for (Field **field= table_share->field; *field; field++)
  {
    if (!(*field)->stored_in_db())
      continue;
    nullable+= (*field)->real_maybe_null();
    ulonglong bytes= varying_bytes(*field);
    varying+= bytes;
    // Of what varies, its length.
    m_row_bytes_min+= !bytes ? (*field)->pack_length() : (*field)->field_length < 128 ? 1 : 2;
  }
  m_row_bytes_min+= (nullable + 7) / 8;
  m_row_bytes= m_row_bytes_min + varying;
}

// Reports to the optimizer how many rows it may expect of a key.
void ha_weir::set_rows_per_key()
{
  ulonglong rows= m_share->rows(m_table);
  Weir_share::Rows_per_key known= m_share->rows_per_key(rows);
  if (!known)
  {
    std::shared_ptr<std::vector<std::vector<double>>> found= std::make_shared<std::vector<std::vector<double>>>();
    for (const Weir_index &index : m_indexes)
      found->push_back(!index.is_ordered() ? std::vector<double>() : rows_per_key(m_table, index.place, index.search.stored()));
    known= found;
    m_share->set_rows_per_key(known, rows);
  }
  for (uint i= 0; i < table_share->keys && i < known->size(); i++)
  {
    KEY *key= &table->key_info[i];
    const std::vector<double> &found= (*known)[i];
    if (!m_indexes[i].is_ordered())
      continue;
    for (uint part= 0; key->rec_per_key && part < key->ext_key_parts; part++)
    {
      size_t place= m_indexes[i].search.stored_place(part);
      bool one= part + 1 == key->ext_key_parts && (m_indexes[i].unique || part >= key->user_defined_key_parts);
      double about= place < found.size() && !one ? found[place] / ROWS_PER_KEY_DIVISOR : 1;
      key->rec_per_key[part]= std::max<ulong>(static_cast<ulong>(about), 1);
    }
  }
}

// About how large the table is, and what of the database's file is free, as InnoDB shows it of a file for all tables.
void ha_weir::set_sizes()
{
  uint64_t page_bytes, free_bytes;
  if (weir_space(weir_database, &page_bytes, &free_bytes) != WEIR_OK)
    return;
  ulonglong rows= 0, entries= 0;
  auto add= [&](int32_t place) {
    weir_size size;
    if (weir_table_size(m_table, place, &size) == WEIR_OK)
      (place == WEIR_ROWS ? rows : entries)+= (size.leaf_pages + size.inner_pages + size.value_pages) * page_bytes;
  };
  add(WEIR_ROWS);
  for (const Weir_index &index : m_indexes)
    if (index.place != WEIR_ROWS)
      add(index.place);
  stats.data_file_length= rows;
  stats.mean_rec_length= stats.records ? static_cast<ulong>(rows / stats.records) : 0;
  stats.index_file_length= entries;
  // The server adds up what partitions report.
  stats.delete_length= is_partition() ? 0 : free_bytes;
}

int ha_weir::info(uint flag)
{
  if (flag & HA_STATUS_VARIABLE)
  {
    ulonglong rows= m_share->rows(m_table);
    // The optimizer takes 0 for certain. Which partitions of history are in use is decided by it.
    stats.records= rows ? rows : (flag & (HA_STATUS_TIME | HA_STATUS_OPEN) ? 0 : 1);
    stats.deleted= 0;
    // With a root above the leaves.
    ulonglong leaves= stats.records * m_row_bytes / PAGE_ROWS_BYTES + 1;
    stats.data_file_length= (leaves > 1 ? leaves + 1 : 1) * PAGE_BYTES;
    stats.mean_rec_length= stats.records ? static_cast<ulong>(stats.data_file_length / stats.records) : 0;
    stats.index_file_length= 0;
    // For people (the information schema, SHOW TABLE STATUS): what there is.
    if (flag & HA_STATUS_VARIABLE_EXTRA)
      set_sizes();
  }
  if (flag & HA_STATUS_TIME)
  {
    // As InnoDB: when its definition was written.
    struct stat file;
    std::string definition= std::string(table_share->normalized_path.str) + reg_ext;
    stats.create_time= stat(definition.c_str(), &file) ? 0 : file.st_ctime;
  }
  if (flag & HA_STATUS_CONST)
  {
    stats.block_size= PAGE_BYTES;
    set_rows_per_key();
  }
  if (flag & HA_STATUS_ERRKEY)
  {
    errkey= m_duplicate;
    // A statement that moves a row to another partition asks that in which it was, which has met none, or an older one.
    uint of_all= is_partition() && m_trx ? m_trx->duplicate_of(table_share) : MAX_KEY;
    if (of_all != MAX_KEY)
      errkey= of_all;
  }
  if ((flag & HA_STATUS_AUTO) && table->found_next_number_field)
  {
    uint64_t next= 1;
    weir_table_next_number(m_table, &next);
    stats.auto_increment_value= next;
  }
  return 0;
}

ha_rows ha_weir::records_in_range(uint index, const key_range *min, const key_range *max, page_range *)
{
  if (m_indexes[index].spatial)
    return min ? window_rows(index, min->key, min->flag) : HA_POS_ERROR;
  const Search_codec &key= m_indexes[index].search;
  std::string from, to;
  if (min)
  {
    key.encode_image(min->key, min->keypart_map, &from);
    if (min->flag == HA_READ_AFTER_KEY && !after_prefix(&from))
      return 1;
  }
  bool has_to= max != nullptr;
  if (max)
  {
    key.encode_image(max->key, max->keypart_map, &to);
    if (max->flag != HA_READ_BEFORE_KEY)
      has_to= after_prefix(&to);
  }
  if (has_to && to <= from)
    return 1;
  uint64_t rows= 0;
  uint32_t kind;
  weir_bytes end= bytes_of(to);
  weir_code code= weir_table_estimate(m_table, m_indexes[index].place, bytes_of(from), has_to ? &end : nullptr,
                                      &rows, &kind);
  if (code != WEIR_OK)
    return HA_POS_ERROR;
  return std::max<uint64_t>(rows, 1);
}

ha_rows ha_weir::estimate_rows_upper_bound() { return m_share->rows(m_table) * 2 + 100; }

double ha_weir::pages_of_scan() { return static_cast<double>(stats.data_file_length / PAGE_BYTES); }

double ha_weir::pages_of_primary(uint ranges, ha_rows rows)
{
  // Of twice as many rows as there is room for: so InnoDB makes ranges of its clustered index cheap.
  double most= 2 * static_cast<double>(stats.data_file_length / m_row_bytes_min), scan= pages_of_scan();
  return most < rows ? scan : ranges + rows / most * scan;
}

int ha_weir::analyze(THD *, HA_CHECK_OPT *)
{
  uint64_t rows;
  if (weir_table_analyze(m_table, &rows) != WEIR_OK)
    return HA_ADMIN_FAILED;
  m_share->set_rows(rows);
  m_share->set_rows_per_key(nullptr, rows);
  // The server keeps this handler open for statements to come, with what it knew of the keys when it was opened.
  info(HA_STATUS_TIME | HA_STATUS_CONST | HA_STATUS_VARIABLE);
  return HA_ADMIN_OK;
}

// As InnoDB: the server asks for the rows to be written anew, and for a sample.
int ha_weir::optimize(THD *, HA_CHECK_OPT *) { return HA_ADMIN_TRY_ALTER; }

// Makes the entry that a row should have. Called by the engine's check of the table.
int ha_weir::make_entry(void *context, size_t place, weir_bytes key, weir_bytes row, weir_entry *entry)
{
  ha_weir *self= static_cast<ha_weir *>(context);
  uchar *record= self->table->record[0];
  if (self->decode(record, key.data, key.len, row.data, row.len))
    return 1;
  if (self->table->vfield)
    self->table->update_virtual_fields(self, VCOL_UPDATE_FOR_READ);
  if (!self->has_primary())
    self->m_old.key.assign(reinterpret_cast<const char *>(key.data), key.len);
  self->encode(record, &self->m_old);
  *entry= self->m_old.entries[place];
  return 0;
}

bool ha_weir::is_check_wanted(void *context) { return !is_killed(static_cast<ha_weir *>(context)->ha_thd()); }

namespace
{
// What is computed from rows to be compared is no user's statement: its conversions are not reported.
class Quiet : public Internal_error_handler
{
public:
  bool handle_condition(THD *, uint, const char *, Sql_condition::enum_warning_level *level, const char *,
                        Sql_condition **) override
  {
    return *level != Sql_condition::WARN_LEVEL_ERROR;
  }
};

void report_problem(void *, weir_bytes problem)
{
  sql_print_error("Weir: %.*s", static_cast<int>(problem.len), reinterpret_cast<const char *>(problem.data));
}
} // namespace

int ha_weir::check(THD *thd, HA_CHECK_OPT *)
{
  Quiet quiet;
  thd->push_internal_handler(&quiet);
  if (table->vfield)
    table->mark_virtual_columns_for_write(true);
  weir_code code= weir_table_check(m_table, m_trx->txn(), make_entry, report_problem, is_check_wanted, this);
  if (refreshed(code))
    code= weir_table_check(m_table, m_trx->txn(), make_entry, report_problem, is_check_wanted, this);
  thd->pop_internal_handler();
  if (code == WEIR_OK)
    return HA_ADMIN_OK;
  if (code != WEIR_INTERRUPTED)
  {
    // The words name the page, the file and the byte where a page is damaged; the client sees them as a row of the answer.
    sql_print_error("Weir: the check of %s: %s", m_name.c_str(), weir_message());
    push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, ER_NOT_KEYFILE, "Weir: %s", weir_message());
  }
  return code == WEIR_DAMAGED ? HA_ADMIN_CORRUPT : HA_ADMIN_FAILED;
}
