#!/bin/bash
# What the operators of a server use: tables of the information schema, status, metrics, a copy.
#   operating.sh PLUGIN DIRECTORY
set -eu
here=$(cd "$(dirname "$0")" && pwd)
plugin=$1 directory=$2
. "$here/servers.sh"
port=$((30000 + RANDOM % 10000))
schema="--plugin-load-add=ha_weir --weir-metrics-address=:$port"
is() { # what is, what should be, of what
	[ "$1" = "$2" ] || die "$3: '$1', not '$2'"
}
some() { [ -n "$1" ] || die "$2: nothing"; }

start main --skip-networking --log-bin=binlog --server-id=1 $schema
sql main -e "CREATE DATABASE work; USE work;
	CREATE TABLE t (id INT PRIMARY KEY, a INT, s VARCHAR(100), KEY by_a (a)) ENGINE=Weir;
	CREATE TABLE i (id INT PRIMARY KEY, v INT) ENGINE=InnoDB;
	INSERT INTO t SELECT seq, seq % 10, REPEAT('x', 50) FROM seq_1_to_20000; INSERT INTO i VALUES (1, 0), (2, 0)"

# ---- numbers: one table of them, seen in four ways
is "$(sql main -e "SELECT COUNT(*)=COUNT(DISTINCT name), COUNT(*)>50, MIN(LENGTH(help))>0 FROM information_schema.weir_metrics")" $'1\t1\t1' "weir_metrics"
names=$(sql main -e "SELECT name FROM information_schema.weir_metrics ORDER BY name")
is "$(sql main -e "SHOW GLOBAL STATUS LIKE 'weir%'" | cut -f 1 | tr A-Z a-z | sort)" "$(sort <<<"$names")" "SHOW STATUS"
text=$(sql main --raw -e "SHOW ENGINE WEIR STATUS")
for name in $names; do
	grep -q "${name#weir_}: " <<<"$text" || die "SHOW ENGINE WEIR STATUS lacks $name"
done
exec 9<>"/dev/tcp/127.0.0.1/$port"
printf 'GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' >&9
exposed=$(cat <&9)
exec 9>&-
for name in $names; do
	grep -q "^# HELP $name " <<<"$exposed" || die "/metrics lacks $name"
done
before=$(sql main -e "SELECT value FROM information_schema.weir_metrics WHERE name='weir_commits'")
sql main work -e "UPDATE t SET a=a+1 WHERE id=1"
after=$(sql main -e "SELECT value FROM information_schema.weir_metrics WHERE name='weir_commits'")
[ "$((after - before))" -ge 1 ] || die "a commit was not counted: $before, $after"
is "$(sql main -e "SELECT COUNT(*), MIN(age_bytes < age_limit_bytes AND log_end_position >= durable_position AND durable_position >= checkpoint_position AND log_capacity_bytes=16777216) FROM information_schema.weir_checkpoint")" $'1\t1' "weir_checkpoint"
is "$(sql main -e "SET GLOBAL weir_memory=33554432; SELECT @@weir_memory, value * 8192 FROM information_schema.weir_metrics WHERE name='weir_pool_pages'")" $'33554432\t33554432' "memory that was made smaller"
sql main -e "SET GLOBAL weir_memory=1" 2>/dev/null && die "one byte of memory"
is "$(sql main -e "SET GLOBAL weir_memory=67108864; SELECT value * 8192 FROM information_schema.weir_metrics WHERE name='weir_pool_pages'")" 67108864 "memory that was made larger"
is "$(sql main -e "SET GLOBAL weir_log_capacity=33554432; SELECT log_capacity_bytes FROM information_schema.weir_checkpoint")" 33554432 "the log's capacity"
is "$(sql main -e "SET GLOBAL weir_recovery_seconds=0.5; SELECT @@weir_recovery_seconds; SET GLOBAL weir_recovery_seconds=-1; SELECT @@weir_recovery_seconds" 2>/dev/null | paste -sd' ')" "0.500000 0.000000" "seconds of recovery"
start other --skip-networking --weir-metrics-address=0.0.0.0:$port
grep -q "weir_metrics_address.*can be reached from other machines" "$directory/other/server.log" || die "no warning of metrics for other machines"
slay $server

