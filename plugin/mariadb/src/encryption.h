// The server's key management, as the engine asks for keys.
#ifndef WEIR_PLUGIN_ENCRYPTION_H
#define WEIR_PLUGIN_ENCRYPTION_H

#include "server.h"
#include "weir.h"

// What a table may ask for: CODEC, and ENCRYPTED and ENCRYPTION_KEY_ID, as InnoDB has them. All tables or none are encrypted: handler_define.cc
// refuses what is not so.
extern ha_create_table_option weir_table_options[];

// The name of the codec by which a table that is made, or a partition of one, asks for its pages to be packed (CODEC); empty: as the
// engine chooses.
const char *weir_codec_asked(const TABLE *form);
// The one that ALTER gives a table in place of another, or its partition at this place; NULL: it keeps its own. A partition that has
// a codec of its own keeps that.
const char *weir_new_codec(const TABLE *now, const TABLE *then, size_t place);

// Where the keys of the engine's files come from.
extern const weir_key_provider weir_server_keys;

#endif
