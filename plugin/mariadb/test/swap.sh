#!/bin/bash
# What others meet, and what a crash leaves, while an ALTER that copies gives the copy the table's place: the table has an
# intermediate name already, and the copy has its own still (hold.c keeps it there).
#   swap.sh PLUGIN DIRECTORY
set -eu
here=$(cd "$(dirname "$0")" && pwd)
plugin=$1 directory=$2
. "$here/servers.sh"
hold=$directory/hold
cc -shared -fPIC -O1 -Wall -o "$hold.so" "$here/hold.c" -ldl
export WEIR_SERVER_ENV="LD_PRELOAD=$hold.so HOLD=$hold"

# An ALTER as far as that.
begin() { # statement
	: >"$hold"
	sql main d <<<"$1" >"$directory/alter.said" 2>&1 &
	alter=$!
	for _ in $(seq 500); do
		[ ! -e "$hold.here" ] || return 0
		sleep 0.01
	done
	die "$1 does not come to its end: $(cat "$directory/alter.said")"
}
end() {
	rm "$hold"
	wait $alter || die "the ALTER says $(cat "$directory/alter.said")"
}
crash() {
	slay $server
	wait $alter || true
	rm "$hold" "$hold.here"
	start main --skip-networking
}
# A statement's outcome: its rows in one line, or the number of its error.
outcome() { # statement
	local said
	said=$(sql main d <<<"$1" 2>&1) || true
	if [[ $said =~ ERROR\ ([0-9]+) ]]; then echo "${BASH_REMATCH[1]}"; else tr '\t\n' ' ;' <<<"$said"; fi
}
expect() { # answer statement
	local got
	got=$(outcome "$2")
	[ "$got" = "$1" ] || die "$2: '$got' instead of '$1'"
}
tables() {
	sql main d -e "SET foreign_key_checks=0; DROP TABLE IF EXISTS child, parent, parents; SET foreign_key_checks=1;
		CREATE TABLE parent (id INT PRIMARY KEY, k INT NOT NULL, KEY(k)) ENGINE=Weir;
		CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent(id)) ENGINE=Weir;
		INSERT INTO parent VALUES (1,10),(2,20),(3,30); INSERT INTO child VALUES (1,1)"
}

start main --skip-networking
sql main -e 'CREATE DATABASE d'

# The parent's new names come to the child's copy too.
tables
begin 'ALTER TABLE child FORCE, ALGORITHM=COPY'
expect ';' 'RENAME TABLE parent TO parents; ALTER TABLE parents RENAME COLUMN id TO number'
end
expect 1452 'INSERT INTO child VALUES (2,9)'
expect 1451 'DELETE FROM parents WHERE number=1'
expect ';' 'INSERT INTO child VALUES (2,2)'
[[ $(outcome 'SHOW CREATE TABLE child') == *'REFERENCES `parents` (`number`)'* ]] || die "the child speaks of old names"
echo "swap: new names of a parent, come while its child is altered, are in the child"

# A crash there: the copy gets the name, although no statement could ask for that with foreign keys checked.
tables
begin 'SET foreign_key_checks=0; ALTER TABLE parent DROP PRIMARY KEY, ADD PRIMARY KEY(k)'
crash
expect '1 10;2 20;3 30;' 'SELECT * FROM parent'
expect 1452 'INSERT INTO child VALUES (2,2)'
tables
begin 'ALTER TABLE parent FORCE, ALGORITHM=COPY, RENAME TO parents'
crash
expect '1 10;2 20;3 30;' 'SELECT * FROM parents'
expect 1451 'DELETE FROM parents WHERE id=1'
expect ';' 'INSERT INTO child VALUES (2,2)'
echo "swap: a crash before the copy has the name: it has it after the start"

# For all others the table is there, and has its foreign keys.
tables
begin 'ALTER TABLE child FORCE, ALGORITHM=COPY'
expect 1451 'DROP TABLE parent'
expect 1701 'TRUNCATE TABLE parent'
expect 1005 'CREATE TABLE other (id INT PRIMARY KEY, CONSTRAINT child_ibfk_1 FOREIGN KEY (id) REFERENCES parent(id)) ENGINE=Weir'
sql main d <<<'DELETE FROM parent WHERE id=1' >"$directory/delete.said" 2>&1 &
delete=$!
sleep 0.5
kill -0 $delete 2>/dev/null || die "a parent's row is deleted without a look at the child"
end
wait $delete || true
grep -q '^ERROR 1451' "$directory/delete.said" || die "the parent's row: $(cat "$directory/delete.said")"
expect '1;2;3;' 'SELECT id FROM parent'

tables
begin 'ALTER TABLE parent FORCE, ALGORITHM=COPY'
for row in '(2,2)' '(3,99)'; do
	sql main d <<<"INSERT INTO child VALUES $row" >"$directory/insert$row.said" 2>&1 &
done
sleep 0.5
expect 'Waiting for a table whose copy takes its place;' 'SELECT DISTINCT state FROM information_schema.processlist WHERE info LIKE "INSERT%"'
expect 1205 'SET weir_lock_wait_timeout=1; INSERT INTO child VALUES (4,1)'
expect ';' 'CREATE TABLE other (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES parent(id)) ENGINE=Weir'
end
for _ in $(seq 100); do
	[ "$(outcome 'SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE "INSERT%"')" != '0;' ] || break
	sleep 0.1
done
grep -q '^ERROR 1452' "$directory/insert(3,99).said" || die "a child without a parent: $(cat "$directory/insert(3,99).said")"
expect '1 1;2 2;' 'SELECT * FROM child'
expect ';' 'INSERT INTO child VALUES (3,3); INSERT INTO other VALUES (3); DROP TABLE other'
expect 1451 'DELETE FROM parent WHERE id=3'
echo "swap: foreign keys hold while a table and its copy change places"
