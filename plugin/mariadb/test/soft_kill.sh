#!/bin/bash
# max_statement_time and KILL SOFT end what the engine does at length in loops of its own: soon, and with nothing changed.
#   soft_kill.sh       (inside server.sh --run, which sets WEIR_SOCKET)
set -eu
sql() { mariadb --no-defaults -uroot -S "$WEIR_SOCKET" -nNB soft_kill "$@"; }
mariadb --no-defaults -uroot -S "$WEIR_SOCKET" -e "DROP DATABASE IF EXISTS soft_kill; CREATE DATABASE soft_kill"
sql -e "CREATE TABLE t (id INT PRIMARY KEY, a INT, s VARCHAR(200), KEY a (a)) ENGINE=Weir;
	INSERT INTO t SELECT seq, seq, REPEAT('x', 100) FROM seq_1_to_400000;
	CREATE TABLE p (id INT PRIMARY KEY) ENGINE=Weir;
	INSERT INTO p VALUES (1), (2);
	CREATE TABLE c (id INT PRIMARY KEY, p INT, KEY (p), FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE) ENGINE=Weir;
	INSERT INTO c SELECT seq, 1 FROM seq_1_to_150000"
declare -A long=(
	[scan]="SELECT COUNT(*) FROM t FORCE INDEX (a) WHERE a > 0 AND a % 7 = 9"
	[count]="SELECT COUNT(*) FROM t WHERE s LIKE 'y%' OR s LIKE '%y'"
	[index]="ALTER TABLE t ADD KEY more (s, a), ALGORITHM=INPLACE"
	[copy]="ALTER TABLE t ADD COLUMN z INT FIRST, ALGORITHM=COPY"
	[check]="CHECK TABLE t"
	[update]="UPDATE t SET a = a + 1"
	[delete]="DELETE FROM t"
	[cascade]="DELETE FROM p WHERE id = 1"
	[follow]="UPDATE p SET id = 3 WHERE id = 1"
)
# One client for all: to start another would take as long as a scan.
coproc killer { mariadb --no-defaults -uroot -S "$WEIR_SOCKET" --unbuffered --force soft_kill >/dev/null 2>&1; }
before=$(sql -e "CHECKSUM TABLE t, c, p EXTENDED; SHOW CREATE TABLE t")
for what in "${!long[@]}"; do
	statement=${long[$what]}
	# As long as it takes by itself, if it is not to be gone afterwards.
	for how in limit soft; do
		# One that only reads may be done before it is told to end, on a machine that has other things to do: once more then.
		ended=
		for try in 1 2 3 4 5 6; do
			begun=$(date +%s%N)
			if [ $how = limit ]; then
				said=$(sql -e "SET STATEMENT max_statement_time=0.0$((4 - (try + 1) / 2)) FOR $statement" 2>&1) || true
				want=1969
			else
				sql -e "SELECT CONNECTION_ID(); $statement" >"/tmp/soft_kill.$$" 2>&1 &
				client=$!
				until [ -s "/tmp/soft_kill.$$" ]; do sleep 0.01; done
				id=$(head -n 1 "/tmp/soft_kill.$$")
				[ $try -gt 1 ] || sleep 0.03
				echo "KILL SOFT QUERY $id;" >&"${killer[1]}"
				wait $client || true
				said=$(tail -n +2 "/tmp/soft_kill.$$")
				rm -f "/tmp/soft_kill.$$"
				want=1317
			fi
			took=$((($(date +%s%N) - begun) / 1000000))
			# The server itself reports a check in its own way.
			grep -qE "ERROR ($want|1317|1969)|interrupted|Operation failed" <<<"$said" && ended=yes && break
			[[ $what = scan || $what = count || $what = check ]] || break
		done
		[ -n "$ended" ] || { echo "soft_kill: $what, by $how: not ended, after $took ms: $said"; exit 1; }
		now=$(sql -e "CHECKSUM TABLE t, c, p EXTENDED; SHOW CREATE TABLE t")
		[ "$now" = "$before" ] || { echo "soft_kill: $what, by $how, has changed something"; exit 1; }
	done
done
sql -e "DROP DATABASE soft_kill"
echo "soft_kill: ${#long[@]} kinds of statements, ended by max_statement_time and by KILL SOFT"
