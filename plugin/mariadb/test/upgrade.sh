#!/bin/bash
# A server's data directory that goes from 10.11 to 11.8 in place, and back by dump: Weir's tables answer as InnoDB's beside them,
# before, after, after mariadb-upgrade and after the way back, and each row is what it was.
#   upgrade.sh PLUGIN NEWER ROOT DIRECTORY      PLUGIN of the server that is installed here, NEWER of the one in ROOT (tools/root.sh)
# DIRECTORY lies in this tree, which the root sees at the same place.
#   upgrade.sh --newer NEWER DIRECTORY          (inside the root)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
inside=
[ "$1" != --newer ] || { inside=yes; shift; }
if [ -z "$inside" ]; then
	plugin=$1 newer=$(realpath "$2") root=$3 directory=$4
	. "$here/servers.sh"
else
	# What is in the directory stays.
	plugin=$1 directory=$(mktemp -d)
	. "$here/servers.sh"
	rmdir "$directory"
	directory=$2
fi
start_it() { start main --skip-networking --innodb-snapshot-isolation=OFF; }
dump() { # schema
	mariadb-dump --no-defaults -uroot -S "$sockets/main" --single-transaction --hex-blob --databases "$1"
}
stop() {
	mariadb-admin --no-defaults -uroot -S "$sockets/main" shutdown
	while kill -0 "$server" 2>/dev/null; do sleep 0.05; done
	unset "servers[$server]"
}

# Each row, by each of its keys, and what searches find.
state() { # schema
	sql main --default-character-set=utf8mb4 "$1" -e "
		SELECT * FROM word ORDER BY id;
		SELECT id FROM word FORCE INDEX (t) WHERE t LIKE 'w%' ORDER BY t, id;
		SELECT id FROM word FORCE INDEX (u) WHERE u > 'a' ORDER BY u, id;
		SELECT id FROM word FORCE INDEX (v) WHERE v > 3 ORDER BY v, id;
		SELECT id, late, early FROM word WHERE late = 7 ORDER BY id;
		SELECT id FROM word WHERE MATCH (t) AGAINST ('wren +crow' IN BOOLEAN MODE) ORDER BY id;
		SELECT id, ST_AsText(p) FROM place FORCE INDEX (p) WHERE MBRWithin(p, ST_GeomFromText('POLYGON((2 2,9 2,9 9,2 9,2 2))')) ORDER BY id;
		SELECT * FROM child ORDER BY id;
		SELECT id FROM child FORCE INDEX (word) WHERE word BETWEEN 3 AND 40 ORDER BY word, id;
		SELECT * FROM part ORDER BY a, day;
		SELECT a FROM part FORCE INDEX (n) WHERE n > 100 ORDER BY n, a;
		SELECT next_not_cached_value FROM s;
		SELECT HEX(k), a, MD5(b) FROM packed ORDER BY k;
		SELECT table_name, constraint_name, referenced_table_name, delete_rule FROM information_schema.referential_constraints WHERE constraint_schema = DATABASE();
		CHECK TABLE word, place, child, part, s, packed EXTENDED" | sed "s/^$1\\./X./"
}
# Both are alike, and as they were in the file FILE if it is there.
alike() { # what file
	local schema
	for schema in innodb weir; do state $schema >"$directory/$schema.state"; done
	[ "$(wc -l <"$directory/weir.state")" -gt 500 ] || die "$1: little is said: $(tail -n 3 "$directory/weir.state")"
	diff "$directory/innodb.state" "$directory/weir.state" || die "$1: not as InnoDB"
	[ ! -e "$2" ] || diff "$2" "$directory/weir.state" || die "$1: not as before"
	cp "$directory/weir.state" "$2"
	echo "upgrade: $1: $(wc -l <"$2") lines, as InnoDB and as before"
}
writes() {
	local schema
	for schema in innodb weir; do
		sql main $schema -e "
			INSERT INTO word(id, t, u) SELECT 800 + seq, CONCAT('wren crow later ', seq), CONCAT('later', seq) FROM seq_1_to_50;
			UPDATE word SET t=CONCAT(t, ' owl'), early='changed' WHERE id % 7 = 0;
			DELETE FROM word WHERE id % 11 = 0;
			INSERT INTO place SELECT 1000 + seq, POINT(seq % 12, seq % 5) FROM seq_1_to_60;
			UPDATE part SET n = n + 1 WHERE a % 3 = 0;
			REPLACE INTO packed SELECT CONCAT('k', seq), seq, REPEAT('later', seq) FROM seq_1_to_40"
		sql main $schema -e "INSERT INTO child VALUES (9000, 77777)" 2>/dev/null && die "$schema: a foreign key is forgotten"
	done
	[ "$(sql main weir -e "INSERT INTO word(t) VALUES ('next') RETURNING id > 850; DELETE FROM word WHERE t='next'")" = 1 ] || die "numbers are given out twice"
}

