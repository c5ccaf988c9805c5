#!/bin/bash
# Transactions of InnoDB and of Weir at once, ordinary ones and XA, in all the ways that XA can end, under kill -9 of the
# server and KILL of the sessions: what was acknowledged is in both engines or in neither, what was prepared still is.
# Once with the binary log as the coordinator, once with the server's own (tc.log).
# Under tc.log there are no ordinary transactions of both engines: MariaDB 10.11's recovery rolls back all that it finds
# prepared under names of its own, without a look into that log (ha_recover of 10.11.18), so what was acknowledged in the
# last moments before is rolled back where it was not durable yet.
#   prepared.sh PLUGIN DIRECTORY ROUNDS
set -eu
here=$(cd "$(dirname "$0")" && pwd)
plugin=$1 directory=$2 rounds=$3
workers=4
. "$here/servers.sh"

# What a client says for each number n: "ready n" when it is prepared, "done n" and "gone n" when that was acknowledged.
script() { # from to
	local n both one name
	for ((n = $1; n <= $2; n++)); do
		both="INSERT INTO i VALUES ($n); CALL half($n); INSERT INTO w VALUES ($n);" name="'n.$n'"
		case $((n % 7)) in
		0) [ -z "$ordinary" ] || echo "BEGIN; $both COMMIT; SELECT 'done', $n;" ;;
		1 | 2) echo "XA START $name; $both XA END $name; XA PREPARE $name; SELECT 'ready', $n;"
			echo "XA COMMIT $name; SELECT 'done', $n;" ;;
		3) echo "XA START $name; $both XA END $name; XA PREPARE $name; SELECT 'ready', $n;"
			echo "XA ROLLBACK $name; SELECT 'gone', $n;" ;;
		4) echo "XA START $name; $both XA END $name; XA COMMIT $name ONE PHASE; SELECT 'done', $n;" ;;
		# One of the engines is only read by.
		5) echo "XA START $name; INSERT INTO ow VALUES ($n); SELECT MAX(n) FROM i INTO @x; XA END $name; XA PREPARE $name;"
			echo "SELECT 'ready', $n; XA COMMIT $name; SELECT 'done', $n;" ;;
		6) echo "XA START $name; INSERT INTO oi VALUES ($n); SELECT MAX(n) FROM w INTO @x; XA END $name; XA PREPARE $name;"
			echo "SELECT 'ready', $n; XA COMMIT $name; SELECT 'done', $n;" ;;
		esac
	done
}

# Without --force: nothing is said behind an error. A client that was killed comes again, with other numbers.
work() { # server worker round
	local times=0
	while kill -0 "$server" 2>/dev/null; do
		times=$((times + 1))
		from=$((($3 * 10 + $2) * 1000000 + times * 1000))
		script "$from" $((from + 999)) | sql "$1" work --unbuffered --skip-reconnect >>"$directory/said.$2" 2>/dev/null || sleep 0.05
	done
}

# Numbers of which the clients of this round have said a word.
said() { awk -v word="$1" -v OFS= '$1 == word && $2 ~ /^[0-9]+0*$/ { print $2 }' "$directory"/said.* | sort; }
rows() { sql "$name" work -e "SELECT n FROM $1 WHERE n>0" | sort; } # tables
# InnoDB leaves it to the binary log to have what it has committed, also of XA, which recovery does not look for there: what
# was acknowledged may be prepared again, and is decided again. Weir's may not.
kept() { sql "$name" work -e "SELECT n FROM w UNION ALL SELECT n FROM ow" | sort; }
prepared_in_weir() { sql "$name" -e "SELECT SUBSTRING(UNHEX(xid), 9) FROM information_schema.weir_transactions WHERE state='prepared'" | sort; }
both() { sql "$name" work -e "SELECT n FROM i UNION ALL SELECT n FROM w UNION ALL SELECT n FROM ow UNION ALL SELECT n FROM oi"; }
prepared() { sql "$name" -e 'XA RECOVER' | awk '{ sub(/^n\./, "", $4); print $4 }' | sort; }
none() { # what numbers
	[ -z "$2" ] || die "$name, round $round: $1: $(echo "$2" | head -n 5 | tr '\n' ' ')"
}

