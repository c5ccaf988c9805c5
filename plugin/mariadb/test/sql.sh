#!/bin/bash
# Runs each script of sql/ with InnoDB and with Weir in one server and compares every answer and error.
#   sql.sh OUT [SCRIPT...]        (inside server.sh --run, which sets WEIR_SOCKET)
# Lines are written out one by one, so that errors stand where they happened. A difference that is meant stands in sql/NAME.diff, with its reason above it.
# An option that is ignored 10.11 puts into brackets, 11.8 does not.
set -u
here=$(cd "$(dirname "$0")" && pwd)
out=$1
shift
[ $# -gt 0 ] || set -- "$here"/sql/*.sql
mkdir -p "$out"
# What differs in one version of the server stands in NAME.VERSION.diff: of a point release, or else of its series.
release=$(mariadb --no-defaults -uroot -S "$WEIR_SOCKET" -N -e "SELECT SUBSTRING_INDEX(VERSION(), '-', 1)")
failed=0
for script in "$@"; do
	name=$(basename "$script" .sql)
	# Which of several duplicates is met first depends on the order of the rows and keys; random statements do not care.
	vague=
	[[ $name != random-* ]] || vague="s/Duplicate entry '.*' for key.*/Duplicate entry/"
	# Numbers of rows are estimates; what is chosen by them has to be the same.
	[[ " plans mrr prefix " != *" $name "* ]] || vague='s/\t[0-9]+\t([^\t]*)$/\t#\t\1/'
	for engine in InnoDB Weir; do
		codec='CODEC=\1'
		[ $engine != InnoDB ] || codec="COMMENT='a codec'"
		sql="DROP DATABASE IF EXISTS compare_it; CREATE DATABASE compare_it; USE compare_it;"
		{ echo "$sql"; sed -E "s/@ENGINE@/$engine/g; s/@CODEC=(\w+)@/$codec/g" "$script"; } |
			stdbuf -oL mariadb --no-defaults -uroot -S "$WEIR_SOCKET" --force --verbose --unbuffered --default-character-set=utf8mb4 2>&1 |
			sed -E "$vague;s/CODEC=(NONE|LZ4|ZSTD|DEFAULT)\b|COMMENT='a codec'/CODEC/g;s/<([A-Z_=]+)> option ignored/\1 option ignored/;s/ENGINE=$engine/ENGINE=E/g; s/\\b$engine\\b/E/gI; s/#sql-alter-[0-9a-f]+-[0-9a-f]+/#sql-alter/g" \
				>"$out/$name.$engine"
	done
	if diff -U2 --label innodb --label weir "$out/$name.InnoDB" "$out/$name.Weir" | grep -v '^@@' >"$out/$name.diff"; then :; fi
	want=${script%.sql}.diff
	for version in "${release%.*}" "$release"; do
		[ ! -e "${script%.sql}.$version.diff" ] || want=${script%.sql}.$version.diff
	done
	if [ -e "$want" ]; then grep -v '^#' "$want" >"$out/$name.want" || true; else : >"$out/$name.want"; fi
	if cmp -s "$out/$name.diff" "$out/$name.want"; then
		echo "sql: $name: same as InnoDB ($(grep -c -- '^--------------$' "$out/$name.Weir") lines of statements)"
	else
		echo "sql: $name: DIFFERENT"
		head -n 60 "$out/$name.diff"
		failed=1
	fi
done
exit $failed
