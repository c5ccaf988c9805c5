// What would be silent memory corruption becomes a failed build: sizes as they are in Debian's binary. The
// build also compares these names with `nm -DS` of the installed server (tools/check_layout.sh).
#include "server.h"

static_assert(sizeof(CHARSET_INFO) == WEIR_SIZE_CHARSET_INFO, "charset_info_st");
static_assert(sizeof(struct system_variables) == WEIR_SIZE_SYSTEM_VARIABLES, "system_variables");
static_assert(sizeof(STATUS_VAR) == WEIR_SIZE_STATUS_VAR, "system_status_var");
static_assert(sizeof(MYSQL_BIN_LOG) == WEIR_SIZE_BIN_LOG, "MYSQL_BIN_LOG");
