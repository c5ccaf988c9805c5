#!/bin/bash
# ALTER TABLE ... CODEC= of tables with rows: what the server shows and what the engine's trees ask for are the same, whatever else
# the statement does, of partitions too; beside others that read and write; over kill -9 at its steps; in what is made of such a
# table (LIKE, dump and reload, export and import).
#   codec_alter.sh PLUGIN DIRECTORY WEIR      WEIR: the command weir
set -eu
here=$(cd "$(dirname "$0")" && pwd)
plugin=$1 directory=$2 weir=$3
. "$here/servers.sh"
can_die
trap 'rm -f "$directory/go"; cleanup' EXIT
begin() { rm -f "$die_at"; start main --skip-networking --weir-store=LOG; }

# How many trees of all tables ask for which codec, in the order of names: "3 lz4, 1 none".
asked() {
	"$weir" codec "$directory/main/#weir" 2>/dev/null | sed -n 's/^weir\.table\.[0-9].*\t//p' | sort | uniq -c | awk '{ printf "%s%s %s", (NR > 1 ? ", " : ""), $1, $2 }'
}
# The codecs that the server shows, the table's own at the end.
shown() { sql main work -r -e "SHOW CREATE TABLE $1" | grep -oE '`?CODEC`? ?= ?[^ ,)]*' | sed "s/.*= *//; s/['\"\`]//g" | tr '\n' ' ' | sed 's/ $//'; }
expect() { # what, table, shown, asked
	local is
	is=$(shown "$2")
	[ "$is" = "$3" ] || die "$1: the server shows '$is' instead of '$3'"
	is=$(asked)
	[ "$is" = "$4" ] || die "$1: trees ask for '$is' instead of '$4'"
	sql main work -e "CHECK TABLE $2" | grep -q 'status	OK' || die "$1: $(sql main work -e "CHECK TABLE $2")"
}
make() { # partitions, primary key
	sql main -e "DROP DATABASE IF EXISTS work; CREATE DATABASE work; USE work;
		CREATE TABLE t (id INT, word VARCHAR(200), n INT, PRIMARY KEY (${2:-id}), KEY word (word), KEY n (n)) ENGINE=Weir CODEC=LZ4 $1;
		INSERT INTO t SELECT seq, CONCAT('heron ', seq), seq % 50 FROM seq_1_to_300"
}

begin
# Statements that change it, and what it leaves; and such as must keep it.
while IFS='|' read -r statement shows trees; do
	make ''
	sql main work -e "$statement" >"$directory/out" || die "$statement"
	expect "$statement" t "$shows" "$trees"
	[ "$(sql main work -e 'SELECT COUNT(*), COUNT(DISTINCT word) FROM t')" = '300	300' ] || die "$statement: rows"
