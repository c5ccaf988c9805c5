#!/bin/bash
# Tests of the server's own that name InnoDB, with Weir in its place: what they have to say is what InnoDB says.
#   derived.sh PLUGIN VARDIR [SUITE/TEST...]
# Which, is in mysql-test/derived/tests.txt. What differs is in differences.txt beside it, each with its reason, and
# nothing else may differ: neither more nor less.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
plugin=$1 vardir=$2
shift 2
# Of 10.11, and of 11.8.
suites=/usr/share/mysql/mysql-test
[ -d "$suites" ] || suites=/usr/share/mariadb/mariadb-test
list=$here/../mysql-test/derived
[ -w "$suites/plugin" ] && [ -w /usr/lib/mysql/plugin ] || { echo "derived: needs to write in $suites"; exit 1; }
all=("$@")
[ $# -gt 0 ] || read -ra all <<<"$(grep -v '^#' "$list/tests.txt" | tr '\n' ' ')"
mkdir -p "$vardir"
vardir=$(cd "$vardir" && pwd)
work=$(mktemp -d "$vardir/suites-XXXXXX")
out=$vardir/out
# suite.sh may be at work beside it: names of its own.
cleanup() { rm -rf "$work" "$suites/plugin/weirderived" /usr/lib/mysql/plugin/ha_weirderived.so; }
trap cleanup EXIT
rm -f "$suites/plugin/weirderived"
ln -s "$work" "$suites/plugin/weirderived"
cp "$plugin" /usr/lib/mysql/plugin/ha_weirderived.so

# Files are asked for by their place. What InnoDB's statistics go by is warned of here.
derive() { # from to
	[ ! -e "$1" ] || sed -E "s/(engine(_[a-z]+)? *=? *'?\"?)innodb\b/\1Weir/Ig; s/(ENGINE *\|? *)InnoDB\b/\1Weir/g; s#\.\./\.\./innodb/#suite/innodb/#
		s/ *\bSTATS_(PERSISTENT|AUTO_RECALC|SAMPLE_PAGES) *= *[0-9]+//Ig
		s/innodb([-_])lock[-_]wait[-_]timeout/weir\1lock\1wait\1timeout/g; s/innodb([-_])snapshot[-_]isolation/weir\1snapshot\1isolation/g" "$1" >"$2"
}
names=()
for test in "${all[@]}"; do
	suite=${test%/*} name=${test#*/} from=$suites/suite/$suite/t results=$suites/suite/$suite/r
	[ -d "$from" ] || from=$suites/suite/$suite
	[ "$suite" != main ] || from=$suites/main
	[ -d "$results" ] || results=$from
	[ -e "$from/$name.test" ] || { echo "derived: the server has no test $test"; continue; }
	to=$work/weir_$suite
	if [ ! -d "$to" ]; then
		mkdir "$to"
		for file in "$from"/*.inc; do derive "$file" "$to/$(basename "$file")"; done
		# Some ask for these by the suite's own folder.
		if [ -d "$suites/suite/$suite/inc" ]; then
			mkdir "$to/inc"
			for file in "$suites/suite/$suite"/inc/*; do derive "$file" "$to/inc/$(basename "$file")"; done
		fi
		echo '--innodb --loose-innodb-buffer-pool-size=64M --plugin-load-add=ha_weirderived --weir-memory=64M --weir-log-capacity=64M' >"$to/suite.opt"
	fi
	derive "$from/$name.test" "$to/$name.test"
	derive "$results/$name.result" "$to/$name.result"
	for file in "$results/$name,"*; do derive "$file" "$to/$(basename "$file")"; done
	for file in "$from/$name"*.opt "$from/$name.combinations"; do [ ! -e "$file" ] || derive "$file" "$to/$(basename "$file")"; done
	names+=("weir_$suite.$name")
done
# mtr has died of SIGPIPE behind its last test, which pipe was not found out; without the signal it comes to its last line.
(trap '' PIPE; cd "$suites" && ./mtr --vardir="$vardir/var" --force --retry=0 --max-test-fail=0 --parallel=2 --mysqld=--plugin-maturity=experimental "${names[@]}") >"$out" 2>&1 || ended=$?
grep -q '^Spent ' "$out" || { tail -n 30 "$out"; echo "derived: mtr did not get through ($ended)"; exit 1; }
echo "derived: $(grep -c '\[ pass \]' "$out" || true) tests pass, $(grep -c '\[ skipped \]' "$out" || true) are skipped"
sed -nE 's/^weir_([a-z_0-9]*)\.([-a-zA-Z_0-9]*) .*\[ fail \].*/\1\/\2/p' "$out" | sort -u >"$work/failed"
[ $# -eq 0 ] || { cat "$work/failed"; exit; }
sed -nE 's/^([-a-zA-Z_0-9/]*): .*/\1/p' "$list/differences.txt" | sort >"$work/listed"
more=$(comm -13 "$work/listed" "$work/failed") less=$(comm -23 "$work/listed" "$work/failed")
[ -z "$more" ] || { echo "derived: differ, and are not in differences.txt:" $more; }
[ -z "$less" ] || { echo "derived: in differences.txt, and do not differ:" $less; }
[ -z "$more$less" ]
