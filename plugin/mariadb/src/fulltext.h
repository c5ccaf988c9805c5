// FULLTEXT keys: what one was made with, and the words of texts.
#ifndef WEIR_PLUGIN_FULLTEXT_H
#define WEIR_PLUGIN_FULLTEXT_H

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "collation_codec.h"
#include "server.h"
#include "weir.h"

// Kept by the engine with the index: the words of a row stay what they were when settings change.
struct Fulltext_definition
{
  // Of words, in characters.
  uint shortest= 0, longest= 0;
  // In utf8mb4.
  std::vector<std::string> stopwords;
  // Of a key that ALTER is making: the numbers of its columns, from 1 on, for writers of the table meanwhile.
  std::vector<uint> columns;

  // As the session's settings have it now.
  static Fulltext_definition of_settings(THD *thd);
  std::string encode() const;
  // False: the bytes are of a later version, or none.
  bool decode(const std::string &bytes);
};

// Words are cut as InnoDB cuts them, by the server's character classes, and known by their collation's weights.
class Fulltext_codec
{
public:
  // `columns`: those of the key, of one character set and collation.
  Fulltext_codec(const std::vector<Field *> &columns, const Fulltext_definition &definition);
  ~Fulltext_codec();
  Fulltext_codec(const Fulltext_codec &)= delete;

  // What an index keeps of a record.
  void encode_record(const uchar *record, std::string *payload) const;
  // Adds all words of a record, or of a text in utf8mb4.
  void add_record(const uchar *record, weir_words *to) const;
  void add_text(const char *text, size_t length, weir_words *to) const;
  // Whether two records have the same texts.
  bool same(const uchar *a, const uchar *b) const;
  uint columns() const { return static_cast<uint>(m_columns.size()); }

private:
  ulonglong add(const uchar *text, size_t length, uint column, ulonglong number, weir_words *to) const;
  weir_fit fit_of(size_t characters, const std::string &key) const;

  std::vector<Field *> m_columns;
  CHARSET_INFO *m_cs;
  Collation_codec m_collation;
  uint m_shortest, m_longest;
  std::set<std::string> m_stopwords;
  weir_words *m_words;
};

// The numbers of a key's columns, from 1 on.
std::vector<uint> column_numbers(const KEY *key);

// As InnoDB has them: INFORMATION_SCHEMA.INNODB_FT_DEFAULT_STOPWORD.
extern const char DEFAULT_STOPWORDS[];

#endif
