#!/bin/bash
# Tables as files: exported from a running server and imported into another one, whose pages lie otherwise; files that are
# damaged, cut, of another table or of a later version; kill -9 while one is imported.
#   export.sh PLUGIN DIRECTORY [ROUNDS]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
plugin=$1 directory=$2 rounds=${3:-4}
. "$here/servers.sh"
start main --skip-networking --weir-store=IN_PLACE
from=$server
start other --skip-networking --weir-store=LOG
for name in main other; do sql "$name" -e "CREATE DATABASE work"; done
files=$directory/files
mkdir "$files"

sql main work <<'SQL'
CREATE TABLE plain (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, a VARCHAR(40) COLLATE utf8mb4_unicode_ci, b DECIMAL(10,3), c ENUM('x','y','z'), d DATETIME(6), e MEDIUMTEXT, f BIT(9),
	UNIQUE KEY by_a (a, b), KEY by_d (d DESC), KEY by_e (e(7), c)) ENGINE=Weir CHARSET utf8mb4;
INSERT INTO plain (a, b, c, d, e, f) SELECT IF(seq % 7, CONCAT('Stra', _utf8mb4 0xC39F, 'e ', seq), NULL), seq / 8, 1 + seq % 3, '2026-01-01' + INTERVAL seq MINUTE, REPEAT(seq, seq % 900), seq % 512 FROM seq_1_to_9000;
INSERT INTO plain (a, e) VALUES ('large', REPEAT('0123456789', 300000)); DELETE FROM plain WHERE id % 5 = 0; UPDATE plain SET a = CONCAT(a, '!') WHERE id % 11 = 0;
CREATE TABLE nokey (x INT, y TEXT, KEY (x)) ENGINE=Weir; INSERT INTO nokey SELECT seq % 100, seq FROM seq_1_to_3000;
CREATE TABLE nothing (x INT PRIMARY KEY, KEY k (x)) ENGINE=Weir;
CREATE TABLE altered (id INT PRIMARY KEY, a INT, b VARCHAR(20), KEY (b)) ENGINE=Weir; INSERT INTO altered SELECT seq, seq, seq FROM seq_1_to_500;
ALTER TABLE altered ADD z VARCHAR(9) DEFAULT 'zed' FIRST, ALGORITHM=INSTANT; INSERT INTO altered SELECT 'new', seq, seq, seq FROM seq_501_to_600; ALTER TABLE altered DROP a, ALGORITHM=INSTANT; INSERT INTO altered VALUES ('last', 601, NULL);
CREATE TABLE added (id INT PRIMARY KEY) ENGINE=Weir; INSERT INTO added SELECT seq FROM seq_1_to_50; ALTER TABLE added ADD b INT NOT NULL DEFAULT 7, ALGORITHM=INSTANT; INSERT INTO added VALUES (51, 8);
CREATE TABLE words (id INT PRIMARY KEY, t TEXT, FULLTEXT KEY (t)) ENGINE=Weir; INSERT INTO words SELECT seq, CONCAT(IF(seq % 3, 'wren owl ', 'crow '), 'number', seq) FROM seq_1_to_900;
CREATE TABLE places (id INT PRIMARY KEY, g GEOMETRY NOT NULL, SPATIAL KEY (g)) ENGINE=Weir; INSERT INTO places SELECT seq, POINT(seq % 30, seq / 30) FROM seq_1_to_900;
CREATE TABLE computed (id INT PRIMARY KEY, a INT, v INT AS (a * 2) VIRTUAL, s INT AS (a + 1) STORED, KEY (v), KEY (s)) ENGINE=Weir; INSERT INTO computed (id, a) SELECT seq, seq % 50 FROM seq_1_to_500;
CREATE TABLE hashed (id INT PRIMARY KEY, t TEXT, UNIQUE KEY (t)) ENGINE=Weir; INSERT INTO hashed SELECT seq, REPEAT(seq, 500) FROM seq_1_to_60;
CREATE TABLE kept (id INT PRIMARY KEY, a INT) ENGINE=Weir WITH SYSTEM VERSIONING; INSERT INTO kept SELECT seq, 1 FROM seq_1_to_50; UPDATE kept SET a = 2 WHERE id < 20; DELETE FROM kept WHERE id = 3;
CREATE TABLE parts (id INT PRIMARY KEY, a INT, KEY (a)) ENGINE=Weir PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (100), PARTITION p1 VALUES LESS THAN (1000)); INSERT INTO parts SELECT seq, seq % 9 FROM seq_1_to_500;
SQL
tables="plain nokey nothing altered added words places computed hashed kept"

