// Texts as bytes that compare as their collation compares them.
#ifndef WEIR_PLUGIN_COLLATION_CODEC_H
#define WEIR_PLUGIN_COLLATION_CODEC_H

#include <string>
#include <vector>

#include "server.h"

// The encoding of one collation. No encoded text is the beginning of another, so texts can be followed by
// more. Two texts that the collation calls equal have the same bytes: the text itself cannot be had back.
class Collation_codec
{
public:
  explicit Collation_codec(CHARSET_INFO *cs);
  void encode(const uchar *text, size_t length, std::string *out) const;
  // Appends bytes that two words have in common if the collation calls them equal. Returns how many of them begin those of
  // all words that begin as this one does: at the first level, and but for letters that become another with the next one.
  size_t encode_word(const uchar *text, size_t length, std::string *out) const;
  // Where an encoded text that begins at `from`, all its bytes complemented with `turn`, ends; nullptr if it does not
  // before `end`.
  const uchar *skip(const uchar *from, const uchar *end, uchar turn) const;

private:
  enum class Special { NONE, BINARY, CZECH, BIG5, THAI_NOPAD };
  struct Level
  {
    uint flags;
    bool pad;
    // The weights of a space; how many bytes are compared before it is said whether more come.
    std::string space;
    size_t segment;
  };

  void weights(const uchar *text, size_t length, uint flags, std::string *out) const;

  CHARSET_INFO *m_cs;
  Special m_special;
  std::vector<Level> m_levels;
};

#endif