done <<'CASES'
ALTER TABLE t CODEC=ZSTD, ALGORITHM=INSTANT|ZSTD|3 zstd
ALTER TABLE t CODEC=NONE, ALGORITHM=INSTANT|NONE|3 none
ALTER TABLE t CODEC=DEFAULT, ALGORITHM=INSTANT||3 default
ALTER TABLE t CODEC=ZSTD, ADD KEY both_ (n, word), ALGORITHM=NOCOPY, LOCK=NONE|ZSTD|4 zstd
ALTER TABLE t CODEC=ZSTD, DROP KEY n, ALGORITHM=NOCOPY|ZSTD|2 zstd
ALTER TABLE t CODEC=ZSTD, RENAME COLUMN n TO m, ALGORITHM=NOCOPY|ZSTD|3 zstd
ALTER TABLE t CODEC=ZSTD, ADD COLUMN m INT FIRST, ALGORITHM=INSTANT|ZSTD|3 zstd
ALTER TABLE t CODEC=ZSTD, ADD FULLTEXT KEY words (word), ALGORITHM=NOCOPY|ZSTD|4 zstd
ALTER TABLE t CODEC=ZSTD, FORCE, ALGORITHM=INPLACE|ZSTD|3 zstd
ALTER TABLE t CODEC=ZSTD, DROP PRIMARY KEY, ADD PRIMARY KEY (id, n), ALGORITHM=INPLACE|ZSTD|3 zstd
ALTER TABLE t CODEC=ZSTD, ALGORITHM=COPY|ZSTD|3 zstd
ALTER TABLE t CODEC=ZSTD, RENAME TO u; RENAME TABLE u TO t|ZSTD|3 zstd
ALTER TABLE t CODEC=ZSTD; ALTER TABLE t ADD KEY both_ (n, word), CODEC=NONE; ALTER TABLE t DROP KEY both_|NONE|3 none
ALTER TABLE t ADD KEY both_ (n, word), ALGORITHM=NOCOPY|LZ4|4 lz4
ALTER TABLE t FORCE, ALGORITHM=INPLACE|LZ4|3 lz4
ALTER TABLE t FORCE, ALGORITHM=COPY|LZ4|3 lz4
OPTIMIZE TABLE t|LZ4|3 lz4
RENAME TABLE t TO u, u TO t|LZ4|3 lz4
CREATE TABLE u LIKE t; INSERT INTO u SELECT * FROM t; DROP TABLE t; RENAME TABLE u TO t|LZ4|3 lz4
CREATE TABLE u SELECT * FROM t; TRUNCATE t; INSERT INTO t SELECT * FROM u; DROP TABLE u|LZ4|3 lz4
ALTER TABLE t PARTITION BY HASH (id) PARTITIONS 2|LZ4|6 lz4
ALTER TABLE t PARTITION BY HASH (id) PARTITIONS 2; ALTER TABLE t CODEC=ZSTD, ALGORITHM=INSTANT|ZSTD|6 zstd
ALTER TABLE t PARTITION BY HASH (id) PARTITIONS 2; ALTER TABLE t CODEC=ZSTD, ADD KEY both_ (n, word); ALTER TABLE t ADD PARTITION PARTITIONS 1|ZSTD|12 zstd
ALTER TABLE t PARTITION BY HASH (id) PARTITIONS 3; ALTER TABLE t CODEC=NONE, FORCE, ALGORITHM=INPLACE; ALTER TABLE t COALESCE PARTITION 1|NONE|6 none
ALTER TABLE t CODEC=ZSTD PARTITION BY KEY (id) PARTITIONS 2; ALTER TABLE t REMOVE PARTITIONING|ZSTD|3 zstd
CASES
echo "codec_alter: what else a statement does, and each copy of a table, leaves all trees with the codec that the server shows"

# A partition with a codec of its own keeps it.
ranges="PARTITION BY RANGE (id) (PARTITION a VALUES LESS THAN (100) CODEC=NONE, PARTITION b VALUES LESS THAN (200), PARTITION c VALUES LESS THAN MAXVALUE)"
subs="PARTITION BY RANGE (id) SUBPARTITION BY HASH (n) SUBPARTITIONS 2 (PARTITION a VALUES LESS THAN (100) CODEC=NONE, PARTITION c VALUES LESS THAN MAXVALUE)"
while IFS='|' read -r how statement shows trees; do
	# An ALTER that makes subpartitions does not tell the engine what it says of a partition (the server's; so it is with InnoDB).
	if [ "$how" = ranges ]; then make "$ranges"; else make "$subs" "id, n"; fi
	sql main work -e "$statement" || die "$statement"
	expect "$how: $statement" t "$shows" "$trees"
	[ "$(sql main work -e 'SELECT COUNT(*), COUNT(DISTINCT word) FROM t')" = '300	300' ] || die "$statement: rows"
