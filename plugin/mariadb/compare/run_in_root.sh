#!/bin/bash
# run.sh with the server of another Debian release, in that release's root (tools/root.sh), which the plugin in BUILD was
# built against. `make compare SERVER=11.8` calls it.
#   run_in_root.sh BUILD ROOT DIRECTORY WEIR [options of run.sh]
# DIRECTORY must lie in this tree, which is all that the root sees of this machine. What run.sh takes from outside it takes here.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tree=$(cd "$here/../../.." && pwd)
build=$(cd "$1" && pwd) root=$2 weir=$(realpath "$4")
mkdir -p "$3"
directory=$(cd "$3" && pwd)
shift 4
for path in "$build" "$directory" "$weir"; do
	[[ $path == "$tree"/* ]] || { echo "compare: $path must lie in $tree"; exit 2; }
done
in_root() { "$here/../tools/root.sh" "$root" --in "$tree" "$@"; }
in_root bash -c 'command -v sysbench >/dev/null || {
	export DEBIAN_FRONTEND=noninteractive
	apt-get -q update && apt-get -q -y --no-install-recommends install sysbench; } >/dev/null'
settings=()
for name in ENGINES STORE BINLOGS CLIENTS WAREHOUSES ROWS ROUNDS SECONDS_EACH WARMUP TPCC_SECONDS LIMITED_SECONDS LIMITED_WARMUP \
	LIMITED_SYSBENCH_SECONDS LIMIT_WRITES LIMIT_BYTES POOL_MIB LOG_MIB; do
	[ -z "${!name+set}" ] || settings+=("$name=${!name}")
done
in_root env "${settings[@]}" "$here/run.sh" "$build" "$directory" "$weir" "$@"
