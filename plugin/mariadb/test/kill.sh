#!/bin/bash
# kill -9 of the server, again and again, under writers and with the binary log on. What was acknowledged is there,
# nothing is there by half, an XA transaction that was prepared still is, and at the end the tables are what the binary
# log makes on another server.
#   kill.sh PLUGIN DIRECTORY ROUNDS
set -eu
here=$(cd "$(dirname "$0")" && pwd)
plugin=$1 directory=$2 rounds=$3
workers=4
. "$here/servers.sh"

# Says each number that is committed, which it asks the server for.
work() { # worker round
	local n base=$(($2 * 1000000)) from to
	for ((n = base + 1; n <= base + 100000; n++)); do
		from=$((RANDOM % 50)) to=$((50 + RANDOM % 50))
		# A client that goes on after errors goes on without a server, too, and finds the next one.
		kill -0 "$server" 2>/dev/null || break
		echo "BEGIN; INSERT INTO t(w,n,s,b) VALUES ($1,$n,'s$((n % 97))',REPEAT('b',$((RANDOM % 20000))));"
		echo "INSERT INTO d(w,n,words,g) VALUES ($1,$n,'common worker$1 number$n rest$((n % 97))',POINT($((n % 1000)),$1)),($1,0,'common also$n',POINT($((n % 1000)),$1));"
		echo "INSERT INTO p VALUES ($1,$n); INSERT INTO c VALUES ($1,$n,1),($1,$n,2);"
		echo "UPDATE accounts SET v=v-1 WHERE id=$from; UPDATE accounts SET v=v+1 WHERE id=$to; COMMIT;"
		echo "SELECT n FROM t WHERE w=$1 AND n=$n; INSERT INTO q VALUES (NEXT VALUE FOR s,$1,$n);"
		[ $((n % 3)) != 0 ] || echo "DELETE FROM p WHERE w=$1 AND n=$((n - 1)); UPDATE p SET n=-n WHERE w=$1 AND n=$((n - 2));"
		[ $((n % 5)) != 0 ] || echo "DELETE FROM d WHERE w=$1 AND n=$((n - 3)); UPDATE d SET words=CONCAT('changed ', words), g=POINT(-1-n%1000,w) WHERE w=$1 AND n=$((n - 1));"
		[ $((n % 7)) != 0 ] || echo "DELETE FROM t WHERE w=$1 AND n=$((n - 5)); UPDATE t SET s='changed' WHERE w=$1 AND n=$((n - 3));"
	done 2>/dev/null | sql main work --unbuffered --force >>"$directory/said.$1" 2>/dev/null || true
}

# Says each number of a sequence that it gets.
number() { # client
	while kill -0 "$server" 2>/dev/null; do echo 'SELECT NEXT VALUE FOR few;'; done | head -n 100000 | sql main work --unbuffered --force >"$directory/numbers.$1" 2>/dev/null || true
}

# All places between two x.
window() { echo "ST_GeomFromText('POLYGON(($1 -1,$2 -1,$2 99,$1 99,$1 -1))')"; }

start main --skip-networking --log-bin=binlog --sync-binlog=1 --server-id=1
sql main -e "CREATE DATABASE work; USE work;
	CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, w INT, n INT, s VARCHAR(20), b MEDIUMBLOB, UNIQUE KEY(w,n), KEY(s)) ENGINE=Weir;
	CREATE TABLE d (id BIGINT AUTO_INCREMENT PRIMARY KEY, w INT, n INT, words TEXT, g POINT NOT NULL, KEY(w,n), FULLTEXT KEY(words), SPATIAL KEY g (g)) ENGINE=Weir;
	CREATE TABLE accounts (id INT PRIMARY KEY, v INT NOT NULL) ENGINE=Weir;
	CREATE TABLE x (id INT PRIMARY KEY) ENGINE=Weir;
	CREATE TABLE p (w INT, n INT, PRIMARY KEY(w,n)) ENGINE=Weir;
	CREATE TABLE c (w INT, n INT, i INT, PRIMARY KEY(i,w,n), FOREIGN KEY (w,n) REFERENCES p(w,n) ON DELETE CASCADE ON UPDATE CASCADE) ENGINE=Weir;
	CREATE SEQUENCE s CACHE 2 ENGINE=Weir; CREATE SEQUENCE few CACHE 3 ENGINE=Weir; CREATE TABLE q (id BIGINT PRIMARY KEY, w INT, n INT) ENGINE=Weir;
	INSERT INTO accounts SELECT seq-1, 0 FROM seq_1_to_100;"
