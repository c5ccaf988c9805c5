// The words of rows that one statement inserts are written for many rows at once, in the order in which they lie: a row has them all
// over a FULLTEXT key, of many rows several go to one leaf. The server says that a statement inserts many rows, and when the last
// is there; what looks for words or changes rows before that has them written first (Late_words), and so has the end of a statement.
#include "ha_weir.h"

#include "late_words.h"

// So many bytes of words are kept back at most: what writing them takes in memory is some times as much.
static const size_t LATE_BYTES= 1 << 20;

void Late_words::note(ha_weir *table, size_t bytes, bool is_first)
{
  if (is_first)
    m_tables.push_back(table);
  m_bytes+= bytes;
}

bool Late_words::is_much() const { return m_bytes >= LATE_BYTES; }

int Late_words::write()
{
  if (likely(m_tables.empty()))
    return 0;
  std::vector<ha_weir *> tables;
  tables.swap(m_tables);
  m_bytes= 0;
  int error= 0;
  for (ha_weir *table : tables)
    if (error)
      table->forget_late_words();
    else
      error= table->write_late_words();
  return error;
}

void Late_words::forget()
{
  for (ha_weir *table : m_tables)
    table->forget_late_words();
  m_tables.clear();
  m_bytes= 0;
}

// A copy by ALTER commits in parts. Triggers and functions are statements within the statement: with them rows are written whole, as
// the server has it for other engines' bulk inserts.
void ha_weir::start_bulk_insert(ha_rows rows, uint)
{
  if (m_has_late)
    return;
  m_late.clear();
  if (rows == 1 || m_copying || table->triggers || ha_thd()->locked_tables_mode > LTM_LOCK_TABLES)
    return;
  for (const Weir_index &index : m_indexes)
    if (index.fulltext)
      m_late.push_back(Words_kept_back{index.place, std::string(), {}});
}

int ha_weir::end_bulk_insert()
{
  int error= 0;
  // One that a deadlock has ended has said so already.
  if (m_has_late && !weir_txn_has_ended(txn()))
    error= m_trx->late_words().write();
  m_late.clear();
  // The server reports this, not what is returned.
  if (error)
    my_errno= error;
  return error;
}

// Takes the words out of what is inserted; they stay in m_new.payloads.
void ha_weir::keep_words_back()
{
  for (const Words_kept_back &late : m_late)
    m_new.entries[late.place].payload= bytes_of(nullptr, 0);
}

// The row that was inserted is there, and stays.
int ha_weir::note_late_words()
{
  size_t bytes= 0;
  for (Words_kept_back &late : m_late)
  {
    const std::string &words= m_new.payloads[late.place];
    if (words.empty())
      continue;
    late.bytes+= m_new.key;
    late.bytes+= words;
    late.rows.emplace_back(m_new.key.size(), words.size());
    bytes+= m_new.key.size() + words.size();
  }
  if (!bytes)
    return 0;
  m_trx->late_words().note(this, bytes, !m_has_late);
  m_has_late= true;
  return m_trx->late_words().is_much() ? m_trx->late_words().write() : 0;
}

int ha_weir::write_late_words()
{
  std::vector<weir_row_entries> rows;
  weir_code code= WEIR_OK;
  for (const Words_kept_back &late : m_late)
  {
    rows.clear();
    const uchar *at= reinterpret_cast<const uchar *>(late.bytes.data());
    for (const std::pair<size_t, size_t> &row : late.rows)
    {
      rows.push_back(weir_row_entries{bytes_of(at, row.first), bytes_of(at + row.first, row.second)});
      at+= row.first + row.second;
    }
    if (code == WEIR_OK && !rows.empty())
      code= weir_table_add_entries(m_table, txn(), late.place, rows.data(), rows.size());
  }
  // A duplicate would be passed over by INSERT IGNORE, with the row there.
  int error= code == WEIR_OK ? 0 : code == WEIR_DUPLICATE ? HA_ERR_CRASHED : fail(code);
  forget_late_words();
  return error;
}

void ha_weir::forget_late_words()
{
  m_has_late= false;
  for (Words_kept_back &late : m_late)
  {
    late.bytes.clear();
    late.rows.clear();
  }
}