# While it is locked no other session writes to it; when it is not any more the file is gone.
export_tables() { # names
	cat >"$directory/locked" <<-SH
		cp $directory/main/work/*.weir $files/
		mariadb --no-defaults -uroot -S $sockets/main work -e "SET lock_wait_timeout=1; INSERT INTO $1 SELECT * FROM $1 LIMIT 1" 2>&1 | grep -o "Lock wait timeout exceeded" >$directory/waited
	SH
	printf 'FLUSH TABLES %s FOR EXPORT;\n\\! bash %s\nUNLOCK TABLES;\n' "$(echo "$@" | tr ' ' ',')" "$directory/locked" | sql main work
	grep -q "Lock wait" "$directory/waited" || die "another session wrote to $1 while it was exported"
	[ -z "$(ls "$directory/main/work/" | grep '\.weir$')" ] || die "the files stayed: $(ls "$directory/main/work/")"
}
export_tables $tables parts
[ "$(ls "$files" | wc -l)" = 12 ] || die "exported: $(ls "$files")"

like() { # table: its definition
	sql main work -r -e "SHOW CREATE TABLE $1" | sed "1s/^[^\t]*\t//; s/ AUTO_INCREMENT=[0-9]*//"
}
import() { # table
	cp "$files/$1.weir" "$directory/other/work/$1.weir"
	sql other work -e "ALTER TABLE $1 IMPORT TABLESPACE"
}
# A crash skips numbers.
crashed=
compare() { # table
	for name in main other; do
		sql "$name" work -e "CHECKSUM TABLE $1 EXTENDED; SHOW CREATE TABLE $1; SELECT COUNT(*) FROM $1" | sed "${crashed:+s/ AUTO_INCREMENT=[0-9]*//}" >"$directory/$name.shown"
	done
	diff "$directory/main.shown" "$directory/other.shown" >"$directory/difference" || die "$1 is another one: $(head -n 5 "$directory/difference")"
	[ -z "$(sql other work -e "CHECK TABLE $1 EXTENDED" | grep -v "	OK\$")" ] || die "CHECK TABLE: $(sql other work -e "CHECK TABLE $1")"
}
queries="SELECT COUNT(*), SUM(b) FROM plain FORCE INDEX (by_a) WHERE a LIKE 'strasse 1%'; SELECT id FROM plain ORDER BY d DESC LIMIT 5; SELECT LENGTH(e) FROM plain WHERE a = 'LARGE';
	SELECT id FROM words WHERE MATCH (t) AGAINST ('+crow +number9' IN BOOLEAN MODE); SELECT COUNT(*) FROM words WHERE MATCH (t) AGAINST ('owl');
	SELECT COUNT(*) FROM places WHERE MBRWithin(g, ST_GeomFromText('POLYGON((2 2,9 2,9 9,2 9,2 2))')); SELECT COUNT(*) FROM computed FORCE INDEX (v) WHERE v BETWEEN 10 AND 20;
	SELECT COUNT(*), SUM(x) FROM nokey FORCE INDEX (x) WHERE x > 50; SELECT z, COUNT(*) FROM altered GROUP BY z; SELECT SUM(b) FROM added; SELECT COUNT(*) FROM kept FOR SYSTEM_TIME ALL;"
same_answers() {
	for name in main other; do sql "$name" work -e "$queries" >"$directory/$name.answers"; done
	cmp "$directory/main.answers" "$directory/other.answers" || die "answers differ: $(diff "$directory/main.answers" "$directory/other.answers" | head -n 5)"
}
for table in $tables; do
	sql other work -e "$(like "$table"); INSERT INTO $table SELECT * FROM $table; ALTER TABLE $table DISCARD TABLESPACE"
	sql other work -e "SELECT * FROM $table" 2>&1 | grep -q "ERROR 1814" || die "$table is read though it was discarded"
	import "$table"
	[ ! -e "$directory/other/work/$table.weir" ] || die "the file of $table stayed"
	compare "$table"
