#!/bin/bash
# The walk from InnoDB to Weir and back, as the README tells it: by ALTER TABLE, and by dump and load. After each step the
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

# What has to be changed before, if anything: FULLTEXT and SPATIAL keys.
obstacles=$(sql main -e "SELECT DISTINCT table_schema, table_name, index_type FROM information_schema.statistics WHERE index_type IN ('FULLTEXT', 'SPATIAL') AND table_schema='shop'")
[ -z "$obstacles" ] || die "$obstacles"
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
