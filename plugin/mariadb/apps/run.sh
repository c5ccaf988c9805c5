#!/bin/bash
# Applications on InnoDB and on Weir: each runs twice at the same time, in two servers whose default engine is the one and the other,
# and must give the same answers. Their own suites where they have one, their own functions where they have none.
#   run.sh PLUGIN DIRECTORY [wordpress] [mediawiki] [django] [sqlalchemy]       all of them; half an hour
# Each installs what it needs (Debian's packages with apt-get, Python's below DIRECTORY). A test whose outcome differs is run again
# by itself, twice more, in fresh servers: what differs each time fails, and is listed in DIRECTORY/APPLICATION.differs, unless it
# stands in differences.txt with its reason. TESTS="label..." runs only those of a suite.
# SERVER_ROOT: the servers are those of that root (tools/root.sh), which PLUGIN was built against; the applications stay on this
# system. PLUGIN and DIRECTORY lie in this tree then, which is all that the root sees.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tree=$(cd "$here/../../.." && pwd)
[ $# -ge 2 ] || { sed -n '2,9p' "$0" | sed 's/^# \?//'; exit 2; }
plugin=$(realpath "$1")
mkdir -p "$2"
directory=$(realpath "$2")
shift 2
root=${SERVER_ROOT:-}
[ -z "$root" ] || for path in "$plugin" "$directory"; do
	[[ $path == "$tree"/* ]] || { echo "apps: $path must lie in $tree, which the server's root sees"; exit 2; }
done
[ $# -gt 0 ] || set -- wordpress mediawiki django sqlalchemy
# Suites make and drop thousands of tables; what a power failure would take is not asked here.
options=(--weir-memory=512M --weir-log-capacity=256M --weir-durability=WRITTEN --innodb-buffer-pool-size=512M --innodb-log-file-size=256M
	--innodb-flush-log-at-trx-commit=2 --character-set-server=utf8mb4 --collation-server=utf8mb4_unicode_ci --max-connections=300
	--innodb-lock-wait-timeout=5 --weir-lock-wait-timeout=5)
running=()
trap '[ ${#running[@]} = 0 ] || kill "${running[@]}" 2>/dev/null || true; wait' EXIT
trap 'exit 130' INT TERM

# One application on one engine: RESULTS has a line for each test, "outcome, tab, test".
on_engine() { # application engine results [test...]
	local application=$1 engine=$2 results=$3 at=$directory/server-$1-$2
	shift 3
	rm -rf "$at" "$results" "$results.contents"
	mkdir -p "$results.contents"
	export ENGINE=$engine dumps=$results.contents
	local command=("$here/$application.sh" run "$directory" "$results" "$@") more=(--default-storage-engine="$engine" "${options[@]}")
	if [ -z "$root" ]; then
		exec "$here/../tools/server.sh" "$plugin" "$at" --run "$(printf '%q ' "${command[@]}")" "${more[@]}"
	fi
	beside_root "$at" "${command[@]}"
}
# A command on this system, its server in the root until it ends: the server stays for as long as a pipe is open.
beside_root() { # directory command...
	local at=$1 server status=0
	shift
	mkdir -p "$at"
	mkfifo "$at/until"
	"$here/../tools/root.sh" "$root" --in "$tree" "$here/../tools/server.sh" "$plugin" "$at" \
		--run "$(printf 'exec 8<%q; echo "$WEIR_SOCKET" >%q; cat <&8' "$at/until" "$at/socket")" "${more[@]}" &
	server=$!
	exec 9<>"$at/until"
	until [ -s "$at/socket" ]; do
		kill -0 $server 2>/dev/null || { wait $server; exit 1; }
		sleep 0.1
	done
	WEIR_SOCKET=$(cat "$at/socket")
	if [ -S "$WEIR_SOCKET" ]; then
		export WEIR_SOCKET
		"$@" 9>&- || status=$?
	else
		echo "apps: the path of $at is too long for a socket, which is $WEIR_SOCKET in the root; give a shorter one"
		status=2
	fi
	# The server ends when its command has read all there is.
	exec 9>&-
	wait $server || true
	exit $status
}
lines() { wc -l 2>/dev/null <"$directory/$1" || echo 0; }
# On both, with a line a minute; the tests whose outcomes differ stand in APPLICATION.differ.
on_both() { # application number [test...]
	local application=$1 number=$2 engine begun minutes said=0 failed=
	shift 2
	begun=$(date +%s)
	running=()
	for engine in InnoDB Weir; do
		on_engine "$application" $engine "$directory/$application.$engine.$number" "$@" >"$directory/$application.$engine.$number.out" 2>&1 &
		running+=($!)
	done
	while kill -0 "${running[0]}" 2>/dev/null || kill -0 "${running[1]}" 2>/dev/null; do
		sleep 1
		minutes=$((($(date +%s) - begun) / 60))
		[ $minutes = $said ] || echo "$application: after $minutes min $(lines "$application.InnoDB.$number") answers of InnoDB, $(lines "$application.Weir.$number") of Weir"
		said=$minutes
	done
	for engine in InnoDB Weir; do
		wait "${running[0]}" || failed=$engine
		running=("${running[@]:1}")
		[ -s "$directory/$application.$engine.$number" ] || failed=$engine
	done
	[ -z "$failed" ] || {
		tail -n 20 "$directory/$application.$failed.$number.out"
		echo "apps: $application ended with an error on $failed; all that it said is in $directory/$application.$failed.$number.out"
		exit 1
	}
	comm -3 <(sort "$directory/$application.InnoDB.$number") <(sort "$directory/$application.Weir.$number") |
		sed 's/^\t//' | cut -f2- | sort -u >"$directory/$application.differ"
}

failed=()
for application in "$@"; do
	echo "$application: installing what it needs"
	"$here/$application.sh" install "$directory"
	read -ra tests <<<"${TESTS:-}"
	on_both "$application" 1 "${tests[@]}"
	answers=$(lines "$application.Weir.1")
	# What a suite's tests say by chance, or because a busy machine made them late, they do not say three times.
	case $application in
	django | sqlalchemy)
		for again in 2 3; do
			mapfile -t tests < <(sed 's/ [([].*//' "$directory/$application.differ" | sort -u)
			[ ${#tests[@]} -gt 0 -a ${#tests[@]} -lt 200 ] || break
			echo "$application: ${#tests[@]} tests differ; by themselves once more"
			on_both "$application" $again "${tests[@]}"
		done
		;;
	esac
	# Of those, the ones that are meant to.
	grep -vxF -f <(sed -n "s/^$application\t\([^\t]*\)\t.*/\1/p" "$here/differences.txt") "$directory/$application.differ" >"$directory/$application.failed" || true
	awk -F '\t' '{ n[$1]++ } END { for (o in n) printf "%s%d %s", s++ ? ", " : "", n[o], o; print "" }' "$directory/$application.Weir.1" >"$directory/$application.sums"
	if [ -s "$directory/$application.failed" ]; then
		failed+=("$application")
		echo "$application: DIFFERS in $(lines "$application.failed") of $answers answers:"
		head -n 20 "$directory/$application.failed" | sed 's/^/    /'
		echo "    ($directory/$application.{InnoDB,Weir}.*)"
	else
		case $application in
		django | sqlalchemy) echo "$application: $(cat "$directory/$application.sums"), as with InnoDB; $(lines "$application.differ") differ as is meant" ;;
		*) echo "$application: $answers answers, as with InnoDB; $(lines "$application.differ") differ as is meant" ;;
		esac
	fi
done
[ ${#failed[@]} = 0 ] || { echo "apps: FAILED: ${failed[*]}"; exit 1; }
echo "apps: all as with InnoDB: $*"
