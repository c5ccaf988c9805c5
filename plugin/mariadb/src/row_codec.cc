#include "row_codec.h"

#include <algorithm>

namespace
{

// Of which layout a row is: with all columns that there were before any was added, or with a number of them (two bytes)
// that the row says.
const char FORMAT_PLAIN= 1, FORMAT_COUNTED= 2;
// Of a layout whose number the row says, in two bytes, with all its columns (Row_layouts).
const char FORMAT_NUMBERED= 3;
// An entry one of whose values would not have fitted before its column grew: lengths as the columns have them now. In others
// they are as they were, so that an entry is made of the same values as the same bytes whenever it is.
const char FORMAT_WIDE= 4;
const uint NARROW= 1, BROAD= 2;

} // namespace

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

namespace
{

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

std::vector<Field *> columns_of_rows(const TABLE *table, const Key_codec *primary)
{
  std::vector<Field *> known= given_back(primary), fields;
  for (Field **field= table->field; *field; field++)
    if ((*field)->stored_in_db() && !has(known, *field))
      fields.push_back(*field);
  return fields;
}

Row_codec::Row_codec(TABLE *table, const Key_codec *key, const Table_definition &definition)
    : m_table(table), m_nullable(0), m_added(definition.added), m_layouts(definition.layouts)
{
  for (Field *field : columns_of_rows(table, key))
    add(field);
}

Row_codec::Row_codec(TABLE *table, const Key_codec *index, const Key_codec *primary, const Row_codec &rows)
    : m_table(table), m_nullable(0)
{
  std::vector<Field *> known= given_back(index), of_primary= given_back(primary);
  known.insert(known.end(), of_primary.begin(), of_primary.end());
  bool any= false;
  for (const Key_codec *key : {index, primary})
    for (const Key_part_codec &part : key->parts())
    {
      // The key knows the column under a field of its own if it is a prefix.
      Field *field= m_table->field[part.field()->field_index];
      if (has(known, part.field()) || has(m_fields, field))
        continue;
      add(field);
      m_narrow.push_back(rows.is_narrow(field));
      any|= m_narrow.back();
    }
  if (!any)
    m_narrow.clear();
}

bool Row_codec::is_sound() const
{
  if (!m_layouts)
    return true;
  if (m_layouts->all.size() < 2 || m_layouts->now().size() != m_fields.size())
    return false;
  for (size_t i= 0; i < m_fields.size(); i++)
  {
    const Laid_column &column= m_layouts->now()[i];
    if (column.kind != kind_of(m_fields[i]) || column.nullable != m_fields[i]->real_maybe_null())
      return false;
  }
  return true;
}

// Whether the column's values have become such as may be longer than 255 bytes.
bool Row_codec::is_narrow(const Field *field) const
{
  for (size_t i= 0; m_layouts && i < m_fields.size(); i++)
    if (m_fields[i] == field)
    {
      const Laid_column *first= m_layouts->find_first(m_layouts->now()[i].id);
      return first && first->kind == NARROW && kind_of(field) == BROAD;
    }
  return false;
}

bool Row_codec::has_wide(const uchar *record) const
{
  my_ptrdiff_t offset= record - m_table->record[0];
  for (size_t i= 0; i < m_narrow.size(); i++)
  {
    Field *field= m_fields[i];
    if (!m_narrow[i] || field->is_null_in_record(record))
      continue;
    field->move_field_offset(offset);
    uint32 length= field->data_length();
    field->move_field_offset(-offset);
    if (length > 255)
      return true;
  }
  return false;
}

void Row_codec::encode(const uchar *record, std::string *out) const
{
  my_ptrdiff_t offset= record - m_table->record[0];
  bool wide= has_wide(record);
  out->push_back(m_layouts ? FORMAT_NUMBERED : wide ? FORMAT_WIDE : m_added.empty() ? FORMAT_PLAIN : FORMAT_COUNTED);
  if (m_layouts)
  {
    out->push_back(static_cast<char>(m_layouts->number() & 0xff));
    out->push_back(static_cast<char>(m_layouts->number() >> 8));
  }
  else if (!m_added.empty())
  {
    out->push_back(static_cast<char>(m_fields.size() & 0xff));
    out->push_back(static_cast<char>(m_fields.size() >> 8));
  }
  size_t nulls= out->size();
  out->append((m_nullable + 7) / 8, '\0');
  uint nth= 0;
  for (size_t i= 0; i < m_fields.size(); i++)
  {
    Field *field= m_fields[i];
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
    if (unlikely(!m_narrow.empty()) && !wide && m_narrow[i])
      out->erase(before + 1, 1);
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
  if (m_layouts && !is_present(bytes, length))
    return decode_older(bytes, length, record);
  size_t count;
  const uchar *at= decode_columns(bytes, length, SIZE_MAX, &count, record);
  return at && at == bytes + length && (count == m_fields.size() || decode_added(count, record));
}

bool Row_codec::decode_front(const uchar *bytes, size_t length, size_t columns, uchar *record) const
{
  if (m_layouts && !is_present(bytes, length))
    return false;
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
  if (length < 1)
    return nullptr;
  const char format= static_cast<char>(*at++);
  const bool narrow= !m_narrow.empty() && format == FORMAT_PLAIN;
  if (format == FORMAT_COUNTED)
  {
    if (length < 3)
      return nullptr;
    count= uint2korr(at);
    at+= 2;
  }
  else if (m_layouts && format == FORMAT_NUMBERED)
    at+= 2; // It is the present one's: is_present.
  else if (format != FORMAT_PLAIN && (m_narrow.empty() || format != FORMAT_WIDE))
    return nullptr;
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
      at= narrow && m_narrow[i] ? unpack_value(field, NARROW, at, end) : field->unpack(field->ptr, at, end, 0);
    }
    field->move_field_offset(-offset);
    if (!at || at > end)
      return nullptr;
  }
  return at;
}

