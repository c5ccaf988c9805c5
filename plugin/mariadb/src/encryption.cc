// The server's key management, as the engine asks for keys: a plugin such as file_key_management, which the server loads
// before any storage engine.
#include "encryption.h"

#include <create_options.h>
#include <mysql/service_encryption.h>

// The server's own object: through a plugin's copy of the service, the loader would have to find that.
extern "C" encryption_service_st encryption_handler;

// The server's name for what it fills in of a table's options.
struct ha_table_option_struct
{
  uint encrypted;
  ulonglong encryption_key_id;
  uint codec;
};

ha_create_table_option weir_table_options[]= {HA_TOPTION_ENUM("ENCRYPTED", encrypted, "DEFAULT,YES,NO", 0),
                                              HA_TOPTION_NUMBER("ENCRYPTION_KEY_ID", encryption_key_id, 0, 0, UINT_MAX32, 1),
                                              HA_TOPTION_ENUM("CODEC", codec, "DEFAULT,NONE,LZ4,ZSTD", 0),
                                              HA_TOPTION_END};

namespace
{

int32_t newest_version(void *, uint32_t key_id, uint32_t *version)
{
  *version= encryption_handler.encryption_key_get_latest_version_func(key_id);
  return *version == ENCRYPTION_KEY_VERSION_INVALID || *version == ENCRYPTION_KEY_NOT_ENCRYPTED;
}

int32_t key_of(void *, uint32_t key_id, uint32_t version, uint8_t *key, size_t *key_bytes)
{
  uint length= uint(*key_bytes);
  if (encryption_handler.encryption_key_get_func(key_id, version, key, &length))
    return 1;
  *key_bytes= length;
  return 0;
}

const char *const CODECS[]= {"", "none", "lz4", "zstd"};

const char *codec_of(const ha_table_option_struct *options)
{
  return CODECS[options && options->codec < array_elements(CODECS) ? options->codec : 0];
}

// What a partition says of its own codec; NULL: nothing.
const char *codec_in(const engine_option_value *option)
{
  const char *said= nullptr;
  for (; option; option= option->next)
    if (same_name(option->name.str, "codec"))
    {
      said= CODECS[0];
      for (const char *codec : CODECS)
        if (option->value.str && same_name(option->value.str, codec))
          said= codec;
    }
  return said;
}

// What the partition of a table at this place asks for. What is said of a partition goes for its subpartitions. The server has the
// parsed options of each, too, but of subpartitions only where they are made.
const char *codec_at(const TABLE *table, size_t place)
{
  const char *said= nullptr;
#ifdef WITH_PARTITION_STORAGE_ENGINE
  if (partition_info *whole= table->part_info)
  {
    size_t each= whole->is_sub_partitioned() ? whole->num_subparts : 1;
    List_iterator_fast<partition_element> parts(whole->partitions);
    partition_element *part= parts++;
    for (; part && place >= each; place-= each)
      part= parts++;
    if (part)
      said= codec_in(part->option_list);
  }
#endif
  return said ? said : codec_of(table->s->option_struct);
}

} // namespace

// Of a partition the server says them in the form while it makes it.
const char *weir_codec_asked(const TABLE *form) { return codec_of(form->s->option_struct); }

const char *weir_new_codec(const TABLE *now, const TABLE *then, size_t place)
{
  if (!strcmp(codec_of(now->s->option_struct), codec_of(then->s->option_struct)))
    return nullptr;
  return codec_at(then, place);
}

const weir_key_provider weir_server_keys= {nullptr, newest_version, key_of};
