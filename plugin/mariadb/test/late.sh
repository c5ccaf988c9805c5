#!/bin/bash
# The plugin loaded into a server that runs already: it serves, but not as long as a crash has left transactions that only
# a start of the server completes.
#   late.sh PLUGIN DIRECTORY
set -eu
here=$(cd "$(dirname "$0")" && pwd)
plugin=$1 directory=$2
. "$here/servers.sh"
binlog=(--log-bin=binlog --sync-binlog=1 --server-id=1)
stop() {
	mariadb-admin --no-defaults -uroot -S "$sockets/main" shutdown
	while kill -0 "$server" 2>/dev/null; do sleep 0.02; done
	unset "servers[$server]"
}
bare() {
	local loaded=()
	start main --skip-networking
}
install() { sql main -e "INSTALL SONAME 'ha_weir'" 2>&1; }

start main --skip-networking "${binlog[@]}"
sql main -e "CREATE DATABASE d; CREATE TABLE d.t (w INT, n INT, PRIMARY KEY(w,n)) ENGINE=Weir"
for w in 1 2 3 4 5 6 7 8; do
	seq 100000 | awk -v w=$w '{ print "INSERT INTO t VALUES (" w "," $1 "); SELECT " w "," $1 ";" }' |
		sql main d --unbuffered >"$directory/said.$w" 2>/dev/null &
done
for _ in $(seq 300); do
	[ "$(cat "$directory"/said.? | wc -l)" -lt 500 ] || break
	sleep 0.1
done
slay $server
wait

# Without its binary log, the server completes nothing.
bare
said=$(install) && die "loaded although transactions are half committed"
grep -q "half committed" "$directory/main/server.log" || die "no reason is given: $said"
sql main -e "SELECT COUNT(*) FROM information_schema.engines WHERE engine='Weir' AND support IN ('YES','DEFAULT')" | grep -qx 0 || die "it is there"
stop

start main --skip-networking "${binlog[@]}"
lost=$(comm -13 <(sql main d -e 'SELECT CONCAT_WS(" ", w, n) FROM t' | sort) <(cat "$directory"/said.? | tr '\t' ' ' | sort) | head -n 3)
[ -z "$lost" ] || die "acknowledged and lost: $lost"
stop

# What nothing was left of can be loaded late.
bare
said=$(install) || die "not loaded: $said"
[ "$(sql main d -e 'SELECT COUNT(*) > 400 FROM t; CHECK TABLE t' | tr '\t\n' ' ;')" = "1;d.t check status OK;" ] || die "the table is not as it was"
echo "late: a running server is refused what only a start completes, and loads the plugin otherwise"