done <<'CASES'
ranges|DO 1|LZ4 NONE|6 lz4, 3 none
ranges|ALTER TABLE t CODEC=ZSTD, ALGORITHM=INSTANT|ZSTD NONE|3 none, 6 zstd
ranges|ALTER TABLE t CODEC=ZSTD, ADD KEY both_ (n, word), ALGORITHM=NOCOPY|ZSTD NONE|4 none, 8 zstd
ranges|ALTER TABLE t CODEC=ZSTD, DROP KEY n|ZSTD NONE|2 none, 4 zstd
ranges|ALTER TABLE t CODEC=ZSTD, FORCE, ALGORITHM=INPLACE|ZSTD NONE|3 none, 6 zstd
ranges|ALTER TABLE t FORCE, ALGORITHM=COPY|LZ4 NONE|6 lz4, 3 none
ranges|ALTER TABLE t REORGANIZE PARTITION c INTO (PARTITION c VALUES LESS THAN (250), PARTITION d VALUES LESS THAN MAXVALUE CODEC=ZSTD)|LZ4 NONE ZSTD|6 lz4, 3 none, 3 zstd
ranges|ALTER TABLE t REBUILD PARTITION ALL|LZ4 NONE|6 lz4, 3 none
ranges|CREATE TABLE u LIKE t; INSERT INTO u SELECT * FROM t; DROP TABLE t; RENAME TABLE u TO t|LZ4 NONE|6 lz4, 3 none
ranges|ALTER TABLE t REMOVE PARTITIONING|LZ4|3 lz4
subs|DO 1|LZ4 NONE|6 lz4, 6 none
subs|ALTER TABLE t CODEC=ZSTD|ZSTD NONE|6 none, 6 zstd
CASES
echo "codec_alter: partitions have the codec that is said of them, else their table's"

# What a dump makes elsewhere, and an exported file.
make "$ranges"
sql main work -e "CREATE TABLE u (id INT PRIMARY KEY, word VARCHAR(200), KEY (word)) ENGINE=Weir CODEC=ZSTD; INSERT INTO u SELECT id, word FROM t"
before=$(asked)
mariadb-dump --no-defaults -uroot -S "$sockets/main" --databases work >"$directory/dump.sql"
sql main -e "DROP DATABASE work"
sql main <"$directory/dump.sql"
[ "$(asked)" = "$before" ] || die "reloaded: trees ask for '$(asked)', not '$before'"
printf 'FLUSH TABLES u FOR EXPORT;\n\\! cp %s %s\nUNLOCK TABLES;\n' "$directory/main/work/u.weir" "$directory/u.weir" | sql main work
for codec in ZSTD NONE; do
	sql main work -e "DROP TABLE u; CREATE TABLE u (id INT PRIMARY KEY, word VARCHAR(200), KEY (word)) ENGINE=Weir CODEC=$codec; ALTER TABLE u DISCARD TABLESPACE"
	cp "$directory/u.weir" "$directory/main/work/u.weir"
	sql main work -e "ALTER TABLE u IMPORT TABLESPACE"
	[ "$(sql main work -e 'SELECT COUNT(*) FROM u')" = 300 ] || die "imported: rows"
	of_u="3 none, 2 zstd"
	[ $codec != NONE ] || of_u="5 none"
	expect "imported into $codec" u $codec "6 lz4, $of_u"
done
echo "codec_alter: dump and reload, and an imported file, keep what tables ask for"

# Beside three that write and one that reads.
rows=20000
sql main -e "DROP DATABASE work; CREATE DATABASE work; USE work;
	CREATE TABLE t (id INT PRIMARY KEY, w INT, n INT NOT NULL, word VARCHAR(200), KEY (word)) ENGINE=Weir CODEC=LZ4;
	CREATE TABLE sums (w INT PRIMARY KEY, n INT NOT NULL) ENGINE=Weir; INSERT INTO sums VALUES (0, 0), (1, 0), (2, 0);
	INSERT INTO t SELECT seq, seq % 3, 0, REPEAT(CONCAT('heron ', seq), 10) FROM seq_1_to_$rows"
