#!/bin/bash
# Full-text search on InnoDB and on Weir in one server, in turns: documents loaded with the key, the key added later, queries, size.
#   fulltext.sh PLUGIN DIRECTORY [DOCUMENTS]
# Documents have 40 words of a vocabulary of 50,000 by Zipf's law, the same for both. Prints for each kind the seconds of each turn and
# the median of the turns' ratios, InnoDB's seconds to Weir's, and checks that both find as many. TURNS, POOL_MIB, LOG_MIB may be
# set from outside.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
: "${TURNS:=5}" "${LOG_MIB:=256}" "${POOL_MIB:=512}"
if [ "${1:-}" != --inside ]; then
	[ $# -ge 2 ] || { sed -n '2,6s/^# \?//p' "$0"; exit 2; }
	plugin=$(realpath "$1") directory=$2 documents=${3:-100000}
	. "$here/options.sh"
	mkdir -p "$directory"
	export TURNS
	exec "$here/../tools/server.sh" "$plugin" "$directory" --run "$here/fulltext.sh --inside $documents" "${durable_options[@]}" --local-infile=1
fi
documents=$2
sql() { mariadb --no-defaults -uroot -S "$WEIR_SOCKET" -N --local-infile=1 "$@"; }
texts=$(dirname "$WEIR_SOCKET")/../documents.txt
# A word's rank is that of 50,000 to a power that is even between 0 and 1.
awk -v n="$documents" 'BEGIN { srand(1); for (d = 1; d <= n; d++) { printf "%d\t", d; for (w = 0; w < 40; w++) printf "w%d ", int(50000 ^ rand()); print "" } }' >"$texts"
time_of() { # database statement
	local begun=${EPOCHREALTIME/./}
	sql "$1" -e "$2" >"$WEIR_SOCKET.answer.$1"
	awk -v t=$((${EPOCHREALTIME/./} - begun)) 'BEGIN { printf "%.3f", t / 1e6 }'
}
many() { # times statement: one after another in one session
	local all=
	for _ in $(seq "$1"); do all+="$2;"; done
	echo "$all"
}
for engine in InnoDB Weir; do
	sql -e "DROP DATABASE IF EXISTS text_$engine; CREATE DATABASE text_$engine"
	sql "text_$engine" -e "CREATE TABLE t (id INT PRIMARY KEY, a TEXT, FULLTEXT KEY (a)) ENGINE=$engine CHARSET=utf8mb4"
done
for kind in load build one two phrase boolean ranked; do
	: >"$WEIR_SOCKET.turns"
	for turn in $(seq "$TURNS"); do
		engines="InnoDB Weir"
		[ $((turn % 2)) = 0 ] || engines="Weir InnoDB"
		for engine in $engines; do
			db=text_$engine
			# Words of ranks that are asked for: some hundred to some thousand documents have each.
			word=w$((20 + turn * 7)) other=w$((30 + turn * 11))
			count="SELECT SQL_NO_CACHE COUNT(*) FROM t WHERE MATCH (a) AGAINST"
			case $kind in
			load)
				sql "$db" -e "TRUNCATE TABLE t"
				took=$(time_of "$db" "LOAD DATA LOCAL INFILE '$texts' INTO TABLE t")
				;;
			build)
				sql "$db" -e "ALTER TABLE t DROP KEY a"
				took=$(time_of "$db" "ALTER TABLE t ADD FULLTEXT KEY (a)")
				;;
			one) took=$(time_of "$db" "$(many 20 "$count ('$word')")") ;;
			two) took=$(time_of "$db" "$(many 20 "$count ('$word $other')")") ;;
			phrase) took=$(time_of "$db" "$(many 20 "$count ('\"w1 $word\"' IN BOOLEAN MODE)")") ;;
			boolean) took=$(time_of "$db" "$(many 20 "$count ('+$word +$other -w9' IN BOOLEAN MODE)")") ;;
			ranked) took=$(time_of "$db" "$(many 20 "SELECT id FROM t WHERE MATCH (a) AGAINST ('$word $other') LIMIT 10")") ;;
			esac
			echo "$engine $took" >>"$WEIR_SOCKET.turns"
		done
		[ $kind = ranked ] || cmp -s "$WEIR_SOCKET.answer.text_InnoDB" "$WEIR_SOCKET.answer.text_Weir" || { echo "fulltext: $kind: other answers"; exit 1; }
	done
	awk -v kind=$kind -v documents="$documents" '
		$1 == "InnoDB" { i[++n] = $2; seconds_i = seconds_i " " $2 } $1 == "Weir" { w[++m] = $2; seconds_w = seconds_w " " $2 }
		END {
			for (k = 1; k <= n; k++) r[k] = i[k] / w[k]
			for (k = 2; k <= n; k++) { v = r[k]; for (j = k - 1; j >= 1 && r[j] > v; j--) r[j + 1] = r[j]; r[j + 1] = v }
			printf "%s of %d documents: InnoDB / Weir %.2f (%.2f to %.2f); InnoDB%s s, Weir%s s\n", kind, documents, r[int((n + 1) / 2)], r[1], r[n], seconds_i, seconds_w
		}' "$WEIR_SOCKET.turns"
done
# InnoDB's words lie in files of their own beside the table's.
sql -e "SET GLOBAL innodb_optimize_fulltext_only=ON; OPTIMIZE TABLE text_InnoDB.t" >/dev/null
innodb=$(du -cb "$(dirname "$WEIR_SOCKET")"/text_InnoDB/*.ibd | tail -n 1 | cut -f 1)
weir=$(sql -e "SELECT data_length + index_length FROM information_schema.tables WHERE table_schema='text_Weir' AND table_name='t'")
awk -v i="$innodb" -v w="$weir" 'BEGIN { printf "size: InnoDB %.1f MB (files), Weir %.1f MB (pages in use), InnoDB / Weir %.2f\n", i / 1e6, w / 1e6, i / w }'
