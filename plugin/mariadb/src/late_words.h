// Rows that a statement has inserted, and whose words in FULLTEXT keys their tables still keep back: whatever else could meet such a row
// has them written first.
#ifndef WEIR_PLUGIN_LATE_WORDS_H
#define WEIR_PLUGIN_LATE_WORDS_H

#include <string>
#include <utility>
#include <vector>

#include "engine.h"

class ha_weir;

// Of one FULLTEXT key: of each row its key and its words, and how long they are.
struct Words_kept_back
{
  int32_t place;
  std::string bytes;
  std::vector<std::pair<size_t, size_t>> rows;
};

// Those of a transaction. The tables are in use by the statement, and say when they are not (ha_weir::reset).
class Late_words
{
public:
  // A table has kept so many bytes back, for the first time since they were written last.
  void note(ha_weir *table, size_t bytes, bool is_first);
  bool is_much() const;
  // Writes those of all tables. After an error they are forgotten, and the statement must not stand.
  int write();
  // The rows are gone.
  void forget();

private:
  std::vector<ha_weir *> m_tables;
  size_t m_bytes= 0;
};

#endif
