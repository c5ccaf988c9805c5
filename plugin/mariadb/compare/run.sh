#!/bin/bash
# InnoDB at its defaults and tuned by hand, MyRocks and Weir in one server: sysbench and TPC-C, on the disk as it is and
# under a limit of the kernel's. `make compare` calls it.
#   run.sh BUILD DIRECTORY WEIR [--quick] [--only PATTERN]
# Leaves one file a cell in DIRECTORY/cells, and the report that `weir bench compare` makes of them. What is there is
# not run again: it can be stopped and goes on. PATTERN is an extended regular expression on a cell's name, such as
# tpcc.limited. Sizes and times may be set from outside, see below; ENGINES names some of
# them, STORE=LOG has Weir's pages in segments (in another DIRECTORY).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd) directory=$2 weir=$(realpath "$3")
shift 3
quick= only=.
while [ $# -gt 0 ]; do
	case $1 in
	--quick) quick=1 ;;
	--only) only=$2; shift ;;
	*) echo "compare: what is $1?"; exit 2 ;;
	esac
	shift
done
if [ -n "$quick" ]; then
	: "${WAREHOUSES:=4}" "${CLIENTS:=8 64}" "${SECONDS_EACH:=2}" "${WARMUP:=1}" "${ROUNDS:=2}" "${TPCC_SECONDS:=15}" "${LIMITED_SECONDS:=30}"
	: "${LIMITED_WARMUP:=20}" "${BINLOGS:=off on}" "${ROWS:=1000000}" "${LIMITED_SYSBENCH_SECONDS:=0}" "${LOG_MIB:=64}"
else
	: "${WAREHOUSES:=20}" "${CLIENTS:=1 8 64}" "${SECONDS_EACH:=3}" "${WARMUP:=1}" "${ROUNDS:=3}" "${TPCC_SECONDS:=45}" "${LIMITED_SECONDS:=120}"
	: "${LIMITED_WARMUP:=60}" "${BINLOGS:=off on}" "${ROWS:=1000000}" "${LIMITED_SYSBENCH_SECONDS:=10}" "${LOG_MIB:=256}"
fi
: "${POOL_MIB:=4096}" "${LIMIT_WRITES:=2000}" "${LIMIT_BYTES:=32000000}" "${STORE:=ANY}"
export WAREHOUSES CLIENTS SECONDS_EACH WARMUP ROUNDS TPCC_SECONDS LIMITED_SECONDS LIMITED_WARMUP ROWS LIMITED_SYSBENCH_SECONDS LIMIT_WRITES LIMIT_BYTES quick only

command -v sysbench >/dev/null || { echo "compare: sysbench is missing: apt-get install sysbench"; exit 1; }
mkdir -p "$directory/cells" "$directory/plugins"
directory=$(cd "$directory" && pwd)
engines="innodb tuned weir"
ln -sf "$build/ha_weir.so" "$directory/plugins/"
. "$here/options.sh"
options=("${durable_options[@]}" "--weir-store=$STORE")
if "$here/../tools/peers.sh" "$build/peers" mariadb-plugin-rocksdb; then
	engines="innodb tuned myrocks weir"
	ln -sf "$build/peers/usr/lib/mysql/plugin/ha_rocksdb.so" "$directory/plugins/"
	options+=(--plugin-load-add=ha_rocksdb --rocksdb-block-cache-size=$((POOL_MIB << 20)) --rocksdb-flush-log-at-trx-commit=1
		--rocksdb-max-total-wal-size=$((LOG_MIB << 20)) --rocksdb-use-direct-reads=ON
		--rocksdb-use-direct-io-for-flush-and-compaction=ON)
else
	echo "compare: without MyRocks"
fi
# `compressed` is InnoDB with PAGE_COMPRESSED tables; it runs only when it is asked for.
engines=${ENGINES:-$engines}
export engines
{
	echo "server=$(mariadbd --version)"
	echo "options=${options[*]}"
	echo "seconds=$ROUNDS x $SECONDS_EACH after $WARMUP, in turns; TPC-C $TPCC_SECONDS; limited $LIMITED_SECONDS after $LIMITED_WARMUP, sysbench limited $LIMITED_SYSBENCH_SECONDS after half of that"
	echo "rows=$ROWS"
	echo "warehouses=$WAREHOUSES"
	echo "limit=$LIMIT_WRITES writes/s, $LIMIT_BYTES bytes/s, by the kernel (cgroup)"
	echo "tuned=innodb_io_capacity 2000, innodb_io_capacity_max 4000, innodb_max_dirty_pages_pct_lwm 10, innodb_adaptive_flushing_lwm 5, innodb_flush_neighbors 0, innodb_lru_scan_depth 1024, innodb_read_ahead_threshold 0, innodb_flushing_avg_loops 10"
} >"$directory/about"

for binlog in $BINLOGS; do
	more=()
	[ $binlog = off ] || more=("${binlog_options[@]}")
	"$here/../tools/server.sh" "$directory/plugins/ha_weir.so" "$directory/server" \
		--run "$here/cells.sh $directory $weir $binlog" "${options[@]}" "${more[@]}"
done
"$weir" bench compare "$directory" --report "$directory/compare.html" --json "$directory/compare.json" \
	--picture "$directory/compare.svg" --force
