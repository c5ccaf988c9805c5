#!/bin/bash
# A plugin that was compiled with headers in which a class of the server's lies otherwise is refused by name, and the one
# that fits is not. For each class the guard (src/layout_guard.cc) is compiled with headers in which a member is added. The one that
# fits starts beside any number of other engines, whose number decides which of them the server initialises before it, and whatever
# the server's settings have of temporary tables, of which the guard makes one.
#   layout.sh BUILD DIRECTORY prepare    makes such plugins; needs the compiler and the server's headers
#   layout.sh BUILD DIRECTORY            makes them where they are not, and asks the server about each
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
mkdir -p "$2"
out=$(cd "$2" && pwd)

# Class, header, the line before which a member is put, and how the refusal names it.
shifts() {
	cat <<-'LIST'
		alter handler.h ^  alter_table_operations handler_flags= Alter_inplace_info
		handlerton handler.h ^  enum legacy_db_type db_type; handlerton
		thd sql_class.h ^  Ha_data ha_data\[MAX_HA\]; THD::
		share table.h ^  ulong   reclength; TABLE_SHARE
		table table.h ^  THD	\*in_use; TABLE
		handler handler.h ^  uint ref_length; handler
	LIST
}

make_one() { # class header line
	local dir=$out/$1
	[ ! -e "$dir/ha_weir.so" ] || return 0
	rm -rf "$dir"
	mkdir -p "$dir"
	cp "$(cat "${SOURCES_AT:-$build/mariadb-source}/current")"/sql/*.h "$dir/"
	sed -i "0,/$3/s//  void *weir_shift;\n&/" "$dir/$2"
	grep -q weir_shift "$dir/$2" || { echo "layout: no line '$3' in $2"; exit 1; }
	make -s -f "$here/../Makefile" BUILD="$build" SOURCES_AT="${SOURCES_AT:-$build/mariadb-source}" SHIFTED="$dir" shifted
	rm -f "$dir"/*.h "$dir"/*.o
}

# The log of a server that is started with a plugin. It ends where the plugin is refused.
start_with() { # directory of the plugin, more options...
	local data=$out/data user=()
	[ "$(id -u)" != 0 ] || user=(--user=root)
	rm -rf "$data"
	mkdir "$data"
	# Before the server is there to do it: the last one's log must not be taken for this one's.
	: >"$out/log"
	timeout 60 mariadbd --no-defaults "${user[@]}" --datadir="$data" --socket="$data/s" --skip-networking --skip-grant-tables \
		--skip-innodb --default-storage-engine=Aria --plugin-dir="$1" --plugin-maturity=experimental --plugin-load-add=ha_weir --weir=FORCE --weir-memory=64M \
		"${@:2}" >"$out/log" 2>&1 &
	local server=$!
	for _ in $(seq 600); do
		! grep -q 'ready for connections' "$out/log" || break
		kill -0 $server 2>/dev/null || break
		sleep 0.1
	done
	kill $server 2>/dev/null || true
	wait $server 2>/dev/null || true
}

shifts | while read -r class header rest; do
	line=${rest% *} name=${rest##* }
	make_one "$class" "$header" "$line"
	[ "${3:-}" = prepare ] && continue
	start_with "$out/$class"
	grep -q "Weir: this plugin is not for this server.*elsewhere: .*$name" "$out/log" ||
		{ echo "layout: a shifted $class is not refused"; tail -n 5 "$out/log"; exit 1; }
done
[ "${3:-}" = prepare ] && exit
is_let_in() { # directory of the plugin, more options...
	start_with "$@"
	grep -q 'ready for connections' "$out/log" ||
		{ echo "layout: the plugin that fits is refused (${*:2})"; grep -v Warning "$out/log" | tail -n 25; exit 1; }
}
is_let_in "$build" --big-tables=1
is_let_in "$build" --tmp-memory-table-size=0
rm -rf "$out/beside"
mkdir "$out/beside"
ln -s "$build/ha_weir.so" "$out/beside/"
others=()
for other in archive blackhole federatedx sphinx example test_sql_discovery rocksdb; do
	for from in "" "$build/peers"; do
		[ ! -e "$from/usr/lib/mysql/plugin/ha_$other.so" ] || [ -e "$out/beside/ha_$other.so" ] || {
			ln -s "$from/usr/lib/mysql/plugin/ha_$other.so" "$out/beside/"
			others+=("--plugin-load-add=ha_$other")
		}
	done
done
for ((count = 0; count <= ${#others[@]}; count++)); do
	is_let_in "$out/beside" "${others[@]:0:count}"
done
echo "layout: plugins for other layouts of $(shifts | wc -l) classes are refused by name, the one that fits is not, beside 0 to ${#others[@]} other engines"
