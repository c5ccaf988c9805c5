// The server's key management, as the engine asks for keys.
#ifndef WEIR_PLUGIN_ENCRYPTION_H
#define WEIR_PLUGIN_ENCRYPTION_H

#include "server.h"
#include "weir.h"

// What a table may ask for: CODEC, and ENCRYPTED and ENCRYPTION_KEY_ID, as InnoDB has them. All tables or none are encrypted: handler_define.cc
// refuses what is not so.
extern ha_create_table_option weir_table_options[];

// The name of the codec by which a table asks for its pages to be packed (CODEC); empty: as the engine chooses.
const char *weir_codec_asked(const ha_table_option_struct *options);
// The one that ALTER gives a table in place of another; NULL: it keeps its own.
const char *weir_new_codec(const ha_table_option_struct *now, const ha_table_option_struct *then);

// Where the keys of the engine's files come from.
extern const weir_key_provider weir_server_keys;

#endif
