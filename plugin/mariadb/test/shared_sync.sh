#!/bin/bash
# One sync for the binary log and the engine's log (src/binlog_gate.cc), on a file system of its own that has a journal: it is
# used where it may be, no commit is acknowledged before it, or behind one that failed, and elsewhere the engine syncs.
#   shared_sync.sh PLUGIN DIRECTORY
set -eu
here=$(cd "$(dirname "$0")" && pwd)
plugin=$1 directory=$2
. "$here/servers.sh"
disk=$directory/disk loop=
unmount() {
	cleanup
	! mountpoint -q "$disk" || umount "$disk"
	[ -z "$loop" ] || losetup -d "$loop"
	loop=
	rm -f "$disk.image"
}
trap unmount EXIT
truncate -s 600M "$disk.image"
mkdir "$disk"
mkfs.ext4 -q "$disk.image"
if ! loop=$(losetup -f --show "$disk.image" 2>/dev/null) || ! mount "$loop" "$disk" 2>/dev/null; then
	echo "shared_sync: skipped, a file system cannot be mounted here"
	exit 0
fi
mkdir "$disk/main" "$directory/elsewhere"
ln -s disk/main "$directory/main"
. "$here/clients.sh"
options=(--skip-networking --sync-binlog=1 --server-id=1)
start main "${options[@]}" --log-bin=binlog
sql main -e "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY) ENGINE=Weir; INSERT INTO d.t VALUES (1)"

# Syncs of the engine's while one client commits 200 times.
engine_syncs() { sql main -e "SELECT value FROM information_schema.weir_metrics WHERE name = 'weir_device_syncs'" | cut -d. -f1; }
commits() { # first
	local before
	before=$(engine_syncs)
	for n in $(seq 200); do echo "INSERT INTO t VALUES ($(($1 + n)));"; done | sql main d
	syncs=$(($(engine_syncs) - before))
}
commits 1000
shared=$syncs
[ $shared -lt 100 ] || die "the engine synced $shared times for 200 commits"
sql main -e "SET GLOBAL sync_binlog=0"
commits 2000
[ $syncs -ge 200 ] || die "the binary log is not synced, and the engine synced $syncs times for 200 commits"
sql main -e "SET GLOBAL sync_binlog=1; FLUSH BINARY LOGS"
commits 3000
[ $syncs -lt 100 ] || die "in another file of the binary log the engine synced $syncs times for 200 commits"

# No commit is acknowledged while the one sync is under way.
: >"$sync.hold"
sessions 4000 "INSERT INTO t VALUES (%d)"
for _ in $(seq 500); do [ -e "$sync.here" ] && break; sleep 0.01; done
sleep 0.3
[ "$(acknowledged)" = 0 ] || die "acknowledged before the sync"
rm "$sync.hold"
ended
[ $errors = 0 ] && [ "$(acknowledged)" = 5 ] || die "$(cat "$directory"/said.?)"
# Nor behind one that failed.
: >"$sync.fail"
sessions 5000 "INSERT INTO t VALUES (%d)"
ended
[ $errors = 5 ] && [ "$(acknowledged)" = 0 ] || die "acknowledged, with a failed sync: $(cat "$directory"/said.?)"
rm "$sync.fail"
slay $server
start main "${options[@]}" --log-bin=binlog
[ -z "$(sql main -e "XA RECOVER")" ] || die "something is prepared still"
mariadb-admin --no-defaults -uroot -S "$sockets/main" shutdown
while kill -0 $server 2>/dev/null; do sleep 0.02; done
unset "servers[$server]"

# The binary log on another file system.
start main "${options[@]}" --log-bin="$directory/elsewhere/binlog"
sql main d -e "INSERT INTO t VALUES (6000)"
commits 6000
[ $syncs -ge 200 ] || die "the binary log is elsewhere, and the engine synced $syncs times for 200 commits"
rows=$(sql main -e "SELECT COUNT(*) FROM d.t WHERE id < 5000 OR id >= 6000")
[ "$rows" = 807 ] || die "$rows rows of 807"
sql main -e "CHECK TABLE d.t" | grep -q OK || die "CHECK TABLE"
slay $server
echo "shared_sync: the engine synced $shared times for 200 commits, the binary log for both; where it may not, $syncs times"
