// The server's key management, as the engine asks for keys: a plugin such as file_key_management, which the server loads
// before any storage engine.
#include "encryption.h"

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

} // namespace

const char *weir_codec_asked(const ha_table_option_struct *options)
{
  static const char *const names[]= {"", "none", "lz4", "zstd"};
  return names[options && options->codec < 4 ? options->codec : 0];
}

const char *weir_new_codec(const ha_table_option_struct *now, const ha_table_option_struct *then)
{
  const char *codec= weir_codec_asked(then);
  return strcmp(codec, weir_codec_asked(now)) ? codec : nullptr;
}

const weir_key_provider weir_server_keys= {nullptr, newest_version, key_of};
