#!/bin/bash
# A whole running server backed up by weir-backup under load: what was restored is what the binary log says at the position,
# in Weir and in InnoDB; also where the backup was killed within Weir's pages, and behind them.
#   whole_backup.sh PLUGIN DIRECTORY WEIR PEERS      WEIR: the command weir; PEERS: where tools/peers.sh has unpacked mariadb-backup
set -eu
here=$(cd "$(dirname "$0")" && pwd)
plugin=$1 directory=$2 weir=$3 peers=$4
. "$here/servers.sh"
export WEIR_BACKUP_TOOL=mariadb-backup WEIR_BACKUP_COMMAND=$weir
command -v mariadb-backup >/dev/null || WEIR_BACKUP_TOOL=$peers/usr/bin/mariadb-backup
[ -x "$(command -v "$WEIR_BACKUP_TOOL")" ] || { echo "whole_backup: no mariadb-backup: it is not tried"; exit 0; }
is() { # what is, what should be, of what
	[ "$1" = "$2" ] || die "$3: '$1', not '$2'"
}
backup() { # name
	"$here/../tools/weir-backup" "$sockets/main" "$directory/main" "$directory/$1" >"$directory/$1.log" 2>&1
}
wait_for() { # seconds, what, command
	local n
	for n in $(seq $((10 * $1))); do
		eval "$3" && return
		sleep 0.1
	done
	die "$2: $(tail -n 5 "$directory"/*.log)"
}

start main --skip-networking --log-bin=binlog --server-id=1
sql main -e "CREATE DATABASE work; USE work;
	CREATE TABLE t (id INT PRIMARY KEY, a INT, s VARCHAR(100), KEY by_a (a)) ENGINE=Weir;
	CREATE TABLE i (id INT PRIMARY KEY, v INT) ENGINE=InnoDB;
	INSERT INTO t SELECT seq, seq % 10, REPEAT('x', 90) FROM seq_1_to_100000; INSERT INTO i VALUES (1, 0), (2, 0);
	CREATE TABLE lt (id INT PRIMARY KEY) ENGINE=Weir; CREATE TABLE li (id INT PRIMARY KEY) ENGINE=InnoDB"
# Prepared, of both engines, and not decided: it is that in the copy, too. The binary log's replay could not leave it so.
sql main work -e "SET sql_log_bin=0; XA START 'one'; INSERT INTO lt VALUES (1); INSERT INTO li VALUES (1); XA END 'one'; XA PREPARE 'one'"
# In each transaction one row more of both engines: a backup of two moments would show.
write() { # worker
	local n
	for n in $(seq 200000); do
		n=$((n + 1000000 * $1))
		echo "BEGIN; INSERT INTO t VALUES ($n, $n, 's'); UPDATE i SET v=v+1 WHERE id=$1; COMMIT;"
	done 2>/dev/null | sql main work >/dev/null 2>&1 || true
}
write 1 &
write 2 &
# What is not committed is in no copy.
mkfifo "$directory/in"
sql main work --unbuffered <"$directory/in" >/dev/null 2>&1 &
exec 7>"$directory/in"
echo "BEGIN; INSERT INTO t VALUES (-7, 7, 'never');" >&7
wait_for 60 "rows" '[ "$(sql main work -e "SELECT MIN(v) FROM i")" -gt 5 ]'

backup once || die "no backup: $(cat "$directory/once.log")"
[ -z "$(ls -d "$directory"/once.* | grep -v '\.log$')" ] || die "left: $(ls -d "$directory"/once.*)"
"$here/../tools/weir-backup" "$sockets/main" "$directory/main" "$directory/once" >/dev/null && die "over what is there"

