#!/bin/bash
# The power fails under a server with the binary log on, whose data are on a file system of the kernel, on a disk that loses,
# tears and reorders what was not flushed (power/disk.c). On each of the images of such an instant another server
# starts: what was acknowledged is there, and the tables are what the binary log says, no more and no less.
#   power_loss.sh PLUGIN DIRECTORY [FILE_SYSTEM [ROUNDS [DISKS [BEHIND]]]]
#     FILE_SYSTEM  ext4, ext4-nojournal or xfs
#     DISKS        2: the binary log is on one of its own. A loop device does one thing after the other, so a write never comes
#                  to the disk during a flush; with two it does, and no flush of the one makes anything of the other durable
#     BEHIND       the disk lies, and what a flush is for is durable so many flushes later: this must fail
set -eu
here=$(cd "$(dirname "$0")" && pwd)
plugin=$1 directory=$2 system=${3:-ext4} rounds=${4:-5} disks=${5:-1} behind=${6:-0}
instants=4 images=3 clients=8
export LC_ALL=C

skip() { echo "power_loss: skipped: $*"; exit 0; }
[ "$(id -u)" = 0 ] || skip "not root"
[ -c /dev/fuse ] || skip "no /dev/fuse"
losetup -f >/dev/null 2>&1 || skip "no loop devices"
pkg-config fuse3 2>/dev/null || skip "no libfuse3-dev"
[ -f /usr/include/mariadb/mysql.h ] || skip "no libmariadb-dev"
case $system in
ext4) make=(mkfs.ext4 -q -E nodiscard,lazy_itable_init=0,lazy_journal_init=0) kind=ext4 mounted=noatime ;;
ext4-nojournal) make=(mkfs.ext4 -q -O ^has_journal -E nodiscard,lazy_itable_init=0) kind=ext4 mounted=noatime ;;
xfs) make=(mkfs.xfs -q -K) kind=xfs mounted=noatime,nouuid ;;
*) echo "power_loss: no file system $system"; exit 2 ;;
esac
command -v "${make[0]}" >/dev/null || skip "no ${make[0]}"
grep -qw $kind /proc/filesystems || modprobe $kind 2>/dev/null || skip "no $kind in the kernel"
. "$here/servers.sh"

