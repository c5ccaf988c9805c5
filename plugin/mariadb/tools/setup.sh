#!/bin/bash
# Installs what building and testing the plugin needs, and nothing that is there already. The plugin loads only
# in the very version that it was built for, so the version is said once, here, and everything else asks the
# installed server. Leaves the server's source in $1 (a directory that is made).
# With SERVER_ROOT the server is that of another system's root (tools/root.sh): only its source is got.
# A directory $1 that has the headers of that version already is used as it is, wherever they came from:
#   $1/mariadb-VERSION/{sql,include,wsrep-lib}
set -eu
SOURCE_DIR=$1
SERVER_ROOT=${SERVER_ROOT:-}
here=$(cd "$(dirname "$0")" && pwd)
. "$here/sources.sh"
# The newest release of bookworm whose source package can be had. A server of another version that is
# already installed is used as it is, if its source is in the archive or in $SOURCE_DIR.
# WEIR_MARIADB_VERSION asks for a certain one, and replaces what is installed.
WANTED=${WEIR_MARIADB_VERSION:-1:10.11.18-0+deb12u1}

say() { echo "plugin setup: $*"; }
installed() { dpkg-query --admindir="$SERVER_ROOT/var/lib/dpkg" -W -f='${Version}' "$1" 2>/dev/null || true; }
apt() { DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Dpkg::Use-Pty=0 "$@"; }
quiet() { "$@" >"$SOURCE_DIR/setup.log" 2>&1 || { tail -n 20 "$SOURCE_DIR/setup.log"; exit 1; }; }

mkdir -p "$SOURCE_DIR"
SOURCE_DIR=$(cd "$SOURCE_DIR" && pwd)
have=$(installed mariadb-server-core)
[ -n "$have" ] && [ -z "${WEIR_MARIADB_VERSION:-}" -o -n "$SERVER_ROOT" ] && WANTED=$have
[ -z "$SERVER_ROOT" ] || [ -n "$have" ] || { say "there is no server in $SERVER_ROOT"; exit 1; }

packages=(mariadb-server mariadb-server-core mariadb-client mariadb-client-core mariadb-common
	libmariadb3 libmariadb-dev libmariadbd-dev libmariadbd19 mariadb-test mariadb-test-data
	mariadb-plugin-provider-{bzip2,lz4,lzma,lzo,snappy})
missing=()
[ -z "$SERVER_ROOT" ] || packages=()
for package in "${packages[@]}"; do
	[ "$(installed "$package")" = "$WANTED" ] || missing+=("$package=$WANTED")
done
for package in g++ libc6-dev dpkg-dev ca-certificates patch; do
	[ -n "$(SERVER_ROOT='' installed "$package")" ] || missing+=("$package")
done

as_root() {
	[ "$(id -u)" = 0 ] || { say "missing, and not root: ${missing[*]} ($1)"; exit 1; }
}

if [ ${#missing[@]} -gt 0 ]; then
	as_root "packages"
	say "installing ${missing[*]}"
	quiet apt update
	# The packages' scripts would start a server of their own, which is not wanted.
	if [ ! -e /usr/sbin/policy-rc.d ]; then
		printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
		chmod +x /usr/sbin/policy-rc.d
		trap 'rm -f /usr/sbin/policy-rc.d' EXIT
	fi
	quiet apt install --no-install-recommends --allow-downgrades "${missing[@]}"
fi

# 1:10.11.18-0+deb12u1 -> 10.11.18; 1:11.8.9+ds-0+deb13u1 -> 11.8.9
upstream=${WANTED#*:}
upstream=${upstream%%-*}
upstream=${upstream%%+*}
tree=$SOURCE_DIR/mariadb-$upstream

# What to do where the archive does not have the source of a server that it has.
no_source() {
	tail -n 5 "$SOURCE_DIR/setup.log"
	say "the archive does not have the source of the server, $WANTED."
	if [ -n "$SERVER_ROOT" ]; then
		say "WEIR_MARIADB_VERSION=1:11.8.6-0+deb13u1 takes a version whose packages and source the pools of mirrors keep. Or the"
		say "headers come from elsewhere (MariaDB's own release of that very version): SOURCES_AT=DIRECTORY with"
		say "DIRECTORY/mariadb-$upstream/{sql,include,wsrep-lib} in it. What does not fit is refused when it is loaded, by name."
	else
		say "WEIR_MARIADB_VERSION=1:10.11.18-0+deb12u1 make plugin replaces the server by one whose source it has."
	fi
	exit 1
}

# The source of a version that the index does not list (any more), as its description in the pool says.
pool_source() { # release
	local mirror description=mariadb_${WANTED#*:}.dsc archive
	mirror=$(apt_mirror "$1")
	fetch_from_pool "$mirror" "$description" "$SOURCE_DIR" "$SOURCE_DIR/setup.log" || return
	archive=$(sed -n '/^Checksums-Sha256/,/^Files/p' "$SOURCE_DIR/$description" | awk '$3 ~ /\.orig\.tar\.[a-z]*$/ { print $1 "  " $3 }')
	fetch_from_pool "$mirror" "${archive##* }" "$SOURCE_DIR" "$SOURCE_DIR/setup.log" || return
	(cd "$SOURCE_DIR" && sha256sum --check --quiet - <<<"$archive") >"$SOURCE_DIR/setup.log" 2>&1
}

# Downloads the archives of the source package.
fetch_source() {
	if [ -n "$SERVER_ROOT" ]; then
		# By that system's own apt, which knows its suites.
		local release
		release=$(sed -n 's/^VERSION_CODENAME=//p' "$SERVER_ROOT/etc/os-release")
		apt_sources deb-src "$release" | sed 's/\[signed-by=[^]]*\] //' >"$SERVER_ROOT/etc/apt/sources.list.d/weir-mariadb-source.list"
		"$here/root.sh" "$SERVER_ROOT" --in "$SOURCE_DIR" sh -c "apt-get -q update && cd '$SOURCE_DIR' &&
			apt-get -q source --download-only 'mariadb=$WANTED'" >"$SOURCE_DIR/setup.log" 2>&1 || pool_source "$release"
		return
	fi
	local list=/etc/apt/sources.list.d/weir-mariadb-source.list
	if ! apt-cache showsrc mariadb 2>/dev/null | grep -q "^Version: $WANTED\$"; then
		as_root "a deb-src entry"
		say "adding a deb-src entry ($list)"
		apt_sources deb-src >"$SOURCE_DIR/deb-src"
		[ -s "$SOURCE_DIR/deb-src" ] || { say "no deb entry of suite bookworm is configured in /etc/apt"; exit 1; }
		cp "$SOURCE_DIR/deb-src" "$list"
		quiet apt update
	fi
	(cd "$SOURCE_DIR" && apt-get -q source --download-only "mariadb=$WANTED") >"$SOURCE_DIR/setup.log" 2>&1
}

if [ ! -e "$tree/sql/handler.h" ]; then
	say "fetching the source of mariadb $WANTED (115 MB)"
	fetch_source || no_source
	# Only what is compiled against.
	mkdir -p "$tree.new"
	tar -xf "$(ls "$SOURCE_DIR"/mariadb_"$upstream"*.orig.tar.*z | head -n 1)" -C "$tree.new" --strip-components=1 --wildcards \
		'*/sql/*.h' '*/include/*' '*/wsrep-lib/*' '*/storage/example/*' '*/sql/*.cc'
	mv "$tree.new" "$tree"
fi
echo "$tree" >"$SOURCE_DIR/current"
