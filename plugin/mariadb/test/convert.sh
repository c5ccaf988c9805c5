#!/bin/bash
# The walk from InnoDB to Weir and back, as the README describes it: by ALTER TABLE, and by dump and load. After each step the
# rows, keys and definitions are what they were.
#   convert.sh PLUGIN DIRECTORY
set -eu
here=$(cd "$(dirname "$0")" && pwd)
plugin=$1 directory=$2
. "$here/servers.sh"
start main --skip-networking
sql main -e "CREATE DATABASE shop; USE shop;
	CREATE TABLE article (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(60) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci NOT NULL,
		price DECIMAL(9,2), added DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3), words TEXT, picture BLOB, kind ENUM('a','b'), gross DECIMAL(9,2) AS (price * 1.2),
		UNIQUE KEY (name), KEY (kind, price DESC), KEY w (words(20))) ENGINE=InnoDB COMMENT='things';
	CREATE TABLE sale (article INT, day DATE, n INT, KEY (article), KEY (day)) ENGINE=InnoDB PARTITION BY HASH (article) PARTITIONS 3;
	INSERT INTO article(name, price, words, picture, kind) SELECT CONCAT('article ', CONVERT(UNHEX('C384') USING utf8mb4), ' ', seq), seq / 7, IF(seq % 5, REPEAT('word ', seq % 900), NULL), RANDOM_BYTES(seq % 500), ELT(1 + seq % 2, 'a', 'b') FROM seq_1_to_3000;
	DELETE FROM article WHERE id > 2990;
	INSERT INTO sale SELECT 1 + seq % 100, '2026-01-01' + INTERVAL seq % 300 DAY, seq FROM seq_1_to_5000;
	CREATE VIEW sold AS SELECT name, SUM(n) FROM article JOIN sale ON article.id=article GROUP BY name"
# Everything but the engine's name; the checksum is of all rows.
state() { # server
	local table
	for table in article sale; do
		sql "$1" shop -e "SHOW CREATE TABLE $table" | sed 's/ENGINE=[A-Za-z]*/ENGINE=?/g'
		sql "$1" shop -e "SELECT * FROM $table ORDER BY 1, 2, 3" | md5sum
	done
	sql "$1" shop -e "SELECT COUNT(*) FROM article FORCE INDEX (kind) WHERE kind='a' AND price > 100; SELECT COUNT(*) FROM article FORCE INDEX (w) WHERE words LIKE 'word word %'; SELECT * FROM sold ORDER BY 1" | md5sum
	sql "$1" shop -e "CHECK TABLE article, sale" | awk '{ print $NF }'
}
engines() { sql "$1" -e "SELECT DISTINCT engine FROM information_schema.tables WHERE table_schema='shop' AND table_type='BASE TABLE'"; }
state main >"$directory/before"
same() { # server what engine
	state "$1" >"$directory/after"
	diff "$directory/before" "$directory/after" || die "$2 changes something"
	[ "$(engines "$1")" = "$3" ] || die "$2: the engine is $(engines "$1")"
	echo "convert: $2: the same"
}

all() { # from to
	sql main --raw -e "SELECT CONCAT('ALTER TABLE \`', table_schema, '\`.\`', table_name, '\` ENGINE=$2;') FROM information_schema.tables
		WHERE engine='$1' AND table_schema NOT IN ('mysql', 'sys', 'performance_schema', 'information_schema')" | sql main
}
all InnoDB Weir
same main "ALTER TABLE to Weir" Weir
all Weir InnoDB
same main "ALTER TABLE back to InnoDB" InnoDB

mariadb-dump --no-defaults -uroot -S "$sockets/main" --single-transaction --hex-blob --routines --databases shop >"$directory/dump.sql"
start other --skip-networking
sed 's/^) ENGINE=InnoDB/) ENGINE=Weir/; s/ENGINE = InnoDB/ENGINE = Weir/' "$directory/dump.sql" | sql other
same other "dump and load into Weir" Weir
mariadb-dump --no-defaults -uroot -S "$sockets/other" --single-transaction --hex-blob --routines --databases shop >"$directory/back.sql"
sql main -e "DROP DATABASE shop"
sed 's/^) ENGINE=Weir/) ENGINE=InnoDB/; s/ENGINE = Weir/ENGINE = InnoDB/' "$directory/back.sql" | sql main
same main "dump and load back into InnoDB" InnoDB
sql other shop -e "INSERT INTO article(name) VALUES ('next')"
[ "$(sql other shop -e "SELECT MAX(id) > 3000 FROM article")" = 1 ] || die "numbers are given out twice"

