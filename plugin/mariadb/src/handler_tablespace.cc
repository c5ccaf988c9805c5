// A table as a file: FLUSH TABLES ... FOR EXPORT writes it, ALTER TABLE ... DISCARD and IMPORT TABLESPACE put its rows in the
// place of a table's own.
#include "ha_weir.h"

#include <fcntl.h>
#include <unistd.h>

#include "backoff.h"
#include "export_heading.h"
#include "known_rows.h"
#include "variables.h"

namespace
{

// In the directory of the schema, as the server's own files of the table are.
std::string file_of(const std::string &table) { return "./" + table + ".weir"; }

// Closed with the object.
class File_descriptor
{
public:
  explicit File_descriptor(int fd) : m_fd(fd) {}
  ~File_descriptor() { close(); }
  bool is_open() const { return m_fd >= 0; }
  int get() const { return m_fd; }
  int close()
  {
    int failed= m_fd >= 0 ? ::close(m_fd) : 0;
    m_fd= -1;
    return failed;
  }

private:
  int m_fd;
};

int32_t write_all(void *context, weir_bytes bytes)
{
  for (size_t done= 0; done < bytes.len;)
  {
    ssize_t n= ::write(static_cast<File_descriptor *>(context)->get(), bytes.data + done, bytes.len - done);
    if (n < 0 && errno != EINTR)
      return errno;
    done+= std::max<ssize_t>(n, 0);
  }
  return 0;
}

int64_t read_some(void *context, uint8_t *buffer, size_t room)
{
  ssize_t n;
  while ((n= ::read(static_cast<File_descriptor *>(context)->get(), buffer, room)) < 0 && errno == EINTR)
    ;
  return n < 0 ? -errno : n;
}

bool is_wanted(void *context) { return !is_killed(static_cast<THD *>(context)); }

std::string string_of(weir_bytes bytes) { return std::string(reinterpret_cast<const char *>(bytes.data), bytes.len); }

// What is read of a file before its rows are taken.
struct Exported_table
{
  THD *thd;
  std::string heading, definition, layouts;
};

bool is_check_of_file_wanted(void *context) { return !is_killed(static_cast<Exported_table *>(context)->thd); }

void note_export(void *context, weir_bytes heading, weir_bytes definition, weir_bytes layouts)
{
  Exported_table *found= static_cast<Exported_table *>(context);
  found->heading= string_of(heading);
  found->definition= string_of(definition);
  found->layouts= string_of(layouts);
}

// Says why a file cannot be read or written; gives the error.
int fail_file(THD *thd, weir_code code, uint error, const std::string &file)
{
  if (code == WEIR_INTERRUPTED)
    return HA_ERR_ABORTED_BY_USER;
  if (code != WEIR_DAMAGED && code != WEIR_INPUT && code != WEIR_IO && code != WEIR_DISK_FULL)
    return to_handler_error(thd, code);
  my_printf_error(error, "Weir: %s: %s", MYF(0), file.c_str(), weir_message());
  return HA_ERR_INTERNAL_ERROR;
}

int refuse(const char *why)
{
  my_printf_error(ER_ILLEGAL_HA, "Storage engine Weir %s", MYF(0), why);
  return HA_ERR_WRONG_COMMAND;
}

} // namespace

bool ha_weir::is_exported(THD *thd) const
{
  return thd_sql_command(thd) == SQLCOM_FLUSH && (thd->lex->type & REFRESH_FOR_EXPORT);
}

