// The encoding was tested against the server's own comparison for all of its 1,242 collations; the test that
// goes with this file (test/collations) does it again through these very functions.
//
// Raw weights (strnxfrm without padding) do not compare as strnncollsp does: it goes on with spaces where a text
// ends. So weights are cut into segments, and behind each stands how the rest compares with nothing but
// spaces: 1 below, 2 equal (the end), 3 above.
#include "collation_codec.h"

#include <cstring>

namespace
{

const size_t SEGMENT_BYTES= 8;
const char BELOW_SPACES= 1, ALL_SPACES= 2, ABOVE_SPACES= 3;

void put_nopad(const std::string &weights, std::string *out)
{
  for (char c : weights)
  {
    out->push_back(c);
    if (c == 0)
      out->push_back('\xff');
  }
  out->append(2, '\0');
}

char against_spaces(const std::string &weights, size_t from, const std::string &space)
{
  for (size_t at= from; at < weights.size(); at+= space.size())
  {
    size_t length= std::min(space.size(), weights.size() - at);
    int order= memcmp(weights.data() + at, space.data(), length);
    if (order)
      return order < 0 ? BELOW_SPACES : ABOVE_SPACES;
  }
  return ALL_SPACES;
}

void put_pad(const std::string &weights, const std::string &space, size_t segment, std::string *out)
{
  for (size_t at= 0;; at+= segment)
  {
    size_t have= at < weights.size() ? std::min(segment, weights.size() - at) : 0;
    out->append(weights, at < weights.size() ? at : 0, have);
    // What is missing are spaces; a whole number of them fits a segment.
    for (size_t missing= segment - have; missing > 0;)
    {
      size_t length= std::min(missing, space.size());
      out->append(space, 0, length);
      missing-= length;
    }
    char rest= at + have < weights.size() ? against_spaces(weights, at + have, space) : ALL_SPACES;
    out->push_back(rest);
    if (rest == ALL_SPACES)
      return;
  }
}

// As sort_order[] has them for single bytes; two-byte characters by their code. The server's own strnxfrm
// disagrees with its comparison here.
void big5_weights(CHARSET_INFO *cs, const uchar *text, size_t length, std::string *out)
{
  for (size_t i= 0; i < length; i++)
  {
    bool two= i + 1 < length && text[i] >= 0xa1 && text[i] <= 0xf9 &&
              ((text[i + 1] >= 0x40 && text[i + 1] <= 0x7e) ||
               (text[i + 1] >= 0xa1 && text[i + 1] <= 0xfe));
    if (two)
    {
      out->append(reinterpret_cast<const char *>(text) + i, 2);
      i++;
    }
    else
      out->push_back(static_cast<char>(cs->sort_order[text[i]]));
  }
}

// `turn` is what all bytes are complemented with.
const uchar *skip_nopad(const uchar *at, const uchar *end, uchar turn)
{
  for (; at + 1 < end; at++)
    if ((at[0] ^ turn) == 0)
    {
      if ((at[1] ^ turn) == 0)
        return at + 2;
      at++;
    }
  return nullptr;
}

const uchar *skip_pad(const uchar *at, const uchar *end, size_t segment, uchar turn)
{
  for (; at + segment < end; at+= segment + 1)
    if (static_cast<char>(at[segment] ^ turn) == ALL_SPACES)
      return at + segment + 1;
  return nullptr;
}

std::string space_of(CHARSET_INFO *cs)
{
  const char *name= cs->cs_name.str;
  if (!strcmp(name, "ucs2") || !strcmp(name, "utf16"))
    return std::string("\0 ", 2);
  if (!strcmp(name, "utf16le"))
    return std::string(" \0", 2);
  if (!strcmp(name, "utf32"))
    return std::string("\0\0\0 ", 4);
  return " ";
}

} // namespace