done
same_answers
# A partition: through a table like it.
sql other work -e "$(like parts); CREATE TABLE part LIKE parts; ALTER TABLE part REMOVE PARTITIONING; ALTER TABLE part DISCARD TABLESPACE"
for part in p0 p1; do
	cp "$files/parts#P#$part.weir" "$directory/other/work/part.weir"
	[ "$part" = p0 ] || sql other work -e "ALTER TABLE part DISCARD TABLESPACE"
	sql other work -e "ALTER TABLE part IMPORT TABLESPACE; ALTER TABLE parts EXCHANGE PARTITION $part WITH TABLE part"
done
compare parts
# It goes on: numbers, row ids, changes, definitions; and a crash takes nothing of it away.
for name in main other; do
	sql "$name" work -e "INSERT INTO plain (a) VALUES ('next'); INSERT INTO nokey VALUES (1, 'one'), (2, 'two'); ALTER TABLE altered ADD q INT DEFAULT 5 FIRST, ALGORITHM=INSTANT; UPDATE altered SET b = 'b' WHERE id % 9 = 0;
		INSERT INTO words VALUES (1000, 'wren number9'); UPDATE plain SET a = CONCAT('new ', a) WHERE id < 100; DELETE FROM places WHERE id < 50; ALTER TABLE added FORCE" || die "it does not go on"
done
slay "$server"
crashed=yes
start other --skip-networking --weir-store=LOG
for table in $tables parts; do compare "$table"; done
same_answers
echo "export: 11 tables exported, imported into another server and the same"

# What cannot be: in words, and nothing is lost by it.
refused() { # error, its words, statements
	sql other work -e "$3" >"$directory/refused" 2>&1 && die "not refused: $3"
	grep -q "ERROR $1 .*$2" "$directory/refused" || die "not refused so ($2): $(cat "$directory/refused")"
}
refused 1813 "has to be discarded first" "ALTER TABLE plain IMPORT TABLESPACE"
sql other work -e "ALTER TABLE plain DISCARD TABLESPACE; SHOW WARNINGS; ALTER TABLE plain DISCARD TABLESPACE; SHOW WARNINGS" | grep -q 1814 || die "discarded twice, and no warning"
for statement in "INSERT INTO plain (a) VALUES ('x')" "TRUNCATE plain" "ALTER TABLE plain ADD zz INT" "LOCK TABLES plain READ" "FLUSH TABLES plain FOR EXPORT"; do refused 1814 "discarded" "$statement"; done
refused 1812 "missing" "ALTER TABLE plain IMPORT TABLESPACE"
target=$directory/other/work/plain.weir size=$(stat -c %s "$files/plain.weir")
try() { # error, words, what
	cp "$target" "$directory/given"
	refused "$1" "$2" "ALTER TABLE plain IMPORT TABLESPACE"
	cmp -s "$target" "$directory/given" || die "$3: the file was changed"
	refused 1814 "discarded" "SELECT * FROM plain"
}
for cut in 0 1 19 20 43 $((size / 2)) $((size - 1)); do
	head -c "$cut" "$files/plain.weir" >"$target"
	try 1810 "not complete" "cut at $cut"
done
for ((n = 0; n < 12; n++)); do
	cp "$files/plain.weir" "$target"
	at=$((12 + (RANDOM * 32768 + RANDOM) % (size - 12)))
	byte=$(od -An -tu1 -j "$at" -N 1 "$target" | tr -d ' ')
	printf "\\x$(printf %x $((byte ^ (1 << RANDOM % 8))))" | dd of="$target" bs=1 seek="$at" conv=notrunc status=none
	try 1810 "damaged: at byte\|not complete" "a bit at $at"
done
cp "$files/plain.weir" "$target"; echo >>"$target"
try 1810 "behind its end" "longer"
cp "$files/plain.weir" "$target"; printf '\x09' | dd of="$target" bs=1 seek=8 conv=notrunc status=none
try 1810 "format 9" "a later version"
echo "This is a text, and quite a long one, which begins otherwise than a table." >"$target"
try 1810 "no table that Weir has exported" "a text"
cp "$files/nokey.weir" "$target"
try 1808 "was exported from work.nokey by .*column 1 is .x. int(11) in the file, and here .id. int" "another table"
for change in "MODIFY b DECIMAL(10,2)" "MODIFY a VARCHAR(40) COLLATE utf8mb4_bin" "MODIFY c ENUM('x','z','y')" "MODIFY d DATETIME(6) NOT NULL" "ADD more INT" "DROP KEY by_d" "DROP KEY by_a, ADD KEY by_a (a, b)" \
	"DROP KEY by_e, ADD KEY by_e (e(8), c)" "DROP KEY by_d, ADD KEY by_d (d)" "ADD SYSTEM VERSIONING"; do
	sql other work -e "DROP TABLE IF EXISTS other; CREATE TABLE other LIKE plain; ALTER TABLE other $change; ALTER TABLE other DISCARD TABLESPACE"
	cp "$files/plain.weir" "$directory/other/work/other.weir"
	refused 1808 "in the file" "ALTER TABLE other IMPORT TABLESPACE"
