#!/bin/bash
# Compares what the plugin is compiled with and what the installed server's binary was compiled with. A class
# of another size is memory corruption without an error; a symbol that is not there is a plugin that does not
# load.
#   check_layout.sh sizes           the definitions for src/layout_check.cc
#   check_layout.sh symbols PLUGIN  fails if the server lacks what the plugin wants, or a class has another size
set -eu
server=${SERVER_ROOT:-}/usr/sbin/mariadbd

size() { # of a symbol, decimal
	local hex
	hex=$(nm -DS "$1" | awk -v s="$2" '$4 == s { print $2; exit }')
	[ -n "$hex" ] || { echo "check_layout: $1 has no symbol $2" >&2; exit 1; }
	echo $((16#$hex))
}

case $1 in
sizes)
	echo "-DWEIR_SIZE_CHARSET_INFO=$(size $server my_charset_bin)"
	echo "-DWEIR_SIZE_SYSTEM_VARIABLES=$(size $server global_system_variables)"
	echo "-DWEIR_SIZE_STATUS_VAR=$(size $server global_status_var)"
	echo "-DWEIR_SIZE_BIN_LOG=$(size $server mysql_bin_log)"
	;;
symbols)
	missing=$(comm -23 <(nm -D --undefined-only "$2" | awk '$1 == "U" { print $2 }' | sed 's/@.*//' | sort -u) \
		<({ nm -D --defined-only $server; for lib in libc libm libstdc++ libgcc_s libpthread libdl ld-linux-x86-64 libasan libubsan; do
			nm -D --defined-only "$(ldconfig -p | awk -v l="$lib.so" 'index($1, l) == 1 { print $NF; exit }')" 2>/dev/null
		done; } | awk '{ print $NF }' | sed 's/@.*//' | sort -u))
	[ -z "$missing" ] || { echo "check_layout: the server does not have: $missing" >&2; exit 1; }
	# The table of virtual functions of our handler begins with that of the server's: as many entries, at the least.
	ours=$(nm -S "$2" | awk '$4 == "_ZTV7ha_weir" { print $2; exit }')
	theirs=$(size $server _ZTV7handler)
	[ "$((16#$ours))" = "$theirs" ] || {
		echo "check_layout: handler has $theirs bytes of virtual functions, ours $((16#$ours))" >&2; exit 1; }
	;;
esac
