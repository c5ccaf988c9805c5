#!/bin/bash
# The plugin's C++ under the address and undefined-behaviour sanitizers: the SQL scripts, the sessions, random statements,
# the operating test, the walk from InnoDB and back, indexes added beside writers, and the binary log's groups. The server itself and the engine's Rust are as always.
#   sanitize.sh BUILD DIRECTORY
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$1 directory=$2
plugin=$build/ha_weir.so
rm -rf "$directory"
mkdir -p "$directory"
directory=$(cd "$directory" && pwd)
# The server is not built with them: the library comes first by the loader. What the server leaks at its end is its own.
# Nor does it undo what its headers poison in code of ours that is.
export WEIR_SERVER_PRELOAD="$(g++ -print-file-name=libasan.so):$(g++ -print-file-name=libubsan.so)"
export WEIR_SERVER_ENV="LD_PRELOAD=$WEIR_SERVER_PRELOAD \
	ASAN_OPTIONS=detect_leaks=0:allow_user_poisoning=0:log_path=$directory/asan:detect_odr_violation=0:alloc_dealloc_mismatch=0 UBSAN_OPTIONS=print_stacktrace=1:log_path=$directory/ubsan"
nm -D "$plugin" | grep -q __asan_init || { echo "sanitize: $plugin is not built for it"; exit 1; }
for seed in 1 "$RANDOM"; do
	perl "$here/random.pl" "$seed" 1000 >"$directory/random-$seed.sql"
done
"$here/../tools/server.sh" "$plugin" "$directory/sql" --run "$here/sql.sh $directory/out && $here/sessions.sh $directory/sessions-out && \
	$here/sql.sh $directory/random-out $directory/random-*.sql && $here/random_sessions.sh $directory/random-sessions-out 30" \
	--weir-memory=64M --weir-log-capacity=64M --innodb-lock-wait-timeout=1 --weir-lock-wait-timeout=1
"$here/operating.sh" "$plugin" "$directory/operating"
"$here/convert.sh" "$plugin" "$directory/convert"
"$here/online.sh" "$plugin" "$directory/online"
"$here/groups.sh" "$plugin" "$directory/groups"
found=$(ls "$directory" | grep -E '^(asan|ubsan)' || true)
if [ -n "$found" ]; then
	for file in $found; do grep -v '^$' "$directory/$file" | head -n 12; done
	echo "sanitize: FOUND: $(wc -w <<<"$found") reports in $directory"
	exit 1
fi
echo "sanitize: nothing found"