Collation_codec::Collation_codec(CHARSET_INFO *cs) : m_cs(cs), m_special(Special::NONE)
{
  const char *name= cs->coll_name.str;
  bool nopad= cs->state & MY_CS_NOPAD;
  if (cs == &my_charset_bin)
    m_special= Special::BINARY;
  else if (!strcmp(name, "latin2_czech_cs") || !strcmp(name, "cp1250_czech_cs"))
    m_special= Special::CZECH;
  else if (!strncmp(name, "big5_chinese", 12))
    m_special= Special::BIG5;
  else if (!strcmp(name, "tis620_thai_nopad_ci"))
    m_special= Special::THAI_NOPAD;
  if (m_special == Special::BIG5)
  {
    Level level= {0, !nopad, " ", SEGMENT_BYTES};
    m_levels.push_back(level);
    return;
  }
  if (m_special != Special::NONE)
    return;
  uint levels= cs->levels_for_order ? cs->levels_for_order : 1;
  bool multi= my_count_bits_uint32(levels) > 1;
  std::string space= space_of(cs);
  for (uint i= 0; i < 6; i++)
  {
    if (!(levels >> i & 1))
      continue;
    Level level;
    level.flags= multi ? 1U << i : 0;
    // Higher levels are always compared as if spaces followed.
    level.pad= !nopad || !m_levels.empty();
    weights(reinterpret_cast<const uchar *>(space.data()), space.size(), level.flags, &level.space);
    if (level.space.empty())
      level.pad= false;
    size_t length= std::max<size_t>(1, level.space.size());
    level.segment= std::max<size_t>(1, SEGMENT_BYTES / length) * length;
    m_levels.push_back(level);
  }
}

void Collation_codec::weights(const uchar *text, size_t length, uint flags, std::string *out) const
{
  // strnxfrm cuts what does not fit without saying so: a result that fills the room is made again.
  for (size_t room= length * 8 + 64;; room*= 4)
  {
    out->resize(room);
    size_t used= m_cs->coll->strnxfrm(m_cs, reinterpret_cast<uchar *>(&(*out)[0]), room, UINT_MAX32 >> 1, text,
                                      length, flags);
    if (used + 32 <= room)
    {
      out->resize(used);
      return;
    }
  }
}

void Collation_codec::encode(const uchar *text, size_t length, std::string *out) const
{
  const char *chars= reinterpret_cast<const char *>(text);
  std::string w;
  switch (m_special)
  {
  case Special::BINARY:
    put_nopad(std::string(chars, length), out);
    return;
  case Special::CZECH:
    while (length > 0 && text[length - 1] == ' ')
      length--;
    weights(text, length, 0, &w);
    put_nopad(w, out);
    return;
  case Special::THAI_NOPAD:
    weights(text, length, 0, &w);
    put_nopad(w.substr(0, w.find('\0')), out);
    return;
  case Special::BIG5:
  case Special::NONE:
    break;
  }
  for (const Level &level : m_levels)
  {
    w.clear();
    if (m_special == Special::BIG5)
      big5_weights(m_cs, text, length, &w);
    else
      weights(text, length, level.flags, &w);
    if (level.pad)
      put_pad(w, level.space, level.segment, out);
    else
      put_nopad(w, out);
  }
}

size_t Collation_codec::encode_word(const uchar *text, size_t length, std::string *out) const
{
  size_t start= out->size(), beginning= 0;
  auto put= [&](const std::string &w) {
    put_nopad(w, out);
    if (!beginning)
      beginning= out->size() - 2 - start;
  };
  std::string w;
  if (m_special == Special::BIG5)
    big5_weights(m_cs, text, length, &w);
  else if (m_special == Special::BINARY)
    w.assign(reinterpret_cast<const char *>(text), length);
  else if (m_levels.empty())
    weights(text, length, 0, &w);
  if (m_levels.empty() || m_special == Special::BIG5)
    put(w);
  else
    for (const Level &level : m_levels)
    {
      weights(text, length, level.flags, &w);
      put(w);
    }
  return beginning;
}

const uchar *Collation_codec::skip(const uchar *from, const uchar *end, uchar turn) const
{
  if (m_levels.empty())
    return skip_nopad(from, end, turn);
  for (const Level &level : m_levels)
  {
    from= level.pad ? skip_pad(from, end, level.segment, turn) : skip_nopad(from, end, turn);
    if (!from)
      return nullptr;
  }
  return from;
}
