#!/bin/bash
# The plugin's tests with the server of another Debian release, in that release's root (tools/root.sh): what run.sh runs with the
# one that is installed, but for what needs devices (lost power, one sync for both logs) and random SQL.
# `make plugin-test SERVER=11.8` calls it with the plugin built.
#   run_in_root.sh BUILD ROOT ROUNDS
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tree=$(cd "$here/../../.." && pwd)
build=$(cd "$1" && pwd) root=$2 rounds=$3
begun=$(date +%s)
work=$build/test
rm -rf "$work"
mkdir -p "$work"
"$here/layout.sh" "$build" "$work/layout" prepare
in_root() { "$here/../tools/root.sh" "$root" --in "$tree" "$@"; }
# As the answers of 10.11 that the scripts' expected differences are of: its character set, and no refusal of what is newer
# than a snapshot but where a script asks for it.
options="--character-set-server=latin1 --collation-server=latin1_swedish_ci --innodb-snapshot-isolation=OFF --weir-snapshot-isolation=OFF"
waits="--innodb-lock-wait-timeout=1 --weir-lock-wait-timeout=1"
memory="--weir-memory=64M --weir-log-capacity=64M"
in_root "$here/layout.sh" "$build" "$work/layout"
# In the root's memory, where half a second of silence is not a slow disk's.
in_root "$here/../tools/server.sh" "$build/ha_weir.so" /dev/shm/sql --run \
	"$here/sql.sh $work/sql-out; sql=\$?; $here/sessions.sh $work/sessions-out && exit \$sql" $memory $waits $options
in_root "$here/../tools/server.sh" "$build/ha_weir.so" /dev/shm/random --run \
	"$here/random_sessions.sh $work/random-sessions-out 30 && $here/replacing.sh $work/replacing-out && $here/soft_kill.sh && $here/many_locks.sh" \
	$memory $waits $options
# Beside what is at work on this system, which goes by the same numbers of ports.
in_root env MTR_BUILD_THREAD=500 "$here/suite.sh" "$build/ha_weir.so" "$work/suite"
for test in restart answers groups late operating convert online stages swap replication parallel; do
	in_root "$here/$test.sh" "$build/ha_weir.so" "$work/$test"
done
for test in export ddl_xa kill inplace_kill prepared; do
	in_root "$here/$test.sh" "$build/ha_weir.so" "$work/$test" "$rounds"
done
in_root env WEIR_STORE=LOG "$here/kill.sh" "$build/ha_weir.so" "$work/kill-log" "$rounds"
in_root "$here/partition_kill.sh" "$build/ha_weir.so" "$work/partition-kill" "$((4 * rounds))"
echo "plugin-test: all passed in $(($(date +%s) - begun)) s with the server in $root"
