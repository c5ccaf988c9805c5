#include "row_codec.h"

#include <algorithm>

namespace
{

// Of which layout a row is: with all columns that there were before any was added, or with a number of them (two bytes)
// that is told.
const char FORMAT_PLAIN= 1, FORMAT_COUNTED= 2;

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

// As Field_blob::pack, without filling the room for it before.
void pack_blob(const Field_blob *field, std::string *out)
{
  const char *bytes= reinterpret_cast<const char *>(field->get_ptr());
  uint32 length= field->get_length();
  // In a record as packed, the least byte first.
  out->append(reinterpret_cast<const char *>(field->ptr), field->pack_length_no_ptr());
  if (length)
    out->append(bytes, length);
}

} // namespace

void Row_codec::add(Field *field)
{
  m_fields.push_back(field);
  m_nullable_before.push_back(m_nullable);
  if (field->real_maybe_null())
    m_nullable++;
}

Row_codec::Row_codec(TABLE *table, const Key_codec *key, const std::vector<Added_column> &added)
    : m_table(table), m_nullable(0), m_added(added)
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
  out->push_back(m_added.empty() ? FORMAT_PLAIN : FORMAT_COUNTED);
  if (!m_added.empty())
  {
    out->push_back(static_cast<char>(m_fields.size() & 0xff));
    out->push_back(static_cast<char>(m_fields.size() >> 8));
  }
  size_t nulls= out->size();
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
    if (field->flags & BLOB_FLAG)
    {
      pack_blob(static_cast<Field_blob *>(field), out);
      field->move_field_offset(-offset);
      continue;
    }
    size_t before= out->size();
    // Not what the longest value of a VARCHAR would take: the room is filled before it is written.
    size_t room= (field->real_type() == MYSQL_TYPE_VARCHAR ? field->data_length() : field->pack_length()) + 8;
    out->resize(before + room);
    uchar *begin= reinterpret_cast<uchar *>(&(*out)[before]);
    uchar *end= field->pack(begin, field->ptr, UINT_MAX32);
    field->move_field_offset(-offset);
    out->resize(before + (end - begin));
  }
}

size_t Row_codec::wanted() const
{
  size_t count= m_fields.size();
  for (; count > 0; count--)
  {
    const Field *field= m_fields[count - 1];
    if ((field->flags & PRI_KEY_FLAG) || bitmap_is_set(m_table->read_set, field->field_index) ||
        bitmap_is_set(m_table->write_set, field->field_index))
      break;
  }
  return count;
}

bool Row_codec::decode(const uchar *bytes, size_t length, uchar *record) const
{
  size_t count;
  const uchar *at= decode_columns(bytes, length, SIZE_MAX, &count, record);
  return at && at == bytes + length && (count == m_fields.size() || decode_added(count, record));
}

bool Row_codec::decode_front(const uchar *bytes, size_t length, size_t columns, uchar *record) const
{
  size_t count;
  // What the row lacks stands behind all that it has, and that is not all here.
  if (!decode_columns(bytes, length, columns, &count, record) || count < columns)
    return false;
  my_ptrdiff_t offset= record - m_table->record[0];
  for (size_t i= columns; i < m_fields.size(); i++)
  {
    // No blob points to where it no longer is.
    m_fields[i]->move_field_offset(offset);
    m_fields[i]->reset();
    m_fields[i]->set_null();
    m_fields[i]->move_field_offset(-offset);
  }
  return true;
}

// Decodes the first `most` columns, or all `count` that there are, and returns what is behind them.
const uchar *Row_codec::decode_columns(const uchar *bytes, size_t length, size_t most, size_t *columns,
                                       uchar *record) const
{
  my_ptrdiff_t offset= record - m_table->record[0];
  const uchar *at= bytes, *end= bytes + length;
  size_t count= m_fields.size() - m_added.size();
  if (length < 1 || (*at != FORMAT_PLAIN && *at != FORMAT_COUNTED))
    return nullptr;
  if (*at++ == FORMAT_COUNTED)
  {
    if (length < 3)
      return nullptr;
    count= uint2korr(at);
    at+= 2;
  }
  if (count > m_fields.size() || count + m_added.size() < m_fields.size())
    return nullptr;
  *columns= count;
  uint nullable= count < m_fields.size() ? m_nullable_before[count] : m_nullable;
  const uchar *nulls= at;
  if (static_cast<size_t>(end - at) < (nullable + 7) / 8)
    return nullptr;
  at+= (nullable + 7) / 8;
  uint nth= 0;
  for (size_t i= 0; i < std::min(count, most); i++)
  {
    Field *field= m_fields[i];
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
    if (!at || at > end)
      return nullptr;
  }
  return at;
}

// What a row lacks from a field on.
bool Row_codec::decode_added(size_t from, uchar *record) const
{
  my_ptrdiff_t offset= record - m_table->record[0];
  bool sound= true;
  for (size_t i= from; i < m_fields.size() && sound; i++)
  {
    const Added_column &column= m_added[i - (m_fields.size() - m_added.size())];
    const uchar *packed= reinterpret_cast<const uchar *>(column.packed.data());
    Field *field= m_fields[i];
    field->move_field_offset(offset);
    if (column.null)
    {
      field->reset();
      field->set_null();
    }
    else
    {
      field->set_notnull();
      sound= field->unpack(field->ptr, packed, packed + column.packed.size(), 0) != nullptr;
    }
    field->move_field_offset(-offset);
  }
  return sound;
}