done
sql other work -e "DROP TABLE other; CREATE TABLE other LIKE computed; ALTER TABLE other MODIFY v INT AS (a * 3) VIRTUAL; ALTER TABLE other DISCARD TABLESPACE"
cp "$files/computed.weir" "$directory/other/work/other.weir"
refused 1808 "AS (.a. \* 2) in the file" "ALTER TABLE other IMPORT TABLESPACE"
rm "$directory/other/work/other.weir"
# Foreign keys are looked at when rows change alone.
sql other work -e "CREATE TABLE top (id INT PRIMARY KEY) ENGINE=Weir; CREATE TABLE below (x INT, FOREIGN KEY (x) REFERENCES top (id)) ENGINE=Weir; ALTER TABLE below DISCARD TABLESPACE"
refused 1451 "fails" "ALTER TABLE top DISCARD TABLESPACE"
refused 1031 "SET foreign_key_checks=0" "ALTER TABLE below IMPORT TABLESPACE"
refused 3007 "temporary" "CREATE TEMPORARY TABLE tt (a INT) ENGINE=Weir; ALTER TABLE tt DISCARD TABLESPACE"
refused 1031 "sequence" "CREATE SEQUENCE sq ENGINE=Weir; ALTER TABLE sq DISCARD TABLESPACE"
touch "$directory/other/work/nokey.weir"
refused 1086 "there already" "FLUSH TABLES nokey FOR EXPORT"
refused 1086 "there already" "FLUSH TABLES nothing, nokey FOR EXPORT"
[ ! -e "$directory/other/work/nothing.weir" ] || die "a file stayed though another could not be exported"
[ -e "$directory/other/work/nokey.weir" ] || die "a file of another was taken away"
rm "$directory/other/work/nokey.weir"
# And then it is imported all the same.
import plain
sql main work -e "FLUSH TABLES plain FOR EXPORT; UNLOCK TABLES; DROP TABLE plain; $(like plain); ALTER TABLE plain DISCARD TABLESPACE"
cp "$files/plain.weir" "$directory/main/work/"
sql main work -e "ALTER TABLE plain IMPORT TABLESPACE"
compare plain
echo "export: what is cut, damaged, of another table or of a later version is refused in words, and nothing is lost"

# kill -9 at any moment of an import: it is done, or it can be done.
sql main work -e "INSERT INTO plain (a, e) SELECT CONCAT('more ', seq), REPEAT(seq, seq % 50) FROM seq_1_to_40000"
export_tables plain
begun=$(date +%s%N)
sql other work -e "ALTER TABLE plain DISCARD TABLESPACE"
import plain
compare plain
took=$(($(date +%s%N) - begun))
did=0
for ((round = 0; round < rounds; round++)); do
	sql other work -e "ALTER TABLE plain DISCARD TABLESPACE"
	cp "$files/plain.weir" "$target"
	{ sql other work -e "ALTER TABLE plain IMPORT TABLESPACE" >/dev/null 2>&1 || true; } &
	wait_ns=$((took * (RANDOM % 100) / 80))
	sleep "$(printf '%d.%09d' $((wait_ns / 1000000000)) $((wait_ns % 1000000000)))"
	slay "$server"
	wait
	start other --skip-networking --weir-store=LOG
	if sql other work -e "SELECT 1 FROM plain LIMIT 1" >/dev/null 2>"$directory/refused"; then
		did=$((did + 1))
	else
		grep -q "ERROR 1814" "$directory/refused" || die "after kill -9: $(cat "$directory/refused")"
		sql other work -e "ALTER TABLE plain IMPORT TABLESPACE"
	fi
	rm -f "$target"
	compare plain
done
echo "export: killed $rounds times while importing, $did times it was done"
sql other -e "DROP DATABASE work"
