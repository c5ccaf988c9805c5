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
# What a statement is told: its rows in one line, or the number of its error.
told() { # statement
	local said
	said=$(sql main d <<<"$1" 2>&1) || true
	if [[ $said =~ ERROR\ ([0-9]+) ]]; then echo "${BASH_REMATCH[1]}"; else tr '\t\n' ' ;' <<<"$said"; fi
}
expect() { # answer statement
	local got
	got=$(told "$2")
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
begin 'ALTER TABLE child FORCE'
expect ';' 'RENAME TABLE parent TO parents; ALTER TABLE parents RENAME COLUMN id TO number'
end
expect 1452 'INSERT INTO child VALUES (2,9)'
expect 1451 'DELETE FROM parents WHERE number=1'
expect ';' 'INSERT INTO child VALUES (2,2)'
[[ $(told 'SHOW CREATE TABLE child') == *'REFERENCES `parents` (`number`)'* ]] || die "the child speaks of old names"
echo "swap: new names of a parent, come while its child is altered, are in the child"

# A crash there: the copy gets the name, although nobody could ask for that with foreign keys checked.
tables
begin 'SET foreign_key_checks=0; ALTER TABLE parent DROP PRIMARY KEY, ADD PRIMARY KEY(k)'
crash
expect '1 10;2 20;3 30;' 'SELECT * FROM parent'
expect 1452 'INSERT INTO child VALUES (2,2)'
tables
begin 'ALTER TABLE parent FORCE, RENAME TO parents'
crash
expect '1 10;2 20;3 30;' 'SELECT * FROM parents'
expect 1451 'DELETE FROM parents WHERE id=1'
expect ';' 'INSERT INTO child VALUES (2,2)'
echo "swap: a crash before the copy has the name: it has it after the start"
