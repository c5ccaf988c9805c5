// The server's key management, as the engine asks for keys.
#ifndef WEIR_PLUGIN_ENCRYPTION_H
#define WEIR_PLUGIN_ENCRYPTION_H

#include "server.h"
#include "weir.h"

// What a table may ask for: ENCRYPTED and ENCRYPTION_KEY_ID, as InnoDB has them. All tables or none are encrypted: handler_define.cc
// refuses what is not so.
extern ha_create_table_option weir_table_options[];

// Where the keys of the engine's files come from.
extern const weir_key_provider weir_server_keys;

#endif
