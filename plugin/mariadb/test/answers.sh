#!/bin/bash
# What clients are told of commits (src/answer.cc): not before they are durable, never if that failed, and in order.
#   answers.sh PLUGIN DIRECTORY
set -eu
here=$(cd "$(dirname "$0")" && pwd)
plugin=$1 directory=$2
. "$here/servers.sh"
sync=$directory/sync
cc -shared -fPIC -O1 -Wall -o "$sync.so" "$here/sync.c" -ldl
cc -O1 -Wall -I/usr/include/mariadb -o "$directory/talk" "$here/talk.c" -lmariadb
export WEIR_SERVER_ENV="LD_PRELOAD=$sync.so SYNC=$sync"
start main --skip-networking
sql main -e "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY) ENGINE=Weir"

rows() { sql main -e "SELECT COUNT(*) FROM d.t WHERE id BETWEEN $1 AND $2"; }
# Several at once, so that most are left to the thread that syncs for all.
sessions() { # first statement-with-%d
	local n
	clients=()
	for n in 0 1 2 3 4; do
		# shellcheck disable=SC2059
		printf "$2; SELECT 'told';" $(($1 + n)) | mariadb --no-defaults -uroot -S "$sockets/main" -N d >"$directory/said.$n" 2>&1 &
		clients+=($!)
	done
}
told() { cat "$directory"/said.? | grep -c told || true; }
# How many were told of an error, when all have ended: $errors.
ended() {
	local client
	errors=0
	for client in "${clients[@]}"; do wait "$client" || errors=$((errors + 1)); done
}

# Those who talk on and do not listen: more answers than a socket holds, each in its place.
talkers=()
for n in 1 2 3 4; do
	timeout 60 "$directory/talk" "$sockets/main" d $((n * 10000)) 500 &
	talkers+=($!)
done
for talker in "${talkers[@]}"; do wait "$talker" || die "a client that talks on is not answered"; done
[ "$(rows 10000 49999)" = 2000 ] || die "$(rows 10000 49999) rows of 2000"
# Nobody is kept when a client goes without listening.
{ for n in $(seq 200); do echo "INSERT INTO t VALUES ($((50000 + n)));"; done; } | timeout 5 mariadb --no-defaults -uroot -S "$sockets/main" d
mariadb --no-defaults -uroot -S "$sockets/main" --compress d -e "INSERT INTO t VALUES (60000); BEGIN; INSERT INTO t VALUES (60001); COMMIT"
[ "$(rows 50000 60001)" = 202 ] || die "a compressed connection"

# No answer before the sync, whichever statement it is that commits.
first=100
for statement in "INSERT INTO t VALUES (%d)" "BEGIN; INSERT INTO t VALUES (%d); COMMIT" "INSERT INTO t VALUES (%d) RETURNING id" \
	"INSERT INTO t SELECT %d" "REPLACE INTO t VALUES (%d)" "SET autocommit=0; INSERT INTO t VALUES (%d); SET autocommit=1"; do
	: >"$sync.hold"
	sessions $first "$statement"
	for _ in $(seq 500); do [ -e "$sync.here" ] && break; sleep 0.01; done
	sleep 0.3
	[ "$(told)" = 0 ] || die "$statement: told before it was durable"
	rm "$sync.hold"
	ended
	[ $errors = 0 ] || die "$statement: $(cat "$directory"/said.?)"
	[ "$(told)" = 5 ] || die "$statement: $(told) of 5 were told"
	[ "$(rows $first $((first + 4)))" = 5 ] || die "$statement: rows are missing"
	first=$((first + 100))
done

# A sync that fails: no client is told that it went well, and what was told before is there after a start.
: >"$sync.fail"
sessions 5000 "INSERT INTO t VALUES (%d)"
ended
[ $errors = 5 ] || die "told that it went well, with a failed sync: $(cat "$directory"/said.?)"
[ "$(told)" = 0 ] || die "told, with a failed sync: $(cat "$directory"/said.?)"
rm "$sync.fail"
slay $server
start main --skip-networking
[ "$(rows 1 4999)" = 30 ] && [ "$(rows 10000 60001)" = 2202 ] || die "what was told is not there"
sql main -e "CHECK TABLE d.t" | grep -q OK || die "CHECK TABLE"
echo "answers: none before its sync, none behind a failed one"
