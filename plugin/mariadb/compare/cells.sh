#!/bin/bash
# The cells of one server of run.sh: every engine does the same work, in turns on the free disk, elsewhere one directly after the other.
#   cells.sh DIRECTORY WEIR BINLOG         (inside server.sh --run, which sets WEIR_SOCKET)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
directory=$1 weir=$2 binlog=$3
. "$here/limit.sh"
process=$(cat "$(dirname "$WEIR_SOCKET")/my.pid" 2>/dev/null || cat "$directory/server/mariadb/my.pid")
trap limit_end EXIT
trap 'exit 130' INT TERM

sql() { mariadb --no-defaults -uroot -S "$WEIR_SOCKET" -N "$@"; }
status() { sql -e "SHOW GLOBAL STATUS LIKE '$1'" | awk '{ print $2 }'; }
in_sql() { case $1 in innodb | tuned | compressed) echo InnoDB ;; myrocks) echo ROCKSDB ;; weir) echo Weir ;; esac; }
# Tuned by hand and not have the same tables.
data_of() { [ "$1" = tuned ] && echo innodb || echo "$1"; }
# Bytes of redo ever written.
redo() {
	case $1 in
	innodb | tuned | compressed) status Innodb_lsn_current ;;
	myrocks) status Rocksdb_wal_bytes ;;
	weir) status Weir_redo_bytes ;;
	esac
}

tune() { # engine
	# Tables that are made from now on have PAGE_COMPRESSED.
	sql -e "SET GLOBAL innodb_compression_default=$([ "$1" = compressed ] && echo ON || echo OFF)"
	if [ "$1" = tuned ]; then
		sql -e "SET GLOBAL innodb_io_capacity_max=4000; SET GLOBAL innodb_io_capacity=2000; SET GLOBAL innodb_max_dirty_pages_pct_lwm=10;
			SET GLOBAL innodb_adaptive_flushing_lwm=5; SET GLOBAL innodb_flush_neighbors=0; SET GLOBAL innodb_lru_scan_depth=1024;
			SET GLOBAL innodb_read_ahead_threshold=0; SET GLOBAL innodb_flushing_avg_loops=10"
	else
		sql -e "SET GLOBAL innodb_io_capacity=DEFAULT; SET GLOBAL innodb_io_capacity_max=2000; SET GLOBAL innodb_max_dirty_pages_pct_lwm=DEFAULT;
			SET GLOBAL innodb_adaptive_flushing_lwm=DEFAULT; SET GLOBAL innodb_flush_neighbors=DEFAULT; SET GLOBAL innodb_lru_scan_depth=DEFAULT;
			SET GLOBAL innodb_read_ahead_threshold=DEFAULT; SET GLOBAL innodb_flushing_avg_loops=DEFAULT"
	fi
}

# No other cell's leftovers on the disk while one is measured.
settle() {
	# At the capacity of a run it would take minutes; `tune` comes next and sets it again.
	sql -e "SET GLOBAL innodb_io_capacity_max=20000; SET GLOBAL innodb_io_capacity=20000; SET GLOBAL innodb_max_dirty_pages_pct=0"
	for _ in $(seq 300); do
		[ "$(status Innodb_buffer_pool_pages_dirty)" -lt 100 ] && break
		sleep 0.1
	done
	sql -e "SET GLOBAL innodb_max_dirty_pages_pct=DEFAULT"
	[[ $engines != *myrocks* ]] || sql -e "SET GLOBAL rocksdb_force_flush_memtable_now=1" 2>/dev/null || true
	sync
}

wanted() { [[ $1 =~ $only ]] && [ ! -s "$directory/cells/$1.out" ] && [ ! -s "$directory/cells/$1.json" ]; }

sysbench_at() { # engine more...
	sysbench "${@:2}" --db-driver=mysql --mysql-socket="$WEIR_SOCKET" --mysql-user=root --mysql-db="sb_$(data_of "$1")" \
		--mysql-storage-engine="$(in_sql "$1")" --tables=1 --table-size="$ROWS" --mysql-ignore-errors=1213,1020,1205
}

load_sysbench() { # engine
	local database=sb_$(data_of "$1")
	tune "$1"
	if [ -z "$(sql -e "SHOW DATABASES LIKE '$database'")" ]; then
		sql -e "CREATE DATABASE $database"
		sysbench_at "$1" oltp_read_write prepare >"$directory/load.log" 2>&1 || { cat "$directory/load.log"; exit 1; }
	fi
	# What the first cell finds in memory is not a matter of their order.
	sql -e "SELECT SUM(LENGTH(pad)) FROM $database.sbtest1; SELECT SUM(k) FROM $database.sbtest1 FORCE INDEX (k_1)" >/dev/null
}

