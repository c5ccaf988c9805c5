#!/bin/bash
# Windows by a SPATIAL key on InnoDB and on Weir in one server, in turns: points and polygons loaded with the key, the key added
# later, windows, size.
#   spatial.sh PLUGIN DIRECTORY [POINTS [POLYGONS]]
# A million points and 100,000 polygons, even over a world of 360 by 180. Prints for each kind the seconds of each turn and the
# median of the turns' ratios, InnoDB's seconds to Weir's, and checks that both find as many. TURNS, POOL_MIB, LOG_MIB may be
# set from outside.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
: "${TURNS:=5}" "${LOG_MIB:=256}" "${POOL_MIB:=512}"
if [ "${1:-}" != --inside ]; then
	[ $# -ge 2 ] || { sed -n '2,8s/^# \?//p' "$0"; exit 2; }
	plugin=$(realpath "$1") directory=$2 points=${3:-1000000} polygons=${4:-100000}
	. "$here/options.sh"
	mkdir -p "$directory"
	export TURNS
	exec "$here/../tools/server.sh" "$plugin" "$directory" --run "$here/spatial.sh --inside $points $polygons" "${durable_options[@]}" --local-infile=1
fi
points=$2 polygons=$3
sql() { mariadb --no-defaults -uroot -S "$WEIR_SOCKET" -N --local-infile=1 "$@"; }
data=$(cd "$(dirname "$WEIR_SOCKET")/.." && pwd)
awk -v n="$points" 'BEGIN { srand(1); for (i = 1; i <= n; i++) printf "%d\tPOINT(%.6f %.6f)\n", i, rand() * 360 - 180, rand() * 180 - 90 }' >"$data/points.txt"
awk -v n="$polygons" 'BEGIN { srand(2); for (i = 1; i <= n; i++) { x = rand() * 359 - 180; y = rand() * 179 - 90; w = 0.01 + rand() ^ 4; h = 0.01 + rand() ^ 4
	printf "%d\tPOLYGON((%.6f %.6f,%.6f %.6f,%.6f %.6f,%.6f %.6f))\n", i, x, y, x + w, y + h / 3, x + w / 2, y + h, x, y } }' >"$data/polygons.txt"
time_of() { # database statements
	local begun=${EPOCHREALTIME/./}
	sql "$1" <<<"$2" >"$WEIR_SOCKET.answer.$1"
	awk -v t=$((${EPOCHREALTIME/./} - begun)) 'BEGIN { printf "%.3f", t / 1e6 }'
}
windows() { # times side condition select seed: another window each, the same for both engines; @W@ stands for it
	awk -v n="$1" -v side="$2" -v table="$3" -v what="$4" -v seed="$5" 'BEGIN { srand(seed)
		for (i = 1; i <= n; i++) { x = rand() * (360 - side) - 180; y = rand() * (180 - side) - 90; w = sprintf("ST_GeomFromText(\047POLYGON((%.6f %.6f,%.6f %.6f,%.6f %.6f,%.6f %.6f,%.6f %.6f))\047)", x, y, x + side, y, x + side, y + side, x, y + side, x, y)
			p = sprintf("POINT(%.6f,%.6f)", x + side / 2, y + side / 2); q = what; gsub(/@W@/, w, q); gsub(/@P@/, p, q); print q ";" } }' 
}
for engine in InnoDB Weir; do
	sql -e "DROP DATABASE IF EXISTS space_$engine; CREATE DATABASE space_$engine"
	sql "space_$engine" -e "CREATE TABLE points (id INT PRIMARY KEY, g POINT NOT NULL, SPATIAL KEY (g)) ENGINE=$engine; CREATE TABLE polygons (id INT PRIMARY KEY, g POLYGON NOT NULL, SPATIAL KEY (g)) ENGINE=$engine"
done
load() { echo "TRUNCATE TABLE $1; LOAD DATA LOCAL INFILE '$data/$1.txt' INTO TABLE $1 (id, @g) SET g = ST_GeomFromText(@g);"; }
for kind in load-points load-polygons build-points build-polygons small-points large-points nearest-points small-polygons large-polygons holding-polygons move-points; do
	table=${kind#*-}
	: >"$WEIR_SOCKET.turns"
	for turn in $(seq "$TURNS"); do
		engines="InnoDB Weir"
		[ $((turn % 2)) = 0 ] || engines="Weir InnoDB"
		case ${kind%-*} in
		load) statements=$(load "$table") ;;
		build) statements="ALTER TABLE $table ADD SPATIAL KEY (g);" ;;
		small) statements=$(windows 500 0.5 "$table" "SELECT COUNT(*) FROM $table WHERE MBRIntersects(g, @W@)" "$turn") ;;
		large) statements=$(windows 20 20 "$table" "SELECT COUNT(*) FROM $table WHERE MBRIntersects(g, @W@)" "$turn") ;;
		nearest) statements=$(windows 200 2 "$table" "SELECT id FROM $table WHERE MBRWithin(g, @W@) ORDER BY ST_Distance(g, @P@), id LIMIT 10" "$turn") ;;
		holding) statements=$(windows 1000 0.1 "$table" "SELECT COUNT(*) FROM $table WHERE MBRContains(g, @P@)" "$turn") ;;
		move) statements=$(windows 50 0.5 "$table" "UPDATE $table SET g = POINT(ST_X(g), ST_Y(g) / 2) WHERE MBRWithin(g, @W@)" "$turn") ;;
		esac
		for engine in $engines; do
			db=space_$engine
			[ "${kind%-*}" != build ] || sql "$db" -e "ALTER TABLE $table DROP KEY g"
			echo "$engine $(time_of "$db" "$statements")" >>"$WEIR_SOCKET.turns"
		done
		cmp -s "$WEIR_SOCKET.answer.space_InnoDB" "$WEIR_SOCKET.answer.space_Weir" || { echo "spatial: $kind: other answers"; exit 1; }
	done
	awk -v kind="$kind" '
		$1 == "InnoDB" { i[++n] = $2; seconds_i = seconds_i " " $2 } $1 == "Weir" { w[++m] = $2; seconds_w = seconds_w " " $2 }
		END {
			for (k = 1; k <= n; k++) r[k] = i[k] / w[k]
			for (k = 2; k <= n; k++) { v = r[k]; for (j = k - 1; j >= 1 && r[j] > v; j--) r[j + 1] = r[j]; r[j + 1] = v }
			printf "%s: InnoDB / Weir %.2f (%.2f to %.2f); InnoDB%s s, Weir%s s\n", kind, r[int((n + 1) / 2)], r[1], r[n], seconds_i, seconds_w
		}' "$WEIR_SOCKET.turns"
done
for table in points polygons; do
	innodb=$(du -cb "$(dirname "$WEIR_SOCKET")/space_InnoDB/$table.ibd" | tail -n 1 | cut -f 1)
	weir=$(sql -e "SELECT data_length + index_length FROM information_schema.tables WHERE table_schema='space_Weir' AND table_name='$table'")
	awk -v t="$table" -v i="$innodb" -v w="$weir" 'BEGIN { printf "size of %s: InnoDB %.1f MB (file), Weir %.1f MB (pages in use), InnoDB / Weir %.2f\n", t, i / 1e6, w / 1e6, i / w }'
done
