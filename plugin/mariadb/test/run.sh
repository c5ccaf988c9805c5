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
	# What their servers said is kept, for a failure to be understood.
	trap 'for at in sql xa; do [ ! -e "$quick/$at" ] || cp "$quick/$at/mariadb/server.log" "$work/$at.log" || true; done; rm -rf "$quick"' EXIT
fi

"$build/group_plan"
"$build/collations" 70
"$build/collations" 40 "$RANDOM"
# Plugins that do not fit: compiled here, before anything is timed.
"$here/layout.sh" "$build" "$work/layout"
"$here/../tools/server.sh" "$plugin" "$quick/sql" --run "$here/sql.sh $work/sql-out && $here/sessions.sh $work/sessions-out && $here/random_sessions.sh $work/random-sessions-out 30 && $here/replacing.sh $work/replacing-out && $here/soft_kill.sh && $here/sizes.sh && $here/many_locks.sh && $here/engine_stats.sh && $here/deadlock_report.sh && $here/foreign_report.sh && $here/spatial_locks.sh" \
	--weir-memory=64M --weir-log-capacity=64M --innodb-lock-wait-timeout=1 --weir-lock-wait-timeout=1
"$here/../tools/server.sh" "$plugin" "$quick/xa" --run "$here/sessions.sh $work/xa-out $here/sessions/xa.txt $here/sessions/cached.txt" \
	--weir-memory=64M --weir-log-capacity=64M --innodb-lock-wait-timeout=1 --weir-lock-wait-timeout=1 --log-bin=binlog --server-id=1 \
	--query-cache-type=1 --query-cache-size=8M
for seed in 1 "$RANDOM" "$RANDOM"; do
	perl "$here/random.pl" "$seed" 1000 >"$work/random-$seed.sql"
	perl "$here/random_fulltext.pl" "$seed" 400 >"$work/random-fulltext-$seed.sql"
	perl "$here/random_spatial.pl" "$seed" 300 >"$work/random-spatial-$seed.sql"
done
"$here/../tools/server.sh" "$plugin" "$work/sql" --run "$here/sql.sh $work/random-out $work/random-*.sql" \
	--weir-memory=64M --weir-log-capacity=64M --weir-store=LOG
"$here/restart.sh" "$plugin" "$work/restart"
"$here/answers.sh" "$plugin" "$work/answers"
"$here/shared_sync.sh" "$plugin" "$work/shared-sync"
"$here/groups.sh" "$plugin" "$work/groups"
"$here/late.sh" "$plugin" "$work/late"
"$here/operating.sh" "$plugin" "$work/operating"
"$here/convert.sh" "$plugin" "$work/convert"
"$here/export.sh" "$plugin" "$work/export" "$rounds"
"$here/online.sh" "$plugin" "$work/online"
"$here/stages.sh" "$plugin" "$work/stages"
"$here/swap.sh" "$plugin" "$work/swap"
"$here/ddl_xa.sh" "$plugin" "$work/ddl-xa" "$rounds"
"$here/suite.sh" "$plugin" "$work/suite"
"$here/replication.sh" "$plugin" "$work/replication"
"$here/parallel.sh" "$plugin" "$work/parallel"
"$here/kill.sh" "$plugin" "$work/kill" "$rounds"
WEIR_STORE=LOG "$here/kill.sh" "$plugin" "$work/kill-log" "$rounds"
"$here/inplace_kill.sh" "$plugin" "$work/inplace-kill" "$rounds"
"$here/partition_kill.sh" "$plugin" "$work/partition-kill" "$((4 * rounds))"
"$here/prepared.sh" "$plugin" "$work/prepared" "$rounds"
# One sync for the binary log and the engine's log, and two.
"$here/power_loss.sh" "$plugin" "$work/power-1" ext4 "$((2 * rounds))" 1
"$here/power_loss.sh" "$plugin" "$work/power-2" ext4 "$rounds" 2
echo "plugin-test: all passed in $(($(date +%s) - begun)) s"
