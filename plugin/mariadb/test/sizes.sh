#!/bin/bash
# How large tables and indexes are said to be: long values and indexes count, what is dropped is free.
#   sizes.sh       (inside server.sh --run, which sets WEIR_SOCKET)
set -eu
sql() { mariadb --no-defaults -uroot -S "$WEIR_SOCKET" -NB "$@"; }
die() { echo "sizes: $*"; exit 1; }
of() { sql -e "SELECT $1 FROM information_schema.tables WHERE table_schema='sizes' AND table_name='$2'"; }
sql -e "DROP DATABASE IF EXISTS sizes; CREATE DATABASE sizes; USE sizes;
	CREATE TABLE t (id INT PRIMARY KEY, a INT, s VARCHAR(100), b LONGTEXT, KEY ka (a), KEY ks (s)) ENGINE=Weir;
	INSERT INTO t SELECT seq, seq, REPEAT('x', 100), IF(seq % 100 = 0, REPEAT('y', 40000), 'z') FROM seq_1_to_20000;
	CREATE TABLE p (id INT PRIMARY KEY, a INT, KEY (a)) ENGINE=Weir PARTITION BY HASH (id) PARTITIONS 3;
	INSERT INTO p SELECT seq, seq FROM seq_1_to_9000"
# Two hundred values of 40,000 bytes, and 20,000 rows of about 130; entries of about 12 and 108.
data=$(of data_length t) index=$(of index_length t)
[ "$data" -gt 10000000 ] && [ "$data" -lt 16000000 ] || die "rows of $data bytes"
[ "$index" -gt 2400000 ] && [ "$index" -lt 6000000 ] || die "entries of $index bytes"
got=$(sql -e "SELECT CONCAT(SUM(IF(index_name IS NULL, bytes, 0)), ' ', SUM(IF(index_name IS NULL, 0, bytes)), ' ', COUNT(*))
	FROM information_schema.weir_sizes WHERE table_name='sizes/t'")
[ "$got" = "$data $index 3" ] || die "$got, not $data and $index"
[ "$(sql -e "SELECT COUNT(*) FROM information_schema.weir_sizes WHERE table_name LIKE 'sizes/p#P#%'")" = 6 ] || die "partitions"
[ "$(of index_length p)" -gt 0 ] || die "an index of partitions"
# What is dropped is there for others.
free=$(of data_free t)
sql -e "CREATE TABLE sizes.u LIKE sizes.t; DROP TABLE sizes.t"
for _ in $(seq 100); do
	[ "$(of data_free u)" -gt $((free + 8000000)) ] && break
	sleep 0.1
done
[ "$(of data_free u)" -gt $((free + 8000000)) ] || die "what was dropped is not free: $free, then $(of data_free u)"
sql -e "CREATE USER plain@localhost"
seen=$(mariadb --no-defaults -uplain -S "$WEIR_SOCKET" -NB -e "SELECT COUNT(*) FROM information_schema.weir_sizes")
[ "$seen" = 0 ] || die "without the PROCESS privilege $seen are seen"
sql -e "DROP USER plain@localhost; DROP DATABASE sizes"
[ "$(sql -e "SELECT COUNT(*) FROM information_schema.weir_sizes WHERE table_name LIKE 'sizes/%'")" = 0 ] || die "dropped ones are shown"
echo "sizes: rows of $data bytes, entries of $index; what is dropped is free"