# Killed within Weir's pages: it goes on with them.
export WEIR_BACKUP_RATE=2MiB
"$here/../tools/weir-backup" "$sockets/main" "$directory/main" "$directory/pages" >"$directory/pages.log" 2>&1 &
backup=$!
disown $backup
wait_for 60 "a part of the pages" '[ "$(stat -c %s "$directory/pages.weirbackup.part" 2>/dev/null || echo 0)" -gt 3000000 ]'
kill -9 $backup
wait_for 60 "what it has started ends" 'flock -n "$directory/pages.weirbackup.part" true && [ ! -e "$directory/main/#weir/backup.request" ]'
unset WEIR_BACKUP_RATE
[ ! -e "$directory/pages" ] && [ -e "$directory/pages.weirbackup.part" ] || die "a killed backup: $(ls "$directory")"
backup pages || die "it cannot be gone on with: $(cat "$directory/pages.log")"
grep -q "going on with" "$directory/pages.log" || die "begun anew: $(cat "$directory/pages.log")"

# Killed behind them, while commits wait: the next takes what was changed since.
printf '#!/bin/bash\nkill -9 $PPID\n' >"$directory/deadly"
chmod +x "$directory/deadly"
WEIR_BACKUP_TOOL=$directory/deadly backup behind && die "one that was killed says that all is well"
wait_for 60 "its follower ends" '[ -e "$directory/behind.weirbackup" ] && [ ! -e "$directory/main/#weir/backup.request" ]'
[ ! -e "$directory/behind" ] || die "a killed backup has a copy"
backup behind || die "it cannot be gone on with: $(cat "$directory/behind.log")"
grep -q "what was changed since" "$directory/behind.log" || die "begun anew: $(cat "$directory/behind.log")"
# A part that is another database's.
: >"$directory/other.weirbackup"
backup other && die "went on with what is no backup"
grep -q "other.weirbackup" "$directory/other.log" || die "not in words: $(cat "$directory/other.log")"
sleep 0.5
slay $(cat "$directory/main/my.pid")

mapfile -t logs < <(cd "$directory/main" && ls binlog.*[0-9] | sort)
for name in once pages behind; do
	start $name --skip-networking --log-bin=binlog --server-id=2
	is "$(sql $name -e "CHECK TABLE work.t, work.i, work.lt, work.li" | grep -v OK || true)" "" "CHECK TABLE in $name"
	is "$(sql $name work -e "SELECT (SELECT COUNT(*) FROM t WHERE id > 1000000) - (SELECT SUM(v) FROM i)")" 0 "rows of both engines in $name"
	[ "$(sql $name work -e "SELECT SUM(v) > 0 FROM i")" = 1 ] || die "nothing was written before $name"
	# The position is that of the rows: a server that replays the log of the one that was killed up to there has them too.
	position=$(head -n 1 "$directory/$name/weir-backup-position")
	start replayed-$name --skip-networking --server-id=3
	upto=("${logs[@]}")
	while [ "${upto[-1]}" != "$(cut -f 1 <<<"$position")" ]; do unset 'upto[-1]'; done
	(cd "$directory/main" && mariadb-binlog --no-defaults --stop-position="$(cut -f 2 <<<"$position")" "${upto[@]}") | sql replayed-$name ||
		die "the log cannot be replayed"
	for table in t i; do
		sql $name work -e "SELECT * FROM $table ORDER BY id" >"$directory/ours"
		sql replayed-$name work -e "SELECT * FROM $table ORDER BY id" >"$directory/theirs"
		cmp -s "$directory/ours" "$directory/theirs" || die "$name: $table is not what the log says at $position"
	done
	slay $server
	is "$(sql $name -e "XA RECOVER" | cut -f 4)" one "what is prepared in $name"
	sql $name work -e "XA COMMIT 'one'; INSERT INTO t VALUES (-1, 1, 'it goes on')"
	is "$(sql $name work -e "SELECT (SELECT COUNT(*) FROM lt), (SELECT COUNT(*) FROM li)")" $'1\t1' "what was prepared in $name"
	echo "whole_backup: $name: what the binary log says: $(sql $name work -e 'SELECT COUNT(*) FROM t') rows; $(grep -h waited "$directory/$name.log")"
	slay $(cat "$directory/$name/my.pid")
done
