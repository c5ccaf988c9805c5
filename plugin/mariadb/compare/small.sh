#!/bin/bash
# Small statements of applications, one client, each its own transaction, on InnoDB and on Weir in one server in turns: rows of
# a table with five secondary keys and a TEXT; changes of definitions of small tables with foreign keys.
#   small.sh PLUGIN DIRECTORY [KIND...]          KIND: some of those below only
# Prints for each kind of statement how many a second each engine did (medians of ROUNDS turns of N statements, M of definitions)
# and the median of the turns' ratios, Weir to InnoDB, with the quarters around it. ROUNDS, N, M may be set from outside.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
: "${ROUNDS:=15}" "${N:=300}" "${M:=12}" "${LOG_MIB:=64}" "${POOL_MIB:=256}"
if [ "${1:-}" != --inside ]; then
	[ $# -ge 2 ] || { sed -n '2,6p' "$0" | sed 's/^# \?//'; exit 2; }
	plugin=$(realpath "$1") directory=$2
	shift 2
	. "$here/options.sh"
	mkdir -p "$directory"
	export ROUNDS N M
	exec "$here/../tools/server.sh" "$plugin" "$directory" --run "$here/small.sh --inside $(realpath "$directory") $*" "${durable_options[@]}"
fi
directory=$2
shift 2
kinds=("$@")
[ $# -gt 0 ] || kinds=(insert update_text update_key delete select_primary select_key select_range
	create drop truncate add_column add_column_first add_index rename)
sql() { mariadb --no-defaults -uroot -S "$WEIR_SOCKET" -N "$@"; }
rows=20000
for engine in InnoDB Weir; do
	sql -e "DROP DATABASE IF EXISTS small_$engine; CREATE DATABASE small_$engine; USE small_$engine;
		CREATE TABLE post (id INT AUTO_INCREMENT PRIMARY KEY, author INT, state VARCHAR(20), made DATETIME, slug VARCHAR(60), points INT, body TEXT,
			KEY (author, made), KEY (state, made), KEY (slug), KEY (points), KEY (made)) ENGINE=$engine;
		INSERT INTO post(author, state, made, slug, points, body) SELECT seq%400, ELT(1+seq%3,'draft','open','done'), '2026-01-01' + INTERVAL seq MINUTE,
			CONCAT('a-title-', seq), seq%1000, REPEAT('words and ', 20 + seq%60) FROM seq_1_to_$rows;
		CREATE TABLE parent (id INT PRIMARY KEY, name VARCHAR(30)) ENGINE=$engine; INSERT INTO parent SELECT seq, seq FROM seq_1_to_50;
		ANALYZE TABLE post, parent" >/dev/null
done
# Rows of this turn, by chance but the same for both.
pick() { echo $((1 + (n * 7919 + round * 104729) % rows)); }
child="(id INT AUTO_INCREMENT PRIMARY KEY, parent INT, a INT, b VARCHAR(30), note TEXT, KEY (a), KEY (b), FOREIGN KEY (parent) REFERENCES parent(id) ON DELETE CASCADE)"
# The statements of a turn. What is not measured stands before and behind.
begin() { echo "SELECT CONCAT('time ', SYSDATE(6));"; }
statements() { # kind engine round
	local kind=$1 engine=$2 round=$3 n
	case $kind in
	create | drop | truncate | add_* | rename)
		if [ $kind != create ]; then
			for ((n = 0; n < M; n++)); do
				echo "CREATE TABLE c$n $child ENGINE=$engine; INSERT INTO c$n(parent,a,b,note) SELECT seq,seq,seq,REPEAT('n',99) FROM seq_1_to_30;"
			done
		fi
		begin
		for ((n = 0; n < M; n++)); do
			case $kind in
			create) echo "CREATE TABLE c$n $child ENGINE=$engine;" ;;
			drop) echo "DROP TABLE c$n;" ;;
			truncate) echo "TRUNCATE TABLE c$n;" ;;
			add_column) echo "ALTER TABLE c$n ADD COLUMN more INT NOT NULL DEFAULT 1;" ;;
			add_column_first) echo "ALTER TABLE c$n ADD COLUMN more INT NOT NULL DEFAULT 1 FIRST, ALGORITHM=COPY;" ;;
			add_index) echo "ALTER TABLE c$n ADD INDEX more (b, a);" ;;
			rename) echo "RENAME TABLE c$n TO d$n;" ;;
			esac
		done
		begin
		for ((n = 0; n < M; n++)); do echo "DROP TABLE IF EXISTS c$n, d$n;"; done
		;;
	*)
		begin
		for ((n = 0; n < N; n++)); do
			case $kind in
			insert) echo "INSERT INTO post(author,state,made,slug,points,body) VALUES ($((n % 400)),'open',NOW(),'new-$round-$n',$n,REPEAT('words and ',50));" ;;
			update_text) echo "UPDATE post SET body=CONCAT('$n ',SUBSTR(body,1,400)) WHERE id=$(pick);" ;;
			update_key) echo "UPDATE post SET points=points+1, state='done' WHERE id=$(pick);" ;;
			delete) echo "DELETE FROM post WHERE id=$(pick);" ;;
			select_primary) echo "SELECT title.id, body FROM post title WHERE id=$(pick);" ;;
			select_key) echo "SELECT id, body FROM post WHERE slug='a-title-$(pick)';" ;;
			select_range) echo "SELECT id, slug FROM post WHERE author=$((n % 400)) ORDER BY made DESC LIMIT 10;" ;;
			esac
		done
		begin
		;;
	esac
}
for kind in "${kinds[@]}"; do
	for round in $(seq $((ROUNDS + 1))); do
		engines="InnoDB Weir"
		[ $((round % 2)) = 0 ] || engines="Weir InnoDB"
		for engine in $engines; do
			statements $kind $engine $round >"$directory/batch.sql"
			sql "small_$engine" --unbuffered <"$directory/batch.sql" | grep '^time ' | cut -d' ' -f3 | awk -F: -v e=$engine -v r=$round '
				{ t[NR] = ($1 * 60 + $2) * 60 + $3 } END { d = t[2] - t[1]; if (d < 0) d += 86400; if (r > 1) print e, d }'
		done
	done >"$directory/turns"
	case $kind in create | drop | truncate | add_* | rename) each=$M ;; *) each=$N ;; esac
	# The first turn warms up.
	awk -v kind=$kind -v each=$each '
		function sorted(a, n,   i, j, v) { for (i = 2; i <= n; i++) { v = a[i]; for (j = i - 1; j >= 1 && a[j] > v; j--) a[j + 1] = a[j]; a[j + 1] = v } }
		$1 == "InnoDB" { i[++ni] = $2 } $1 == "Weir" { w[++nw] = $2 }
		END {
			for (k = 1; k <= ni; k++) r[k] = i[k] / w[k]
			sorted(r, ni); sorted(i, ni); sorted(w, nw); m = int((ni + 1) / 2); q = int((ni + 3) / 4)
			printf "%-17s Weir / InnoDB %5.2f (%.2f to %.2f); a second %8.1f and %8.1f\n", kind, r[m], r[q], r[ni + 1 - q], each / w[m], each / i[m]
		}' "$directory/turns"
done
for engine in InnoDB Weir; do
	[ -z "$(sql -e "CHECK TABLE small_$engine.post, small_$engine.parent" | grep -v OK)" ] || { echo "small: $engine: CHECK TABLE"; exit 1; }
done
