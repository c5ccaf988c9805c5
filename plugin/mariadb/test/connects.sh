#!/bin/bash
# A day's connects, compressed: 90,000 sessions that each do a transaction and go, some of them without a word. Then
# nothing of them is left: no transaction, no lock, no handle, and no memory that grows with their number.
#   connects.sh PLUGIN DIRECTORY [SESSIONS]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
plugin=$1 directory=$2 sessions=${3:-90000}
command -v sysbench >/dev/null || { echo "connects: no sysbench here: not tried"; exit 0; }
. "$here/servers.sh"
start main --skip-networking --max-connections=300 --thread-cache-size=8
sql main -e "CREATE DATABASE work"
connect() { # how many
	sysbench oltp_write_only --db-driver=mysql --mysql-socket="$sockets/main" --mysql-user=root --mysql-db=work --mysql-storage-engine=Weir \
		--tables=2 --table-size=5000 --threads=8 --mysql-ignore-errors=1213,1020,1205 "${@:2}" --events="$1" --time=0 >"$directory/out" 2>&1 ||
		{ tail -n 5 "$directory/out"; die "sysbench"; }
}
connect 1 # the options are read
sysbench oltp_write_only --db-driver=mysql --mysql-socket="$sockets/main" --mysql-user=root --mysql-db=work --mysql-storage-engine=Weir --tables=2 \
	--table-size=5000 prepare >"$directory/out" 2>&1 || die "no tables"
memory() { awk '/^VmRSS/ { print $2 }' "/proc/$server/status"; }
# Sessions that vanish in the middle of a transaction: their thread finds the socket closed.
vanish() {
	local n
	for n in $(seq 25); do
		sql main work -e "BEGIN; UPDATE sbtest1 SET k=k+1 WHERE id=$n; INSERT INTO sbtest2 VALUES (100000+$n, 1, '', ''); SELECT SLEEP(10)" >/dev/null 2>&1 &
		local pid=$!
		sleep 0.05
		kill -9 $pid 2>/dev/null || true
		wait $pid 2>/dev/null || true
	done
}
left() {
	sql main -e "SELECT (SELECT COUNT(*) FROM information_schema.weir_transactions), (SELECT COUNT(*) FROM information_schema.weir_locks),
		(SELECT value FROM information_schema.weir_metrics WHERE name='weir_open_transactions')"
}
# Until the pool is full, all threads have been there and their arenas are as large as they get.
connect $((sessions / 3)) run --reconnect=1
vanish
before=$(memory)
connect $((sessions / 3)) run --reconnect=1
vanish
between=$(memory)
connect $((sessions / 3)) run --reconnect=1
vanish
for _ in $(seq 300); do
	[ "$(left)" = $'0\t0\t0' ] && break
	sleep 0.1
done
[ "$(left)" = $'0\t0\t0' ] || die "something is left of them: $(left)"
after=$(memory)
connects=$(sql main -e "SHOW GLOBAL STATUS LIKE 'Connections'" | cut -f 2)
[ "$connects" -ge "$sessions" ] || die "only $connects connects"
# A hundred bytes a session would be 3,000 KiB in a third of a day.
growth=$((after - between))
[ $growth -lt 2048 ] || die "memory grows with sessions: $before, $between, $after KiB"
[ -z "$(sql main work -e 'CHECK TABLE sbtest1, sbtest2' | grep -v OK)" ] || die "CHECK TABLE"
echo "connects: after $connects sessions nothing is left of them; memory $before, $between, $after KiB"
