#!/bin/bash
# A replica whose threads apply transactions side by side, as many as there are, and commit them in the primary's order:
# where a later one has what an earlier one needs, it is told to give way. Nobody sits a lock's time limit out.
#   parallel.sh PLUGIN DIRECTORY
set -eu
here=$(cd "$(dirname "$0")" && pwd)
plugin=$1 directory=$2
. "$here/servers.sh"
port=$((20000 + RANDOM % 10000)) limit=60

start primary --port=$port --log-bin=binlog --server-id=1
sql primary -e "CREATE USER r@'%' IDENTIFIED BY 'r'; GRANT REPLICATION SLAVE ON *.* TO r@'%'; CREATE DATABASE work; USE work;
	CREATE TABLE t (id INT PRIMARY KEY, v INT NOT NULL, k INT, KEY(k)) ENGINE=Weir;
	INSERT INTO t SELECT seq, 0, seq FROM seq_1_to_20"
start replica --skip-networking --log-bin=binlog --server-id=2 --gtid-pos-auto-engines=Weir --slave-parallel-threads=6 \
	--slave-parallel-mode=optimistic --weir-lock-wait-timeout=$limit --slave-transaction-retries=100
sql replica -e "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=$port, MASTER_USER='r', MASTER_PASSWORD='r',
	MASTER_USE_GTID=slave_pos; START SLAVE; STOP SLAVE"
# Short transactions after long ones, on the same few rows.
for n in $(seq 400); do
	echo "BEGIN; UPDATE t SET v=v+1 WHERE id=$((RANDOM % 20 + 1)); UPDATE t SET k=k+1 WHERE k BETWEEN $((RANDOM % 20)) AND $((RANDOM % 20)); UPDATE t SET v=v*2 % 1000 WHERE id=$((RANDOM % 20 + 1)); COMMIT;"
	echo "UPDATE t SET v=v+$n WHERE id=$((RANDOM % 20 + 1));"
done | sql primary work
there=$(sql primary -e 'SELECT @@gtid_binlog_pos')
begun=$SECONDS
sql replica -e 'START SLAVE'
[ "$(sql replica -e "SELECT MASTER_GTID_WAIT('$there', 300)")" = 0 ] || die "the replica does not catch up: $(sql replica -e 'SELECT @@gtid_slave_pos')"
took=$((SECONDS - begun))
ours=$(sql primary work -e 'CHECKSUM TABLE t; CHECK TABLE t') theirs=$(sql replica work -e 'CHECKSUM TABLE t; CHECK TABLE t')
[ "$ours" = "$theirs" ] || die "the rows differ: $ours / $theirs"
retried=$(sql replica -e "SHOW GLOBAL STATUS LIKE 'Slave_retried_transactions'" | cut -f 2)
[ "$retried" -gt 0 ] || die "no transaction had to give way: nothing was shown"
[ $took -lt $limit ] || die "caught up after $took s: somebody has waited for $limit s"
echo "parallel: the same rows after 800 transactions side by side, $retried of them begun anew; caught up in $took s"