# A session that stays: it does these statements, of which the last one says something in $directory/out, and goes on with what is
# written to descriptor 7, until `leave`.
stay() { # statements
	rm -f "$directory/in"
	mkfifo "$directory/in"
	sql main work --unbuffered <"$directory/in" >"$directory/out" 2>&1 &
	stays=$!
	exec 7>"$directory/in"
	echo "$1" >&7
	for _ in $(seq 100); do [ -s "$directory/out" ] && break; sleep 0.1; done
}
leave() { # statements
	echo "$1" >&7
	exec 7>&-
	wait $stays
}

# ---- which transaction waits for which
stay "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; BEGIN; UPDATE t SET a=99 WHERE id=7; SELECT CONNECTION_ID();"
id=$(cat "$directory/out")
is "$(sql main -e "SELECT state, isolation, transaction > 0, seconds >= 0 FROM information_schema.weir_transactions WHERE session=$id")" $'open\tREAD-COMMITTED\t1\t1' "weir_transactions"
(sql main work -e "SET weir_lock_wait_timeout=60; UPDATE t SET a=98 WHERE id=7" &)
for _ in $(seq 100); do
	waits=$(sql main -e "SELECT w.table_name, w.kind, h.session FROM information_schema.weir_locks w
		JOIN information_schema.weir_locks l ON l.table_name=w.table_name AND l.key_from=w.key_from AND l.state='held'
		JOIN information_schema.weir_transactions h ON h.transaction=l.transaction WHERE w.state='waiting'")
	[ -z "$waits" ] || break
	sleep 0.1
done
is "$waits" $'work/t\texclusive\t'"$id" "the wait and its holder"
is "$(sql main -e "SELECT COUNT(*) FROM information_schema.weir_transactions WHERE state='waiting'")" 1 "the transactions that wait"
sql main -e "CREATE USER plain@localhost; GRANT SELECT ON work.* TO plain@localhost"
is "$(mariadb --no-defaults -uplain -S "$sockets/main" -N -e "SELECT COUNT(*) FROM information_schema.weir_locks; SELECT COUNT(*) FROM information_schema.weir_transactions; SELECT COUNT(*) FROM information_schema.weir_checkpoint")" $'0\n0\n0' "without PROCESS"
leave "ROLLBACK;"
sql main work -e "XA START 'one'; INSERT INTO t VALUES (100000, 1, ''); XA END 'one'; XA PREPARE 'one'"
is "$(sql main -e "SELECT state, xid LIKE '%6F6E65' FROM information_schema.weir_transactions WHERE xid IS NOT NULL")" $'prepared\t1' "a prepared one"
# ---- a change of a definition waits for it, can be seen to, and hears a KILL
sql main work -e "SET weir_lock_wait_timeout=60; DROP TABLE t" >"$directory/out" 2>&1 &
dropper=$!
for _ in $(seq 100); do
	id=$(sql main -e "SELECT id FROM information_schema.processlist WHERE info='DROP TABLE t' AND state LIKE 'Waiting for transactions%'")
	[ -z "$id" ] || break
	sleep 0.1
done
some "$id" "a DROP TABLE that waits"
sql main -e "KILL QUERY $id"
timeout 10 tail --pid=$dropper -f /dev/null || die "a DROP TABLE that was killed goes on"
grep -q "ERROR 1317" "$directory/out" || die "a DROP TABLE that was killed: $(cat "$directory/out")"
sql main -e "XA ROLLBACK 'one'"

# ---- a copy by hand
sql main -e "SET GLOBAL weir_create_checkpoint='$directory/copy'"
some "$(ls "$directory/copy")" "the copy"
sql main -e "SET GLOBAL weir_create_checkpoint='$directory/copy'" 2>/dev/null && die "a copy over a copy"
# What a session's transaction sees, whatever was committed since, and not what is prepared.
rows=$(sql main work -e "SELECT COUNT(*), SUM(a) FROM t")
stay "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ; START TRANSACTION WITH CONSISTENT SNAPSHOT; SELECT 'seen';"
sql main work -e "INSERT INTO t VALUES (200000, 5, 'later'); XA START 'one'; INSERT INTO t VALUES (200001, 5, ''); XA END 'one'; XA PREPARE 'one'"
leave "SET GLOBAL weir_create_checkpoint='$directory/seen'; ROLLBACK;"
sql main work -e "XA ROLLBACK 'one'; DELETE FROM t WHERE id=200000"
sql main -e "CREATE USER copier@localhost; GRANT SUPER ON *.* TO copier@localhost"
mariadb --no-defaults -ucopier -S "$sockets/main" -e "SET GLOBAL weir_create_checkpoint='$directory/copy2'" 2>"$directory/out" && die "a copy without FILE"
grep -q "ERROR 1227.*FILE" "$directory/out" || die "a copy without FILE: $(cat "$directory/out")"
sql main -e "GRANT FILE ON *.* TO copier@localhost"
mariadb --no-defaults -ucopier -S "$sockets/main" -e "SET GLOBAL weir_create_checkpoint='$directory/copy2'" || die "no copy with FILE"

cp -a "$directory/main" "$directory/copied"
rm -rf "$directory/copied/#weir" "$directory/copied"/binlog.*
mv "$directory/seen" "$directory/copied/#weir"
start copied --skip-networking
is "$(sql copied work -e "SELECT COUNT(*), SUM(a) FROM t")" "$rows" "a copy of what a transaction saw"
is "$(sql copied -e "XA RECOVER")" "" "prepared in a copy"
slay $server

# ---- a page that is lost: the error log says so, once, and a metric counts; the rest can be read
start lost --skip-networking --secure-file-priv="$directory/lost"
sql lost -e "SET GLOBAL weir_create_checkpoint='$directory/elsewhere'" 2>"$directory/out" && die "a copy outside of secure_file_priv"
grep -q "ERROR 1290" "$directory/out" || die "a copy outside of secure_file_priv: $(cat "$directory/out")"
sql lost -e "CREATE DATABASE work; USE work; CREATE TABLE work.t (id INT PRIMARY KEY, s VARCHAR(1000)) ENGINE=Weir;
	CREATE TABLE work.u (id INT PRIMARY KEY) ENGINE=Weir; INSERT INTO work.u VALUES (1);
	INSERT INTO work.t SELECT seq, REPEAT('x', 900) FROM seq_1_to_20000"
mariadb-admin --no-defaults -uroot -S "$sockets/lost" shutdown
tail --pid=$server -f /dev/null
pages=$(find "$directory/lost" -name pages)
dd if=/dev/zero of="$pages" bs=8192 seek=100 count=1 conv=notrunc status=none
start lost --skip-networking
for _ in 1 2 3; do sql lost -e "SELECT SUM(LENGTH(s)) FROM work.t" >"$directory/out" 2>&1 && die "a page that is lost was read: $(cat "$directory/out")"; done
is "$(sql lost -e "SELECT * FROM work.u")" 1 "another table"
sql lost -e "CHECK TABLE work.t" | grep -q "page 100 in 'pages' at byte 819200" || die "CHECK TABLE does not say where: $(sql lost -e "CHECK TABLE work.t")"
is "$(grep -c "Weir: page 100 in 'pages' at byte 819200 is damaged" "$directory/lost/server.log")" 1 "times that the error log names the page"
[ "$(sql lost -e "SELECT value FROM information_schema.weir_metrics WHERE name LIKE 'weir_pool_lost%'")" -ge 3 ] || die "lost pages are not counted"
is "$(sql lost -e "SELECT value FROM information_schema.weir_metrics WHERE name='weir_halted_engines'")" 0 "halted engines"
slay $server
echo "operating: numbers, transactions, locks, checkpoint, metrics and a copy are as they should be"
