#!/bin/bash
# What a statement costs in the engine: pages read from disk and their time, older versions of rows; in ANALYZE FORMAT=JSON, by
# table, and in the slow log.
#   engine_stats.sh (inside server.sh --run, which sets WEIR_SOCKET, with 64 MiB of memory)
set -eu
sql() { mariadb --no-defaults -uroot -S "$WEIR_SOCKET" -NB "$@"; }
die() { echo "engine_stats: $*"; exit 1; }
# One number of what ANALYZE shows of the statement's first table; nothing if it is not there.
number() { # name statement
	sql stats -e "ANALYZE FORMAT=JSON $2" | sed 's/\\n/\n/g' | sed -n "s/.*\"$1\": \([0-9.]*\).*/\1/p" | head -n 1
}
sql -e "DROP DATABASE IF EXISTS stats; CREATE DATABASE stats; USE stats;
	CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(900)) ENGINE=Weir; CREATE TABLE u (id INT PRIMARY KEY, a INT) ENGINE=Weir;
	INSERT INTO t SELECT seq, 0, REPEAT('x', 900) FROM seq_1_to_100000; INSERT INTO u SELECT seq, 0 FROM seq_1_to_100"
# 90 MB, of which 64 MiB are in memory at most.
read=$(number pages_read_count "SELECT COUNT(b) FROM t")
[ "${read:-0}" -gt 3000 ] && [ "$read" -lt 20000 ] || die "${read:-no} pages read for 90 MB"
millis=$(number pages_read_time_ms "SELECT COUNT(b) FROM t")
[ -n "$millis" ] || die "they took no time"
# What is in memory is not read.
sql stats -e "SELECT COUNT(a) FROM u" >/dev/null
[ -z "$(number pages_read_count "SELECT COUNT(a) FROM u")" ] || die "a hundred rows in memory were read from disk"
# A snapshot older than two changes of each row: one older version of each is looked up behind the first.
coproc old { mariadb --no-defaults -uroot -S "$WEIR_SOCKET" -NB --unbuffered stats; }
echo "START TRANSACTION WITH CONSISTENT SNAPSHOT; SELECT 'begun';" >&"${old[1]}"
read -r said <&"${old[0]}"
sql stats -e "UPDATE u SET a=1; UPDATE u SET a=2"
echo "ANALYZE FORMAT=JSON SELECT SUM(a) FROM u; SELECT 'end';" >&"${old[1]}"
versions=
while read -r said <&"${old[0]}" && [ "$said" != end ]; do
	[[ ! $said =~ \"old_rows_read\":\ ([0-9]+) ]] || versions=${BASH_REMATCH[1]}
done
echo "ROLLBACK;" >&"${old[1]}"
[ "$versions" = 200 ] || die "${versions:-no} older versions of 100 rows that were changed twice"
[ -z "$(number old_rows_read "SELECT SUM(a) FROM u")" ] || die "older versions without a snapshot"
# The slow log.
log=$(sql -e "SELECT IF(@@slow_query_log_file LIKE '/%', @@slow_query_log_file, CONCAT(@@datadir, @@slow_query_log_file))")
sql -e "SET GLOBAL slow_query_log=1"
sql stats -e "SET long_query_time=0, log_slow_verbosity='engine'; SELECT COUNT(b) FROM t; SET GLOBAL slow_query_log=0" >/dev/null
grep -q "Pages_read: [1-9]" "$log" || die "the slow log has no pages: $(tail -n 8 "$log")"
sql -e "DROP DATABASE stats"
echo "engine_stats: $read pages read for a walk over 90 MB; $versions older versions; both in ANALYZE, pages in the slow log"
