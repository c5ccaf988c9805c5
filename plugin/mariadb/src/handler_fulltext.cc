// MATCH ... AGAINST: what a query finds is found at once, when the statement begins, and then read row by row or asked for by
// row. How queries are read, which rows fit and how well is the engine's (weir_table_search).
#include "ha_weir.h"

#include "variables.h"

namespace
{

// What the server has of a query; it begins as st_ft_info_ext does.
struct Match
{
  const _ft_vft *please;
  const _ft_vft_ext *could_you;
  ha_weir *handler;
  weir_ranked *ranked;
  // The next row to be read; how well the one read last fits.
  size_t next;
  float rank;
};

Match *match_of(FT_INFO *info) { return reinterpret_cast<Match *>(info); }

float find_relevance(FT_INFO *info, uchar *record, uint)
{
  Match *match= match_of(info);
  return match->handler->relevance(match->ranked, record);
}

float get_relevance(FT_INFO *info) { return match_of(info)->rank; }

void reinit_search(FT_INFO *info) { match_of(info)->next= 0; }

void close_search(FT_INFO *info)
{
  weir_ranked_close(match_of(info)->ranked);
  delete match_of(info);
}

uint get_version() { return 2; }

ulonglong get_flags() { return FTS_ORDERED_RESULT; }

ulonglong get_docid(FT_INFO_EXT *) { return 0; }

ulonglong count_matches(FT_INFO_EXT *info)
{
  weir_bytes key;
  float rank;
  ulonglong count= 0;
  while (weir_ranked_at(reinterpret_cast<Match *>(info)->ranked, count, &key, &rank) == WEIR_OK)
    count++;
  return count;
}

const _ft_vft FUNCTIONS= {nullptr, find_relevance, close_search, get_relevance, reinit_search};
const _ft_vft_ext MORE_FUNCTIONS= {get_version, get_flags, get_docid, count_matches};

// Whose words are asked for.
struct Asking
{
  ha_weir *handler;
  const Fulltext_codec *codec;
  THD *thd;
};

int split_query(void *context, weir_bytes text, weir_words *words)
{
  static_cast<Asking *>(context)->codec->add_text(reinterpret_cast<const char *>(text.data), text.len, words);
  return 0;
}

int split_row(void *context, weir_bytes key, weir_bytes row, weir_words *words)
{
  Asking *asking= static_cast<Asking *>(context);
  return asking->handler->split_row(*asking->codec, key, row, words);
}

bool is_search_wanted(void *context) { return !is_killed(static_cast<Asking *>(context)->thd); }

} // namespace

int ha_weir::split_row(const Fulltext_codec &codec, weir_bytes key, weir_bytes row, weir_words *words)
{
  uchar *record= table->record[0];
  if (decode(record, key.data, key.len, row.data, row.len))
    return 1;
  codec.add_record(record, words);
  return 0;
}

float ha_weir::relevance(const weir_ranked *ranked, const uchar *record)
{
  std::string key;
  if (has_primary())
    m_primary.encode_record(record, &key);
  else
    key.assign(reinterpret_cast<char *>(m_row_id), sizeof(m_row_id));
  float rank= 0;
  weir_ranked_find(ranked, bytes_of(key), &rank);
  return rank;
}

FT_INFO *ha_weir::ft_init_ext(uint flags, uint index, String *query)
{
  if (index >= m_indexes.size() || !m_indexes[index].fulltext)
  {
    my_error(ER_TABLE_HAS_NO_FT, MYF(0));
    return nullptr;
  }
  if (int error= m_trx ? 0 : take_part())
  {
    print_error(error, MYF(0));
    return nullptr;
  }
  if (int error= write_words_of_all())
  {
    print_error(error, MYF(0));
    return nullptr;
  }
  String text;
  uint errors;
  text.copy(query->ptr(), query->length(), query->charset(), &my_charset_utf8mb4_bin, &errors);
  weir_ranked *ranked= nullptr;
  weir_code code= search(flags, index, text, &ranked);
  if (refreshed(code))
    code= search(flags, index, text, &ranked);
  if (code == WEIR_OK)
    return reinterpret_cast<FT_INFO *>(new Match{&FUNCTIONS, &MORE_FUNCTIONS, this, ranked, 0, 0});
  if (code == WEIR_INPUT)
    my_printf_error(ER_PARSE_ERROR, "%s", MYF(0), weir_message());
  else if (code == WEIR_TOO_LARGE)
    my_error(HA_ERR_FTS_TOO_MANY_WORDS_IN_PHRASE, MYF(0));
  else
    print_error(fail(code), MYF(0));
  return nullptr;
}

weir_code ha_weir::search(uint flags, uint index, const String &query, weir_ranked **ranked)
{
  const Fulltext_codec *codec= m_indexes[index].fulltext.get();
  Asking asking= {this, codec, ha_thd()};
  weir_search what;
  what.index= m_indexes[index].place;
  what.query= bytes_of(reinterpret_cast<const uchar *>(query.ptr()), query.length());
  what.mode= flags & FT_BOOL ? WEIR_SEARCH_BOOLEAN : flags & FT_EXPAND ? WEIR_SEARCH_EXPANDED : WEIR_SEARCH_NATURAL;
  // A statement that changes what it finds shares the entries that it goes by with others.
  what.lock= lock() == WEIR_LOCK_NONE ? WEIR_LOCK_NONE : WEIR_LOCK_SHARE;
  what.skip_locked= m_skip_locked;
  what.rows= m_share->rows(m_table);
  what.columns= codec->columns();
  what.split= split_query;
  what.split_row= ::split_row;
  what.go_on= is_search_wanted;
  what.context= &asking;
  return weir_table_search(m_table, txn(), &what, ranked);
}

int ha_weir::ft_init()
{
  if (ft_handler)
    match_of(ft_handler)->next= 0;
  return 0;
}

int ha_weir::ft_read(uchar *buf)
{
  if (!ft_handler)
    return HA_ERR_WRONG_COMMAND;
  Match *match= match_of(ft_handler);
  for (;;)
  {
    if (is_killed(ha_thd()))
      return HA_ERR_ABORTED_BY_USER;
    weir_bytes key;
    if (weir_ranked_at(match->ranked, match->next, &key, &match->rank) != WEIR_OK)
      return HA_ERR_END_OF_FILE;
    match->next++;
    mark_locks();
    int error= read_row(buf, key.data, key.len);
    mark_locks_end();
    if (error != HA_ERR_KEY_NOT_FOUND)
      return error;
    // It has gone since, or is passed over.
    unlock_row();
  }
}
