// Each value is encoded from the server's key image (the form that it gives search keys in), so that rows and
// searches cannot disagree. A nullable column has a byte before it, 0 for NULL and 1 for a value; a descending
// column has all its bytes complemented. No value is the beginning of another.
#include "key_codec.h"

#include <cstring>

Key_part_codec::Key_part_codec(const KEY_PART_INFO *part)
    : m_part(part), m_kind(Kind::RAW), m_signed(false), m_bytes(part->length),
      m_variable(part->key_part_flag & (HA_BLOB_PART | HA_VAR_LENGTH_PART)),
      m_descending(part->key_part_flag & HA_REVERSE_SORT), m_reversible(false)
{
  const Field *field= part->field;
  switch (static_cast<ha_base_keytype>(part->type))
  {
  case HA_KEYTYPE_INT8:
  case HA_KEYTYPE_SHORT_INT:
  case HA_KEYTYPE_INT24:
  case HA_KEYTYPE_LONG_INT:
  case HA_KEYTYPE_LONGLONG:
    m_signed= true;
    m_kind= Kind::INTEGER;
    break;
  case HA_KEYTYPE_USHORT_INT:
  case HA_KEYTYPE_UINT24:
  case HA_KEYTYPE_ULONG_INT:
  case HA_KEYTYPE_ULONGLONG:
    m_kind= Kind::INTEGER;
    break;
  case HA_KEYTYPE_FLOAT:
    m_kind= Kind::FLOAT;
    break;
  case HA_KEYTYPE_DOUBLE:
    m_kind= Kind::DOUBLE;
    break;
  case HA_KEYTYPE_TEXT:
  case HA_KEYTYPE_VARTEXT1:
  case HA_KEYTYPE_VARTEXT2:
  case HA_KEYTYPE_VARBINARY1:
  case HA_KEYTYPE_VARBINARY2:
    m_kind= Kind::TEXT;
    break;
  default:
    if (m_variable)
      m_kind= Kind::TEXT;
    break;
  }
  if (m_kind == Kind::TEXT)
    m_collation= std::make_shared<Collation_codec>(field->charset());
  bool whole= part->length == field->key_length();
  bool plain= m_kind == Kind::INTEGER ||
              (m_kind == Kind::RAW && part->type == HA_KEYTYPE_BINARY && field->type() != MYSQL_TYPE_BIT);
  m_reversible= plain && whole && !m_variable && field->pack_length() == part->length;
}

void Key_part_codec::put_value(const uchar *data, size_t length, std::string *out) const
{
  switch (m_kind)
  {
  case Kind::RAW:
    out->append(reinterpret_cast<const char *>(data), m_bytes);
    return;
  case Kind::INTEGER:
    for (size_t i= m_bytes; i-- > 0;)
      out->push_back(static_cast<char>(i == m_bytes - 1 && m_signed ? data[i] ^ 0x80 : data[i]));
    return;
  case Kind::FLOAT:
  case Kind::DOUBLE:
  {
    // By the bits: positive ones above negative ones, of which the greater magnitude is lower. -0 is 0.
    uchar big[8];
    bool zero= true;
    for (size_t i= 0; i < m_bytes; i++)
    {
      big[i]= data[m_bytes - 1 - i];
      zero&= (i == 0 ? big[i] & 0x7f : big[i]) == 0;
    }
    bool negative= !zero && (big[0] & 0x80);
    if (zero)
      big[0]= 0;
    for (size_t i= 0; i < m_bytes; i++)
      big[i]= static_cast<uchar>(negative ? ~big[i] : i == 0 ? big[i] | 0x80 : big[i]);
    out->append(reinterpret_cast<char *>(big), m_bytes);
    return;
  }
  case Kind::TEXT:
  {
    CHARSET_INFO *cs= m_part->field->charset();
    if (!m_variable && cs->mbmaxlen > 1)
    {
      // CHAR(N) is filled with spaces up to its bytes; only N characters count.
      size_t chars= m_bytes / cs->mbmaxlen;
      length= std::min(length, cs->charpos(data, data + length, chars));
    }
    m_collation->encode(data, length, out);
    return;
  }
  }
}