decide() {
	local n
	for n in $(awk '$1 % 7 == 3' "$directory/prepared"); do sql "$name" -e "XA ROLLBACK 'n.$n'"; done
	for n in $(awk '$1 % 7 != 3' "$directory/prepared"); do
		# Of one phase, no client knows that it was prepared; if it was committed in one engine, it has to be in the other.
		if grep -qx "$n" "$directory/ready" || sql "$name" work -e "SELECT n FROM i WHERE n=$n UNION SELECT n FROM w WHERE n=$n" | grep -q .; then
			sql "$name" -e "XA COMMIT 'n.$n'"
		else
			sql "$name" -e "XA ROLLBACK 'n.$n'"
		fi
	done
}

play() { # name options...
	name=$1
	shift
	start "$name" --skip-networking --server-id=1 "$@"
	sql "$name" -e "CREATE DATABASE work; USE work;
		CREATE TABLE i (n BIGINT PRIMARY KEY) ENGINE=InnoDB; CREATE TABLE w (n BIGINT PRIMARY KEY) ENGINE=Weir;
		CREATE TABLE oi (n BIGINT PRIMARY KEY) ENGINE=InnoDB; CREATE TABLE ow (n BIGINT PRIMARY KEY) ENGINE=Weir;
		INSERT INTO i VALUES (0); INSERT INTO w VALUES (0)"
	# Two statements that fail at their second row.
	sql "$name" work --delimiter=// -e "CREATE PROCEDURE half(m BIGINT) BEGIN DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END;
		INSERT INTO w VALUES (-m),(0); INSERT INTO i VALUES (-m),(0); END"
	for round in $(seq "$rounds"); do
		rm -f "$directory"/said.*
		for worker in $(seq $workers); do work "$name" "$worker" "$round" & done
		kills=0
		for _ in $(seq $((10 + RANDOM % 20))); do
			sleep 0.1
			id=$(sql "$name" -e "SELECT id FROM information_schema.processlist WHERE db='work' ORDER BY RAND() LIMIT 1" || true)
			[ -z "$id" ] || ! sql "$name" -e "KILL $([ $((RANDOM % 2)) = 0 ] || echo SOFT) CONNECTION $id" 2>/dev/null || kills=$((kills + 1))
		done
		slay $server
		wait
		start "$name" --skip-networking --server-id=1 "$@"
		said ready >"$directory/ready" && said done >"$directory/done" && said gone >"$directory/gone" && prepared >"$directory/prepared"
		kept >"$directory/there" && prepared_in_weir >"$directory/prepared_in_weir"
		none "acknowledged and lost" "$(awk '$1 % 7 != 6' "$directory/done" | comm -23 - "$directory/there")"
		none "acknowledged, and prepared again" "$(sort -m "$directory/done" "$directory/gone" | comm -12 - "$directory/prepared_in_weir")"
		none "prepared and lost" "$(awk '$1 % 7 != 3 && $1 % 7 != 6' "$directory/ready" | comm -23 - <(sort -m "$directory/there" "$directory/prepared_in_weir"))"
		decide
		none "in one engine alone" "$(comm -3 <(rows i) <(rows w))"
		none "half of a statement" "$(both | grep '^-' || true)"
		both | sort -u >"$directory/there"
		none "acknowledged and lost" "$(comm -23 "$directory/done" "$directory/there")"
		none "prepared and lost" "$(comm -23 <(awk '$1 % 7 != 3' "$directory/ready") "$directory/there")"
		none "rolled back and there" "$(awk '$1 % 7 == 3' "$directory/there")"
		none "undecided" "$(prepared)"
		none "unsound" "$(sql "$name" work -e 'CHECK TABLE i, w, oi, ow' | grep -v OK || true)"
		[ "$(wc -l <"$directory/done")" -gt 20 ] || die "$name, round $round: too little was done"
		echo "prepared: $name, round $round: $(wc -l <"$directory/done") done, $kills sessions killed, $(wc -l <"$directory/prepared") found prepared"
	done
	sql "$name" -e SHUTDOWN
	while kill -0 "$server" 2>/dev/null; do sleep 0.05; done
	unset "servers[$server]"
}
ordinary=1
play binlog --log-bin=binlog --sync-binlog=1
ordinary=
play tclog