# A server on an image is no child of this shell, and may be dead for a second before it is buried.
is_running() { # process
	local state tasks=(/proc/"$1"/task/*)
	[ ${#tasks[@]} = 1 ] || return 0
	{ read -r _ _ state _ <"/proc/$1/stat" && [ "$state" != Z ]; } 2>/dev/null
}
slay() { # process
	unset "servers[$1]"
	kill -9 "$1" 2>/dev/null || return 0
	while is_running "$1"; do sleep 0.01; done
}

loops=()
leave() { ! mountpoint -q "$directory/$1" || umount "$directory/$1" 2>/dev/null || umount -l "$directory/$1"; }
end() {
	[ -z "${loading:-}" ] || kill "$loading" 2>/dev/null || true
	# One that is being started on an image is known by this alone.
	[ ! -f "$directory/pid" ] || slay "$(<"$directory/pid")"
	cleanup
	for n in $(seq "$disks"); do
		leave "check/$n"
		leave "fs/$n"
	done
	for loop in "${loops[@]}"; do losetup -d "$loop" 2>/dev/null; done
	leave images
	leave disk
	[ -z "${disk:-}" ] || for _ in $(seq 500); do kill -0 "$disk" 2>/dev/null || break; sleep 0.01; done
}
trap 'set +e; end' EXIT
trap 'exit 130' INT TERM HUP

# shellcheck disable=SC2046
cc -O2 -Wall $(pkg-config --cflags fuse3) -o "$directory/disk.bin" "$here/power/disk.c" $(pkg-config --libs fuse3)
cc -O2 -Wall -I/usr/include/mariadb -o "$directory/load" "$here/power/load.c" -lmariadb -lpthread
mkdir "$directory"/{disk,fs,check,images,temporary,temporary.image}
# A server that starts removes the temporary tables there of those that run.
export TMPDIR=$directory/temporary
# In memory, as the disk is: most of the time would go into syncs of the images otherwise.
mount -t tmpfs images "$directory/images" 2>/dev/null || skip "may not mount"
sizes=(400 400)
"$directory/disk.bin" "$directory/disk" "${sizes[@]:0:disks}" >"$directory/disk.log" 2>&1 &
disk=$!
disown $disk
for _ in $(seq 500); do mountpoint -q "$directory/disk" && break; sleep 0.01; done
mountpoint -q "$directory/disk" || die "no disk: $(cat "$directory/disk.log")"
control() { echo "$@" >"$directory/disk/control"; }
attach() { loop=$(losetup -f --show "$1") && loops+=("$loop"); }
for n in $(seq "$disks"); do
	mkdir "$directory/fs/$n" "$directory/check/$n"
	attach "$directory/disk/$n"
	"${make[@]}" "$loop"
	mount -t $kind -o noatime "$loop" "$directory/fs/$n"
done

# A small log, so that pages are written as well.
loaded=(--plugin-load-add=ha_weir --weir=FORCE --weir-memory=64M --weir-log-capacity=1M)
# As the server that uses it sees it, in its directory of data.
log=binlog
[ "$disks" = 1 ] || log=../../2/binlog
options=(--skip-networking --log-bin=$log --sync-binlog=1 --server-id=1 --binlog-format=ROW --innodb-log-file-size=8M
	--master-verify-checksum)
mkdir "$directory/fs/1/main"
ln -s fs/1/main "$directory/main"
ln -s check/1/main "$directory/image"
start main "${options[@]}"
sql main -e "CREATE DATABASE work; USE work;
	CREATE TABLE t (id BIGINT PRIMARY KEY, v VARCHAR(100)) ENGINE=Weir;
	CREATE TABLE c (id INT PRIMARY KEY, n BIGINT NOT NULL) ENGINE=Weir;
	INSERT INTO c SELECT seq-1, 0 FROM seq_1_to_$clients;"
# What a server makes when it is created need not outlive the power, nor what a file system is asked for no fsync.
for n in $(seq "$disks"); do sync -f "$directory/fs/$n"; done
control "behind $behind"

# What the binary log says is committed: i ID for each row of t, u CLIENT for each count. Its last transaction may be there by
# half, which does not count as one: where the end of it is torn itself, only the checksum shows it, so the server looks at that too.
logged() {
	local file
	for file in "$directory/check/1/main/$log".0*; do
		mariadb-binlog --no-defaults --verify-binlog-checksum --base64-output=decode-rows -v "$file" 2>>"$directory/torn" | awk '
			/^(BEGIN|START TRANSACTION)/ { held = kind = "" }
			/^### INSERT INTO `work`.`t`/ { kind = "i" }
			/^### UPDATE `work`.`c`/ { kind = "u" }
			/^###   @1=/ && kind { sub(/.*=/, ""); held = held kind " " $1 "\n"; kind = "" }
			/^COMMIT/ { printf "%s", held; held = "" }'
	done
}

wrong() { complaints+=("$*"); }
# How many lines only the first has, and one of them.
only() { # file other-file
	comm -23 "$1" "$2" >"$directory/only"
	[ ! -s "$directory/only" ] || echo "$(wc -l <"$directory/only"), $(head -n 1 "$directory/only")"
}

judge() {
	local text
	sql image work -e "SELECT id FROM t" | sort >"$directory/rows" || wrong "t cannot be read"
	sql image work -e "SELECT id, n FROM c" | sort >"$directory/counts" || wrong "c cannot be read"
	logged >"$directory/logged"
	awk '$1 == "i" { print $2 }' "$directory/logged" | sort >"$directory/logged.rows"
	awk -v clients=$clients -v OFS='\t' '$1 == "u" { n[$2]++ } END { for (i = 0; i < clients; i++) print i, n[i] + 0 }' "$directory/logged" |
		sort >"$directory/logged.counts"
	text=$(only "$directory/acknowledged" "$directory/rows")
	[ -z "$text" ] || wrong "acknowledged and lost: $text"
	text=$(only "$directory/logged.rows" "$directory/rows")
	[ -z "$text" ] || wrong "in the binary log and not in t: $text"
	text=$(only "$directory/rows" "$directory/logged.rows")
	[ -z "$text" ] || wrong "in t and not in the binary log: $text"
	text=$(only "$directory/logged.counts" "$directory/counts")
	[ -z "$text" ] || wrong "counted otherwise in the binary log: $text"
	text=$(sql image work -e "CHECK TABLE t, c" 2>&1 | grep -v 'OK$' || true)
	[ -z "$text" ] || wrong "CHECK TABLE: $text"
	text=$(sql image -e "XA RECOVER" 2>&1)
	[ -z "$text" ] || wrong "prepared still: $text"
}

# Checks and mounts the disks of an image: what is wrong is in $complaints, and why it is not judged in $directory/damage.
mount_image() { # image
	local n code
	for n in $(seq "$disks"); do
		if [ "$system" = ext4-nojournal ]; then
			code=0
			e2fsck -fy "$1.$n" >"$directory/fsck" 2>&1 || code=$?
			[ $code -lt 4 ] || wrong "e2fsck: $code"
			# Its maps of what is free and its counts are made anew each time; all else is damage: it cuts off blocks of the
			# binary log that came to the disk before the file's new length, and older ones with them.
			sed -n '/^Pass 1:/,/^Pass 5/p' "$directory/fsck" | grep -vE '^(Pass .*)?$|Optimize\?|i_blocks is' >"$directory/damage" || true
			[ ! -s "$directory/damage" ] || return 1
		fi
		attach "$1.$n"
		if ! mount -t $kind -o $mounted "$loop" "$directory/check/$n" 2>"$directory/mount.log"; then
			wrong "does not mount: $(tail -n 1 "$directory/mount.log")"
			return 1
		fi
	done
}

# A server on an image.
try() { # image
	local n
	complaints=()
	for n in rows logged.rows damage torn; do : >"$directory/$n"; done
	if mount_image "$1"; then
		rm -f "$directory/image/server.log"
		if (TMPDIR+=.image; trap 'echo $server >"$directory/pid"' EXIT; start image "${options[@]}") >"$directory/start.log" 2>&1; then
			server=$(<"$directory/pid")
			servers[$server]=image
			judge
			# It takes a second, so not every time.
			if [ "$image" = 1 ]; then
				sql image -e SHUTDOWN || wrong "no shutdown"
				for _ in $(seq 1500); do is_running "$server" || break; sleep 0.02; done
				! is_running "$server" || wrong "does not shut down"
			fi
		else
			server=$(<"$directory/pid")
			wrong "the server does not start: $(grep -F '[ERROR]' "$directory/image/server.log" | head -n 1)"
		fi
		slay "$server"
		rm "$directory/pid"
		if [ ${#complaints[@]} != 0 ]; then
			n=$directory/wrong.$round.$instant.$image
			mkdir "$n"
			cp "$directory/image/server.log" "$directory/acknowledged" "$directory/rows" "$directory/logged" "$directory/image/$log".* "$n" || true
		fi
	fi
	for n in $(seq "$disks"); do leave "check/$n"; done
	while [ ${#loops[@]} -gt "$disks" ]; do
		losetup -d "${loops[-1]}"
		unset "loops[-1]"
	done
	rm -f "$1".[0-9]
}

made=0 bad=0 torn=0 damaged=0
for round in $(seq "$rounds"); do
	slow=$((RANDOM % 3 * 2000))
	control "slow $slow"
	"$directory/load" "$sockets/main" work $clients "$round" "$directory/client" 2>"$directory/load.log" &
	loading=$!
	disown $loading
	for instant in $(seq $instants); do
		sleep "0.$((1 + RANDOM % 4))"
		kill -0 $loading 2>/dev/null || die "the clients have ended: $(tail -n 1 "$directory/load.log")"
		# At an event: at any other time there is seldom something that is not flushed.
		control "at $((1 + RANDOM % 40))"
		# First what was acknowledged, and then the power: so it has to be there.
		sort "$directory"/client.* >"$directory/acknowledged.$instant"
		p=
		[ "$behind" = 0 ] || p=0
		control "images $directory/images/$instant $((RANDOM * 32768 + RANDOM)) $images $p"
	done
	kill $loading
	loading=
	for instant in $(seq $instants); do
		cp "$directory/acknowledged.$instant" "$directory/acknowledged"
		for image in $(seq $images); do
			read -r kept few many < <(sed -n "${image}p" "$directory/images/$instant.said")
			try "$directory/images/$instant.$image"
			made=$((made + 1)) note='' verdict=OK
			if [ -s "$directory/torn" ]; then
				torn=$((torn + 1))
				note=", the log's end is torn"
			fi
			if [ -s "$directory/damage" ]; then
				damaged=$((damaged + 1))
				verdict="not judged, for e2fsck: $(head -n 1 "$directory/damage")"
			fi
			if [ ${#complaints[@]} != 0 ]; then
				bad=$((bad + 1))
				verdict="WRONG: $(printf '%s; ' "${complaints[@]}")"
			fi
			echo "$round.$instant.$image, flushes of $slow us, $kept: $few of $many pages kept;" \
				"$(wc -l <"$directory/acknowledged") acknowledged, $(wc -l <"$directory/rows") rows," \
				"$(wc -l <"$directory/logged.rows") in the binary log$note: $verdict"
		done
	done
done
set +e
end
trap - EXIT
grep '^disk' "$directory/disk.log"
echo "power_loss: $system, $disks disks: $bad of $((made - damaged)) images wrong; $torn with a torn end of the binary log; $damaged more not judged"
[ $bad = 0 ]
