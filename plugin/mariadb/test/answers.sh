#!/bin/bash
# Commits are acknowledged (src/answer.cc) not before they are durable, never if that failed, and in order. What
# the binary log says of them (src/binlog_gate.cc): nothing before they are durably prepared.
#   answers.sh PLUGIN DIRECTORY
set -eu
here=$(cd "$(dirname "$0")" && pwd)
plugin=$1 directory=$2
. "$here/servers.sh"
. "$here/clients.sh"
cc -O1 -Wall -I/usr/include/mariadb -o "$directory/talk" "$here/talk.c" -lmariadb
start main --skip-networking
sql main -e "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY) ENGINE=Weir"

rows() { sql main -e "SELECT COUNT(*) FROM d.t WHERE id BETWEEN $1 AND $2"; }
# Clients that send on and do not read: more answers than a socket holds (279), each in its place. With the statements that it holds of a
# client that the server is behind (217) it is full: with more, both would wait for each other.
talkers=()
for n in 1 2 3 4; do
	timeout 60 "$directory/talk" "$sockets/main" d $((n * 10000)) 400 &
	talkers+=($!)
done
for talker in "${talkers[@]}"; do wait "$talker" || die "a client that sends on is not answered"; done
[ "$(rows 10000 49999)" = 1600 ] || die "$(rows 10000 49999) rows of 1600"
# No other client waits when one goes without reading.
{ for n in $(seq 200); do echo "INSERT INTO t VALUES ($((50000 + n)));"; done; } | timeout 5 mariadb --no-defaults -uroot -S "$sockets/main" d
mariadb --no-defaults -uroot -S "$sockets/main" --compress d -e "INSERT INTO t VALUES (60000); BEGIN; INSERT INTO t VALUES (60001); COMMIT"
[ "$(rows 50000 60001)" = 202 ] || die "a compressed connection"

# While durable writes are held back, five sessions commit: none is acknowledged before they go on. $logged, if there is one, is the
# binary log's file, in which nothing is written meanwhile.
hold() { # first statement
	local before=0
	: >"$sync.hold"
	sessions $1 "$2"
	for _ in $(seq 500); do [ -e "$sync.here" ] && break; sleep 0.01; done
	[ -z "$logged" ] || before=$(stat -c %s "$logged")
	sleep 0.3
	[ "$(acknowledged)" = 0 ] || die "$2: acknowledged before it was durable"
	[ -z "$logged" ] || [ "$before" = "$(stat -c %s "$logged")" ] || die "$2: in the binary log before it was prepared"
	rm "$sync.hold"
	ended
	[ $errors = 0 ] || die "$2: $(cat "$directory"/said.?)"
	[ "$(acknowledged)" = 5 ] || die "$2: $(acknowledged) of 5 were acknowledged"
	[ "$(rows $1 $(($1 + 4)))" = 5 ] || die "$2: rows are missing"
	[ -z "$logged" ] || [ "$before" != "$(stat -c %s "$logged")" ] || die "$2: not in the binary log"
}
# Whichever statement it is that commits.
logged=
first=100
for statement in "INSERT INTO t VALUES (%d)" "BEGIN; INSERT INTO t VALUES (%d); COMMIT" "INSERT INTO t VALUES (%d) RETURNING id" \
	"INSERT INTO t SELECT %d" "REPLACE INTO t VALUES (%d)" "SET autocommit=0; INSERT INTO t VALUES (%d); SET autocommit=1"; do
	hold $first "$statement"
	first=$((first + 100))
done

# A sync that fails: no commit is acknowledged, and what was acknowledged before is there after a start.
: >"$sync.fail"
sessions 5000 "INSERT INTO t VALUES (%d)"
ended
[ $errors = 5 ] || die "no error, with a failed sync: $(cat "$directory"/said.?)"
[ "$(acknowledged)" = 0 ] || die "acknowledged, with a failed sync: $(cat "$directory"/said.?)"
rm "$sync.fail"
slay $server
start main --skip-networking
[ "$(rows 1 4999)" = 30 ] && [ "$(rows 10000 60001)" = 1802 ] || die "what was acknowledged is not there"
sql main -e "CHECK TABLE d.t" | grep -q OK || die "CHECK TABLE"

# With a binary log, also in a file that it has begun meanwhile.
mariadb-admin --no-defaults -uroot -S "$sockets/main" shutdown
while kill -0 $server 2>/dev/null; do sleep 0.02; done
logging=(--skip-networking --log-bin=binlog --sync-binlog=1 --server-id=1 --binlog-format=ROW)
start main "${logging[@]}"
log_now() { logged=$directory/main/$(sql main -e "SHOW MASTER STATUS" | cut -f1); }
sql main d -e "INSERT INTO t VALUES (1000)"
log_now
hold 1001 "INSERT INTO t VALUES (%d)"
sql main -e "FLUSH BINARY LOGS"
log_now
hold 1011 "BEGIN; INSERT INTO t VALUES (%d); COMMIT"
grep -q "behind the engine's back" "$directory/main/server.log" && die "the binary log does not come by"
# The server ends before the binary log says what the engine may not have. All are on their way to the binary log when the sync
# fails: had one of the engine's own threads met the failure before, they would all be refused, and the server would go on.
: >"$sync.hold"
sessions 1021 "INSERT INTO t VALUES (%d)"
for _ in $(seq 500); do
	[ -e "$sync.here" ] && [ "$(sql main -e "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'INSERT INTO t%'")" = 5 ] && break
	sleep 0.02
done
sleep 0.3
: >"$sync.fail"
rm "$sync.hold"
ended
[ $errors = 5 ] && [ "$(acknowledged)" = 0 ] || die "acknowledged, with a failed sync: $(cat "$directory"/said.?)"
for _ in $(seq 500); do kill -0 $server 2>/dev/null || break; sleep 0.02; done
kill -0 $server 2>/dev/null && die "the server goes on, with a binary log, behind a failed sync"
unset "servers[$server]"
rm "$sync.fail"
start main "${logging[@]}"
said=$(for file in "$directory"/main/binlog.*[0-9]; do mariadb-binlog --no-defaults --base64-output=decode-rows -v "$file"; done | grep -c '^### INSERT INTO') || true
[ "$(rows 1000 1030)" = 11 ] && [ "$said" = 11 ] || die "$(rows 1000 1030) rows, $said in the binary log, of 11 acknowledged"
[ -z "$(sql main -e "XA RECOVER")" ] || die "something is prepared still"
echo "answers: none before its sync, none behind a failed one; the binary log says nothing before the engine knows it"
