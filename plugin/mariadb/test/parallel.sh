#!/bin/bash
# A replica whose threads apply transactions side by side, as many as there are, and commit them in the primary's order:
# where a later one has what an earlier one needs, it is made to give way. No thread waits until a lock's time limit. Statements and
# rows; the position kept in Weir, or in a table of the other engine, so that each transaction is one of two engines; with and without a
# binary log of what is applied.
#   parallel.sh PLUGIN DIRECTORY
set -eu
here=$(cd "$(dirname "$0")" && pwd)
plugin=$1 directory=$2
. "$here/servers.sh"
port=$((20000 + RANDOM % 10000)) limit=60 rounds=0 retried=0 writers=()

start primary --port=$port --log-bin=binlog --server-id=1
sql primary -e "CREATE USER r@'%' IDENTIFIED BY 'r'; GRANT REPLICATION SLAVE ON *.* TO r@'%'; CREATE DATABASE work; USE work;
	CREATE TABLE t (id INT PRIMARY KEY, v INT NOT NULL, k INT, KEY(k)) ENGINE=Weir;
	CREATE TABLE seen (id INT, v INT, KEY (id)) ENGINE=Weir;
	INSERT INTO t SELECT seq, 0, seq FROM seq_1_to_20"
# As InnoDB: from REPEATABLE READ on statements may be logged, and MIXED logs them; below, rows only.
sql primary work -e "SET binlog_format=STATEMENT; UPDATE t SET v=7 WHERE id=1"
sql primary -e "SHOW BINLOG EVENTS" | grep -q "Query.*UPDATE t SET v=7 WHERE id=1" || die "no statement in the log"
said=$(sql primary work -e "SET binlog_format=STATEMENT, tx_isolation='READ-COMMITTED'; UPDATE t SET v=8 WHERE id=1" 2>&1) || true
[[ $said == *"ERROR 1665"* ]] || die "READ COMMITTED, a statement: $said"
sql primary work -e "SET tx_isolation='READ-COMMITTED'; UPDATE t SET v=9 WHERE id=1"
! sql primary -e "SHOW BINLOG EVENTS" | grep -q "Query.*UPDATE t SET v=9" || die "a statement in the log at READ COMMITTED"

# Short transactions after long ones, on the same few rows; what comes out depends on the order of any two.
write() {
	echo "SET binlog_format=$1;"
	for n in $(seq 150); do
		echo "BEGIN; UPDATE t SET v=(v*3+1) % 1000003 WHERE id=$((RANDOM % 20 + 1)); UPDATE t SET k=(k*7+$n) % 23 WHERE k BETWEEN $((RANDOM % 20)) AND $((RANDOM % 20)); UPDATE t SET v=(v*2+1) % 1000003 WHERE id=$((RANDOM % 20 + 1)); COMMIT;"
		echo "UPDATE t SET v=(v*5+$n) % 1000003 WHERE id=$((RANDOM % 20 + 1));"
		if [ $((n % 8)) = 0 ]; then
			echo "INSERT INTO seen SELECT id, v FROM t WHERE k < $((RANDOM % 20));"
			echo "DELETE FROM seen WHERE id < $((RANDOM % 10)) AND v % 3 = 0;"
		fi
	done
}
begun=$SECONDS
for position in other Weir; do
	for applied in "" --log-slave-updates; do
		for format in MIXED ROW; do
			[ $rounds = 0 ] || slay "$server"
			rm -rf "$directory/replica"
			engines=()
			[ $position = other ] || engines=(--gtid-pos-auto-engines=$position)
			there=$(sql primary -e 'SELECT @@gtid_binlog_pos')
			dump=$(mariadb-dump --no-defaults -uroot -S "$sockets/primary" work t seen)
			start replica --skip-networking --log-bin=binlog --server-id=2 ${applied:+$applied} "${engines[@]}" \
				--slave-parallel-threads=6 --slave-parallel-mode=optimistic --weir-lock-wait-timeout=$limit \
				--innodb-lock-wait-timeout=$limit --slave-transaction-retries=100
			{ echo "SET sql_log_bin=0; CREATE DATABASE work; USE work;$dump"; } | sql replica
			sql replica -e "SET GLOBAL gtid_slave_pos='$there'; CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=$port,
				MASTER_USER='r', MASTER_PASSWORD='r', MASTER_USE_GTID=slave_pos"
			# Three at once: what the log says one after the other has to come to the same. A deadlock's victim goes on.
			for _ in 1 2 3; do
				write $format | sql primary work --force 2>/dev/null &
				writers+=($!)
			done
			for writer in "${writers[@]}"; do wait "$writer" || true; done
			writers=()
			there=$(sql primary -e 'SELECT @@gtid_binlog_pos')
			sql replica -e 'START SLAVE'
			[ "$(sql replica -e "SELECT MASTER_GTID_WAIT('$there', 300)")" = 0 ] || die "the replica does not catch up: $(sql replica -e 'SELECT @@gtid_slave_pos; SHOW SLAVE STATUS\G')"
			ours=$(sql primary work -e 'CHECKSUM TABLE t, seen; CHECK TABLE t, seen') theirs=$(sql replica work -e 'CHECKSUM TABLE t, seen; CHECK TABLE t, seen')
			[ "$ours" = "$theirs" ] || die "$format, position in $position, $applied: the rows differ: $ours / $theirs"
			retried=$((retried + $(sql replica -e "SHOW GLOBAL STATUS LIKE 'Slave_retried_transactions'" | cut -f 2)))
			rounds=$((rounds + 1))
		done
	done
done
took=$((SECONDS - begun))
[ "$retried" -gt 0 ] || die "no transaction had to give way: nothing was shown"
[ $took -lt $((rounds * limit)) ] || die "$rounds times caught up after $took s: a thread has waited for $limit s"
echo "parallel: the same rows after $rounds times 1,000 transactions of three sessions side by side, statements and rows, $retried of them begun anew; $took s"
