#!/bin/bash
# ALTER TABLE ... ADD INDEX, LOCK=NONE, beside writers that must go on and whose rows the index must hold: again and again,
# rows written anew beside them, one that a writer makes impossible, one that is killed by KILL, and one with the server (kill -9).
#   online.sh PLUGIN DIRECTORY
set -eu
here=$(cd "$(dirname "$0")" && pwd)
plugin=$1 directory=$2
. "$here/servers.sh"
rows=120000 beyond=500000 writers=4
trap 'rm -f "$directory/go"; cleanup' EXIT

# One-row transactions and larger ones, until `go` is removed. What has to give way to others is not begun anew.
write() { # writer
	local n id
	for ((n = $(written) + 1; ; n++)); do
		[ -e "$directory/go" ] || break
		id=$((RANDOM * 32768 % rows + RANDOM % rows))
		echo "INSERT INTO t(w,a,b,c,u) VALUES ($1,$((RANDOM % 100)),CONCAT('b',$RANDOM),REPEAT('c',$((RANDOM % 300))),$1*100000000+$n);"
		echo "UPDATE t SET a=a+1, b=IF(id%7=0,NULL,CONCAT(a,'xx word')), g=POINT(a,7) WHERE id BETWEEN $id AND $id+3; UPDATE t SET id=-id WHERE id=$((id + 9));"
		echo "BEGIN; DELETE FROM t WHERE id=$((id + 20)); UPDATE t SET c=CONCAT(c,'z') WHERE id=$((id + 5));"
		echo "INSERT INTO p VALUES ($1*1000000+$n); INSERT INTO k(p,v) VALUES ($1*1000000+$n,$n); COMMIT; UPDATE p SET id=-id WHERE id=$1*1000000+$n;"
		[ $((n % 9)) != 0 ] || echo "BEGIN; UPDATE t SET a=0 WHERE id BETWEEN $id AND $id+50; ROLLBACK;"
		echo "SELECT 'done';"
	done 2>/dev/null | sql main work --unbuffered --force >>"$directory/done.$1" 2>>"$directory/errors.$1" || true
}
written() { cat "$directory"/done.* | wc -l; }
# What was done while "$@" ran is added up in $beside.
beside=0
altered() { # statement
	local before
	before=$(written)
	sql main work -e "$1" || die "$1"
	beside=$((beside + $(written) - before))
}
# As many rows by each index as there are, and each entry with its row.
sound() {
	local bad index all
	bad=$(sql main work -e 'CHECK TABLE t, p, k' | grep -v OK || true)
	[ -z "$bad" ] || die "$1: $bad"
	for index in "$@"; do
		[ "$index" != "$1" ] || continue
		all=$(sql main work -e "START TRANSACTION WITH CONSISTENT SNAPSHOT;
			SELECT COUNT(*), SUM(id), SUM(a), COUNT(b), SUM(LENGTH(c)) FROM t IGNORE INDEX($index);
			SELECT COUNT(*), SUM(id), SUM(a), COUNT(b), SUM(LENGTH(c)) FROM t FORCE INDEX($index) WHERE ${index#i} IS NULL OR ${index#i}>=''; COMMIT" | uniq | wc -l)
		[ "$all" = 1 ] || die "$1: index $index does not have the rows of the table"
	done
}
# As many rows by their words and by their places as there are, of one snapshot.
searched() {
	local all
	all=$(sql main work -e "START TRANSACTION WITH CONSISTENT SNAPSHOT;
		SELECT COUNT(*), SUM(id) FROM t IGNORE INDEX (iw) WHERE b LIKE '% word';
		SELECT COUNT(*), SUM(id) FROM t WHERE MATCH (b) AGAINST ('+word' IN BOOLEAN MODE);
		SELECT COUNT(*), SUM(id) FROM t IGNORE INDEX (ig) WHERE ST_X(g)<49.5;
		SELECT COUNT(*), SUM(id) FROM t FORCE INDEX (ig) WHERE MBRWithin(g, ST_GeomFromText('POLYGON((-1 -1,49.5 -1,49.5 99,-1 99,-1 -1))')); COMMIT")
	[ "$(uniq <<<"$all" | wc -l)" = 2 ] || die "$1: the words or places of other rows: $all"
	[ "$(sql main work -e 'CHECK TABLE t' | grep -c OK)" = 1 ] || die "$1: $(sql main work -e 'CHECK TABLE t')"
}
until_building() {
	for _ in $(seq 500); do
		sql main -e 'SELECT state FROM information_schema.processlist WHERE info LIKE "ALTER%"' | grep -q '^altering table' && return
		sleep 0.01
	done
	die "no index is built"
}
# A transaction that stays open.
hold() { # statement
	mkfifo "$directory/hold"
	sql main work --unbuffered <"$directory/hold" >"$directory/held" 2>&1 &
	holder=$!
	exec 9>"$directory/hold"
	echo "BEGIN; $1; SELECT 'held';" >&9
	for _ in $(seq 500); do
		grep -q held "$directory/held" && return
		sleep 0.01
	done
	die "the transaction has not begun: $(cat "$directory/held")"
}
let_go() {
	exec 9>&-
	wait $holder
	rm "$directory/hold"
}
begin() {
	: >"$directory/go"
	for writer in $(seq $writers); do write "$writer" & done
	for _ in $(seq 300); do
		[ "$(written)" -gt $(($1 + 50)) ] && return
		sleep 0.1
	done
	die "no writer goes on: $(tail -n 3 "$directory"/errors.*)"
}
end() {
	rm "$directory/go"
	wait
}

start main --skip-networking --log-bin=binlog --server-id=1 --binlog-format=ROW
sql main -e "CREATE DATABASE work; USE work;
	CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, w INT, a INT, b VARCHAR(40), c TEXT, u BIGINT, d INT AS (a*2) VIRTUAL, g POINT NOT NULL DEFAULT (POINT(1,1)), KEY(w)) ENGINE=Weir;
	CREATE TABLE p (id INT PRIMARY KEY) ENGINE=Weir;
	CREATE TABLE k (id INT AUTO_INCREMENT PRIMARY KEY, p INT, v INT, FOREIGN KEY (p) REFERENCES p(id) ON UPDATE CASCADE ON DELETE CASCADE) ENGINE=Weir;
	INSERT INTO t(a,b,c,u) SELECT seq%97, CONCAT('b',seq), REPEAT('c',seq%300), seq FROM seq_1_to_$rows"
: >"$directory/done.1"
begin 0
for round in 1 2; do
	altered 'ALTER TABLE t ADD INDEX ia(a), ADD INDEX ib(b DESC,a), ADD UNIQUE KEY iu(u), ALGORITHM=NOCOPY, LOCK=NONE'
	altered 'ALTER TABLE t ADD INDEX ic(c(7)), LOCK=NONE; ALTER TABLE k ADD INDEX iv(v,p), LOCK=NONE'
	sound "round $round" ia ib ic iu
	altered 'ALTER TABLE t ADD FULLTEXT KEY iw (b), ADD SPATIAL KEY ig (g), ALGORITHM=NOCOPY, LOCK=NONE'
	searched "round $round"
	sql main work -e 'ALTER TABLE t DROP INDEX iw, DROP INDEX ig, LOCK=NONE'
	altered 'ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (id,u), ALGORITHM=INPLACE, LOCK=NONE'
	altered 'ALTER TABLE t FORCE, ADD INDEX id(d), ADD COLUMN e INT DEFAULT 3, ALGORITHM=INPLACE, LOCK=NONE; OPTIMIZE TABLE k'
	sound "round $round, anew" ia ib ic iu id
	altered 'ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (id), DROP INDEX id, DROP COLUMN e, ALGORITHM=INPLACE, LOCK=NONE'
	sound "round $round, as before" ia ib ic iu
	sql main work -e 'ALTER TABLE t DROP INDEX ia, DROP INDEX ib, DROP INDEX iu, DROP INDEX ic, LOCK=NONE; ALTER TABLE k DROP INDEX iv, LOCK=NONE'
done
[ $beside -gt 20 ] || die "only $beside rounds of writing beside ALTERs: writers have waited"

# A key that is not unique: rows that are there, and then one that comes while the index is built.
why=$(sql main work -e 'ALTER TABLE t ADD UNIQUE KEY ia(a), LOCK=NONE' 2>&1) && die "a unique key on what is not"
# A writer may be the first to meet it: then the value is not named.
[[ $why == *"Duplicate entry "*"for key 'ia'"* ]] || die "not a duplicate: $why"
sql main work -e 'ALTER TABLE t ADD INDEX ib(b), ADD UNIQUE KEY iu(u), LOCK=NONE' >"$directory/late" 2>&1 &
late=$!
until_building
sql main work -e 'INSERT INTO t(u) VALUES (-5); INSERT INTO t(u) VALUES (-5)'
! wait $late || die "a unique key that a writer has met twice"
grep -q "Duplicate entry" "$directory/late" || die "not a duplicate: $(cat "$directory/late")"
until sql main work -e 'DELETE FROM t WHERE u=-5' 2>/dev/null; do :; done
sound "after duplicates" w

# Given up in the middle: all writers go on without it, and it can be had later.
for round in 1 2 3; do
	sql main work -e 'ALTER TABLE t ADD INDEX ia(a), ADD INDEX ib(b), LOCK=NONE' >/dev/null 2>&1 &
	late=$!
	until_building
	sleep "0.0$((RANDOM % 10))"
	sql main -e "SELECT CONCAT('KILL QUERY ', id, ';') FROM information_schema.processlist WHERE info LIKE 'ALTER%'" | sql main --force 2>/dev/null || true
	wait $late || true
	sql main work -e 'ALTER TABLE t DROP INDEX IF EXISTS ia, DROP INDEX IF EXISTS ib'
	sound "given up $round" w
done

# Given up beside a transaction that stays open: what there is of the index is left, and in no statement's way.
sql main work -e 'CREATE TABLE l (id INT PRIMARY KEY, v INT AS (id+1) VIRTUAL, b INT, a INT, KEY k(b)) ENGINE=Weir'
leave_index() {
	local left
	left=$(grep -c 'made of indexes of work/l stays' "$directory/main/server.log" || true)
	sql main work -e 'ALTER TABLE l ADD UNIQUE KEY u(a), LOCK=NONE' >"$directory/late" 2>&1 &
	late=$!
	until_building
	hold 'UPDATE l SET b=-1 WHERE id=5'
	! wait $late || die "a unique key on what is not"
	grep -q "Duplicate entry" "$directory/late" || die "not a duplicate: $(cat "$directory/late")"
	let_go
	[ "$(grep -c 'made of indexes of work/l stays' "$directory/main/server.log")" -gt "$left" ] || die "no index was left"
}
sql main work -e "INSERT INTO l(id,a,b) SELECT seq, seq%$((beyond - 1)), seq FROM seq_1_to_$beyond"
leave_index
sql main work -e 'ALTER TABLE l RENAME INDEX k TO u; ALTER TABLE l RENAME INDEX u TO k'
leave_index
sql main work -e 'ALTER TABLE l DROP COLUMN v, ALGORITHM=INSTANT; FLUSH TABLES; UPDATE l SET b=1 WHERE id=7; CHECK TABLE l' | grep -q OK

# Only the step that brings the index into use waits for open transactions that have changed rows, as long as its session's limit
# says; and KILL is heard.
sql main work -e 'SET lock_wait_timeout=1; ALTER TABLE l ADD INDEX ia(a), LOCK=NONE' >"$directory/late" 2>&1 &
late=$!
until_building
hold "UPDATE l SET b=-1 WHERE id=$beyond"
! wait $late || die "an index beside a transaction that does not end"
grep -q 'Lock wait timeout' "$directory/late" || die "not a timeout: $(cat "$directory/late")"
let_go
sql main work -e 'ALTER TABLE l ADD INDEX ia(a), LOCK=NONE' >"$directory/late" 2>&1 &
late=$!
until_building
hold "UPDATE l SET b=-1 WHERE id=$beyond"
sql main work -e "SET weir_lock_wait_timeout=5; UPDATE l SET b=-1 WHERE id=$((beyond - 1))" || die "building an index keeps writers from rows"
begun=$SECONDS
for _ in $(seq 500); do
	sql main -e 'SELECT state FROM information_schema.processlist WHERE info LIKE "ALTER%"' | grep -q '^Waiting for table metadata lock' && break
	sleep 0.01
done
sql main -e "SELECT CONCAT('KILL QUERY ', id, ';') FROM information_schema.processlist WHERE info LIKE 'ALTER%'" | sql main
! wait $late || die "an index beside a transaction that does not end"
[ $((SECONDS - begun)) -lt 10 ] || die "KILL was heard after $((SECONDS - begun)) s"
let_go
echo "online: adding an index waits for no row, only at its end for transactions that have written meanwhile"
leave_index
sql main work -e 'TRUNCATE TABLE l; INSERT INTO l VALUES (1,1,1); CHECK TABLE l' | grep -q OK
echo "online: what a failed ALTER has left of an index is in no statement's way"

for round in 1 2 3; do
	sql main work -e 'ALTER TABLE t ADD INDEX ia(a), ADD INDEX ib(b), LOCK=NONE' >/dev/null 2>&1 &
	until_building
	sleep "0.$((RANDOM % 4))"
	slay $server
	end
	start main --skip-networking --log-bin=binlog --server-id=1 --binlog-format=ROW
	indexes=$(sql main work -e "SELECT GROUP_CONCAT(DISTINCT index_name ORDER BY index_name) FROM information_schema.statistics WHERE table_name='t' AND index_name IN ('ia','ib')")
	[ "$indexes" = NULL ] || [ "$indexes" = ia,ib ] || die "half of an ALTER is there: $indexes"
	[ "$indexes" = NULL ] && sound "killed $round" w || sound "killed $round" ia ib
	begin "$(written)"
	altered 'ALTER TABLE t ADD INDEX IF NOT EXISTS ia(a), ADD INDEX IF NOT EXISTS ib(b), LOCK=NONE'
	sound "killed $round, and again" ia ib
	sql main work -e 'ALTER TABLE t DROP INDEX ia, DROP INDEX ib'
	echo "online: killed while an index was built: $indexes of it there, and sound"
done
end
odd=$(cat "$directory"/errors.* | grep ERROR | grep -vE '1213|1062|1969|1317|2006|2013|2026|1927' | head -n 3 || true)
[ -z "$odd" ] || die "a writer got: $odd"
echo "online: $beside rounds of writing beside ALTERs that added indexes, $(cat "$directory"/errors.* | grep -c ' 1213 ' || true) deadlocks among $(written); each index has the rows of its table"
