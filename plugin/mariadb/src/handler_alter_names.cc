// Names that change, foreign keys that go and columns that come, go and move, by definitions alone.
#include "ha_weir.h"

#include <map>

#include "alter_definition.h"
#include "backoff.h"
#include "encryption.h"
#include "foreign_keys.h"

// Brings new names, and what has gone of the foreign keys, into the definitions of this table and of those that refer
// to it, all at once.
bool ha_weir::commit_change_of_names(TABLE *altered, Alter_inplace_info *info)
{
  std::vector<ha_weir *> parts= altered_parts(this, info);
  // What is left of an index speaks of columns by their places, and has a name that may be wanted.
  for (ha_weir *part : parts)
    if (part->drop_leftovers())
      return true;
  weir_code code;
  Backoff backoff(ha_thd());
  do
  {
    std::lock_guard<std::mutex> guard(weir_definitions.changing());
    std::map<std::string, Table_definition> changed;
    for (ha_weir *part : parts)
      changed[part->m_name]= altered_definition(part->definition(), part->m_name, table, altered, info);
    New_names names= renamed_columns(info->alter_info);
    for (const std::string &child : weir_definitions.speaking_of(m_name))
    {
      if (changed.count(child))
        continue;
      changed[child]= *weir_definitions.find(child);
      for (Foreign_key_definition &key : changed[child].foreign_keys)
        if (key.parent == m_name)
          rename_columns(names, &key.parent_columns);
    }
    std::vector<weir_new_name> renamed= renamed_indexes(table, info);
    std::map<std::string, const char *> codecs;
    for (size_t place= 0; place < parts.size(); place++)
      codecs[parts[place]->m_name]= weir_new_codec(table, altered, place);
    Redefinitions redefinitions;
    for (const std::pair<const std::string, Table_definition> &one : changed)
    {
      auto own= codecs.find(one.first);
      bool is_own= own != codecs.end();
      redefinitions.add(one.first, one.second, is_own ? &renamed : nullptr, is_own ? own->second : nullptr);
    }
    code= info->handler_flags & NULLS
              ? weir_table_redefine_anew(weir_database, redefinitions.data(), redefinitions.size(), 0)
              : weir_table_redefine(weir_database, redefinitions.data(), redefinitions.size());
    if (code == WEIR_OK)
      for (const std::pair<const std::string, Table_definition> &one : changed)
        weir_definitions.put(one.first, one.second);
  } while (backoff.again(&code));
  if (code != WEIR_OK)
  {
    fail_alter(code);
    return true;
  }
  // The session that opens it next finds the indexes by their new names.
  for (ha_weir *part : parts)
    part->m_share->forget(false);
  return false;
}