void Key_part_codec::put(const uchar *data, size_t length, std::string *out) const
{
  size_t before= out->size();
  if (m_part->null_bit)
    out->push_back(data ? 1 : 0);
  if (data)
    put_value(data, length, out);
  if (m_descending)
    for (size_t i= before; i < out->size(); i++)
      (*out)[i]= ~(*out)[i];
}

bool Key_part_codec::encode_record(const uchar *record, std::string *out) const
{
  if (m_part->null_bit && (record[m_part->null_offset] & m_part->null_bit))
  {
    put(nullptr, 0, out);
    return true;
  }
  Field *field= m_part->field;
  my_ptrdiff_t offset= record - field->table->record[0];
  uchar small[256];
  std::string large;
  size_t room= m_part->length + HA_KEY_BLOB_LENGTH + 8;
  uchar *image= small;
  if (room > sizeof(small))
  {
    large.resize(room);
    image= reinterpret_cast<uchar *>(&large[0]);
  }
  // The field is moved, not only its pointer given: the odd bits of a BIT lie elsewhere.
  field->move_field_offset(offset);
  uint got= field->get_key_image(image, m_part->length, field->ptr, Field::itRAW);
  field->move_field_offset(-offset);
  if (m_variable)
    put(image + HA_KEY_BLOB_LENGTH, uint2korr(image), out);
  else
  {
    if (got < m_part->length)
      field->charset()->fill(reinterpret_cast<char *>(image) + got, m_part->length - got, ' ');
    put(image, m_part->length, out);
  }
  return false;
}

bool Key_part_codec::encode_value(const uchar *record, std::string *out) const
{
  std::string one;
  if (encode_record(record, &one))
    return true;
  for (size_t i= m_part->null_bit ? 1 : 0; i < one.size(); i++)
    out->push_back(m_descending ? ~one[i] : one[i]);
  return false;
}

std::string Key_part_codec::kind_of_values() const
{
  const Field *field= m_part->field;
  std::string bytes= std::to_string(m_bytes);
  switch (m_kind)
  {
  case Kind::INTEGER:
    return (m_signed ? "signed " : "unsigned ") + bytes;
  case Kind::FLOAT:
  case Kind::DOUBLE:
    return "float " + bytes;
  case Kind::TEXT:
  {
    // CHAR is filled with spaces, which count where a collation does not pad.
    bool filled= !m_variable && (field->charset()->state & MY_CS_NOPAD);
    return "text " + std::to_string(field->charset()->number) + (filled ? " filled " + bytes : "");
  }
  case Kind::RAW:
    break;
  }
  return "raw " + std::to_string(field->real_type()) + " " + bytes + " " + std::to_string(field->decimals());
}

void Key_part_codec::encode_image(const uchar **image, std::string *out) const
{
  const uchar *at= *image;
  *image+= m_part->store_length;
  if (m_part->null_bit && *at++)
  {
    put(nullptr, 0, out);
    return;
  }
  if (m_variable)
    put(at + HA_KEY_BLOB_LENGTH, uint2korr(at), out);
  else
    put(at, m_part->length, out);
}

const uchar *Key_part_codec::skip(const uchar *from, const uchar *end) const
{
  uchar turn= m_descending ? 0xff : 0;
  if (m_part->null_bit)
  {
    if (from >= end)
      return nullptr;
    if ((*from++ ^ turn) == 0)
      return from;
  }
  if (m_kind == Kind::TEXT)
    return m_collation->skip(from, end, turn);
  return static_cast<size_t>(end - from) < m_bytes ? nullptr : from + m_bytes;
}

bool Key_part_codec::decode(const uchar **key, const uchar *end, uchar *record) const
{
  const uchar *at= *key;
  uchar turn= m_descending ? 0xff : 0;
  if (m_part->null_bit)
  {
    if (at >= end)
      return false;
    if ((*at++ ^ turn) == 0)
    {
      record[m_part->null_offset]|= m_part->null_bit;
      *key= at;
      return true;
    }
    record[m_part->null_offset]&= static_cast<uchar>(~m_part->null_bit);
  }
  if (at + m_bytes > end)
    return false;
  uchar *to= record + (m_part->field->ptr - m_part->field->table->record[0]);
  for (size_t i= 0; i < m_bytes; i++)
  {
    uchar byte= at[i] ^ turn;
    if (m_kind == Kind::INTEGER)
      to[m_bytes - 1 - i]= i == 0 && m_signed ? byte ^ 0x80 : byte;
    else
      to[i]= byte;
  }
  *key= at + m_bytes;
  return true;
}

