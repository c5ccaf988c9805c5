#!/bin/bash
# More locks than the memory for locks holds: error 1206, the transaction is rolled back and its locks are gone, as with
# InnoDB; a scan that may lock ranges needs few, and so it passes.
#   many_locks.sh  (inside server.sh --run, which sets WEIR_SOCKET, with 64 MiB of memory: 16 MiB of locks, some 70,000)
set -eu
sql() { mariadb --no-defaults -uroot -S "$WEIR_SOCKET" -NB "$@"; }
die() { echo "many_locks: $*"; exit 1; }
rows=200000
sql -e "DROP DATABASE IF EXISTS many; CREATE DATABASE many; USE many;
	CREATE TABLE t (id INT PRIMARY KEY, a INT) ENGINE=Weir; CREATE TABLE u (id INT PRIMARY KEY) ENGINE=Weir;
	INSERT INTO t SELECT seq, 0 FROM seq_1_to_$rows"
# Rows that are skipped where they are locked are locked one by one.
got=$(sql --force many 2>&1 <<<"BEGIN; INSERT INTO u VALUES (1); UPDATE t SET a=1 WHERE id=$rows;
	SELECT COUNT(*) FROM t FOR UPDATE SKIP LOCKED;
	SELECT @@in_transaction, (SELECT COUNT(*) FROM u), (SELECT a FROM t WHERE id=$rows);
	SELECT COUNT(*) FROM information_schema.weir_locks;
	INSERT INTO u VALUES (2); SELECT id FROM u") || true
wanted=$'ERROR 1206 (HY000) at line 2: The total number of locks exceeds the lock table size\n0\t0\t0\n0\n2'
[ "$got" = "$wanted" ] || die "got $got"
times=0
for level in 'READ COMMITTED' 'REPEATABLE READ'; do
	times=$((times + 1))
	got=$(sql many 2>&1 -e "SET TRANSACTION ISOLATION LEVEL $level; BEGIN; SELECT COUNT(*) FROM t FOR UPDATE; UPDATE t SET a=a+1; COMMIT;
		SELECT MIN(a), MAX(a) FROM t") || true
	[ "$got" = "$rows"$'\n'"$times"$'\t'"$times" ] || die "at $level: $got"
done
sql -e "DROP DATABASE many"
echo "many_locks: refused, rolled back and released; scans pass"
