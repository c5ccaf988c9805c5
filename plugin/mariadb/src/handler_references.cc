// What the server asks about foreign keys: for SHOW CREATE TABLE, for the information schema, and which tables a
// statement may come to by them.
#include "ha_weir.h"

#include "foreign_keys.h"

namespace
{

LEX_CSTRING *word(THD *thd, const std::string &s) { return thd->make_clex_string(s.data(), s.size()); }

FOREIGN_KEY_INFO *info_of(THD *thd, const Reference &reference, bool opens)
{
  const Foreign_key_definition &key= reference.key;
  void *room= thd->alloc(sizeof(FOREIGN_KEY_INFO));
  if (!room)
    return nullptr;
  FOREIGN_KEY_INFO *info= new (room) FOREIGN_KEY_INFO();
  info->foreign_id= word(thd, key.name);
  info->foreign_db= word(thd, shown_schema(reference.child));
  info->foreign_table= word(thd, shown_table(reference.child));
  info->referenced_db= word(thd, shown_schema(key.parent));
  info->referenced_table= word(thd, shown_table(key.parent));
  info->update_method= key.on_update == FK_OPTION_UNDEF ? FK_OPTION_RESTRICT : key.on_update;
  info->delete_method= key.on_delete == FK_OPTION_UNDEF ? FK_OPTION_RESTRICT : key.on_delete;
  // A deletion further up may come here as an update; the server would not open this table for it.
  if (opens && fk_modifies_child(info->update_method) && !fk_modifies_child(info->delete_method))
    info->delete_method= info->update_method;
  if (opens && fk_modifies_child(info->delete_method) && !fk_modifies_child(info->update_method))
    info->update_method= info->delete_method;
  info->referenced_key_name= nullptr;
  Definitions::Pointer child= weir_definitions.find(reference.child), parent= weir_definitions.find(key.parent);
  const Index_definition *own= child ? child->find_index(key.columns, nullptr) : nullptr;
  const Index_definition *other= parent ? parent->find_index(key.parent_columns, nullptr) : nullptr;
  if (other)
    info->referenced_key_name= word(thd, other->name);
  uint count= static_cast<uint>(key.columns.size());
  for (uint i= 0; i < count; i++)
  {
    info->foreign_fields.push_back(word(thd, key.columns[i]), thd->mem_root);
    info->referenced_fields.push_back(word(thd, key.parent_columns[i]), thd->mem_root);
    if (own && own->parts[i].nullable)
      info->set_nullable(thd, false, i, count);
    if (other && other->parts[i].nullable)
      info->set_nullable(thd, true, i, count);
  }
  return info;
}

} // namespace

char *ha_weir::get_foreign_key_create_info()
{
  std::string all;
  for (const Foreign_key_definition &key : in_order(definition()))
    all+= show_foreign_key(ha_thd(), m_name, key, true);
  return all.empty() ? nullptr : strdup(all.c_str());
}

void ha_weir::free_foreign_key_create_info(char *text) { free(text); }

int ha_weir::get_foreign_key_list(THD *thd, List<FOREIGN_KEY_INFO> *list)
{
  for (const Foreign_key_definition &key : in_order(definition()))
    if (FOREIGN_KEY_INFO *info= info_of(thd, Reference{m_name, key}, false))
      list->push_back(info, thd->mem_root);
  return 0;
}

int ha_weir::get_parent_foreign_key_list(THD *thd, List<FOREIGN_KEY_INFO> *list)
{
  for (const Reference &reference : weir_definitions.referring_to(m_name))
    if (FOREIGN_KEY_INFO *info= info_of(thd, reference, true))
      list->push_back(info, thd->mem_root);
  return 0;
}

bool ha_weir::referenced_by_foreign_key() const noexcept { return weir_definitions.is_referred_to(m_name); }

bool ha_weir::can_switch_engines()
{
  return definition().foreign_keys.empty() && !weir_definitions.is_referred_to(m_name);
}

bool ha_weir::get_foreign_dup_key(char *table_name, uint table_room, char *key_name, uint key_room)
{
  if (m_failure.duplicate_key.empty())
    return false;
  strmake(table_name, m_failure.duplicate_table.c_str(), table_room - 1);
  strmake(key_name, m_failure.duplicate_key.c_str(), key_room - 1);
  return true;
}
