#!/bin/bash
# Weir's part of a running server backed up page by page through the server's own process, under load; what was changed since;
# one that follows; each restored, and put in the place of the server's.
#   backup.sh PLUGIN DIRECTORY WEIR      WEIR: the command weir
set -eu
here=$(cd "$(dirname "$0")" && pwd)
plugin=$1 directory=$2 weir=$3
. "$here/servers.sh"
start main --skip-networking --log-bin=binlog --server-id=1
sql main -e "CREATE DATABASE work; USE work;
	CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, w INT, n INT, s VARCHAR(100), KEY by_n (n)) ENGINE=Weir;
	CREATE TABLE u (w INT PRIMARY KEY, n INT NOT NULL) ENGINE=Weir; INSERT INTO u VALUES (1, 0), (2, 0);
	INSERT INTO t (w, n, s) SELECT 0, seq, REPEAT('x', 90) FROM seq_1_to_100000"
# A row more, and its number elsewhere, in one transaction.
write() { # worker
	local n
	for n in $(seq 1000000); do
		echo "BEGIN; INSERT INTO t (w, n, s) VALUES ($1, $n, 's'); UPDATE u SET n=$n WHERE w=$1; COMMIT;"
	done 2>/dev/null | sql main work >/dev/null 2>&1 || true
}
write 1 &
write 2 &
sleep 1
db="$directory/main/#weir"
rows() { sql main work -e "SELECT SUM(n) FROM u"; }
"$weir" backup "$db" "$directory/full" --rate 1GiB
between=$(rows)
"$weir" backup "$db" "$directory/next" --since "$directory/full" --rate 1GiB
"$weir" backup "$db" "$directory/last" --since "$directory/next" --follow --rate 1GiB 2>"$directory/follow.log" &
follower=$!
for _ in $(seq 1200); do grep -q "^following" "$directory/follow.log" && break; sleep 0.1; done
grep -q "^following" "$directory/follow.log" || die "the follower does not follow: $(cat "$directory/follow.log")"
sleep 2.5
moment=$(date +%s.%N)
known=$(rows)
sleep 3
kill -INT $follower
wait $follower || die "the follower: $(cat "$directory/follow.log")"
for backup in full next last; do "$weir" verify "$directory/$backup" | grep -q sound || die "$backup is not sound"; done
[ "$(stat -c %s "$directory/next")" -lt "$(stat -c %s "$directory/full")" ] || die "what was changed since is as large as all"
slay $(cat "$directory/main/my.pid")

# In the place of the server's: its own recovery decides what the binary log has.
try() { # name, what must be there at least, at most, backups and options
	local name=$1 least=$2 most=$3
	shift 3
	cp -a "$directory/main" "$directory/$name"
	rm -rf "$directory/$name/#weir"
	"$weir" restore "$directory/$name/#weir" "$@" >"$directory/$name.log" || die "$name cannot be restored"
	"$weir" check "$directory/$name/#weir" >>"$directory/$name.log" || die "$name: $(cat "$directory/$name.log")"
	# A transaction that was prepared then is in the binary log, or is none.
	start "$name" --skip-networking --log-bin=binlog --server-id=2
	[ -z "$(sql "$name" -e "CHECK TABLE work.t, work.u" | grep -v OK)" ] || die "CHECK TABLE in $name"
	local wrong sum
	wrong=$(sql "$name" work -e "SELECT COUNT(*) FROM u WHERE n <> (SELECT COALESCE(MAX(n), 0) FROM t WHERE t.w=u.w)
		OR n <> (SELECT COUNT(*) FROM t FORCE INDEX (by_n) WHERE t.w=u.w AND n > 0)")
	[ "$wrong" = 0 ] || die "$name is of two moments"
	sum=$(sql "$name" work -e "SELECT SUM(n) FROM u")
	[ "$sum" -ge "$least" ] && { [ -z "$most" ] || [ "$sum" -le "$most" ]; } || die "$name has $sum, not $least to $most"
	sql "$name" work -e "INSERT INTO t (w, n, s) VALUES (9, 1, 'it goes on')"
	slay $server
	echo "backup: $name: of one moment, $sum rows since the beginning"
}
# Of each writer one may be prepared at that moment, and committed by the binary log.
try one 0 $((between + 2)) "$directory/full"
try two "$between" "" "$directory/full" "$directory/next"
try all "$known" "" "$directory/full" "$directory/next" "$directory/last"
# At that time, to a second: less than there was a moment later.
try then "$between" $((known + 2)) "$directory/full" "$directory/next" "$directory/last" --to-time "$moment"
