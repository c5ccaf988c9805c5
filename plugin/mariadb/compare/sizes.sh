#!/bin/bash
# What a row costs by its size: InnoDB and Weir in one server, in turns.
#   sizes.sh PLUGIN DIRECTORY [BYTES...]
#   sizes.sh --figures REPORT COMMIT BESIDE >docs/benchmarks/row-sizes.json      (of what the first printed)
# For each size a table of rows (id, a counter, a BLOB of so many bytes), loaded in key order by one statement. Then random rows
# are read, all are scanned, and of random rows the BLOB and then the counter are changed, each by statements within the
# server, so that no client counts. Prints bytes a row (pages of the table in use) and rows a second, the median of TURNS turns,
# each with the ratio InnoDB : Weir of bytes, Weir : InnoDB of rows a second: above 1 Weir is ahead.
# DATA_MIB (of BLOBs in a table), STEPS (rows a turn), TURNS, POOL_MIB, LOG_MIB may be set from outside.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
: "${DATA_MIB:=40}" "${STEPS:=3000}" "${TURNS:=3}" "${LOG_MIB:=256}" "${POOL_MIB:=512}"

if [ "${1:-}" = --figures ]; then
	[ $# = 4 ] || { sed -n '2,9s/^# \?//p' "$0"; exit 2; }
	grep -v '^bytes' "$2" | tr -d '|' | awk -v commit="$3" -v beside="$4" -v date="$(date -r "$2" +%F)" '
		BEGIN { printf "{\n  \"transcribed\": false,\n  \"run\": {\n    \"date\": \"%s\",\n    \"commit\": \"%s\",\n", date, commit
			printf "    \"machine\": \"2 cores, 24 GiB, ext4 on a virtual disk\",\n    \"command\": \"plugin/mariadb/compare/sizes.sh\",\n    \"beside\": \"%s\"\n  },\n  \"figures\": [", beside }
		NF == 19 { printf "%s\n    {\n      \"workload\": \"rows of %s bytes\",\n      \"weir\": [%s, %s, %s, %s, %s],\n      \"unit\": \"rows/s\",\n", (NR > 1 ? "," : ""), $1, $6, $9, $12, $15, $18
			printf "      \"spread\": \"bytes a row: %s, InnoDB %s\",\n      \"rivals\": [\n        {\n          \"name\": \"InnoDB\",\n", $3, $2
			printf "          \"value\": [%s, %s, %s, %s, %s]\n        }\n      ]\n    }", $5, $8, $11, $14, $17 }
		END { print "\n  ]\n}" }'
	exit
fi
if [ "${1:-}" != --inside ]; then
	[ $# -ge 2 ] || { sed -n '2,9s/^# \?//p' "$0"; exit 2; }
	plugin=$(realpath "$1") directory=$2
	shift 2
	. "$here/options.sh"
	export DATA_MIB STEPS TURNS LOG_MIB POOL_MIB
	exec "$here/../tools/server.sh" "$plugin" "$directory" --run "$here/sizes.sh --inside $*" "${durable_options[@]}" \
		--max-allowed-packet=64M
fi
shift
[ $# -gt 0 ] || set -- 64 128 256 512 1000 1500 2000 2100 2500 2800 3000 3500 4000 4100 4500 5000 6000 8000 8200 10000 12000 \
	16200 16400 32700 65536
sql() { mariadb --no-defaults -uroot -S "$WEIR_SOCKET" -NB "$@"; }
allocated() { sql -e "SELECT variable_value * (SELECT variable_value FROM information_schema.global_status
	WHERE variable_name='Weir_page_size_bytes') FROM information_schema.global_status WHERE variable_name='Weir_data_allocated_pages'"; }
pages() { # of InnoDB's table: bytes
	sql -e "ANALYZE TABLE sizes_InnoDB.t" >/dev/null
	sql -e "SELECT clust_index_size * @@innodb_page_size FROM information_schema.innodb_sys_tablestats WHERE name='sizes_InnoDB/t'"
}
median() { sort -g | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'; }
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a / b }'; }

printf '%-7s %17s %5s' bytes 'bytes a row' ratio
for what in load read scan update count; do printf ' | %15s %5s' "$what/s" ratio; done
printf '   (InnoDB Weir)\n'
for size; do
	rows=$((DATA_MIB * 1048576 / size))
	[ $rows -le 300000 ] || rows=300000
	steps=$((STEPS < 20000000 / size ? STEPS : 20000000 / size))
	declare -A bytes=() times=()
	for engine in InnoDB Weir; do
		sql -e "DROP DATABASE IF EXISTS sizes_$engine; CREATE DATABASE sizes_$engine; USE sizes_$engine;
			CREATE TABLE t (id INT PRIMARY KEY, k INT, c LONGBLOB) ENGINE=$engine"
		loop() { # name, statement of the row @i
			echo "CREATE PROCEDURE $1() BEGIN DECLARE n INT DEFAULT 0; START TRANSACTION; WHILE n < $steps DO
				SET @i= 1 + FLOOR(RAND() * $rows), n= n + 1; $2; END WHILE; COMMIT; END //"
		}
		sql sizes_$engine -e "DELIMITER //
			$(loop read_all 'SELECT LENGTH(c) + k INTO @x FROM t WHERE id=@i')
			$(loop update_all "UPDATE t SET c=REPEAT(CHAR(65 + n % 26), $size) WHERE id=@i")
			$(loop count_all 'UPDATE t SET k=k+1 WHERE id=@i')
			CREATE PROCEDURE scan_all() SELECT SUM(LENGTH(c)) + SUM(k) INTO @x FROM t //"
	done
	timed() { # engine what statement rows
		local micros
		micros=$(sql sizes_"$1" -e "SET @begun= NOW(6); $3; SELECT TIMESTAMPDIFF(MICROSECOND, @begun, NOW(6))" | tail -n 1)
		times[$1,$2]+=" $(awk -v n="$4" -v t="$micros" 'BEGIN { printf "%.0f", n * 1e6 / t }')"
	}
	for turn in $(seq "$TURNS"); do
		for engine in InnoDB Weir; do
			sql sizes_$engine -e "TRUNCATE t"
			[ $engine = InnoDB ] || { sleep 1; before=$(allocated); }
			timed $engine load "INSERT INTO t SELECT seq, 0, REPEAT(CHAR(65 + seq % 26), $size) FROM seq_1_to_$rows" "$rows"
			[ $engine = InnoDB ] || bytes[Weir]=$(awk -v a="$(allocated)" -v b="$before" 'BEGIN { print a - b }')
		done
	done
	bytes[InnoDB]=$(pages)
	for turn in $(seq "$TURNS"); do
		for what in read:$steps scan:"$rows" update:$steps count:$steps; do
			for engine in InnoDB Weir; do
				timed $engine ${what%:*} "CALL ${what%:*}_all()" "${what#*:}"
			done
		done
	done
	for engine in InnoDB Weir; do
		[ "$(sql sizes_$engine -e "SELECT COUNT(*) FROM t WHERE LENGTH(c)=$size")" = "$rows" ] || { echo "sizes: $engine lost rows"; exit 1; }
	done
	a=$((bytes[InnoDB] / rows)) b=$(awk -v a="${bytes[Weir]}" -v b="$rows" 'BEGIN { printf "%.0f", a / b }')
	printf '%-7s %8s %8s %5s' "$size" "$a" "$b" "$(ratio "$a" "$b")"
	for what in load read scan update count; do
		a=$(tr ' ' '\n' <<<"${times[InnoDB,$what]# }" | median) b=$(tr ' ' '\n' <<<"${times[Weir,$what]# }" | median)
		printf ' | %7s %7s %5s' "$a" "$b" "$(ratio "$b" "$a")"
	done
	printf '\n'
	for engine in InnoDB Weir; do sql -e "DROP DATABASE sizes_$engine"; done
done