// The server lets no other session write to the table until UNLOCK TABLES, and has waited for those that have written.
int ha_weir::export_table()
{
  THD *thd= ha_thd();
  if (table_share->sequence || table_share->tmp_table != NO_TMP_TABLE)
    return refuse("does not export sequences and temporary tables");
  if (weir_force_recovery())
    return refuse("does not export a table of a damaged database (weir_force_recovery), of which rows may be missing");
  if (weir_encrypts())
    return refuse("does not export a table of an encrypted database (weir_encrypt), as the file would be in the clear; use mariadb-dump");
  std::string file= file_of(m_name);
  File_descriptor out(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, my_umask));
  if (!out.is_open())
  {
    if (errno == EEXIST)
      my_printf_error(ER_FILE_EXISTS_ERROR, "Weir: the file %s, to which the table would be exported, is there already; take it away first", MYF(0),
                      file.c_str());
    else
      my_printf_error(ER_IO_WRITE_ERROR, "Weir: %s cannot be made: %s", MYF(0), file.c_str(), strerror(errno));
    return HA_ERR_INTERNAL_ERROR;
  }
  m_exported_file= file;
  std::string heading= Export_heading::of(table).encode();
  weir_sink sink= {&out, write_all};
  weir_code code;
  do
    code= weir_table_export(m_table, bytes_of(heading), sink, is_wanted, thd, nullptr);
  while (refreshed(code) && !::lseek(out.get(), 0, SEEK_SET) && !::ftruncate(out.get(), 0));
  if (code == WEIR_OK && (::fsync(out.get()) || out.close()))
  {
    my_printf_error(ER_IO_WRITE_ERROR, "Weir: %s cannot be written: %s", MYF(0), file.c_str(), strerror(errno));
    end_export();
    return HA_ERR_INTERNAL_ERROR;
  }
  if (code == WEIR_OK)
    return 0;
  int error= fail_file(thd, code, ER_IO_WRITE_ERROR, file);
  end_export();
  return error;
}

// The file is for a copy to be made of it while the table is locked.
void ha_weir::end_export()
{
  if (!m_exported_file.empty())
    ::unlink(m_exported_file.c_str());
  m_exported_file.clear();
}

int ha_weir::discard_or_import_tablespace(my_bool discard)
{
  if (weir_refuses_changes())
    return HA_ERR_TABLE_READONLY;
  if (table_share->tmp_table != NO_TMP_TABLE)
  {
    my_error(ER_CANNOT_DISCARD_TEMPORARY_TABLE, MYF(0));
    return HA_ERR_TABLE_NEEDS_UPGRADE;
  }
  if (table_share->sequence)
    return refuse("does not discard or import sequences");
  return discard ? discard_rows() : import_rows();
}

// Gives the table another definition, in the engine and for all here.
weir_code ha_weir::redefine(const std::function<void(Table_definition *)> &change)
{
  std::lock_guard<std::mutex> guard(weir_definitions.changing());
  Table_definition definition= this->definition();
  change(&definition);
  std::string encoded= definition.encode();
  weir_redefinition now= {bytes_of(m_name), bytes_of(encoded), nullptr, 0, bytes_of(nullptr, 0), bytes_of(nullptr, 0)};
  weir_code code= weir_table_redefine(weir_database, &now, 1);
  if (code == WEIR_OK)
    weir_definitions.put(m_name, definition);
  return code;
}

// First it cannot be used any more, then it is emptied: what a crash leaves in between is in no one's way.
int ha_weir::discard_rows()
{
  THD *thd= ha_thd();
  if (!thd_test_options(thd, OPTION_NO_FOREIGN_KEY_CHECKS))
    for (const Reference &reference : weir_definitions.referring_to(m_name))
      if (reference.child != m_name)
        return violation(reference, HA_ERR_ROW_IS_REFERENCED, &m_failure);
  if (m_share->is_discarded())
  {
    push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, ER_TABLESPACE_DISCARDED, ER_THD(thd, ER_TABLESPACE_DISCARDED),
                        table_share->table_name.str);
    return 0;
  }
  // What columns of its rows were added later, rows to come say anew.
  const Table_definition was= definition();
  weir_code code= redefine([](Table_definition *known) {
    known->discarded= true;
    known->added.clear();
  });
  if (code != WEIR_OK)
    return fail(code);
  if (int error= truncate())
  {
    redefine([&was](Table_definition *known) {
      known->discarded= false;
      known->added= was.added;
    });
    return error;
  }
  m_share->set_discarded(true);
  return 0;
}

