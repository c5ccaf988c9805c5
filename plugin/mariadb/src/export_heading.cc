#include "export_heading.h"

#include <algorithm>

#include "wire.h"

namespace
{

const ulonglong FORMAT= 1;

// All that what is kept of it depends on.
std::string words_of(const Field *field)
{
  StringBuffer<128> words(system_charset_info);
  const_cast<Field *>(field)->sql_type(words);
  std::string out= "`" + std::string(field->field_name.str, field->field_name.length) + "` " + words.c_ptr_safe();
  if (field->has_charset())
    out+= std::string(" COLLATE ") + field->charset()->coll_name.str;
  if (!field->real_maybe_null())
    out+= " NOT NULL";
  if (field->vers_sys_field())
    out+= field->flags & VERS_ROW_START ? " ROW START" : " ROW END";
  if (field->vcol_info && field->vcol_info->expr)
  {
    StringBuffer<128> expression(system_charset_info);
    field->vcol_info->print(&expression);
    out+= std::string(field->stored_in_db() ? " STORED AS (" : " AS (") + expression.c_ptr_safe() + ")";
  }
  return out;
}

std::string words_of(const TABLE *table, uint at)
{
  const KEY *key= &table->key_info[at];
  std::string out= "`" + std::string(key->name.str, key->name.length) + "` ";
  if (is_fulltext(key))
    out+= "FULLTEXT ";
  else if (is_spatial(key))
    out+= "SPATIAL ";
  else if (key->flags & HA_NOSAME)
    out+= key->algorithm == HA_KEY_ALG_LONG_HASH ? "UNIQUE USING HASH " : at == table->s->primary_key ? "UNIQUE OF ROWS " : "UNIQUE ";
  for (uint part= 0; part < key->user_defined_key_parts; part++)
  {
    const KEY_PART_INFO *info= &key->key_part[part];
    const Field *column= info->fieldnr ? table->field[info->fieldnr - 1] : nullptr;
    out+= part ? ", `" : "(`";
    out+= (column ? std::string(column->field_name.str, column->field_name.length) : std::string()) + "`";
    if (!is_fulltext(key) && !is_spatial(key))
      out+= " " + std::to_string(info->length) + (info->key_part_flag & HA_REVERSE_SORT ? " DESC" : "");
  }
  return out + ")";
}

} // namespace

Export_heading Export_heading::of(const TABLE *table)
{
  Export_heading out;
  out.table= std::string(table->s->db.str, table->s->db.length) + "." + std::string(table->s->table_name.str, table->s->table_name.length);
  out.server= server_version;
  out.versioned= table->s->versioned;
  for (uint i= 0; i < table->s->fields; i++)
    out.columns.push_back(words_of(table->field[i]));
  for (uint i= 0; i < table->s->keys; i++)
    out.indexes.push_back(words_of(table, i));
  std::sort(out.indexes.begin(), out.indexes.end());
  return out;
}

std::string Export_heading::encode() const
{
  Writer out;
  out.number(FORMAT);
  out.text(table);
  out.text(server);
  out.number(versioned);
  out.texts(columns);
  out.texts(indexes);
  return out.m_out;
}

bool Export_heading::decode(const std::string &bytes)
{
  Reader in(reinterpret_cast<const uchar *>(bytes.data()), bytes.size());
  if (in.number() != FORMAT)
    return false;
  table= in.text();
  server= in.text();
  versioned= in.number();
  columns= in.texts();
  indexes= in.texts();
  return true;
}

std::string Export_heading::misfit(const Export_heading &other) const
{
  if (versioned != other.versioned)
    return std::string("the table in the file is ") + (versioned ? "not " : "") + "WITH SYSTEM VERSIONING";
  for (size_t i= 0; i < std::max(columns.size(), other.columns.size()); i++)
  {
    std::string here= i < columns.size() ? columns[i] : "none", there= i < other.columns.size() ? other.columns[i] : "none";
    if (here != there)
      return "column " + std::to_string(i + 1) + " is " + there + " in the file, and here " + here;
  }
  for (size_t i= 0; i < std::max(indexes.size(), other.indexes.size()); i++)
  {
    std::string here= i < indexes.size() ? indexes[i] : "none", there= i < other.indexes.size() ? other.indexes[i] : "none";
    if (here != there)
      return "index " + std::to_string(i + 1) + " by name is " + there + " in the file, and here " + here;
  }
  return "";
}
