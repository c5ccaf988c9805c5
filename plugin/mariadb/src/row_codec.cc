#include "row_codec.h"

#include <algorithm>

namespace
{

// Of which layout a row is. There is one; a column added without rewriting the rows would make another.
const char FORMAT= 1;

// The columns that a key gives back: those before the first that it does not.
std::vector<Field *> given_back(const Key_codec *key)
{
  std::vector<Field *> fields;
  for (const Key_part_codec &part : key->parts())
  {
    if (!part.is_reversible())
      break;
    fields.push_back(part.field());
  }
  return fields;
}

bool has(const std::vector<Field *> &fields, const Field *field)
{
  return std::find(fields.begin(), fields.end(), field) != fields.end();
}

} // namespace

void Row_codec::add(Field *field)
{
  m_fields.push_back(field);
  if (field->real_maybe_null())
    m_nullable++;
}

Row_codec::Row_codec(TABLE *table, const Key_codec *key) : m_table(table), m_nullable(0)
{
  std::vector<Field *> known= given_back(key);
  for (Field **field= table->field; *field; field++)
    if ((*field)->stored_in_db() && !has(known, *field))
      add(*field);
}

Row_codec::Row_codec(TABLE *table, const Key_codec *index, const Key_codec *primary)
    : m_table(table), m_nullable(0)
{
  std::vector<Field *> known= given_back(index), of_primary= given_back(primary);
  known.insert(known.end(), of_primary.begin(), of_primary.end());
  for (const Key_codec *key : {index, primary})
    for (const Key_part_codec &part : key->parts())
    {
      // The key knows the column under a field of its own if it is a prefix.
      Field *field= m_table->field[part.field()->field_index];
      if (!has(known, part.field()) && !has(m_fields, field))
        add(field);
    }
}

void Row_codec::encode(const uchar *record, std::string *out) const
{
  my_ptrdiff_t offset= record - m_table->record[0];
  size_t nulls= out->size() + 1;
  out->push_back(FORMAT);
  out->append((m_nullable + 7) / 8, '\0');
  uint nth= 0;
  for (Field *field : m_fields)
  {
    if (field->real_maybe_null())
    {
      uint bit= nth++;
      if (field->is_null_in_record(record))
      {
        (*out)[nulls + bit / 8]|= static_cast<char>(1 << bit % 8);
        continue;
      }
    }
    field->move_field_offset(offset);
    size_t before= out->size();
    size_t room= field->pack_length() + 8;
    if (field->flags & BLOB_FLAG)
      room+= static_cast<Field_blob *>(field)->get_length();
    out->resize(before + room);
    uchar *begin= reinterpret_cast<uchar *>(&(*out)[before]);
    uchar *end= field->pack(begin, field->ptr, UINT_MAX32);
    field->move_field_offset(-offset);
    out->resize(before + (end - begin));
  }
}

bool Row_codec::decode(const uchar *bytes, size_t length, uchar *record) const
{
  my_ptrdiff_t offset= record - m_table->record[0];
  const uchar *at= bytes, *end= bytes + length;
  size_t null_bytes= (m_nullable + 7) / 8;
  if (length < 1 + null_bytes || *at != FORMAT)
    return false;
  const uchar *nulls= at + 1;
  at= nulls + null_bytes;
  uint nth= 0;
  for (Field *field : m_fields)
  {
    bool null= false;
    if (field->real_maybe_null())
    {
      uint bit= nth++;
      null= nulls[bit / 8] >> bit % 8 & 1;
    }
    field->move_field_offset(offset);
    if (null)
    {
      // Two equal rows are compared as bytes in places, so what lies under a NULL must be equal too.
      field->reset();
      field->set_null();
    }
    else
    {
      field->set_notnull();
      at= field->unpack(field->ptr, at, end, 0);
    }
    field->move_field_offset(-offset);
    if (!at)
      return false;
  }
  return at == end;
}
