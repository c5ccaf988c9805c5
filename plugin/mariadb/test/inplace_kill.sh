#!/bin/bash
# kill -9 at the steps of an ALTER without a copy, of a table and of one with partitions: after the start the server's
# definition and the engine's are of one kind, all partitions alike, and the ALTER can be said again.
#   inplace_kill.sh PLUGIN DIRECTORY [KILLS]       KILLS of each statement at most, at steps by chance; `all`: at every step
set -eu
here=$(cd "$(dirname "$0")" && pwd)
plugin=$1 directory=$2 kills=${3:-1}
. "$here/servers.sh"
can_die
begin() { rm -f "$die_at"; start main --skip-networking; }
# Each statement, and what SHOW CREATE TABLE has only behind it or, with !, only before it.
statements=('ADD KEY kz (b), ADD UNIQUE KEY uz (b,id)' 'DROP KEY ka' 'ADD KEY kz (b), DROP KEY ka' 'RENAME KEY ka TO kz'
	"ADD COLUMN z INT NOT NULL DEFAULT 7" 'RENAME COLUMN b TO z' "ADD COLUMN z INT NOT NULL DEFAULT 7 FIRST" 'DROP COLUMN b' 'MODIFY b INT FIRST'
	'MODIFY v VARCHAR(500)' 'MODIFY b INT NOT NULL DEFAULT 1' 'DROP COLUMN b, ADD COLUMN b TEXT DEFAULT "z" AFTER id'
	'DROP PRIMARY KEY, ADD PRIMARY KEY (id,a), ALGORITHM=INPLACE' 'ADD COLUMN z INT NOT NULL DEFAULT 7, ADD KEY kz (z,a), ALGORITHM=INPLACE'
	'ADD FULLTEXT KEY fz (v)' 'ADD SPATIAL KEY sz (g)' 'DROP KEY ka, ADD FULLTEXT KEY fz (v), ADD SPATIAL KEY sz (g)')
then=('`kz`' '!`ka`' '`kz`' '`kz`' '`z`' '`z`' '`z`' '!`b`' '(\n  `b`' 'varchar(500)' '`b` int(11) NOT NULL' '`b` text'
	'PRIMARY KEY (`id`,`a`)' '`kz`' '`fz`' '`sz`' '`fz`')
begin
killed=0 old=0 new=0
for what in '' 'PARTITION BY KEY(id) PARTITIONS 3'; do
	# The server has neither geometries nor FULLTEXT keys in tables with partitions.
	geometry=
	[ -n "$what" ] || geometry='g POINT NOT NULL DEFAULT (POINT(5,1)),'
	for which in "${!statements[@]}"; do
		statement=${statements[which]}
		[[ -z $what || $statement != *FULLTEXT* && $statement != *SPATIAL* ]] || continue
		[[ $statement == *ALGORITHM=* ]] || statement="$statement, ALGORITHM=NOCOPY"
		for ((nth = 0; nth < 100; nth++)); do
			[ "$kills" = all ] || [ $nth -lt "$kills" ] || break
			step=$nth
			[ "$kills" = all ] || step=$((RANDOM % 9))
			at="$statement $what, killed at step $step"
			# The server's own: of a half-done ALTER of a table with partitions, also of InnoDB's (docs/mariadb/differences.md).
			rm -f "$directory"/main/d/#sql-*.par
			sql main -e "DROP DATABASE IF EXISTS d; CREATE DATABASE d; USE d;
				CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT DEFAULT 1, v VARCHAR(20) DEFAULT 'vvvv', $geometry KEY ka(a)) ENGINE=Weir DEFAULT CHARSET=latin1 $what;
				INSERT INTO t(id,a,b${geometry:+,g}) SELECT seq, seq%7, seq%11${geometry:+, POINT(seq,1)} FROM seq_1_to_200"
			echo $step >"$die_at"
			through=
			if sql main d -e "ALTER TABLE t $statement" >"$directory/said" 2>&1; then
				# It counts on.
				slay $server
				through=1
			elif grep -qE 'ERROR (2013|2026)' "$directory/said"; then
				while kill -0 $server 2>/dev/null; do sleep 0.02; done
				unset "servers[$server]"
				killed=$((killed + 1))
			else
				die "$at: $(cat "$directory/said")"
			fi
			begin
			shown=$(sql main d -e 'SHOW CREATE TABLE t; CHECK TABLE t' 2>&1) || die "$at: $shown"
			grep -q 'status	OK' <<<"$shown" || die "$at: $shown"
			mark=${then[which]}
			is=new
			if [[ $mark == !* ]]; then
				! grep -qF "${mark#!}" <<<"$shown" || is=old
			else
				grep -qF "$mark" <<<"$shown" || is=old
			fi
			[ $is = old ] && old=$((old + 1)) || new=$((new + 1))
			for key in $(grep -oE '(KEY|UNIQUE KEY) `[a-z]+`' <<<"$shown" | tr -d '`' | sed 's/.* //'); do
				found=$(sql main d -e "SELECT COUNT(*), SUM(id), SUM(a) FROM t FORCE INDEX ($key)")
				[ "$found" = '200	20100	598' ] || die "$at: by $key: $found"
			done
			found=$(sql main d -e "SELECT COUNT(v), SUM(LENGTH(v)) FROM t WHERE v='vvvv'")
			[ "$found" = '200	800' ] || die "$at: v is $found"
			if grep -qF '`fz`' <<<"$shown"; then
				[ "$(sql main d -e "SELECT COUNT(*), SUM(id) FROM t WHERE MATCH (v) AGAINST ('vvvv')")" = '200	20100' ] || die "$at: by the words"
			fi
			if grep -qF '`sz`' <<<"$shown"; then
				window="ST_GeomFromText('POLYGON((0 0,50.5 0,50.5 2,0 2,0 0))')"
				[ "$(sql main d -e "SELECT COUNT(*), SUM(id) FROM t FORCE INDEX (sz) WHERE MBRWithin(g, $window)")" = '50	1275' ] || die "$at: by the places"
			fi
			sql main d -e 'INSERT INTO t(id,a) VALUES (1000,3); UPDATE t SET a=a+1 WHERE id<20; DELETE FROM t WHERE id=30; CHECK TABLE t' | grep -q 'status	OK' || die "$at: written to"
			[ $is = new ] || sql main d -e "ALTER TABLE t $statement" || die "$at: not again"
			sql main d -e 'ALTER TABLE t FORCE; CHECK TABLE t' | grep -q 'status	OK' || die "$at: not anew"
			sql main d -e 'ALTER TABLE t FORCE, ALGORITHM=COPY; CHECK TABLE t' | grep -q 'status	OK' || die "$at: not by a copy"
			[ -z "$through" ] || [ "$kills" != all ] || break
		done
	done
done
echo "inplace_kill: $killed kills, $old times the old table and $new times the new one, whole"
