#!/bin/bash
# Another Debian release's root below a directory, with the server of that release: what the plugin is built against and
# tested in, without touching what is installed here.
#   root.sh ROOT RELEASE                 makes it, or completes it: by debootstrap, from this machine's own mirror
#   root.sh ROOT --in DIRECTORY COMMAND...   runs a command in it as root; DIRECTORY (this tree) is there as it is here
# WEIR_MARIADB_VERSION=1:11.8.6-0+deb13u1 puts that version in the place of the newest one: a mirror's pool keeps packages that
# its index does not list any more. No index's signature covers those; that they are whole is the connection's affair.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$1
[ "$(id -u)" = 0 ] || { echo "root: needs root (debootstrap, chroot)"; exit 1; }
say() { echo "root: $*"; }

# In mounts of its own, which go with the command.
inside() { # command...
	unshare --mount --fork bash -c '
		set -eu
		root=$1 shared=$2
		shift 2
		mount --make-rprivate /
		mount -t proc proc "$root/proc"
		mount -t tmpfs tmpfs "$root/dev/shm"
		# Limits of disks are set there.
		mount --rbind /sys "$root/sys"
		if [ -n "$shared" ]; then
			mkdir -p "$root$shared"
			mount --rbind "$shared" "$root$shared"
		fi
		exec chroot "$root" env -i HOME=/root LC_ALL=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
	' inside "$root" "$shared" "$@"
}

if [ "$2" = --in ]; then
	shared=$(cd "$3" && pwd)
	shift 3
	inside "$@"
	exit
fi

release=$2 shared=
packages=(mariadb-server mariadb-client libmariadbd-dev libmariadb-dev mariadb-test mariadb-backup perl gcc libc6-dev dpkg-dev)
wanted=${WEIR_MARIADB_VERSION:-}
installed() { dpkg-query --admindir="$root/var/lib/dpkg" -W -f='${Version}' mariadb-server-core 2>/dev/null || true; }
[ ! -e "$root/.complete" ] || [ -n "$wanted" -a "$wanted" != "$(installed)" ] || exit 0
. "$here/sources.sh"
mkdir -p "$root"
root=$(cd "$root" && pwd)
log=$root.log
quiet() { "$@" >"$log" 2>&1 || { tail -n 15 "$log"; exit 1; }; }

# The version that is wanted, of each package of MariaDB's that is installed, from the pool.
from_pool() {
	local kept=var/cache/weir-mariadb name architecture
	say "putting $wanted in the place of $(installed), from the pool"
	rm -rf "$root/$kept"
	mkdir -p "$root/$kept"
	while read -r name architecture; do
		fetch_from_pool "$mirror" "${name}_${wanted#*:}_$architecture.deb" "$root/$kept" "$log" || {
			say "the pool does not have $name $wanted"
			exit 1
		}
	done < <(dpkg-query --admindir="$root/var/lib/dpkg" -W -f='${source:Package} ${Package} ${Architecture}\n' | sed -n 's/^mariadb //p')
	quiet inside env DEBIAN_FRONTEND=noninteractive sh -c "dpkg --install /$kept/*.deb"
	rm -rf "${root:?}/$kept"
}
mirror=$(apt_mirror "$release")
[ -n "$mirror" ] || { say "no deb entry of Debian 12's is configured here"; exit 1; }
if [ -e "$root/.complete" ]; then
	from_pool
	exit 0
fi
command -v debootstrap >/dev/null || quiet apt-get -q -y install --no-install-recommends debootstrap
if [ ! -e "$root/usr/bin/apt-get" ]; then
	say "making a root of $release (a minute)"
	# Killed half-way, it would leave /proc mounted there.
	quiet unshare --mount --fork --propagation private debootstrap --variant=minbase "$release" "$root" "$mirror"
fi
apt_sources deb "$release" | sed 's/\[signed-by=[^]]*\] //' >"$root/etc/apt/sources.list"
# The packages' scripts would start a server of their own.
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod +x "$root/usr/sbin/policy-rc.d"
cp /etc/resolv.conf "$root/etc/resolv.conf"
cp /etc/hosts "$root/etc/hosts"
# How the mirror is reached is this machine's affair.
for conf in /etc/apt/apt.conf /etc/apt/apt.conf.d/*; do
	[ ! -e "$conf" ] || ! grep -qi 'proxy\|CaInfo' "$conf" || cp "$conf" "$root/etc/apt/apt.conf.d/"
done
say "installing its server"
export DEBIAN_FRONTEND=noninteractive
quiet inside apt-get -q update
quiet inside env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install "${packages[@]}"
[ -z "$wanted" ] || [ "$wanted" = "$(installed)" ] || from_pool
touch "$root/.complete"
