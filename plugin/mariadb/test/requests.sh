#!/bin/bash
# What clients say is taken from their sockets by us (src/requests.cc): whole, and a client that is silent is still told to
# go when its time is over, can be killed, and holds up neither the server's end nor anybody in a pool of threads.
#   requests.sh PLUGIN DIRECTORY
set -eu
here=$(cd "$(dirname "$0")" && pwd)
plugin=$1 directory=$2
. "$here/servers.sh"
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$directory/key.pem" -out "$directory/cert.pem" -days 2 -subj /CN=weir 2>/dev/null
encrypted=(--ssl-cert="$directory/cert.pem" --ssl-key="$directory/key.pem")
start main --skip-networking --max-allowed-packet=64M --local-infile=1 "${encrypted[@]}"
sql main -e "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, b LONGTEXT) ENGINE=Weir; INSERT INTO d.t VALUES (0, '')"

# Packets of all sizes, around what is taken at once, and rows that the client sends out of a file.
wrong=$({
	echo "SELECT COUNT(*) FROM t;"
	for n in $(seq 4040 4110) 16383 20000 65536 3000000; do
		printf "INSERT INTO t VALUES (%d, '%s');\n" "$n" "$(head -c "$n" /dev/zero | tr '\0' x)"
	done
	seq 5000000 5050000 | sed 's/$/\tabc/' >"$directory/rows"
	echo "LOAD DATA LOCAL INFILE '$directory/rows' INTO TABLE t;"
	echo "SELECT COUNT(*) FROM t WHERE LENGTH(b) <> IF(id < 5000000, id, 3);"
} | mariadb --no-defaults -uroot -S "$sockets/main" -N --skip-ssl --max-allowed-packet=64M --local-infile=1 d | tail -n 1) || true
[ "$wrong" = 0 ] || die "$wrong rows are not what was sent"
[ "$(sql main -e "SELECT COUNT(*) FROM d.t")" = 50077 ] || die "$(sql main -e "SELECT COUNT(*) FROM d.t") rows of 50077"
for how in --ssl "--skip-ssl --compress"; do
	# shellcheck disable=SC2086
	said=$(mariadb --no-defaults -uroot -S "$sockets/main" -N $how d -e "SELECT id FROM t WHERE id = 4096; SELECT LENGTH(b) FROM t WHERE id = 4097
		UNION ALL SELECT VARIABLE_VALUE <> '' FROM information_schema.SESSION_STATUS WHERE VARIABLE_NAME = 'Ssl_cipher'")
	[ "$said" = $'4096\n4097\n'$([[ $how = --ssl ]] && echo 1 || echo 0) ] || die "$how: $said"
done

# A session that has read a row and is silent then; $connection is its number.
idle() { # what is said in it first
	{ echo "$1; SELECT id FROM t LIMIT 1; SELECT 'is', CONNECTION_ID();"; exec sleep 60; } |
		mariadb --no-defaults -uroot -S "$sockets/$name" -N --skip-ssl --unbuffered d >"$directory/idle" 2>&1 &
	disown $!
	for _ in $(seq 500); do grep -q ^is "$directory/idle" && break; sleep 0.01; done
	connection=$(sed -n 's/^is\t//p' "$directory/idle")
}
there() { sql "$name" -e "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = $connection"; }
gone_within() { # tenths of a second
	for _ in $(seq "$1"); do [ "$(there)" = 0 ] && return; sleep 0.1; done
	die "$2"
}
name=main
idle "SET SESSION wait_timeout=2"
sleep 1
[ "$(there)" = 1 ] || die "a client goes before its time is over"
gone_within 40 "a client is silent for longer than it may"
# Another time while it is in a transaction, and the first one again behind it.
idle "SET SESSION idle_transaction_timeout=1; BEGIN; SELECT id FROM t LIMIT 1"
gone_within 40 "a transaction is idle for longer than it may be"
idle "SET SESSION idle_transaction_timeout=1; BEGIN; SELECT id FROM t LIMIT 1; COMMIT"
sleep 2
[ "$(there)" = 1 ] || die "a client without a transaction goes by a transaction's time"
sql main -e "KILL $connection"
gone_within 20 "a silent client cannot be killed"
# Who was quick is waited for awake, but not for long.
idle "$(for _ in $(seq 100); do printf 'SELECT id FROM t LIMIT 1; '; done) SELECT 1"
ticks() { awk '{ print $14 + $15 }' "/proc/$server/stat"; }
used=$(ticks)
sleep 1
used=$(($(ticks) - used))
[ $used -lt 50 ] || die "a processor is busy with a silent client: $used of 100 ticks"
sql main -e "KILL $connection"
gone_within 20 "a client that was quick cannot be killed"
idle "SET SESSION wait_timeout=31536000"
begun=${EPOCHREALTIME/./}
mariadb-admin --no-defaults -uroot -S "$sockets/main" shutdown
while kill -0 $server 2>/dev/null; do sleep 0.02; done
unset "servers[$server]"
took=$(((${EPOCHREALTIME/./} - begun) / 1000000))
[ $took -lt 20 ] || die "the server's end took $took s, with a silent client"

# With one thread for all, who is silent must not keep it.
cc -O1 -Wall -I/usr/include/mariadb -o "$directory/talk" "$here/talk.c" -lmariadb
start main --skip-networking --thread-handling=pool-of-threads --thread-pool-size=1 --thread-pool-max-threads=1
idle "SELECT 0"
[ "$(timeout 10 mariadb --no-defaults -uroot -S "$sockets/main" -N d -e "SELECT COUNT(*) FROM t WHERE id < 4100" 2>&1)" = 61 ] ||
	die "a silent client keeps the thread of a pool"
# Nor is forgotten what came together with something else.
sql main -e "CREATE DATABASE e; CREATE TABLE e.t (id INT PRIMARY KEY) ENGINE=Weir"
timeout 20 "$directory/talk" "$sockets/main" e 1 300 0 || die "a client that talks on is not heard in a pool"
echo "requests: whole, and nobody waits for who is silent"
