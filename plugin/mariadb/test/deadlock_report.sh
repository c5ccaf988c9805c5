#!/bin/bash
# The last deadlock in SHOW ENGINE WEIR STATUS: the circle, and the statements of both.
#   deadlock_report.sh       (inside server.sh --run, which sets WEIR_SOCKET)
set -eu
sql() { mariadb --no-defaults -uroot -S "$WEIR_SOCKET" -NB "$@"; }
die() { echo "deadlock_report: $*"; exit 1; }
sql -e "DROP DATABASE IF EXISTS report; CREATE DATABASE report; USE report;
	CREATE TABLE t (id INT PRIMARY KEY, v INT) ENGINE=Weir; INSERT INTO t VALUES (1, 0), (2, 0)"
crossing() { # own, other
	sql report -e "SET SESSION weir_lock_wait_timeout=20; BEGIN; UPDATE t SET v=$1 WHERE id=$1; SELECT SLEEP(1);
		UPDATE t SET v=$1 WHERE id=$2; COMMIT" 2>&1
}
missing() { # report
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
	report=$(sql -e "SHOW ENGINE WEIR STATUS" | grep -a "last deadlock" || true)
	missing=$(missing "$report")
	[ -n "$missing" ] || break
done
[ -z "$missing" ] || die "$missing"
sql -e "DROP DATABASE report"
echo "deadlock_report: which transaction waited for which, and both statements"
