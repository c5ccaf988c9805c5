# The kernel's limit on what a process writes: cgroup v1's blkio or v2's io.max, whichever this machine lets us write.
# Sourced. Direct and synced writes are held to it; what the kernel writes later on its own is not.
limit_group=
limit_kind=

# Makes a group for a process; 1, said, if neither kind can be used here.
limit_begin() { # process directory
	local device
	device=$(stat -c '%Hd:%Ld' "$2")
	limit_device=$device
	if mkdir "/sys/fs/cgroup/blkio/weir-compare-$1" 2>/dev/null; then
		limit_kind=v1 limit_group=/sys/fs/cgroup/blkio/weir-compare-$1
	elif grep -qw io /sys/fs/cgroup/cgroup.subtree_control 2>/dev/null && mkdir "/sys/fs/cgroup/weir-compare-$1" 2>/dev/null; then
		limit_kind=v2 limit_group=/sys/fs/cgroup/weir-compare-$1
	else
		echo "compare: neither cgroup v1's blkio nor v2's io.max can be written here: no runs on a limited disk"
		return 1
	fi
	echo "$1" >"$limit_group/cgroup.procs"
	limit_set 1000 64000000 && limit_off && return
	echo "compare: the kernel refuses a limit for device $device: no runs on a limited disk"
	return 1
}

limit_set() { # writes-a-second bytes-a-second
	if [ $limit_kind = v1 ]; then
		echo "$limit_device $1" >"$limit_group/blkio.throttle.write_iops_device" &&
			echo "$limit_device $2" >"$limit_group/blkio.throttle.write_bps_device"
	else
		echo "$limit_device wiops=$1 wbps=$2" >"$limit_group/io.max"
	fi
}

limit_off() {
	[ -n "$limit_kind" ] || return 0
	if [ $limit_kind = v1 ]; then limit_set 0 0; else limit_set max max; fi
}

limit_end() {
	[ -n "$limit_group" ] || return 0
	limit_off
	# A group must be empty to go.
	local process
	while read -r process; do
		echo "$process" >"$(dirname "$limit_group")/cgroup.procs"
	done <"$limit_group/cgroup.procs"
	rmdir "$limit_group" || true
	limit_group=
}