# With foreign keys: a cycle of two, one of a table with itself, one of two columns, from another schema, odd names.
sql main -e "CREATE DATABASE ring; CREATE DATABASE outside; USE ring;
	CREATE TABLE team (id INT PRIMARY KEY, head INT, name VARCHAR(20), UNIQUE KEY (name, id)) ENGINE=InnoDB;
	CREATE TABLE person (id INT PRIMARY KEY, team INT, boss INT, CONSTRAINT in_team FOREIGN KEY (team) REFERENCES team(id) ON DELETE SET NULL ON UPDATE CASCADE,
		CONSTRAINT \`its, boss\` FOREIGN KEY (boss) REFERENCES person(id) ON DELETE CASCADE) ENGINE=InnoDB;
	ALTER TABLE team ADD CONSTRAINT led_by FOREIGN KEY (head) REFERENCES person(id);
	CREATE TABLE \`odd, name\` (n VARCHAR(20), t INT, KEY (n, t), FOREIGN KEY (n, t) REFERENCES team(name, id) ON UPDATE CASCADE) ENGINE=InnoDB;
	CREATE TABLE outside.visitor (p INT, KEY (p), FOREIGN KEY (p) REFERENCES ring.person(id)) ENGINE=InnoDB;
	INSERT INTO team VALUES (1,NULL,'one'),(2,NULL,'two'); INSERT INTO person VALUES (1,1,NULL),(2,1,1),(3,2,1); UPDATE team SET head=id;
	INSERT INTO \`odd, name\` VALUES ('one',1); INSERT INTO outside.visitor VALUES (3)"
ring() {
	for table in ring.team ring.person 'ring.`odd, name`' outside.visitor; do
		sql main -e "SHOW CREATE TABLE $table; SELECT * FROM $table ORDER BY 1" | sed 's/ENGINE=[A-Za-z]*/ENGINE=?/'
	done
}
ring >"$directory/before"
for engine in Weir InnoDB Weir; do
	"$here/../tools/weir-convert" "$sockets/main" ring $engine >"$directory/walk.sql"
	"$here/../tools/weir-convert" "$sockets/main" outside $engine >"$directory/outside.sql"
	# The keys between the two wait for both: what the first has not come to is done by giving it again.
	half=$(($(wc -l <"$directory/walk.sql") / 2))
	head -n $half "$directory/walk.sql" | sql main
	grep 'ENGINE=' "$directory/outside.sql" | sql main
	sql main <"$directory/walk.sql"
	ring >"$directory/after"
	diff "$directory/before" "$directory/after" || die "the walk to $engine changes something"
	engines=$(sql main -e "SELECT DISTINCT engine FROM information_schema.tables WHERE table_schema IN ('ring','outside')")
	[ "$engines" = $engine ] || die "the engine is $engines"
	for wrong in 'DELETE FROM person WHERE id=2' 'INSERT INTO person VALUES (9,9,NULL)' 'UPDATE team SET head=77' "INSERT INTO \`odd, name\` VALUES ('one',2)" 'INSERT INTO outside.visitor VALUES (99)'; do
		sql main ring -e "$wrong" 2>/dev/null && die "$engine: a key is not looked after: $wrong"
	done
	sql main ring -e "BEGIN; UPDATE team SET id=5 WHERE id=2; SELECT team FROM person WHERE id=3; ROLLBACK" | grep -qx 5 || die "$engine: a row does not follow"
	[ -z "$(sql main -e 'CHECK TABLE ring.team, ring.person, outside.visitor' | grep -v OK)" ] || die "$engine: CHECK TABLE"
done
echo "convert: foreign keys with cycles, there and back: the same"