work() { # writer: its own rows
	local id
	while [ -e "$directory/go" ]; do
		id=$((RANDOM % (rows / 3) * 3 + $1))
		[ $id -gt 0 ] || id=3
		echo "BEGIN; UPDATE t SET n=n+1, word=CONCAT(n, ' ', RIGHT(word, 100)) WHERE id=$id; UPDATE sums SET n=n+1 WHERE w=$1; COMMIT; SELECT 'done';"
	done 2>/dev/null | sql main work --unbuffered >>"$directory/done.$1" 2>>"$directory/errors" || true
}
look() {
	while [ -e "$directory/go" ]; do
		echo "START TRANSACTION WITH CONSISTENT SNAPSHOT; SELECT IF((SELECT SUM(n) FROM t)=(SELECT SUM(n) FROM sums), 'same', 'DIFFERENT'); COMMIT;"
	done 2>/dev/null | sql main work --unbuffered --force >>"$directory/looked" 2>/dev/null || true
}
written() { cat "$directory"/done.* 2>/dev/null | wc -l; }
go() {
	: >"$directory/go"
	for writer in 0 1 2; do work $writer & done
	look &
}
further() { # lines
	for _ in $(seq 600); do
		[ "$(written)" -lt "$1" ] || return 0
		sleep 0.05
	done
	die "writers stand still: $(cat "$directory/errors")"
}
sound() {
	local sums
	sums=$(sql main work -e "SELECT COALESCE((SELECT SUM(n) FROM t WHERE w=s.w), 0) - n FROM sums s" | sort -u)
	[ "$sums" = 0 ] || die "$1: rows and their sums differ: $sums"
	sql main work -e 'CHECK TABLE t, sums' | grep -v OK && die "$1: not sound"
	return 0
}
go
for round in 1 2 3; do
	for codec in none zstd lz4; do
		further $(($(written) + 50))
		sql main work -e "ALTER TABLE t CODEC=$codec, ALGORITHM=INSTANT"
		[ "$(asked)" = "1 default, 2 $codec" ] || die "round $round: trees ask for '$(asked)' instead of $codec beside writers"
	done
done
rm "$directory/go"
wait
[ ! -s "$directory/errors" ] || die "a writer got: $(head -n 3 "$directory/errors")"
! grep -q DIFFERENT "$directory/looked" || die "a reader has seen half of a transaction"
sound "beside writers"
echo "codec_alter: nine changes beside $(written) transactions"

# kill -9 at each step of it, beside writers: the server and the engine speak of one codec, and the statement can be said again.
killed=0
for what in '' 'PARTITION BY HASH (id) PARTITIONS 3'; do
	trees=2
	[ -z "$what" ] || trees=6
	sql main work -e "ALTER TABLE t CODEC=LZ4; ALTER TABLE t $what" 2>/dev/null || [ -z "$what" ] || die "no partitions"
	for ((step = 0; step < 40; step++)); do
		sql main work -e "ALTER TABLE t CODEC=LZ4"
		go
		further $(($(written) + 20))
		echo $step >"$die_at"
		through=
		if sql main work -e "ALTER TABLE t CODEC=ZSTD" >"$directory/said" 2>&1; then
			through=1
			slay "$server"
		else
			grep -qE 'ERROR (2013|2026)' "$directory/said" || die "step $step: $(cat "$directory/said")"
			while kill -0 "$server" 2>/dev/null; do sleep 0.02; done
			unset "servers[$server]"
			killed=$((killed + 1))
		fi
		rm -f "$directory/go"
		wait
		: >"$directory/errors"
		begin
		is=$(shown t)
		[ "$is" = LZ4 ] || [ "$is" = ZSTD ] || die "step $step, $what: the server shows '$is'"
		[ -z "$through" ] || [ "$is" = ZSTD ] || die "step $step, $what: an ALTER that was acknowledged is not there"
		[ "$(asked)" = "$(printf '1 default, %s %s' $trees "${is,,}")" ] || die "step $step, $what: the server shows $is, trees ask for '$(asked)'"
		sound "step $step, $what"
		sql main work -e "ALTER TABLE t CODEC=ZSTD"
		[ "$(asked)" = "1 default, $trees zstd" ] || die "step $step, $what: not again: '$(asked)'"
		[ -z "$through" ] || break
	done
	[ $step -gt 0 ] || die "no step of an ALTER was met"
done
slay "$server"
echo "codec_alter: $killed kills at the steps of an ALTER beside writers: server and engine speak of one codec"
