#!/bin/bash
# The server's own storage_engine suite, through the overlay in mysql-test/.
#   suite.sh PLUGIN VARDIR [trx]
# The trx tests must pass as they are. The others are compared with what InnoDB answers in the same server, recorded
# first (the suite's own results have drifted from the server). What differs from that is in differences.txt, each with
# its reason, and nothing else may differ: neither more nor less.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
plugin=$1 vardir=$2 only=${3:-}
# Of 10.11, and of 11.8.
suites=/usr/share/mysql/mysql-test
[ -d "$suites" ] || suites=/usr/share/mariadb/mariadb-test
overlay=$here/../mysql-test
list=$overlay/storage_engine/differences.txt
[ -w "$suites/plugin" ] && [ -w /usr/lib/mysql/plugin ] || { echo "suite: needs to write in $suites"; exit 1; }
mkdir -p "$vardir"
vardir=$(cd "$vardir" && pwd)
plugin=$(cd "$(dirname "$plugin")" && pwd)/$(basename "$plugin")
work=$(mktemp -d "$vardir/overlay-XXXXXX")
out=$work/out
cleanup() {
	rm -f "$suites/plugin/weir" "$suites/plugin/weirbase" /usr/lib/mysql/plugin/ha_weir.so
	rm -rf "$work"
}
trap cleanup EXIT
# mtr wants overlays below its own directory.
mkdir "$work/weir"
cp -r "$overlay/storage_engine" "$work/weir/"
rm -f "$suites/plugin/weir"
ln -s "$work/weir" "$suites/plugin/weir"
rm -f /usr/lib/mysql/plugin/ha_weir.so
cp "$plugin" /usr/lib/mysql/plugin/ha_weir.so

run() { # what to run
	(cd "$suites" && ./mtr --vardir="$vardir/var" --force --retry=0 --max-test-fail=0 "$@") >"$out" 2>&1 || true
	grep -q '^Spent ' "$out" || { tail -n 30 "$out"; echo "suite: mtr did not run"; exit 1; }
}

# An overlay of InnoDB's with empty results: what is recorded lands in them, not in the server's files.
record_innodb() { # names, as test or parts/test; all of them without
	local base=$work/base/storage_engine names=() dir test
	rm -rf "$base"
	mkdir -p "$base/parts"
	sed 's/= Weir;/= InnoDB;/' "$overlay/storage_engine/define_engine.inc" >"$base/define_engine.inc"
	for dir in . parts; do
		echo '--innodb --innodb-buffer-pool-size=64M' >"$base/$dir/suite.opt"
	done
	[ $# -gt 0 ] || set -- $(cd "$suites/suite/storage_engine" && ls *.test parts/*.test | sed 's/\.test$//')
	for test; do
		: >"$base/$test.result"
		names+=("$(name_of "$test" weirbase)")
	done
	ln -sfn "$work/base" "$suites/plugin/weirbase"
	run --record "${names[@]}"
	find "$base" -name '*.result' -empty -delete
	cp "$base"/*.result "$work/weir/storage_engine/" 2>/dev/null || true
	cp "$base"/parts/*.result "$work/weir/storage_engine/parts/" 2>/dev/null || true
	echo "suite: $(find "$base" -name '*.result' | wc -l) answers of InnoDB recorded"
}

# How mtr calls a test of an overlay.
name_of() { # test or parts/test, overlay
	case $1 in parts/*) echo "storage_engine/parts-$2.${1#parts/}" ;; *) echo "storage_engine-$2.$1" ;; esac
}

# The tests of the last run that failed.
failed() {
	sed -n 's/^storage_engine-weir\.\([a-z_0-9]*\) .*\[ fail \].*/\1/p; s/^storage_engine.parts-weir\.\([a-z_0-9]*\) .*\[ fail \].*/parts\/\1/p' "$out" | sort -u
}

run --suite=storage_engine/trx-weir
passed=$(grep -c '\[ pass \]' "$out" || true)
echo "suite: trx: $passed tests pass as they are"
sed -n 's/^storage_engine.trx-weir\.\([a-z_0-9]*\) .*\[ fail \].*/trx\/\1/p' "$out" | sort >"$work/failed"
if [ "$only" != trx ]; then
	record_innodb
	run --suite=storage_engine-weir,storage_engine/parts-weir
	echo "suite: storage_engine: $(grep -c '\[ pass \]' "$out" || true) tests answer as InnoDB does"
	failed >"$work/differ"
	cp "$out" "$vardir/out"
	# InnoDB's estimates of rows come from a thread of its own, and are now and then another moment's: both are asked again.
	again=$(sed -n 's/^\([a-z_0-9/]*\): .*/\1/p' "$list" | sort | comm -13 - "$work/differ")
	if [ -n "$again" ]; then
		echo "suite: once more:" $again
		record_innodb $again
		run $(for test in $again; do name_of "$test" weir; done)
		{ sed -n 's/^\([a-z_0-9/]*\): .*/\1/p' "$list" | sort | comm -12 - "$work/differ"; failed; } | sort >"$work/differ.now"
		mv "$work/differ.now" "$work/differ"
		cat "$out" >>"$vardir/out"
	fi
	cat "$work/differ" >>"$work/failed"
fi
sed -n 's/^\([a-z_0-9/]*\): .*/\1/p' "$list" | { [ "$only" = trx ] && grep '^trx/' || cat; } | sort >"$work/listed"
sort -o "$work/failed" "$work/failed"
more=$(comm -13 "$work/listed" "$work/failed") less=$(comm -23 "$work/listed" "$work/failed")
[ -z "$more" ] || { echo "suite: differ, and are not in differences.txt:" $more; }
[ -z "$less" ] || { echo "suite: in differences.txt, and do not differ:" $less; }
[ -z "$more$less" ]