run_sysbench() { # workload clients disk engines...: a few rounds, in which the engines take turns, as a machine's own waves last for seconds
	local workload=$1 clients=$2 disk=$3 seconds=$SECONDS_EACH warmup=$WARMUP rounds=$ROUNDS engine name out before
	local -a cells=()
	local -A redo=()
	for engine in "${@:4}"; do
		name=$workload.$disk.binlog-$binlog.$clients.$engine
		wanted "$name" || continue
		cells+=("$engine")
		redo[$engine]=0
		rm -f "$directory/cells/$name.part"
	done
	[ ${#cells[@]} != 0 ] || return 0
	for engine in "${cells[@]}"; do load_sysbench "$engine"; done
	if [ "$disk" = limited ]; then
		seconds=$LIMITED_SYSBENCH_SECONDS warmup=$((LIMITED_SYSBENCH_SECONDS / 2)) rounds=1
	fi
	for ((round = 0; round < rounds; round++)); do
		for engine in $(in_turn "$round" "${cells[@]}"); do
			out=$directory/cells/$workload.$disk.binlog-$binlog.$clients.$engine.part
			[[ $workload = oltp_point_select ]] || settle
			tune "$engine"
			before=$(redo "$engine")
			[ "$disk" = free ] || limit_set "$LIMIT_WRITES" "$LIMIT_BYTES"
			sysbench_at "$engine" "$workload" --threads="$clients" --time=$((warmup + seconds)) --report-interval=1 --percentile=99 \
				--rand-type=uniform --db-ps-mode=auto run >>"$out" 2>&1 || echo failed >>"$out"
			[ "$disk" = free ] || limit_off
			redo[$engine]=$((redo[$engine] + $(redo "$engine") - before))
		done
	done
	for engine in "${cells[@]}"; do
		name=$workload.$disk.binlog-$binlog.$clients.$engine
		out=$directory/cells/$name
		if grep -q '^failed$' "$out.part"; then
			tail -n 5 "$out.part"
			echo "compare: $name failed"
			continue
		fi
		echo "compare: warm-up $warmup redo ${redo[$engine]}" >>"$out.part"
		mv "$out.part" "$out.out"
		echo "$name: $(sed -n 's/^ *transactions: .*(\(.*\) per sec.)/\1/p' "$out.out" | paste -sd' ') transactions/s"
	done
}

run_tpcc() { # disk engine
	local name=tpcc.$1.binlog-$binlog.8.$2 seconds=$TPCC_SECONDS warmup=$((10 * WARMUP)) url failed=0
	wanted "$name" || return 0
	url="mysql://root@localhost/tpcc_$(data_of "$2")?socket=$WEIR_SOCKET"
	bench() { "$weir" bench tpcc --mysql "$url" --engine "$(in_sql "$2")" --warehouses "$WAREHOUSES" --threads 8 "${@:3}"; }
	tune "$2"
	bench "$1" "$2" --seconds 1 --warmup 0 >"$directory/load.log" 2>&1 || { tail -n 5 "$directory/load.log"; echo "compare: $name cannot be loaded"; return 0; }
	[ $1 = free ] || seconds=$LIMITED_SECONDS warmup=$LIMITED_WARMUP
	settle
	tune "$2"
	local before=$(redo "$2") after
	bench "$1" "$2" --seconds "$seconds" --warmup "$warmup" --json "$directory/cells/$name.part" --force >"$directory/cells/$name.log" 2>&1 &
	local run=$!
	if [ $1 = limited ]; then
		# Two thirds of the warm-up at full speed, so that the log is as full as it gets; then the limit.
		sleep $((warmup * 2 / 3))
		limit_set "$LIMIT_WRITES" "$LIMIT_BYTES"
		sleep $((warmup - warmup * 2 / 3))
		"$here/watch.sh" "$directory" >"$directory/watched" &
		sleep "$seconds"
		kill $!
		wait $! || true
		limit_off
	fi
	wait $run || failed=1
	after=$(redo "$2")
	echo "compare: redo $((after - before))" >>"$directory/cells/$name.log"
	[ $1 = free ] || sed 's/^/compare: /' "$directory/watched" >>"$directory/cells/$name.log"
	[ $failed = 0 ] || { tail -n 5 "$directory/cells/$name.log"; echo "compare: $name is not well"; }
	[ ! -e "$directory/cells/$name.part" ] || mv "$directory/cells/$name.part" "$directory/cells/$name.json"
	echo "$name: $(grep -o '"tps_mean": *[0-9.]*' "$directory/cells/$name.json" | head -n 1) $(grep -o '"tps_cv": *[0-9.]*' "$directory/cells/$name.json" | head -n 1)"
}

# The first engine finds a colder machine than the last: it is another one each time.
turn=0
in_turn() { # turn engines...
	local -a all=("${@:2}")
	local at=$(($1 % ${#all[@]}))
	echo "${all[@]:at}" "${all[@]:0:at}"
}

limited=1
limit_begin "$process" "$directory" || limited=
for workload in oltp_point_select oltp_read_write oltp_write_only oltp_update_index oltp_update_non_index oltp_insert; do
	for clients in $CLIENTS; do
		# With the binary log the reading one is the same; a quick run asks only the two that differ most.
		[ -z "$quick" ] || [ $binlog = off ] || [[ $workload =~ write_only|non_index ]] || continue
		order=$(in_turn "$turn" $engines) turn=$((turn + 1))
		run_sysbench $workload "$clients" free $order
	done
	[ -n "$limited" ] && [ "$LIMITED_SYSBENCH_SECONDS" != 0 ] && [[ $workload != oltp_point_select ]] || continue
	run_sysbench $workload 8 limited $engines
done
if [ -z "$quick" ] || [ $binlog = off ]; then
	for engine in $engines; do run_tpcc free "$engine"; done
	[ -z "$limited" ] || for engine in $engines; do run_tpcc limited "$engine"; done
fi
limit_off
for engine in $engines; do
	[ $engine != tuned ] && [ -n "$(sql -e "SHOW DATABASES LIKE 'sb_$engine'")" ] || continue
	checked=$(sql -e "CHECK TABLE sb_$engine.sbtest1" | awk '{ print $NF }')
	rows=$(sql -e "SELECT COUNT(*) FROM sb_$engine.sbtest1")
	echo "$engine: CHECK TABLE $checked, $rows rows" | tee -a "$directory/checked.binlog-$binlog"
done
