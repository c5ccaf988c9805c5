#!/bin/bash
# Rows are inserted, changed and replaced beside sessions that delete them: none gets an error but a deadlock, for what
# a statement has met is there when it comes to change it.
#   replacing.sh OUT        (inside server.sh --run, which sets WEIR_SOCKET)
set -eu
out=$1
mkdir -p "$out"
client() { mariadb --no-defaults -uroot -S "$WEIR_SOCKET" "$@"; }
client -e "DROP DATABASE IF EXISTS replacing; CREATE DATABASE replacing; CREATE TABLE replacing.t (id INT PRIMARY KEY, u INT UNIQUE, v INT) ENGINE=Weir"
session() { # level statement
	echo "SET SESSION TRANSACTION ISOLATION LEVEL $1; SET SESSION weir_lock_wait_timeout=60;"
	for _ in $(seq 3000); do echo "$2;"; done
}
for level in 'READ COMMITTED' 'REPEATABLE READ' SERIALIZABLE; do
	n=0
	for statement in "INSERT INTO t VALUES (1,1,1) ON DUPLICATE KEY UPDATE v=v+1" "DELETE FROM t WHERE id=1" "REPLACE INTO t VALUES (2,1,1)" \
		"INSERT INTO t VALUES (1,2,1) ON DUPLICATE KEY UPDATE v=v+1" "INSERT IGNORE INTO t VALUES (2,2,2)"; do
		n=$((n + 1))
		session "$level" "$statement" | client --force replacing >"$out/$n" 2>&1 &
	done
	wait
	said=$(cat "$out"/[1-5] | grep ERROR | grep -v 'ERROR 1213' | sort | uniq -c || true)
	[ -z "$said" ] || { echo "replacing: $level: $said"; exit 1; }
	echo "replacing: $level: $(cat "$out"/[1-5] | grep -c ERROR || true) deadlocks"
done
client -e "CHECK TABLE replacing.t" | grep -q OK
