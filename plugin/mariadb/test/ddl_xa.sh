#!/bin/bash
# kill -9 at the steps of changes of definitions, beside an XA transaction that is prepared, has no session any more, and holds
# the tables: after the start each table is the old one or the new one and can be used, the transaction is still prepared
# and can be decided either way, and what it commits is there.
#   ddl_xa.sh PLUGIN DIRECTORY [KILLS]       KILLS of each statement at most, at steps by chance; `all`: at every step
set -eu
here=$(cd "$(dirname "$0")" && pwd)
plugin=$1 directory=$2 kills=${3:-1}
. "$here/servers.sh"
can_die
begin() { rm -f "$die_at"; start main --skip-networking; }

tables() {
	sql main -e "DROP DATABASE IF EXISTS d; CREATE DATABASE d; USE d;
		CREATE TABLE parent (id INT PRIMARY KEY, k INT NOT NULL, KEY(k)) ENGINE=Weir;
		CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent(id)) ENGINE=Weir;
		CREATE TABLE parts (id INT PRIMARY KEY, k INT) ENGINE=Weir PARTITION BY RANGE (id)
			(PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20));
		INSERT INTO parent VALUES (1,10),(2,20),(3,30); INSERT INTO child VALUES (1,1);
		INSERT INTO parts VALUES (1,1),(11,11);
		XA START 'x'; INSERT INTO child VALUES (5,2); UPDATE parts SET k=2 WHERE id=1; XA END 'x'; XA PREPARE 'x'"
}
check() { # statement step
	local at="$1, killed at step $2" table said
	for table in $(sql main d -e 'SHOW TABLES'); do
		said=$(sql main d -e "SHOW CREATE TABLE $table; SELECT COUNT(*) FROM $table; CHECK TABLE $table" 2>&1) || die "$at: $said"
		grep -q 'status	OK' <<<"$said" || die "$at: $table: $said"
	done
	grep -q . <<<"$(sql main -e 'XA RECOVER')" || die "$at: nothing is prepared any more"
	if ((RANDOM % 2)); then
		sql main -e "XA COMMIT 'x'" || die "$at: XA COMMIT"
		# What has been emptied or dropped meanwhile has it no more.
		[[ "$1" == *'TABLE child'* || "$1" == 'DROP'* ]] || [ "$(sql main d -e 'SELECT p FROM child WHERE id=5')" = 2 ] || die "$at: what was committed is not there"
	else
		sql main -e "XA ROLLBACK 'x'" || die "$at: XA ROLLBACK"
	fi
	[[ "$1" == *child* || "$1" == 'DROP'* ]] || [ "$(sql main d -e 'SELECT COUNT(*) FROM child')" -ge 1 ] || die "$at: rows of the child are gone"
	for table in $(sql main d -e 'SHOW TABLES LIKE "parent%"'); do
		[ "$(sql main d -e "SELECT GROUP_CONCAT(id, ':', k ORDER BY id) FROM $table")" = '1:10,2:20,3:30' ] || die "$at: rows of $table"
		sql main d -e "ALTER TABLE $table FORCE" || die "$at: $table cannot be altered"
	done
}

statements=('ALTER TABLE parent ADD KEY zx (k), FORCE, ALGORITHM=COPY' 'ALTER TABLE parent ADD KEY zx (k)' 'ALTER TABLE child FORCE, ALGORITHM=COPY'
	'DROP TABLE child' 'RENAME TABLE parent TO parents' 'TRUNCATE TABLE child' 'ALTER TABLE parent FORCE, ALGORITHM=COPY, RENAME TO parents'
	'ALTER TABLE parts REORGANIZE PARTITION p0 INTO (PARTITION q0 VALUES LESS THAN (5), PARTITION q1 VALUES LESS THAN (10))'
	'ALTER TABLE parts DROP PARTITION p1' 'SET foreign_key_checks=0; DROP TABLE parent' 'DROP DATABASE d'
	'CREATE OR REPLACE TABLE child (id INT PRIMARY KEY) ENGINE=Weir')
begin
killed=0 steps=0
for statement in "${statements[@]}"; do
	for ((nth = 0; nth < 100; nth++)); do
		[ "$kills" = all ] || [ $nth -lt "$kills" ] || break
		step=$nth
		[ "$kills" = all ] || step=$((RANDOM % 12))
		tables
		echo $step >"$die_at"
		# It may wait for the transaction, and is killed there, too.
		sql main d -e "SET weir_lock_wait_timeout=5, lock_wait_timeout=5; $statement" >"$directory/said" 2>&1 &
		client=$!
		for _ in $(seq 100); do
			kill -0 $client 2>/dev/null && kill -0 "$server" 2>/dev/null || break
			sleep 0.02
		done
		through=
		kill -0 "$server" 2>/dev/null && through=1
		slay "$server"
		wait $client || true
		begin
		killed=$((killed + 1))
		check "$statement" "$step"
		steps=$((steps + 1))
		[ -z "$through" ] || [ "$kills" != all ] || break
	done
done
echo "ddl_xa: $killed kills at steps of ${#statements[@]} changes beside a prepared transaction: old or new, and it can be decided"
