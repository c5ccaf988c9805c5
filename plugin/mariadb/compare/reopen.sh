#!/bin/bash
# How long a server takes to be there again after kill -9, with the same work behind each engine and then with as much redo.
#   reopen.sh PLUGIN DIRECTORY [REDO_MIB]
# Rows of one table are updated in batches of 10,000 until there is so much redo behind the checkpoint; the file cache is
# emptied where that is allowed; then the server is killed, started, and asked until it answers. CHECK TABLE afterwards.
# What the server itself takes is in that; it is seen from a start after a stop in order.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
plugin=$1 directory=$2 redo=${3:-1600}
: "${ROWS:=1000000}" "${POOL_MIB:=4096}"
. "$here/../test/servers.sh"
log=$((redo * 5 / 4))
# The pages must stay dirty: what is in its place needs no redo. Weir keeps its age just under the limit by itself.
options=(--skip-networking --weir-memory="${POOL_MIB}M" --weir-log-capacity="${log}M" --innodb-buffer-pool-size="${POOL_MIB}M"
	--innodb-log-file-size="${log}M" --innodb-flush-method=O_DIRECT --innodb-max-dirty-pages-pct=99 --innodb-adaptive-flushing=OFF
	--innodb-flush-log-at-trx-commit=2 --innodb-buffer-pool-dump-at-shutdown=OFF --innodb-buffer-pool-load-at-startup=OFF)

age() { # engine: MiB
	local bytes
	case $1 in
	InnoDB) bytes=$(sql "$1" -e "SHOW GLOBAL STATUS LIKE 'Innodb_checkpoint_age'" | cut -f 2) ;;
	Weir) bytes=$(sql "$1" -e "SELECT age_bytes FROM information_schema.weir_checkpoint" | cut -d . -f 1) ;;
	esac
	echo $((bytes >> 20))
}
batch() { # engine number
	local from=$(($2 * 10000 % ROWS))
	sql "$1" work -e "SET weir_durability=LAZY; UPDATE t SET c=REPEAT(CHAR(65 + $2 % 26), 120) WHERE id > $from AND id <= $from + 10000"
}
drop_caches() {
	sync
	{ echo 3 >/proc/sys/vm/drop_caches; } 2>/dev/null || echo "reopen: the file cache is as it is"
}
started() { # engine: starts its server, and says how many ms it took until it answered
	local begun
	begun=$(date +%s%N)
	start "$1" "${options[@]}"
	sql "$1" work -e "SELECT COUNT(*) FROM t WHERE id < 10" >/dev/null
	took=$((($(date +%s%N) - begun) / 1000000))
}
reopen() { # engine what
	local behind crashed
	behind=$(age "$1")
	slay $server
	drop_caches
	started "$1"
	crashed=$took
	[ -z "$(sql "$1" work -e 'CHECK TABLE t' | grep -v OK)" ] || die "$1: CHECK TABLE"
	# What of that is the server's own.
	mariadb-admin --no-defaults -uroot -S "$sockets/$1" shutdown
	while kill -0 $server 2>/dev/null; do sleep 0.05; done
	drop_caches
	started "$1"
	echo "reopen: $1, $2: $behind MiB of redo behind the checkpoint, open after $crashed ms; after a stop in order $took ms"
}
for engine in InnoDB Weir; do
	start $engine "${options[@]}"
	sql $engine -e "CREATE DATABASE work; USE work; CREATE TABLE t (id INT PRIMARY KEY, k INT, c CHAR(120), pad CHAR(60)) ENGINE=$engine;
		INSERT INTO t SELECT seq, seq, REPEAT('a', 120), REPEAT('b', 60) FROM seq_1_to_$ROWS"
	sql $engine -e "FLUSH TABLES"
	batches=0
	if [ $engine = Weir ]; then
		# As much work as InnoDB had; then as much redo.
		while [ $batches -lt "$work" ]; do
			batch $engine $batches
			batches=$((batches + 1))
		done
		reopen $engine "the same $batches batches"
	fi
	while [ "$(age $engine)" -lt "$redo" ] && [ $batches -lt 3000 ]; do
		before=$(age $engine)
		for _ in 1 2 3 4 5; do
			batch $engine $batches
			batches=$((batches + 1))
		done
		# Its age does not grow any more.
		[ "$(age $engine)" -gt $((before - redo / 10)) ] || break
	done
	work=$batches
	reopen $engine "$batches batches of 10,000 rows"
	slay $server
done
