#!/bin/bash
# A primary and a replica with Weir on both, the replica's position in a Weir table too. Each is killed (-9) once under
# writes; afterwards both have the same rows.
#   replication.sh PLUGIN DIRECTORY
set -eu
here=$(cd "$(dirname "$0")" && pwd)
plugin=$1 directory=$2
. "$here/servers.sh"
port=$((20000 + RANDOM % 10000))

primary() { start primary --port=$port --log-bin=binlog --sync-binlog=1 --server-id=1; }
replica() { start replica --skip-networking --server-id=2 --gtid-pos-auto-engines=Weir --slave-parallel-threads=2 --skip-slave-start; }

primary
first=$server
sql primary -e "CREATE USER r@'%' IDENTIFIED BY 'r'; GRANT REPLICATION SLAVE ON *.* TO r@'%'; CREATE DATABASE work; USE work;
	CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, s VARCHAR(40), KEY(s)) ENGINE=Weir;
	CREATE TABLE nokey (a INT, s VARCHAR(40)) ENGINE=Weir;
	CREATE TABLE searched (id INT AUTO_INCREMENT PRIMARY KEY, words TEXT, g POINT NOT NULL, FULLTEXT KEY (words), SPATIAL KEY g (g)) ENGINE=Weir;
	CREATE TABLE searched_nokey (words TEXT, g POINT NOT NULL, FULLTEXT KEY (words), SPATIAL KEY g (g)) ENGINE=Weir;"
replica
second=$server
sql replica -e "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=$port, MASTER_USER='r', MASTER_PASSWORD='r',
	MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1; START SLAVE"

# Half a minute of work at most; ends when the primary does.
write() {
	local n
	for n in $(seq 20000); do
		echo "INSERT INTO t(a,s) VALUES ($n,'s$((RANDOM % 50))'),($n,NULL); UPDATE t SET a=a+1 WHERE s='s$((RANDOM % 50))' LIMIT 3;"
		for table in searched searched_nokey; do
			echo "BEGIN; INSERT INTO $table(words,g) VALUES ('common number$n rest$((n % 7))',POINT($((n % 100)),$((n % 31)))),('common also$n',POINT($((n % 100)),$((n % 31)))); UPDATE $table SET words=CONCAT('changed ',words), g=POINT(-1-ST_X(g),1) WHERE words LIKE 'common number$((n - 3)) %'; COMMIT;"
			[ $((n % 3)) != 0 ] || echo "DELETE FROM $table WHERE MATCH (words) AGAINST ('+number$((n - 5))' IN BOOLEAN MODE);"
		done
		echo "INSERT INTO nokey VALUES ($n,'x'); DELETE FROM t WHERE id=$((RANDOM % 500)); UPDATE nokey SET s='y' WHERE a=$((n - 3));"
	done 2>/dev/null | sql primary work --force >/dev/null 2>&1 || true
}

caught_up() {
	local here there
	there=$(sql primary -e 'SELECT @@gtid_binlog_pos')
	for _ in $(seq 300); do
		here=$(sql replica -e 'SELECT @@gtid_slave_pos')
		[ "$here" = "$there" ] && return
		sleep 0.1
	done
	sql replica -e 'SHOW SLAVE STATUS\G' | grep -E 'Error|Running|Pos' || true
	die "the replica is at $here, the primary at $there"
}

write &
sleep 2
slay $second
replica
sql replica -e 'START SLAVE'
sleep 1
slay $first
primary
write &
sleep 1
slay $server
primary
caught_up
for table in t nokey searched searched_nokey; do
	ours=$(sql primary work -e "CHECKSUM TABLE $table; SELECT COUNT(*) FROM $table; CHECK TABLE $table")
	theirs=$(sql replica work -e "CHECKSUM TABLE $table; SELECT COUNT(*) FROM $table; CHECK TABLE $table")
	[ "$ours" = "$theirs" ] || die "$table differs: $ours / $theirs"
done
# By the keys, on either side: as many rows as without them.
for name in primary replica; do
	for table in searched searched_nokey; do
		count="SELECT COUNT(*) FROM $table"
		all=$(sql "$name" work -e "$count")
		[ "$all" -gt 20 ] || die "$table has only $all rows"
		[ "$(sql "$name" work -e "$count WHERE MATCH (words) AGAINST ('common')")" = "$all" ] || die "$name: $table has $all rows, and not their words"
		[ "$(sql "$name" work -e "$count FORCE INDEX (g) WHERE MBRWithin(g, ST_GeomFromText('POLYGON((-200 -1,200 -1,200 99,-200 99,-200 -1))'))")" = "$all" ] ||
			die "$name: $table has $all rows, and not their places"
		[ "$(sql "$name" work -e "$count FORCE INDEX (g) WHERE MBRWithin(g, ST_GeomFromText('POLYGON((-200 -1,-0.5 -1,-0.5 99,-200 99,-200 -1))'))")" = \
			"$(sql "$name" work -e "$count WHERE words LIKE 'changed%'")" ] || die "$name: $table has places of rows as they were"
	done
done
engine=$(sql replica -e "SELECT engine FROM information_schema.tables WHERE table_schema='mysql' AND table_name LIKE 'gtid_slave_pos_weir'")
[ "$engine" = Weir ] || die "the replica's position is not in a Weir table"
echo "replication: same rows after kill -9 of the replica and, twice, of the primary: $(sql replica work -e 'SELECT COUNT(*) FROM t')"
