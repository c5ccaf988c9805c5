#!/bin/bash
# A day's connects, compressed: 90,000 sessions that each do a transaction and go, some of them without a word. Then
# nothing of them is left: no transaction, no lock, no handle, and no memory that grows with their number.
#   connects.sh PLUGIN DIRECTORY [SESSIONS]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
plugin=$1 directory=$2 sessions=${3:-90000}
. "$here/servers.sh"
start main --skip-networking --max-connections=300 --thread-cache-size=8
sql main -e "CREATE DATABASE work; USE work;
	CREATE TABLE one (id INT AUTO_INCREMENT PRIMARY KEY, k INT, c CHAR(120), KEY(k)) ENGINE=Weir;
	CREATE TABLE two LIKE one;
	INSERT INTO one(k, c) SELECT seq % 1000, REPEAT('c', seq % 120) FROM seq_1_to_5000; INSERT INTO two SELECT * FROM one"
# Sessions one after the other, each a transaction that is committed, rolled back, or left open as the client goes; a
# client that connects again is a new session to the server. The rows stay as many as they are.
sessions() { # how many
	perl -e 'for (1 .. shift) {
		my ($n, $m) = (1 + int rand 5000, 1 + int rand 5000);
		my $end = ("COMMIT;", "COMMIT;", "ROLLBACK;", "")[rand 4];
		print "BEGIN; SELECT COUNT(*) FROM one WHERE k BETWEEN $n % 1000 AND 5 + $n % 1000; UPDATE one SET k=$m % 1000 WHERE id=$n;\n",
			"REPLACE INTO two VALUES ($m, $n % 1000, REPEAT(\"d\", $n % 120)); $end\n\\r work\n";
	}' "$1" | sql main work --force >/dev/null 2>>"$directory/errors" || die "a client fails"
	# Two that lock rows the other way round.
	! grep -v '^ERROR 1213' "$directory/errors" | grep ^ERROR || die "a statement fails"
}
connect() { # how many
	local clients=() client
	for client in 1 2 3 4; do sessions $(($1 / 4)) & clients+=($!); done
	for client in "${clients[@]}"; do wait $client || die "sessions"; done
}
memory() { awk '/^VmRSS/ { print $2 }' "/proc/$server/status"; }
# Sessions that vanish in the middle of a transaction: their thread finds the socket closed.
vanish() {
	local n
	for n in $(seq 25); do
		sql main work -e "BEGIN; UPDATE one SET k=k+1 WHERE id=$n; INSERT INTO two VALUES (100000+$n, 1, ''); SELECT SLEEP(10)" >/dev/null 2>&1 &
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
third() {
	connect $((sessions / 3))
	vanish
	for _ in $(seq 300); do
		[ "$(left)" = $'0\t0\t0' ] && return
		sleep 0.1
	done
	die "something is left of them: $(left)"
}
# Until the pool is full, all threads have been there and their arenas are as large as they get.
third
before=$(memory)
third
between=$(memory)
third
after=$(memory)
connects=$(sql main -e "SHOW GLOBAL STATUS LIKE 'Connections'" | cut -f 2)
[ "$connects" -ge "$sessions" ] || die "only $connects connects"
# A hundred bytes a session would be 3,000 KiB in a third of a day.
growth=$((after - between))
[ $growth -lt 2048 ] || die "memory grows with sessions: $before, $between, $after KiB"
[ -z "$(sql main work -e 'CHECK TABLE one, two' | grep -v OK)" ] || die "CHECK TABLE"
echo "connects: after $connects sessions nothing is left of them; memory $before, $between, $after KiB"
