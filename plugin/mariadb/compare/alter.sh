#!/bin/bash
# A large table that is altered, on InnoDB and on Weir in one server in turns: rows copied, an index added in place.
#   alter.sh PLUGIN DIRECTORY [ROWS]
# Prints for each kind the seconds of each turn and the median of the turns' ratios, InnoDB's seconds to Weir's, and checks that
# both tables have the same rows behind it. TURNS, POOL_MIB, LOG_MIB may be set from outside: a pool of an eighth of the data,
# say (a row takes about 150 bytes, with its two indexes 250).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
: "${TURNS:=7}" "${LOG_MIB:=256}" "${POOL_MIB:=256}"
if [ "${1:-}" != --inside ]; then
	[ $# -ge 2 ] || { sed -n '2,6s/^# \?//p' "$0"; exit 2; }
	plugin=$(realpath "$1") directory=$2 rows=${3:-400000}
	. "$here/options.sh"
	mkdir -p "$directory"
	export TURNS
	exec "$here/../tools/server.sh" "$plugin" "$directory" --run "$here/alter.sh --inside $rows" "${durable_options[@]}"
fi
rows=$2
sql() { mariadb --no-defaults -uroot -S "$WEIR_SOCKET" -N "$@"; }
# Seconds that a statement takes.
time_of() { # database statement
	local begun=${EPOCHREALTIME/./}
	sql "$1" -e "$2"
	awk -v t=$((${EPOCHREALTIME/./} - begun)) 'BEGIN { printf "%.2f", t / 1e6 }'
}
for engine in InnoDB Weir; do
	sql -e "DROP DATABASE IF EXISTS alter_$engine; CREATE DATABASE alter_$engine"
	sql "alter_$engine" -e "CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(40), c CHAR(60)) ENGINE=$engine;
		INSERT INTO t SELECT seq, (seq * 7919) % 1000003, MD5(seq), REPEAT('c', seq % 60) FROM seq_1_to_$rows;
		ALTER TABLE t ADD KEY (a), ADD KEY (b)"
done
for kind in copy add_index; do
	: >"$WEIR_SOCKET.turns"
	for turn in $(seq "$TURNS"); do
		engines="InnoDB Weir"
		[ $((turn % 2)) = 0 ] || engines="Weir InnoDB"
		for engine in $engines; do
			case $kind in
			copy) took=$(time_of "alter_$engine" "ALTER TABLE t FORCE, ALGORITHM=COPY") ;;
			add_index)
				took=$(time_of "alter_$engine" "ALTER TABLE t ADD INDEX more (b, a), ALGORITHM=INPLACE")
				sql "alter_$engine" -e "ALTER TABLE t DROP INDEX more"
				;;
			esac
			echo "$engine $took" >>"$WEIR_SOCKET.turns"
		done
	done
	awk -v kind=$kind -v rows="$rows" '
		$1 == "InnoDB" { i[++n] = $2; seconds_i = seconds_i " " $2 } $1 == "Weir" { w[++m] = $2; seconds_w = seconds_w " " $2 }
		END {
			for (k = 1; k <= n; k++) r[k] = i[k] / w[k]
			for (k = 2; k <= n; k++) { v = r[k]; for (j = k - 1; j >= 1 && r[j] > v; j--) r[j + 1] = r[j]; r[j + 1] = v }
			printf "%s of %d rows: InnoDB / Weir %.2f (%.2f to %.2f); InnoDB%s s, Weir%s s\n", kind, rows, r[int((n + 1) / 2)], r[1], r[n], seconds_i, seconds_w
		}' "$WEIR_SOCKET.turns"
done
sums=$(sql -e "CHECKSUM TABLE alter_InnoDB.t, alter_Weir.t" | cut -f 2 | uniq | wc -l)
[ "$sums" = 1 ] || { echo "alter: the rows differ"; exit 1; }
[ -z "$(sql -e "CHECK TABLE alter_InnoDB.t, alter_Weir.t" | grep -v OK)" ] || { echo "alter: CHECK TABLE"; exit 1; }
