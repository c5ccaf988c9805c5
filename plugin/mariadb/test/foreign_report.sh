#!/bin/bash
# What is said of foreign keys that fail: which key, which column or index of a definition, in SHOW WARNINGS and in SHOW
# ENGINE WEIR STATUS.
#   foreign_report.sh       (inside server.sh --run, which sets WEIR_SOCKET)
set -eu
sql() { mariadb --no-defaults -uroot -S "$WEIR_SOCKET" -NB "$@"; }
die() { echo "foreign_report: $*"; exit 1; }
checks=0
refused() { # statement words...
	local statement=$1 said words
	shift
	# Behind an error the client leaves out what else its -e says.
	said=$(printf '%s;\nSHOW WARNINGS;\n' "$statement" | sql --force report 2>&1) || true
	for words in "$@"; do
		[[ $said == *"$words"* ]] || die "$statement: no '$words' in: $said"
	done
	said=$(sql -e "SHOW ENGINE WEIR STATUS")
	for words in "last foreign key error" "$statement" "${@: -1}"; do
		[[ $said == *"$words"* ]] || die "$statement: no '$words' in the status: $said"
	done
	checks=$((checks + 1))
}
sql -e "DROP DATABASE IF EXISTS report; CREATE DATABASE report; USE report;
	CREATE TABLE p (id INT PRIMARY KEY, a INT, b INT, u INT UNSIGNED, KEY (a,b), KEY (u)) ENGINE=Weir;
	CREATE TABLE c (x INT NOT NULL, y INT, z INT, CONSTRAINT known FOREIGN KEY (x) REFERENCES p(id)) ENGINE=Weir;
	INSERT INTO p VALUES (1,1,1,1); INSERT INTO c VALUES (1,1,1)"
# Of rows: the words of the error are InnoDB's (sql/foreign.sql).
known='CONSTRAINT `known` FOREIGN KEY (`x`) REFERENCES `p` (`id`)'
refused 'INSERT INTO c VALUES (9,1,1)' "ERROR 1452 (23000)" "$known"
refused 'DELETE FROM p WHERE id=1' "ERROR 1451 (23000)" "$known"
refused 'UPDATE p SET id=2' "$known"
# Of definitions: the server's error 150, and why.
no='errno: 150'
refused 'CREATE TABLE d (x INT, CONSTRAINT k FOREIGN KEY (x) REFERENCES missing(id)) ENGINE=Weir' "$no" 'CONSTRAINT `k` FOREIGN KEY (`x`)' 'no Weir table `missing`'
refused 'CREATE TABLE d (x INT, FOREIGN KEY (x) REFERENCES p(b)) ENGINE=Weir' "$no" 'CONSTRAINT `d_ibfk_1`' 'no index of `p` begins with (`b`)'
refused 'CREATE TABLE d (x INT, FOREIGN KEY (x) REFERENCES p(u)) ENGINE=Weir' "$no" 'the column `x` is of another type than the column `u`'
refused 'CREATE TABLE d (x INT, y BIGINT, FOREIGN KEY (x,y) REFERENCES p(a,b)) ENGINE=Weir' "$no" 'the column `y` is of another type than the column `b`'
refused 'CREATE TABLE d (x INT NOT NULL, FOREIGN KEY (x) REFERENCES p(id) ON DELETE SET NULL) ENGINE=Weir' "$no" 'the column `x` is NOT NULL'
refused 'CREATE TABLE d (x INT, FOREIGN KEY (x) REFERENCES p(id) ON DELETE SET DEFAULT) ENGINE=Weir' "$no" 'SET DEFAULT is not done'
refused 'ALTER TABLE c ADD CONSTRAINT k FOREIGN KEY (z) REFERENCES p(u)' "$no" 'CONSTRAINT `k`' 'the column `z` is of another type than the column `u`'
# A table that comes to be referred to by one that was there first, and does not fit.
sql report -e "SET foreign_key_checks=0; CREATE TABLE early (x INT, CONSTRAINT late_k FOREIGN KEY (x) REFERENCES late(id)) ENGINE=Weir"
refused 'CREATE TABLE late (id BIGINT PRIMARY KEY) ENGINE=Weir' "$no" '`report`.`early`, CONSTRAINT `late_k`' 'no index that begins with its columns'
sql -e "DROP DATABASE report"
echo "foreign_report: $checks errors, each with its key, and what is wrong"
