#!/bin/bash
# Groups of the binary log on a disk whose syncs take long (src/binlog_groups.cc): clients that come back are waited for,
# who is alone waits for nobody, and the server ends as it should.
#   groups.sh PLUGIN DIRECTORY
set -eu
here=$(cd "$(dirname "$0")" && pwd)
plugin=$1 directory=$2
. "$here/servers.sh"
cc -shared -fPIC -O1 -Wall -o "$directory/slow_sync.so" "$here/slow_sync.c" -ldl
# Behind the sanitizers' libraries, if those are there (sanitize.sh).
export WEIR_SERVER_ENV="${WEIR_SERVER_ENV-} LD_PRELOAD=${WEIR_SERVER_PRELOAD:+$WEIR_SERVER_PRELOAD:}$directory/slow_sync.so"
start main --skip-networking --log-bin=binlog --sync-binlog=1 --server-id=1
sql main -e "CREATE DATABASE d; CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY) ENGINE=Weir"
counted() { sql main -e "SHOW GLOBAL STATUS LIKE '$1'" | cut -f2; }
commit() { # clients inserts-of-each: how many commits the binary log syncs at once, in tenths; and microseconds for an insert
	local commits groups begun
	commits=$(counted Binlog_commits) groups=$(counted Binlog_group_commits) begun=${EPOCHREALTIME/./}
	mariadb-slap --no-defaults -uroot -S "$sockets/main" --create-schema=d --query="INSERT INTO t VALUES ()" \
		--concurrency="$1" --number-of-queries=$(($1 * $2)) >"$directory/slap" 2>&1 || die "$(cat "$directory/slap")"
	took=$(((${EPOCHREALTIME/./} - begun) / $2))
	size=$((10 * ($(counted Binlog_commits) - commits) / ($(counted Binlog_group_commits) - groups)))
}
commit 8 40
commit 8 200
[ $size -ge 55 ] || die "of eight clients, $size tenths of a commit in a group: halves alternate"
eight=$size
commit 1 20
commit 1 100
# Two syncs each; a wait for nobody would be half as much again, and more.
[ $took -lt 16000 ] || die "a client that is alone waits $took us for a commit"
[ "$(sql main -e 'SELECT COUNT(*) FROM d.t')" = 2040 ] || die "$(sql main -e 'SELECT COUNT(*) FROM d.t') rows of 2040"
sql main -e "CHECK TABLE d.t" | grep -q OK || die "CHECK TABLE"
mariadb-admin --no-defaults -uroot -S "$sockets/main" shutdown
for _ in $(seq 500); do kill -0 $server 2>/dev/null || break; sleep 0.02; done
kill -0 $server 2>/dev/null && die "the server does not end"
unset "servers[$server]"
grep -q "Shutdown complete" "$directory/main/server.log" || die "the server has not ended well"
echo "groups: on a disk whose syncs take 5 ms, $((eight / 10)).$((eight % 10)) commits of eight clients in a group; one alone takes $took us"