// What a column has in a row that lacks it.
static bool put_later(Field *field, Column_kind kind, const Added_column &value, my_ptrdiff_t offset)
{
  const uchar *packed= reinterpret_cast<const uchar *>(value.packed.data());
  bool sound= true;
  field->move_field_offset(offset);
  if (value.null)
  {
    field->reset();
    field->set_null();
  }
  else
  {
    field->set_notnull();
    sound= unpack_value(field, kind, packed, packed + value.packed.size()) != nullptr;
  }
  field->move_field_offset(-offset);
  return sound;
}

// What a row lacks from a field on.
bool Row_codec::decode_added(size_t from, uchar *record) const
{
  my_ptrdiff_t offset= record - m_table->record[0];
  for (size_t i= from; i < m_fields.size(); i++)
    if (!put_later(m_fields[i], kind_of(m_fields[i]), m_added[i - (m_fields.size() - m_added.size())], offset))
      return false;
  return true;
}

bool Row_codec::is_present(const uchar *bytes, size_t length) const
{
  return length >= 3 && static_cast<char>(*bytes) == FORMAT_NUMBERED && uint2korr(bytes + 1) == m_layouts->number();
}

const Row_codec::Plan *Row_codec::plan_of(uint number, uint count) const
{
  std::shared_ptr<const Plan> &known= m_plans[std::make_pair(number, count)];
  if (known)
    return known.get();
  std::shared_ptr<Plan> plan= std::make_shared<Plan>();
  const Row_layout &layout= m_layouts->all[number], &now= m_layouts->now();
  std::vector<bool> has(now.size());
  for (uint i= 0; i < count; i++)
  {
    Step step= {nullptr, layout[i].kind, layout[i].nullable};
    for (size_t to= 0; to < now.size(); to++)
      if (now[to].id == layout[i].id)
      {
        step.field= m_fields[to];
        has[to]= true;
      }
    plan->nullable+= step.nullable;
    plan->steps.push_back(step);
  }
  for (size_t to= 0; to < now.size(); to++)
    if (!has[to])
      plan->lacks.emplace_back(m_fields[to], m_layouts->find_later(now[to].id));
  known= plan;
  return known.get();
}

// Decodes a row of another layout than the present one.
bool Row_codec::decode_older(const uchar *bytes, size_t length, uchar *record) const
{
  const uchar *at= bytes + 1, *end= bytes + length;
  uint number= 0, count= m_layouts->plain;
  if (length < 1)
    return false;
  const char format= static_cast<char>(*bytes);
  if (format != FORMAT_PLAIN)
  {
    if (length < 3 || (format != FORMAT_COUNTED && format != FORMAT_NUMBERED))
      return false;
    (format == FORMAT_COUNTED ? count : number)= uint2korr(at);
    at+= 2;
  }
  if (number >= m_layouts->number() || (format == FORMAT_NUMBERED && number == 0))
    return false;
  if (format == FORMAT_NUMBERED)
    count= static_cast<uint>(m_layouts->all[number].size());
  if (count > m_layouts->all[number].size())
    return false;
  const Plan *plan= plan_of(number, count);
  const uchar *nulls= at;
  if (static_cast<size_t>(end - at) < (plan->nullable + 7) / 8)
    return false;
  at+= (plan->nullable + 7) / 8;
  my_ptrdiff_t offset= record - m_table->record[0];
  uint nth= 0;
  for (const Step &step : plan->steps)
  {
    bool null= false;
    if (step.nullable)
    {
      uint bit= nth++;
      null= nulls[bit / 8] >> bit % 8 & 1;
    }
    if (!step.field)
      at= null ? at : skip_value(step.kind, at, end);
    else
    {
      step.field->move_field_offset(offset);
      if (null)
      {
        step.field->reset();
        step.field->set_null();
      }
      else
      {
        step.field->set_notnull();
        at= unpack_value(step.field, step.kind, at, end);
      }
      step.field->move_field_offset(-offset);
    }
    if (!at || at > end)
      return false;
  }
  for (const std::pair<Field *, const Later_column *> &lack : plan->lacks)
    if (!lack.second || !put_later(lack.first, lack.second->kind, lack.second->value, offset))
      return false;
  return at == end;
}