int ha_weir::import_rows()
{
  THD *thd= ha_thd();
  Table_definition now= definition();
  if (!now.discarded)
  {
    my_printf_error(ER_TABLESPACE_EXISTS, "Tablespace '%s.%s' exists. It has to be discarded first: ALTER TABLE ... DISCARD TABLESPACE", MYF(0),
                    table_share->db.str, table_share->table_name.str);
    return HA_ERR_TABLE_EXIST;
  }
  if (!now.foreign_keys.empty() && !thd_test_options(thd, OPTION_NO_FOREIGN_KEY_CHECKS))
    return refuse("does not look whether rows that are imported have what their foreign keys refer to: SET foreign_key_checks=0 first");
  std::string file= file_of(m_name);
  File_descriptor in(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!in.is_open())
  {
    my_printf_error(ER_TABLESPACE_MISSING, "Tablespace is missing for a table '%s': %s cannot be read: %s", MYF(0), table_share->table_name.str,
                    file.c_str(), strerror(errno));
    return HA_ERR_TABLESPACE_MISSING;
  }
  // All of it is looked at before anything is changed.
  Exported_table found;
  found.thd= thd;
  weir_source source= {&in, read_some};
  weir_code code= weir_export_verify(source, note_export, is_check_of_file_wanted, &found, nullptr);
  if (code != WEIR_OK)
    return fail_file(thd, code, ER_IO_READ_ERROR, file);
  if (int error= fit(found.heading, found.definition, found.layouts, &now))
    return error;
  Backoff backoff(thd);
  do
    code= ::lseek(in.get(), 0, SEEK_SET) ? WEIR_IO : weir_table_import(weir_database, bytes_of(m_name), source, is_wanted, thd, 0, nullptr);
  while (backoff.again(&code));
  if (code != WEIR_OK)
    return fail_file(thd, code, ER_IO_READ_ERROR, file);
  // Until this is done the table is as if nothing had been imported: after a crash it is imported once more.
  code= redefine([&now](Table_definition *known) {
    known->added= now.added;
    known->layouts= now.layouts;
    known->discarded= false;
  });
  if (code != WEIR_OK)
    return fail(code);
  if (::unlink(file.c_str()))
    push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, ER_IO_WRITE_ERROR, "Weir: %s was imported, and cannot be taken away: %s", file.c_str(),
                        strerror(errno));
  return reopen_imported();
}

// Whether an exported table is one of this definition, of which its rows then have a part. An error that says why not.
int ha_weir::fit(const std::string &heading, const std::string &definition, const std::string &layouts, Table_definition *now)
{
  Export_heading theirs;
  std::string why= "a later version of the plugin has written it";
  if (theirs.decode(heading))
    why= Export_heading::of(table).misfit(theirs);
  if (why.empty())
  {
    // Columns that ALTER has added without writing the rows anew, or before: that goes with the rows.
    Table_definition then= Table_definition::decode(reinterpret_cast<const uchar *>(definition.data()), definition.size());
    now->added= then.added;
    now->layouts= Row_layouts::decode(reinterpret_cast<const uchar *>(layouts.data()), layouts.size());
    if (!Row_codec(table, &m_primary, *now).is_sound())
      why= "its rows are laid out as this version does not know";
  }
  if (why.empty())
    return 0;
  my_printf_error(ER_TABLE_SCHEMA_MISMATCH, "Schema mismatch (%s was exported from %s by %s: %s)", MYF(0), file_of(m_name).c_str(),
                  theirs.table.c_str(), theirs.server.c_str(), why.c_str());
  return HA_ERR_TABLE_NEEDS_UPGRADE;
}

int ha_weir::reopen_imported()
{
  close_scan();
  m_share->forget(true);
  weir_known_rows.forget(m_name);
  m_share->set_discarded(false);
  weir_table_close(m_table);
  m_table= nullptr;
  weir_code code= m_share->open(&m_table);
  if (code != WEIR_OK)
    return fail(code);
  // Other uses of the table, which know the rows that it had, come to no use any more.
  table_share->tdc->flush(ha_thd(), true);
  return make_codecs();
}
