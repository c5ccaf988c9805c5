#!/bin/bash
# A damaged database, opened to be read (weir_force_recovery): what each step shows, what is refused, that no file changes, and what
# the server's log says.
#   force_recovery.sh PLUGIN DIRECTORY
set -eu
here=$(cd "$(dirname "$0")" && pwd)
plugin=$1 directory=$2
. "$here/servers.sh"
with=(--skip-networking)
start main "${with[@]}"
sql main -e "CREATE DATABASE work; USE work;
	CREATE TABLE birds (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(100), about TEXT, KEY (name)) ENGINE=Weir;
	CREATE TABLE other (a INT PRIMARY KEY, b INT) ENGINE=Weir; INSERT INTO other SELECT seq, seq * 2 FROM seq_1_to_1000;
	INSERT INTO birds (name, about) SELECT CONCAT('bird ', seq), REPEAT('feathers ', 1 + seq % 20) FROM seq_1_to_20000"
stop() { mariadb-admin --no-defaults -uroot -S "$sockets/main" shutdown; while kill -0 "$server" 2>/dev/null; do sleep 0.1; done; unset "servers[$server]"; }
stop
# Closed, opened again, then written to and killed: pages that have all, and a log that is ahead.
start main "${with[@]}"
sql main work -e "UPDATE birds SET about = 'changed' WHERE id % 100 = 7; INSERT INTO other SELECT seq, 0 FROM seq_2001_to_2100"
{ echo "BEGIN; UPDATE other SET b = -1 WHERE a < 500; SELECT SLEEP(100);" | sql main work >/dev/null 2>&1 || true; } &
sleep 2
sql main work -e "INSERT INTO other VALUES (3000, 0)"
slay "$server"
wait
files=$directory/main/'#weir'
cp -a "$directory/main" "$directory/sound"
hashes() { (cd "$files" && find . -type f ! -name LOCK -print0 | sort -z | xargs -0 sha256sum); }
log=$directory/main/server.log

look() { # step
	: >"$log"
	hashes >"$directory/before"
	start main "${with[@]}" --weir-force-recovery="$1"
	grep -q "weir_force_recovery=$1: the tables can be read" "$log" || die "the log does not say that it is forced"
	refuse "INSERT INTO other VALUES (9000, 0)"
	refuse "DELETE FROM birds"
	refuse "UPDATE other SET b = 0 WHERE a = 1"
	refuse "CREATE TABLE another (a INT) ENGINE=Weir"
	refuse "ALTER TABLE birds ADD more INT"
	refuse "CREATE INDEX more ON birds (about(10))"
	refuse "DROP TABLE other"
	refuse "TRUNCATE TABLE other"
	refuse "RENAME TABLE other TO others"
	refuse "SELECT * FROM other WHERE a = 1 FOR UPDATE"
	sql main work -e "SELECT * FROM other WHERE a = 1 LOCK IN SHARE MODE" >/dev/null
	mariadb-dump --no-defaults -uroot -S "$sockets/main" work >"$directory/dump.$1" 2>"$directory/dump.err" ||
		die "no dump with step $1: $(cat "$directory/dump.err")"
	read -r birds others < <(sql main work -e "SELECT (SELECT COUNT(about) FROM birds), (SELECT COUNT(b) FROM other)")
	negative=$(sql main work -e "SELECT COUNT(*) FROM other WHERE b < 0")
	warnings=$(sql main work --show-warnings -e "SELECT COUNT(about) FROM birds" | grep -c "rows are missing here" || true)
	stop
	hashes >"$directory/after"
	cmp -s "$directory/before" "$directory/after" || die "files have changed: $(diff "$directory/before" "$directory/after" | cut -c 1-100 | head -n 4)"
	echo "force_recovery: $damage, step $1: $birds of 20000 and $others of 1101 rows"
}
refuse() { # statement
	if sql main work -e "$1" 2>"$directory/refused"; then die "not refused: $1"; fi
	grep -q "force_recovery" "$directory/refused" || die "refused in other words: $1: $(cat "$directory/refused")"
}
again() { rm -rf "$directory/main"; cp -a "$directory/sound" "$directory/main"; }
fails() { # words options...
	local words=$1
	shift
	: >"$log"
	if (start main "${with[@]}" "$@") >/dev/null 2>&1; then die "it starts with $*"; fi
	grep -q "$words" "$log" || die "no '$words' with '$*': $(tail -n 5 "$log")"
}

damage="nothing damaged"
for step in 1 2 3; do
	look $step
	[ "$birds $others $negative $warnings" = "20000 1101 0 0" ] || die "step $step: $birds $others $negative $warnings"
done
look 4
[ "$birds" = 20000 ] || die "step 4: $birds"

damage="pages damaged"
# Leaves of the rows that were there at the checkpoint, among others; and the copies that they would be made of.
for page in 60 90 120 150 180; do
	printf 'damaged' | dd of="$files/pages" bs=1 seek=$((page * 8192 + 3000)) conv=notrunc status=none
done
for file in "$files"/doublewrite-*; do
	dd if=/dev/zero of="$file" bs="$(stat -c %s "$file")" count=1 conv=notrunc status=none
done
look 1
[ "$birds" -lt 20000 ] && [ "$birds" -gt 15000 ] && [ "$others" -gt 0 ] || die "of damaged pages: $birds, $others"
[ "$warnings" = 1 ] || die "$warnings warnings"
grep -q "in 'pages' at byte" "$log" || die "the log names no page"

again
damage="the log damaged"
# A block of each 16 KiB, wherever the checkpoint is.
for file in "$files"/redo-*; do
	for ((at = 8192; at < $(stat -c %s "$file"); at += 16384)); do
		dd if=/dev/urandom of="$file" bs=512 seek=$((at / 512)) count=1 conv=notrunc status=none
	done
done
fails "weir_force_recovery=1"
fails "weir_force_recovery=3" --weir-force-recovery=2
look 3
grep -q "is applied up to position" "$log" || die "the log does not say how far the log was read"
look 4

again
damage="no control file"
dd if=/dev/zero of="$files/control" bs=8192 count=1 conv=notrunc status=none
fails "weir salvage" --weir-force-recovery=4

again
start main "${with[@]}" --weir-force-recovery=9
grep -q "force.recovery.*adjusted to 4" "$directory/main/server.log" || die "a step beyond the last is taken in silence"
stop
start main "${with[@]}"
[ "$(sql main work -e "SELECT COUNT(*) FROM birds")" = 20000 ] || die "the sound one has lost rows"
sql main work -e "INSERT INTO other VALUES (9000, 0)"
stop
echo "force_recovery: no file was changed"
