// The server's headers, in the one order that works, with the definitions that fix the layout of its classes.
// layout_check.cc compares the outcome with the server's binary.
#ifndef WEIR_PLUGIN_SERVER_H
#define WEIR_PLUGIN_SERVER_H

#define MYSQL_SERVER 1
#include <my_global.h>
#include <sql_class.h>
#include <handler.h>
#include <key.h>
#include <table.h>
#include <sql_base.h>
#include <sql_table.h>
#include <sql_partition.h>
#include <sql_show.h>
#include <log.h>
#include <mysql/plugin.h>
#include <mysql/psi/mysql_table.h>

#undef min
#undef max

#endif
