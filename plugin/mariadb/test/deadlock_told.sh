#!/bin/bash
# The last deadlock in SHOW ENGINE WEIR STATUS: the circle, and the statements of both.
#   deadlock_told.sh       (inside server.sh --run, which sets WEIR_SOCKET)
set -eu
sql() { mariadb --no-defaults -uroot -S "$WEIR_SOCKET" -NB "$@"; }
die() { echo "deadlock_told: $*"; exit 1; }
sql -e "DROP DATABASE IF EXISTS told; CREATE DATABASE told; USE told;
	CREATE TABLE t (id INT PRIMARY KEY, v INT) ENGINE=Weir; INSERT INTO t VALUES (1, 0), (2, 0)"
crossing() { # own, other
	sql told -e "SET SESSION weir_lock_wait_timeout=20; BEGIN; UPDATE t SET v=$1 WHERE id=$1; SELECT SLEEP(1);
		UPDATE t SET v=$1 WHERE id=$2; COMMIT" 2>&1
}
missing() { # what was told
	for words in "deadlock: " "rolled back: session " ": UPDATE t SET v=1 WHERE id=2" ": UPDATE t SET v=2 WHERE id=1" " waits for "; do
		[[ $1 == *"$words"* ]] || echo "no '$words' in: $1"
	done
}
# On a busy machine the survivor's statement may be over before the victim's thread has noted both: then there is none to show.
for _ in $(seq 10); do
	crossing 1 2 >/dev/null &
	one=$!
	crossing 2 1 >/dev/null || true
	wait $one || true
	told=$(sql -e "SHOW ENGINE WEIR STATUS" | grep -a "last deadlock" || true)
	missing=$(missing "$told")
	[ -n "$missing" ] || break
done
[ -z "$missing" ] || die "$missing"
sql -e "DROP DATABASE told"
echo "deadlock_told: who waited for whom, and both statements"
