#include "fulltext.h"

#include <algorithm>

#include "engine.h"
#include "variables.h"
#include "wire.h"

const char DEFAULT_STOPWORDS[]= "a about an are as at be by com de en for from how i in is it la of on or that the this to "
                                "und was what when where who will with www";

namespace
{

struct Token
{
  const uchar *text;
  size_t length, characters;
};

bool is_of_word(int kind, uchar first) { return kind & (_MY_U | _MY_L | _MY_NMR) || first == '_'; }

// Takes the next word; false: there is none. A letter and an apostrophe before a word are not of it.
bool next_token(CHARSET_INFO *cs, const uchar **at, const uchar *end, Token *token)
{
  auto step= [&](bool *in_word) {
    int kind= 0;
    int bytes= cs->cset->ctype(cs, &kind, *at, end);
    *in_word= is_of_word(kind, **at);
    return static_cast<size_t>(bytes > 0 ? bytes : bytes < 0 ? -bytes : 1);
  };
  bool in_word= false;
  while (*at < end)
  {
    size_t bytes= step(&in_word);
    if (in_word)
      break;
    *at+= bytes;
  }
  *at= std::min(*at, end);
  *token= {*at, 0, 0};
  while (*at < end)
  {
    size_t bytes= step(&in_word);
    bool apostrophe= !in_word && **at == '\'' && token->characters == 1;
    if (!in_word && !apostrophe)
      break;
    *at= std::min(*at + bytes, end);
    token->characters++;
    if (apostrophe)
      *token= {*at, 0, 0};
  }
  token->length= *at - token->text;
  return token->characters > 0 || *at < end;
}

} // namespace

Fulltext_definition Fulltext_definition::of_settings(THD *thd)
{
  Fulltext_definition out;
  weir_ft_token_sizes(&out.shortest, &out.longest);
  std::string words= weir_ft_stopwords(thd);
  for (size_t at= 0; at < words.size();)
  {
    size_t end= std::min(words.find(' ', at), words.size());
    if (end > at)
      out.stopwords.push_back(words.substr(at, end - at));
    at= end + 1;
  }
  return out;
}

std::string Fulltext_definition::encode() const
{
  Writer out;
  out.begin_key(SEVERAL_WORDS);
  out.number(shortest);
  out.number(longest);
  out.texts(stopwords);
  out.number(columns.size());
  for (uint column : columns)
    out.number(column);
  return out.m_out;
}

bool Fulltext_definition::decode(const std::string &bytes)
{
  Reader in(reinterpret_cast<const uchar *>(bytes.data()), bytes.size());
  if (!in.begins_key(SEVERAL_WORDS))
    return false;
  shortest= static_cast<uint>(in.number());
  longest= static_cast<uint>(in.number());
  stopwords= in.texts();
  columns.clear();
  for (ulonglong n= in.number(); n > 0 && !in.ended(); n--)
    columns.push_back(static_cast<uint>(in.number()));
  return in.ended();
}

Fulltext_codec::Fulltext_codec(const std::vector<Field *> &columns, const Fulltext_definition &definition)
    : m_columns(columns), m_cs(columns[0]->charset()), m_collation(m_cs), m_shortest(definition.shortest),
      m_longest(definition.longest), m_words(nullptr)
{
  weir_words_new(&m_words);
  for (const std::string &word : definition.stopwords)
  {
    String text;
    uint errors;
    std::string key;
    text.copy(word.data(), word.size(), &my_charset_utf8mb4_bin, m_cs, &errors);
    m_collation.encode_word(reinterpret_cast<const uchar *>(text.ptr()), text.length(), &key);
    if (!errors)
      m_stopwords.insert(key);
  }
}

Fulltext_codec::~Fulltext_codec() { weir_words_close(m_words); }

weir_fit Fulltext_codec::fit_of(size_t characters, const std::string &key) const
{
  if (characters < m_shortest)
    return WEIR_FIT_SHORT;
  if (characters > m_longest)
    return WEIR_FIT_LONG;
  return m_stopwords.count(key) ? WEIR_FIT_STOPWORD : WEIR_FIT_INDEXED;
}

// Returns the number of the word behind the last one.
ulonglong Fulltext_codec::add(const uchar *text, size_t length, uint column, ulonglong number, weir_words *to) const
{
  const uchar *end= text + length;
  Token token;
  std::string key;
  while (next_token(m_cs, &text, end, &token))
  {
    if (!token.characters)
      continue;
    key.clear();
    size_t beginning= m_collation.encode_word(token.text, token.length, &key);
    weir_words_add(to, bytes_of(key), beginning, number++ * m_columns.size() + column, fit_of(token.characters, key));
  }
  return number;
}

void Fulltext_codec::add_record(const uchar *record, weir_words *to) const
{
  ulonglong number= 0;
  for (uint column= 0; column < m_columns.size(); column++)
  {
    Field *field= m_columns[column];
    my_ptrdiff_t away= record - field->table->record[0];
    if (field->is_null(away))
      continue;
    String room, *text;
    field->move_field_offset(away);
    text= field->val_str(&room);
    number= add(reinterpret_cast<const uchar *>(text->ptr()), text->length(), column, number, to);
    field->move_field_offset(-away);
  }
}

void Fulltext_codec::encode_record(const uchar *record, std::string *payload) const
{
  add_record(record, m_words);
  weir_bytes entries;
  if (weir_words_entries(m_words, &entries) == WEIR_OK)
    payload->append(reinterpret_cast<const char *>(entries.data), entries.len);
}

void Fulltext_codec::add_text(const char *text, size_t length, weir_words *to) const
{
  String own;
  uint errors;
  own.copy(text, length, &my_charset_utf8mb4_bin, m_cs, &errors);
  add(reinterpret_cast<const uchar *>(own.ptr()), own.length(), 0, 0, to);
}

bool Fulltext_codec::same(const uchar *a, const uchar *b) const
{
  for (Field *field : m_columns)
  {
    const uchar *start= field->table->record[0];
    if (field->is_null(a - start) != field->is_null(b - start))
      return false;
    if (!field->is_null(a - start) && field->cmp_binary(field->ptr + (a - start), field->ptr + (b - start)))
      return false;
  }
  return true;
}