if [ -n "$inside" ]; then
	start_it
	alike "$(sql main -e 'SELECT VERSION()'), in place" "$directory/state"
	mariadb-upgrade --no-defaults -uroot -S "$sockets/main" >"$directory/upgrade.log" 2>&1 || die "mariadb-upgrade: $(tail -n 5 "$directory/upgrade.log")"
	alike "mariadb-upgrade" "$directory/state"
	writes
	rm "$directory/state"
	alike "written to" "$directory/state"
	sql main weir -e "ALTER TABLE word ADD COLUMN newest INT DEFAULT 5 FIRST, ALGORITHM=INSTANT; ALTER TABLE word DROP COLUMN newest; OPTIMIZE TABLE part" >/dev/null
	alike "altered" "$directory/state"
	for schema in innodb weir; do dump $schema >"$directory/$schema.sql"; done
	stop
	start_it
	alike "started again" "$directory/state"
	stop
	exit
fi

start_it
for engine in InnoDB Weir; do
	instant= codec=
	[ $engine = InnoDB ] || { instant=", ALGORITHM=INSTANT" codec="CODEC=ZSTD"; }
	sql main -e "CREATE DATABASE ${engine,,} CHARACTER SET utf8mb4; USE ${engine,,}; SET default_storage_engine=$engine;
		CREATE TABLE word (id INT AUTO_INCREMENT PRIMARY KEY, t VARCHAR(200) COLLATE utf8mb4_unicode_ci, u VARCHAR(30) COLLATE utf8mb4_nopad_bin, d DATETIME(3) DEFAULT '2026-02-03 04:05:06.789',
			v INT AS (LENGTH(t) % 20) VIRTUAL, KEY t (t, id DESC), KEY u (u(5) DESC), KEY v (v), FULLTEXT KEY ft (t));
		INSERT INTO word(t, u) SELECT CONCAT(ELT(1 + seq % 4, 'wren', 'crow', 'wren crow', 'Wren jay'), ' ', seq), IF(seq % 9, CHAR(97 + seq % 26), NULL) FROM seq_1_to_300;
		ALTER TABLE word ADD COLUMN late INT NOT NULL DEFAULT 7$instant;
		INSERT INTO word(t, u, late) SELECT 'between', seq, seq FROM seq_1_to_20;
		ALTER TABLE word ADD COLUMN early VARCHAR(20) DEFAULT 'early' AFTER id, DROP COLUMN d$instant;
		CREATE TABLE place (id INT PRIMARY KEY, p POINT NOT NULL, SPATIAL KEY p (p));
		INSERT INTO place SELECT seq, POINT(seq % 13, seq % 7) FROM seq_1_to_200;
		CREATE TABLE child (id INT PRIMARY KEY, word INT, KEY word (word), FOREIGN KEY (word) REFERENCES word(id) ON DELETE SET NULL);
		INSERT INTO child SELECT seq, 1 + seq % 60 FROM seq_1_to_120;
		CREATE TABLE part (a INT, day DATE, n INT, KEY n (n)) PARTITION BY RANGE (a) (PARTITION p0 VALUES LESS THAN (50), PARTITION p1 VALUES LESS THAN MAXVALUE);
		INSERT INTO part SELECT seq, '2026-01-01' + INTERVAL seq DAY, seq * 3 FROM seq_1_to_100;
		CREATE SEQUENCE s START WITH 5 CACHE 10;
		DO NEXTVAL(s);
		CREATE TABLE packed (k VARBINARY(20) PRIMARY KEY, a BIGINT UNSIGNED, b LONGTEXT) $codec;
		INSERT INTO packed SELECT CONCAT('k', seq), 18446744073709551615 - seq, REPEAT('long ', seq * 300) FROM seq_1_to_60" ||
		die "$engine: no tables"
done
rm -f "$directory/state"
alike "$(sql main -e 'SELECT VERSION()')" "$directory/state"
stop
"$here/../tools/root.sh" "$root" --in "$(cd "$here/../../.." && pwd)" "$here/upgrade.sh" --newer "$newer" "$directory"
rm -rf "$directory/main"
start_it
for schema in innodb weir; do sql main <"$directory/$schema.sql" || die "the dump of $schema cannot be loaded"; done
alike "back by dump, $(sql main -e 'SELECT VERSION()')" "$directory/state"
stop
