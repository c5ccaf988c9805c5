#!/bin/bash
# How soon a server is as fast as before after a restart: TPC-C on InnoDB and on Weir, each engine alone in a server with a pool
# that holds all, on a disk that the kernel limits to so many writes; reads are free. The server is stopped in order, the file
# cache emptied where that is allowed, started again, and 8 clients begin with its first answer.
#   restart.sh PLUGIN DIRECTORY WEIR [ROUNDS]
# Prints the transactions of each second, and the first second of which the rate is 90 % of the mean of the last ten. InnoDB
# runs twice: as it is (it lists a quarter of its pages) and with innodb_buffer_pool_dump_pct=100. CHECK is the clients' own.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
: "${WAREHOUSES:=20}" "${POOL_MIB:=4096}" "${LOG_MIB:=512}" "${SECONDS_EACH:=50}" "${LIMIT_WRITES:=2000}" "${LIMIT_BYTES:=32000000}"
if [ "${1:-}" = --inside ]; then # WEIR ENGINE load|run DIRECTORY
	weir=$2 engine=$3 what=$4 directory=$5
	. "$here/limit.sh"
	url="mysql://root@localhost/restart?socket=$WEIR_SOCKET"
	bench() { "$weir" bench tpcc --mysql "$url" --engine "$engine" --warehouses "$WAREHOUSES" --threads 8 --plain "$@"; }
	if [ "$what" = load ]; then
		mariadb --no-defaults -uroot -S "$WEIR_SOCKET" -e "CREATE DATABASE IF NOT EXISTS restart"
		bench --seconds 10 --warmup 0 >"$directory/load.log" 2>&1 || { tail -n 5 "$directory/load.log"; exit 1; }
		exit
	fi
	trap limit_end EXIT
	limit_begin "$(cat "$(dirname "$WEIR_SOCKET")/my.pid" 2>/dev/null || cat "$directory/mariadb/my.pid")" "$directory"
	limit_set "$LIMIT_WRITES" "$LIMIT_BYTES"
	bench --seconds "$SECONDS_EACH" --restarted >"$directory/run.log" 2>&1 || { tail -n 5 "$directory/run.log"; exit 1; }
	exit
fi
[ $# -ge 3 ] || { sed -n '2,7p' "$0" | sed 's/^# \?//'; exit 2; }
plugin=$(realpath "$1") directory=$2 weir=$(realpath "$3") rounds=${4:-2}
mkdir -p "$directory"
directory=$(cd "$directory" && pwd)
. "$here/options.sh"
export WAREHOUSES SECONDS_EACH LIMIT_WRITES LIMIT_BYTES
server() { # engine load|run options...
	local at=$directory/$1
	mkdir -p "$at"
	"$here/../tools/server.sh" "$plugin" "$at" --run "$here/restart.sh --inside $weir $1 $2 $at" "${durable_options[@]}" "${@:3}"
}
restarted() { # engine name options...
	# What this option lists is written when the server stops: one stop with it comes before.
	server "$1" load "${@:3}"
	sync
	{ echo 3 >/proc/sys/vm/drop_caches; } 2>/dev/null || echo "restart: the file cache is as it is"
	server "$1" run "${@:3}"
	awk -v name="$2" '$2 == "s" && $4 == "tps" { gsub(",", "", $3); tps[++n] = $3; line = line " " $3 } END {
		for (i = n - 9; i <= n; i++) mean += tps[i] / 10
		for (i = 1; i <= n && tps[i] < 0.9 * mean; i++) continue
		printf "%s: rate %.0f, nine tenths of it in second %d;%s\n", name, mean, i, line }' "$directory/$1/run.log"
}
for ((round = 0; round < rounds; round++)); do
	restarted InnoDB "InnoDB"
	restarted InnoDB "InnoDB, all pages listed" --innodb-buffer-pool-dump-pct=100
	restarted Weir "Weir"
done
