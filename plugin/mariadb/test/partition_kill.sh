#!/bin/bash
# kill -9 within partition DDL. The server may leave files of a half-done ALTER (docs/mariadb/differences.md, .par); no row of Weir's is lost by that,
# and once those files are gone, no table of Weir's stays behind its schema.
#   partition_kill.sh PLUGIN DIRECTORY ROUNDS
set -eu
here=$(cd "$(dirname "$0")" && pwd)
plugin=$1 directory=$2 rounds=$3
. "$here/servers.sh"
rows=3000 left=0 unreadable=0
ways=("PARTITION BY HASH (id) PARTITIONS 4" "REMOVE PARTITIONING" "PARTITION BY RANGE (id) (PARTITION a VALUES LESS THAN (1000), PARTITION b VALUES LESS THAN MAXVALUE)"
	"REORGANIZE PARTITION b INTO (PARTITION b VALUES LESS THAN (2000), PARTITION c VALUES LESS THAN MAXVALUE)" "RENAME TO u" "RENAME TO t" "REBUILD PARTITION ALL")
for round in $(seq "$rounds"); do
	start main
	sql main -e "CREATE DATABASE d; USE d; CREATE TABLE t (id INT PRIMARY KEY, a INT, KEY (a)) ENGINE=Weir; INSERT INTO t SELECT seq, seq FROM seq_1_to_$rows"
	(
		for _ in $(seq 20); do
			for way in "${ways[@]}"; do
				for table in t u; do echo "ALTER TABLE d.$table $way;"; done
			done
		done | sql main --force >/dev/null 2>&1
	) &
	writer=$!
	sleep "0.$((RANDOM % 900 + 100))"
	slay "$server"
	wait $writer 2>/dev/null || true
	start main
	readable=
	for table in t u; do
		if found=$(sql main -e "SELECT CONCAT(COUNT(*), ' ', SUM(a)) FROM d.$table" 2>/dev/null); then
			readable+=$table
			[ "$found" = "$rows $((rows * (rows + 1) / 2))" ] || die "round $round: $table has $found"
		fi
	done
	data=$directory/main/d
	if [ -z "$readable" ]; then
		unreadable=$((unreadable + 1))
		# The rows are there, under whatever names: some table, or its partitions together.
		leaves=$(sql main -e "SELECT COALESCE(SUM(leaf_pages), 0) FROM information_schema.weir_sizes WHERE table_name LIKE 'd/%' AND index_name IS NULL")
		[ "$leaves" -ge 6 ] || die "round $round: the rows are gone: $(ls "$data"; sql main -e "SELECT * FROM information_schema.weir_sizes")"
	fi
	# The way out of docs/mariadb/differences.md.
	if ls "$data" | grep -q '^#sql-'; then
		left=$((left + 1))
		rm -f "$data"/#sql-*.par "$data"/#sql-*.frm
	fi
	sql main -e "DROP DATABASE d" || { rm -f "$data"/*.par && sql main -e "DROP DATABASE d"; } || die "round $round: DROP DATABASE: $(ls "$data")"
	behind=$(sql main -e "SELECT GROUP_CONCAT(table_name) FROM information_schema.weir_sizes WHERE table_name LIKE 'd/%'")
	[ "$behind" = NULL ] || die "round $round: left behind: $behind"
	slay "$server"
done
echo "partition_kill: $rounds times kill -9 within partition DDL: no row lost, nothing left behind ($left times files of the server's own, $unreadable times in the way)"
