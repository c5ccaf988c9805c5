#!/bin/bash
# Everything that must hold of the plugin. `make plugin-test` calls it with the plugin built.
#   run.sh BUILD ROUNDS
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$1 rounds=$2
plugin=$build/ha_weir.so
begun=$(date +%s)
work=$build/test
rm -rf "$work"
mkdir -p "$work"
# Where half a second of silence is taken for a lock's, it must not be a slow disk's: in memory, if there is enough.
quick=$work
if [ "$(df --output=avail -k /dev/shm 2>/dev/null | tail -n 1)" -ge 2097152 ] 2>/dev/null; then
	quick=$(mktemp -d /dev/shm/weir-test-XXXXXX)
fi
tidy_up() {
	[ "$quick" != "$work" ] || return 0
	# What their servers said is kept, for a failure to be understood.
	for at in sql xa; do cp "$quick/$at/mariadb/server.log" "$work/$at.log" || true; done
	rm -rf "$quick"
}
trap tidy_up EXIT

# Says how long each takes: the whole must stay within what people wait for.
step() {
	local from name
	from=$(date +%s) name=$(basename "$1" .sh)
	"$@"
	[ $(($(date +%s) - from)) -lt 5 ] || echo "plugin-test: $name took $(($(date +%s) - from)) s"
}

# What takes a silence for a lock's, or compares times, has the machine for itself.
"$build/group_plan"
"$build/collations" 70
"$build/collations" 40 "$RANDOM"
step "$here/../tools/server.sh" "$plugin" "$quick/sql" --run "$here/sql.sh $work/sql-out && $here/sessions.sh $work/sessions-out && $here/random_sessions.sh $work/random-sessions-out 30 && $here/replacing.sh $work/replacing-out && $here/soft_kill.sh && $here/sizes.sh && $here/deadlock_told.sh" \
	--weir-memory=64M --weir-log-capacity=64M --innodb-lock-wait-timeout=1 --weir-lock-wait-timeout=1
step "$here/../tools/server.sh" "$plugin" "$quick/xa" --run "$here/sessions.sh $work/xa-out $here/sessions/xa.txt" \
	--weir-memory=64M --weir-log-capacity=64M --innodb-lock-wait-timeout=1 --weir-lock-wait-timeout=1 --log-bin=binlog --server-id=1
step "$here/shared_sync.sh" "$plugin" "$work/shared-sync"
step "$here/groups.sh" "$plugin" "$work/groups"

# The rest in two lanes: most of what a test of kills does is wait.
kills() {
	step "$here/ddl_xa.sh" "$plugin" "$work/ddl-xa" "$rounds"
	step "$here/kill.sh" "$plugin" "$work/kill" "$rounds"
	step "$here/inplace_kill.sh" "$plugin" "$work/inplace-kill" "$rounds"
	step "$here/partition_kill.sh" "$plugin" "$work/partition-kill" "$((4 * rounds))"
	step "$here/prepared.sh" "$plugin" "$work/prepared" "$rounds"
	# One sync for the binary log and the engine's log, and two.
	step "$here/power_loss.sh" "$plugin" "$work/power-1" ext4 "$((2 * rounds))" 1
	step "$here/power_loss.sh" "$plugin" "$work/power-2" ext4 "$rounds" 2
}
echo "plugin-test: kills and power losses go on beside the rest; what they say comes at the end"
set -m
(set -e; kills) >"$work/kills.log" 2>&1 &
beside=$!
set +m
# A group of its own: whatever ends this one, Ctrl-C included, ends that.
end_beside() { kill -- "-$beside" 2>/dev/null || true; }
trap 'end_beside; tidy_up' EXIT

for seed in 1 "$RANDOM" "$RANDOM"; do
	perl "$here/random.pl" "$seed" 1000 >"$work/random-$seed.sql"
done
step "$here/../tools/server.sh" "$plugin" "$work/sql" --run "$here/sql.sh $work/random-out $work/random-*.sql" \
	--weir-memory=64M --weir-log-capacity=64M
step "$here/restart.sh" "$plugin" "$work/restart"
step "$here/answers.sh" "$plugin" "$work/answers"
step "$here/late.sh" "$plugin" "$work/late"
step "$here/operating.sh" "$plugin" "$work/operating" "$build/peers"
step "$here/convert.sh" "$plugin" "$work/convert"
step "$here/online.sh" "$plugin" "$work/online"
step "$here/swap.sh" "$plugin" "$work/swap"
step "$here/suite.sh" "$plugin" "$work/suite"
step "$here/replication.sh" "$plugin" "$work/replication"
step "$here/parallel.sh" "$plugin" "$work/parallel"
status=0
wait $beside || status=$?
cat "$work/kills.log"
[ $status = 0 ] || { echo "plugin-test: the lane of kills failed ($status); what it left is in $work"; exit 1; }
echo "plugin-test: all passed in $(($(date +%s) - begun)) s"
