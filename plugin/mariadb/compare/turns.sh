#!/bin/bash
# InnoDB and Weir in one server, in turns of half a second: for differences that a machine's own waves hide, which last
# for seconds. The clients of both stay connected; those of one are stopped (SIGSTOP) while the other's run.
#   turns.sh PLUGIN DIRECTORY [--binlog] CELL:CLIENTS...         such as oltp_update_non_index:64
# Prints, for each cell, statements a second, the ratio with its standard error, and what the server's threads took for
# a statement: time on a processor, and switches of context. ROWS, TURNS, LOG_MIB, POOL_MIB, and WARM, the seconds that each
# engine runs before its turns, may be set from outside.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
: "${ROWS:=1000000}" "${TURNS:=60}" "${WARM:=15}" "${LOG_MIB:=64}" "${POOL_MIB:=4096}"

if [ "${1:-}" != --inside ]; then
	[ $# -ge 3 ] || { sed -n '2,7s/^# \?//p' "$0"; exit 2; }
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
	exec "$here/../tools/server.sh" "$plugin" "$directory" --run "$here/turns.sh --inside $directory $*" \
		"${durable_options[@]}" "${more[@]}"
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
look() { # now (us), statements, processor time of all the server's threads (us), switches
	local name statements switches
	echo "SHOW GLOBAL STATUS LIKE 'Questions';" >&"${session[1]}"
	read -r name statements <&"${session[0]}"
	switches=$(cat /proc/"$server"/task/*/status 2>/dev/null | awk '/ctxt_switches/ { n += $2 } END { print n }')
	echo "${EPOCHREALTIME/./} $statements $(cat /proc/"$server"/task/*/schedstat 2>/dev/null | awk '{ t += $1 } END { printf "%d", t / 1000 }') $switches"
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
		{ rate = ($7 - $3) / ($6 - $2) * 1e6; n[$1]++; all[$1, n[$1]] = rate; sum[$1] += rate
		  statements[$1] += $7 - $3; time[$1] += $8 - $4; switches[$1] += $9 - $5 }
		END {
			# A ratio of sums: its error is that of what is left of each pair.
			k = n["Weir"]; ratio = sum["Weir"] / sum["InnoDB"]
			for (i = 1; i <= k; i++) ss += (all["Weir", i] - ratio * all["InnoDB", i]) ^ 2
			printf "%-28s Weir / InnoDB %.3f (se %.3f)", cell, ratio, sqrt(ss / (k - 1) / k) / (sum["InnoDB"] / k)
			printf "; statements/s %d and %d", sum["Weir"] / k, sum["InnoDB"] / k
			printf "; us of the server each %.1f and %.1f", time["Weir"] / statements["Weir"], time["InnoDB"] / statements["InnoDB"]
			printf "; switches %.2f and %.2f\n", switches["Weir"] / statements["Weir"], switches["InnoDB"] / statements["InnoDB"]
		}' "$directory/turns"
done
for engine in InnoDB Weir; do
	[ -z "$(sql -e "CHECK TABLE turns_$engine.sbtest1" | grep -v OK)" ] || { echo "turns: $engine: CHECK TABLE"; exit 1; }
done
echo "turns: CHECK TABLE finds both whole"