for round in $(seq "$rounds"); do
	sql main work -e "XA START 'round $round'; INSERT INTO x VALUES ($round); XA END 'round $round'; XA PREPARE 'round $round';"
	for worker in $(seq $workers); do work "$worker" "$round" & done
	for client in 1 2; do number $client & done
	# All are at work: a machine that has other things to do takes its time over that.
	for _ in $(seq 300); do
		busy=$(grep -l "^$round[0-9]\{4\}2[0-9]$" "$directory"/said.* 2>/dev/null | wc -l)
		[ "$busy" = $workers ] && break
		sleep 0.1
	done
	[ "$busy" = $workers ] || die "round $round: only $busy of the workers work"
	sleep "0.$((RANDOM % 10))"
	slay $server
	start main --skip-networking --log-bin=binlog --sync-binlog=1 --server-id=1
	for worker in $(seq $workers); do
		# Those that the worker has deleted again are not asked for.
		sql main work -e "SELECT n FROM t WHERE w=$worker" | sort -u >"$directory/there"
		sort -u "$directory/said.$worker" | awk -v OFS= '{ print $1 }' >"$directory/said"
		lost=$(comm -13 "$directory/there" "$directory/said" | awk '($1 + 5) % 7 != 0' | head -n 5)
		[ -z "$lost" ] || die "round $round: acknowledged and lost: worker $worker, $lost"
	done
	[ "$(sql main work -e 'SELECT SUM(v) FROM accounts')" = 0 ] || die "round $round: half of a transaction is there"
	[ "$(sql main work -e 'SELECT NEXT VALUE FOR s > MAX(id) FROM q')" = 1 ] || die "round $round: a number of the sequence is given out again"
	[ "$(sql main work -e 'SELECT NEXT VALUE FOR few')" -gt "$({ echo 0; cat "$directory"/numbers.*; } | sort -n | tail -n 1)" ] || die "round $round: a number that a client has is given out again"
	orphans=$(sql main work -e 'SELECT COUNT(*) FROM c LEFT JOIN p USING (w,n) WHERE p.n IS NULL')
	[ "$orphans" = 0 ] || die "round $round: $orphans rows refer to no row"
	[ "$(sql main work -e 'SELECT COUNT(*)*2 FROM p')" = "$(sql main work -e 'SELECT COUNT(*) FROM c')" ] || die "round $round: a cascade went halfway"
	[ "$(sql main work -e 'SELECT COUNT(*) FROM d')" = "$(sql main work -e "SELECT COUNT(*) FROM d WHERE MATCH (words) AGAINST ('common')")" ] || die "round $round: words of rows that are not there, or not of those that are"
	[ "$(sql main work -e "SELECT COUNT(*) FROM d WHERE words LIKE 'changed%'")" = "$(sql main work -e "SELECT COUNT(*) FROM d WHERE MATCH (words) AGAINST ('+changed' IN BOOLEAN MODE)")" ] || die "round $round: words of rows as they were"
	[ "$(sql main work -e 'SELECT COUNT(*), SUM(id) FROM d')" = "$(sql main work -e "SELECT COUNT(*), SUM(id) FROM d FORCE INDEX (g) WHERE MBRWithin(g, $(window -2000 2000))")" ] || die "round $round: places of rows that are not there, or not of those that are"
	[ "$(sql main work -e "SELECT COUNT(*) FROM d WHERE words LIKE 'changed%'")" = "$(sql main work -e "SELECT COUNT(*) FROM d FORCE INDEX (g) WHERE MBRWithin(g, $(window -2000 0))")" ] || die "round $round: places of rows as they were"
	bad=$(sql main work -e 'CHECK TABLE t, d, accounts, x, p, c, q' | grep -v OK || true)
	[ -z "$bad" ] || die "round $round: $bad"
	sql main -e 'XA RECOVER' | grep -q "round $round" || die "round $round: the prepared transaction is gone"
	[ $((round % 2)) = 0 ] && end=COMMIT || end=ROLLBACK
	sql main -e "XA $end 'round $round'"
	echo "kill: round $round: $(sql main work -e 'SELECT COUNT(*) FROM t') rows, all acknowledged ones among them"
done
[ "$(sql main work -e 'SELECT COUNT(*) FROM x')" = $((rounds / 2)) ] || die "XA transactions did not end as decided"

start other --skip-networking --server-id=2
mariadb-binlog --no-defaults "$directory"/main/binlog.*[0-9] | sql other || die "the binary log cannot be replayed"
# The changes of c by its foreign key are not in the log.
tables="work.t, work.d, work.accounts, work.x, work.p, work.c, work.q"
ours=$(sql main -e "CHECKSUM TABLE $tables") theirs=$(sql other -e "CHECKSUM TABLE $tables")
[ "$ours" = "$theirs" ] || die "the binary log makes other tables: $ours / $theirs"
echo "kill: the binary log makes the same tables elsewhere"
