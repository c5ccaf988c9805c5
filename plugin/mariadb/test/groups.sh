#!/bin/bash
# Groups of the binary log on a disk whose syncs take long (src/binlog_groups.cc): groups are kept open for commits about to
# come, a client that is alone does not wait, and the server ends as it should.
#   groups.sh PLUGIN DIRECTORY
set -eu
here=$(cd "$(dirname "$0")" && pwd)
plugin=$1 directory=$2
. "$here/servers.sh"
cc -shared -fPIC -O1 -Wall -o "$directory/slow_sync.so" "$here/slow_sync.c" -ldl
# Behind the sanitizers' libraries, if those are there (sanitize.sh).
export WEIR_SERVER_ENV="${WEIR_SERVER_ENV-} LD_PRELOAD=${WEIR_SERVER_PRELOAD:+$WEIR_SERVER_PRELOAD:}$directory/slow_sync.so"
start main --skip-networking --log-bin=binlog --sync-binlog=1 --server-id=1
sql main -e "CREATE DATABASE d; CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY) ENGINE=Weir;
	CREATE TABLE d.i LIKE d.t; ALTER TABLE d.i ENGINE=InnoDB"
written=0
counted() { sql main -e "SHOW GLOBAL STATUS LIKE '$1'" | cut -f2; }
commit() { # clients inserts-of-each [table]: how many commits the binary log syncs at once, in tenths; and microseconds for an insert
	local commits groups begun
	commits=$(counted Binlog_commits) groups=$(counted Binlog_group_commits) begun=${EPOCHREALTIME/./}
	mariadb-slap --no-defaults -uroot -S "$sockets/main" --create-schema=d --query="INSERT INTO ${3-t} VALUES ()" \
		--concurrency="$1" --number-of-queries=$(($1 * $2)) >"$directory/slap" 2>&1 || die "$(cat "$directory/slap")"
	[ "${3-t}" = i ] || written=$((written + $1 * $2))
	took=$(((${EPOCHREALTIME/./} - begun) / $2))
	size=$((10 * ($(counted Binlog_commits) - commits) / ($(counted Binlog_group_commits) - groups)))
}
least() { echo $(($1 < $2 ? $1 : $2)); }
commit 8 40
eight=0
# On a busy machine a client may come late: the best of some rounds counts.
for _ in 1 2 3 4 5; do
	commit 8 200
	[ $size -le $eight ] || eight=$size
	[ $eight -lt 55 ] || break
done
[ $eight -ge 55 ] || die "of eight clients, $eight tenths of a commit in a group: halves alternate"
# Two syncs each, with either engine; a wait in vain would be half as much again, and more.
alone=1000000 innodb=1000000
for _ in 1 2 3 4 5; do
	commit 1 60
	alone=$(least $alone $took)
	commit 1 60 i
	innodb=$(least $innodb $took)
	[ $((10 * alone)) -ge $((14 * innodb)) ] || break
done
[ $((10 * alone)) -lt $((14 * innodb)) ] || die "a client that is alone waits $alone us for a commit, with InnoDB $innodb"
rows=$(sql main -e 'SELECT COUNT(*) FROM d.t')
[ "$rows" = "$written" ] || die "$rows rows of $written"
sql main -e "CHECK TABLE d.t" | grep -q OK || die "CHECK TABLE"
mariadb-admin --no-defaults -uroot -S "$sockets/main" shutdown
for _ in $(seq 500); do kill -0 $server 2>/dev/null || break; sleep 0.02; done
kill -0 $server 2>/dev/null && die "the server does not end"
unset "servers[$server]"
grep -q "Shutdown complete" "$directory/main/server.log" || die "the server has not ended well"
echo "groups: on a disk whose syncs take 5 ms, $((eight / 10)).$((eight % 10)) commits of eight clients in a group; one alone takes $alone us, with InnoDB $innodb"
