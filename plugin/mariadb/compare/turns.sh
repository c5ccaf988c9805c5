#!/bin/bash
# InnoDB and Weir in one server, in turns of half a second: for differences that a machine's own waves hide, which last
# for seconds. The clients of both stay connected; those of one are stopped (SIGSTOP) while the other's run.
#   turns.sh PLUGIN DIRECTORY [--binlog] CELL:CLIENTS...         such as oltp_update_non_index:64; `all`: all of make compare's
# Prints, for each cell, statements a second, the ratio with its standard error, and what a statement took: time of the
# server's threads on a processor, switches of context, writes of the device; and how many commits the binary log syncs
# at once. ROWS, TURNS, LOG_MIB, POOL_MIB, and WARM, the seconds that each engine runs before its turns, may be set from outside,
# and OPTIONS, more options of the server: --weir-binlog-gate=OFF.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
: "${OPTIONS:=}" "${ROWS:=1000000}" "${TURNS:=60}" "${WARM:=15}" "${LOG_MIB:=64}" "${POOL_MIB:=4096}"

if [ "${1:-}" != --inside ]; then
	[ $# -ge 3 ] || { sed -n '2,8s/^# \?//p' "$0"; exit 2; }
	command -v sysbench >/dev/null || { echo "turns: sysbench is missing: apt-get install sysbench"; exit 1; }
	plugin=$(realpath "$1") directory=$2
	shift 2
	. "$here/options.sh"
	more=()
	if [ "$1" = --binlog ]; then
		more=("${binlog_options[@]}")
		shift
	fi
	mkdir -p "$directory"
	directory=$(cd "$directory" && pwd)
	export ROWS TURNS WARM
	read -ra options <<<"$OPTIONS"
	exec "$here/../tools/server.sh" "$plugin" "$directory" --run "$here/turns.sh --inside $directory $*" \
		"${durable_options[@]}" "${more[@]}" "${options[@]}"
fi
directory=$2
shift 2
server=$(cat "$directory/mariadb/my.pid")
sql() { mariadb --no-defaults -uroot -S "$WEIR_SOCKET" -N "$@"; }
client() { # engine script arguments...
	sysbench "$2" --db-driver=mysql --mysql-socket="$WEIR_SOCKET" --mysql-user=root --mysql-db="turns_$1" \
		--mysql-storage-engine="$1" --tables=1 --table-size="$ROWS" --mysql-ignore-errors=1213,1020,1205 \
		--rand-type=uniform "${@:3}" >/dev/null 2>&1
}
coproc session { mariadb --no-defaults -uroot -S "$WEIR_SOCKET" -N --unbuffered; }
device=$(stat -c '%Hd %Ld' "$directory")
# Now (us), statements, processor time of all the server's threads (us), switches, writes of the device that the directory
# is on, commits of the binary log and groups of them.
look() {
	local name value switches
	local -A status=()
	echo "SHOW GLOBAL STATUS WHERE Variable_name IN ('Questions', 'Binlog_commits', 'Binlog_group_commits'); SELECT 'end', 0;" >&"${session[1]}"
	while read -r name value <&"${session[0]}" && [ "$name" != end ]; do status[$name]=$value; done
	switches=$(cat /proc/"$server"/task/*/status 2>/dev/null | awk '/ctxt_switches/ { n += $2 } END { print n }')
	echo "${EPOCHREALTIME/./} ${status[Questions]}" \
		"$(cat /proc/"$server"/task/*/schedstat 2>/dev/null | awk '{ t += $1 } END { printf "%d", t / 1000 }') $switches" \
		"$(awk -v device="$device" '$1 " " $2 == device { n = $8 } END { print n + 0 }' /proc/diskstats)" \
		"${status[Binlog_commits]} ${status[Binlog_group_commits]}"
}
turn() { # engine: what one turn was
	kill -CONT "${clients[$1]}"
	sleep 0.1
	local before
	before=$(look)
	sleep 0.4
	echo "$1 $before $(look)"
	kill -STOP "${clients[$1]}"
	sleep 0.03
}
for engine in InnoDB Weir; do
	if [ -z "$(sql -e "SHOW DATABASES LIKE 'turns_$engine'")" ]; then
		echo "turns: loading $ROWS rows into $engine"
		sql -e "CREATE DATABASE turns_$engine"
		client $engine oltp_read_write prepare
	fi
	sql -e "SELECT SUM(LENGTH(pad)) FROM turns_$engine.sbtest1; SELECT SUM(k) FROM turns_$engine.sbtest1 FORCE INDEX (k_1)" >/dev/null
done
echo "turns: $ROWS rows, $TURNS turns of 0.4 s each; durable: innodb_flush_log_at_trx_commit 1, weir_durability" \
	"$(sql -e 'SELECT @@weir_durability'), binary log $(sql -e 'SELECT IF(@@log_bin, CONCAT("with sync_binlog ", @@sync_binlog), "off")')"
declare -A clients shells
trap 'kill -KILL "${clients[@]}" 2>/dev/null || true' EXIT
[ "$*" != all ] || set -- oltp_{point_select,read_write,write_only,update_index,update_non_index,insert}:{1,8,64}
for cell in "$@"; do
	for engine in InnoDB Weir; do
		{ client $engine "${cell%:*}" --threads="${cell#*:}" --time=36000 run; } 2>/dev/null &
		shells[$engine]=$!
		sleep "$WARM"
		clients[$engine]=$(pgrep -P $! sysbench)
		kill -STOP "${clients[$engine]}"
	done
	for number in $(seq "$TURNS"); do
		engines="InnoDB Weir"
		[ $((number % 2)) = 0 ] || engines="Weir InnoDB"
		for engine in $engines; do turn "$engine"; done
	done >"$directory/turns"
	kill -KILL "${clients[@]}"
	wait "${shells[@]}" || true
	awk -v cell="$cell" '
		{ n[$1]++; for (i = 1; i <= 7; i++) { d[i] = $(i + 8) - $(i + 1); total[$1, i] += d[i] }
		  all[$1, n[$1]] = d[2] / d[1] * 1e6; sum[$1] += all[$1, n[$1]] }
		function each(i) { return sprintf("%.2f and %.2f", total["Weir", i] / total["Weir", 2], total["InnoDB", i] / total["InnoDB", 2]) }
		END {
			# A ratio of sums: its error is that of what is left of each pair.
			k = n["Weir"]; ratio = sum["Weir"] / sum["InnoDB"]
			for (i = 1; i <= k; i++) ss += (all["Weir", i] - ratio * all["InnoDB", i]) ^ 2
			printf "%-28s Weir / InnoDB %.3f (se %.3f)", cell, ratio, sqrt(ss / (k - 1) / k) / (sum["InnoDB"] / k)
			printf "; statements/s %d and %d", sum["Weir"] / k, sum["InnoDB"] / k
			printf "; of the server, each: us %s, switches %s, device writes %s", each(3), each(4), each(5)
			if (total["Weir", 7] && total["InnoDB", 7])
				printf "; binary log, commits a group: %.2f and %.2f", total["Weir", 6] / total["Weir", 7], total["InnoDB", 6] / total["InnoDB", 7]
			printf "\n"
		}' "$directory/turns"
done
for engine in InnoDB Weir; do
	[ -z "$(sql -e "CHECK TABLE turns_$engine.sbtest1" | grep -v OK)" ] || { echo "turns: $engine: CHECK TABLE"; exit 1; }
done
echo "turns: CHECK TABLE finds both whole"