void Key_part_codec::encode_plain_image(const uchar **image, std::string *out) const
{
  std::string one;
  encode_image(image, &one);
  for (size_t i= m_part->null_bit ? 1 : 0; i < one.size(); i++)
    out->push_back(m_descending ? ~one[i] : one[i]);
}

void Key_part_codec::put_plain(const std::string &value, std::string *out) const
{
  for (char byte : value)
    out->push_back(m_descending ? ~byte : byte);
}

Search_codec::Search_codec(const KEY *key, const KEY *primary) : m_own(key->user_defined_key_parts)
{
  for (uint i= 0; i < std::max(key->ext_key_parts, key->user_defined_key_parts); i++)
    m_parts.emplace_back(&key->key_part[i]);
  m_stored.assign(m_parts.begin(), m_parts.begin() + m_own);
  if (!primary || primary == key || (key->flags & HA_NOSAME))
    return;
  for (uint i= 0; i < primary->user_defined_key_parts; i++)
  {
    size_t place= 0;
    while (place < m_parts.size() && key->key_part[place].fieldnr != primary->key_part[i].fieldnr)
      place++;
    m_stored.emplace_back(&primary->key_part[i]);
    m_places.push_back(place);
  }
}

size_t Search_codec::stored_place(size_t part) const
{
  for (size_t i= 0; i < m_places.size(); i++)
    if (part >= m_own && m_places[i] == part)
      return m_own + i;
  return part;
}

void Search_codec::encode_image(const uchar *image, key_part_map parts, std::string *out) const
{
  size_t given= 0;
  std::vector<std::string> values;
  for (; given < m_parts.size() && (parts >> given & 1); given++)
  {
    if (given < m_own && m_own == m_parts.size())
      m_parts[given].encode_image(&image, out);
    else
    {
      const uchar *at= image;
      values.emplace_back();
      m_parts[given].encode_plain_image(&image, &values.back());
      if (given < m_own)
        m_parts[given].encode_image(&at, out);
    }
  }
  if (given <= m_own)
    return;
  for (size_t i= 0; i < m_places.size() && m_places[i] < given; i++)
    m_stored[m_own + i].put_plain(values[m_places[i]], out);
}

Key_codec::Key_codec(const KEY *key)
{
  for (uint i= 0; i < key->user_defined_key_parts; i++)
    m_parts.emplace_back(&key->key_part[i]);
}

bool Key_codec::encode_record(const uchar *record, std::string *out) const
{
  bool has_null= false;
  for (const Key_part_codec &part : m_parts)
    has_null|= part.encode_record(record, out);
  return has_null;
}

void Key_codec::encode_image(const uchar *image, key_part_map parts, std::string *out) const
{
  for (const Key_part_codec &part : m_parts)
  {
    if (!(parts & 1))
      return;
    part.encode_image(&image, out);
    parts>>= 1;
  }
}

bool Key_codec::decode(const uchar *key, size_t length, uchar *record) const
{
  const uchar *end= key + length;
  for (const Key_part_codec &part : m_parts)
  {
    // Behind a column that cannot be decoded, no other can be found; the row has those.
    if (!part.is_reversible())
      return true;
    if (!part.decode(&key, end, record))
      return false;
  }
  return key == end;
}

bool Key_codec::decode_past(const uchar *key, size_t length, uchar *record) const
{
  const uchar *end= key + length;
  for (const Key_part_codec &part : m_parts)
    if (!part.is_reversible())
    {
      key= part.skip(key, end);
      if (!key)
        return false;
    }
    else if (!part.decode(&key, end, record))
      return false;
  return key == end;
}

bool Key_codec::gives_back(const Field *field) const
{
  for (const Key_part_codec &part : m_parts)
    if (part.is_reversible() && part.field() == field)
      return true;
  return false;
}

bool Key_codec::is_reversible() const
{
  for (const Key_part_codec &part : m_parts)
    if (!part.is_reversible())
      return false;
  return true;
}

bool after_prefix(std::string *prefix)
{
  while (!prefix->empty() && prefix->back() == '\xff')
    prefix->pop_back();
  if (prefix->empty())
    return false;
  prefix->back()++;
  return true;
}
