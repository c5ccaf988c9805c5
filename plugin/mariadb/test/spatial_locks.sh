#!/bin/bash
# A window that was read with locks stays as it is: what another session would bring into it waits, and what it puts elsewhere
# does not. And the plan reads by the key.
#   spatial_locks.sh        (inside server.sh --run, which sets WEIR_SOCKET; --weir-lock-wait-timeout=1)
set -eu
sql() { mariadb --no-defaults -uroot -S "$WEIR_SOCKET" -N "$@"; }
die() { echo "spatial_locks: $*"; exit 1; }
sql -e "DROP DATABASE IF EXISTS window; CREATE DATABASE window"
sql window -e "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, g GEOMETRY NOT NULL, SPATIAL KEY (g)) ENGINE=Weir;
	SET max_recursive_iterations = 5000; INSERT INTO t (g) WITH RECURSIVE s AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM s WHERE i < 2000) SELECT POINT(CRC32(i) % 1000, CRC32(i + 7000) % 1000) FROM s;"
window="ST_GeomFromText('POLYGON((400 400,420 400,420 420,400 420,400 400))')"
plan=$(sql window -e "EXPLAIN SELECT COUNT(*) FROM t WHERE MBRWithin(g, $window)" | cut -f 4,6)
[ "$plan" = $'range\tg' ] || die "the plan is $plan"
# $1: how it is read; the rest: what others write, and whether they wait.
hold() {
	sql window --unbuffered -e "$1; SELECT 'held'; SELECT SLEEP(8)" >"$WEIR_SOCKET.held" 2>/dev/null &
	holder=$!
	for _ in $(seq 100); do grep -q held "$WEIR_SOCKET.held" && return; sleep 0.05; done
	die "nothing was read"
}
tries() { # waits|goes statement
	if sql window -e "$2" 2>"$WEIR_SOCKET.error"; then how=goes; else how=waits; grep -q 'ERROR 1205' "$WEIR_SOCKET.error" || die "$(cat "$WEIR_SOCKET.error")"; fi
	[ "$how" = "$1" ] || die "'$2' $how"
}
for read in "BEGIN; SELECT COUNT(*) FROM t FORCE INDEX (g) WHERE MBRWithin(g, $window) FOR UPDATE" \
	"SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE; BEGIN; SELECT COUNT(*) FROM t FORCE INDEX (g) WHERE MBRIntersects(g, $window)"; do
	hold "$read"
	tries waits "INSERT INTO t (g) VALUES (POINT(410.5, 410.5))"
	tries waits "UPDATE t SET g = POINT(411.5, 410.5) WHERE id = (SELECT id FROM (SELECT id FROM t IGNORE INDEX (g) WHERE ST_X(g) > 900 LIMIT 1) far)"
	tries waits "INSERT INTO t (g) VALUES (ST_GeomFromText('LINESTRING(0 0,999 999)'))"
	tries goes "INSERT INTO t (g) VALUES (POINT(900.5, 100.5))"
	kill $holder; wait $holder 2>/dev/null || true
	# The server sees that the client has gone.
	for _ in $(seq 100); do [ "$(sql -e "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE '%SLEEP(8)'")" = 1 ] && break; sleep 0.1; done
	sql -e "SELECT CONCAT('KILL ', id, ';') FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP%'" | sql -f || true
	sleep 0.3
	tries goes "INSERT INTO t (g) VALUES (POINT(410.5, 410.5))"
done
# A snapshot sees neither what comes into the window nor what leaves it.
answers=$(sql window -e "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ; START TRANSACTION WITH CONSISTENT SNAPSHOT; SELECT COUNT(*) FROM t FORCE INDEX (g) WHERE MBRWithin(g, $window); SELECT SLEEP(2); SELECT COUNT(*) FROM t FORCE INDEX (g) WHERE MBRWithin(g, $window)" &
	sleep 0.7
	sql window -e "DELETE FROM t WHERE MBRWithin(g, $window); INSERT INTO t (g) VALUES (POINT(401, 401))" >&2
	wait)
[ "$(sed -n 1p <<<"$answers")" = "$(sed -n 3p <<<"$answers")" ] || die "a snapshot changes: $answers"
[ "$(sql window -e "SELECT COUNT(*) FROM t FORCE INDEX (g) WHERE MBRWithin(g, $window)")" = 1 ] || die "what was committed is not found"
sql window -e "CHECK TABLE t" | grep -q 'OK$' || die "the check"
sql -e "DROP DATABASE window"
echo "spatial_locks: windows stay as they were read"
