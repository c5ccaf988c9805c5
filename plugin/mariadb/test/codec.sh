#!/bin/bash
# How a table asks for its pages to be packed (CODEC): kept by the server and the engine, changed at once, over a restart; what is
# said where pages lie in place and none are packed.
#   codec.sh PLUGIN DIRECTORY
set -eu
here=$(cd "$(dirname "$0")" && pwd)
plugin=$1 directory=$2
. "$here/servers.sh"
# The codecs of a table's trees, as the engine wrote pages by them: the counter of this codec rises.
written() { sql main -e "SHOW GLOBAL STATUS LIKE 'weir_segments_pages_$1%'" | cut -f 2; }
rises() { # CODEC SQL
	local before
	before=$(written "$1")
	sql main work -e "$2"
	for _ in $(seq 100); do
		[ "$(written "$1")" -gt "$((before + 20))" ] && return
		sleep 0.2
	done
	die "no pages by $1 after $2"
}
rows="INSERT INTO packed (word) SELECT REPEAT(CONCAT('heron ', seq), 10) FROM seq_1_to_20000"
start main --skip-networking --weir-store=LOG
sql main -e "CREATE DATABASE work; USE work; CREATE TABLE packed (id INT PRIMARY KEY AUTO_INCREMENT, word VARCHAR(200), KEY (word)) ENGINE=Weir CODEC=LZ4"
rises lz4 "$rows"
sql main work -e "SHOW CREATE TABLE packed" | grep -qi "codec.*=LZ4" || die "SHOW CREATE TABLE does not say the codec"
sql main work -e "ALTER TABLE packed CODEC=NONE, ALGORITHM=INSTANT"
rises raw "UPDATE packed SET word=CONCAT(word, 'x')"
sql main work -e "TRUNCATE packed"
rises raw "$rows"
sql main work -e "CREATE TABLE bad (a INT) ENGINE=Weir CODEC=GZIP" 2>"$directory/refused" && die "an unknown codec was accepted"
sql main work -e "CREATE TABLE parts (a INT PRIMARY KEY) ENGINE=Weir CODEC=ZSTD PARTITION BY HASH (a) PARTITIONS 3; ALTER TABLE parts CODEC=LZ4; DROP TABLE parts"
[ "$(sql main work -e "SELECT COUNT(*) FROM packed")" = 20000 ] || die "rows are missing"
slay $server
start main --skip-networking --weir-store=LOG
rises raw "UPDATE packed SET word=CONCAT(word, 'y')"
sql main work -e "ALTER TABLE packed CODEC=DEFAULT; CHECK TABLE packed" | grep -q "OK" || die "the table is not sound"
slay $server
start place --skip-networking --weir-store=IN_PLACE
sql place -e "CREATE DATABASE work; USE work; CREATE TABLE packed (id INT PRIMARY KEY) ENGINE=Weir CODEC=LZ4; SHOW WARNINGS" | grep -q "none are packed" ||
	die "in place nothing is said"
slay $server
echo "codec: a table's codec is kept, changed at once, and in place it is said to have no effect"
