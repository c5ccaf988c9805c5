#!/bin/bash
# Installs what building and testing the plugin needs, and nothing that is there already. The plugin loads only
# in the very version that it was built for, so the version is said once, here, and everything else asks the
# installed server. Leaves the server's source in $1 (a directory that is made).
set -eu
SOURCE_DIR=$1
# The newest release of bookworm whose source package can be had. A server of another version that is
# already installed is used as it is, if its source is in the archive or in $SOURCE_DIR.
# WEIR_MARIADB_VERSION asks for a certain one, and replaces what is installed.
WANTED=${WEIR_MARIADB_VERSION:-1:10.11.18-0+deb12u1}

say() { echo "plugin setup: $*"; }
installed() { dpkg-query -W -f='${Version}' "$1" 2>/dev/null || true; }
apt() { DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Dpkg::Use-Pty=0 "$@"; }
quiet() { "$@" >"$SOURCE_DIR/setup.log" 2>&1 || { tail -n 20 "$SOURCE_DIR/setup.log"; exit 1; }; }

mkdir -p "$SOURCE_DIR"
SOURCE_DIR=$(cd "$SOURCE_DIR" && pwd)
have=$(installed mariadb-server-core)
[ -n "$have" ] && [ -z "${WEIR_MARIADB_VERSION:-}" ] && WANTED=$have

packages=(mariadb-server mariadb-server-core mariadb-client mariadb-client-core mariadb-common
	libmariadb3 libmariadb-dev libmariadbd-dev libmariadbd19 mariadb-test mariadb-test-data
	mariadb-plugin-provider-{bzip2,lz4,lzma,lzo,snappy})
missing=()
for package in "${packages[@]}"; do
	[ "$(installed "$package")" = "$WANTED" ] || missing+=("$package=$WANTED")
done
for package in g++ libc6-dev dpkg-dev ca-certificates patch; do
	[ -n "$(installed "$package")" ] || missing+=("$package")
done

as_root() {
	[ "$(id -u)" = 0 ] || { say "missing, and not root: ${missing[*]} ($1)"; exit 1; }
}

# A deb-src line for each deb entry of bookworm's that is configured here, with its mirror, its suites and its key: in lines
# (one-line style) and in paragraphs (deb822), as apt itself understands them all.
sources() {
	local at=${WEIR_APT_SOURCES:-/etc/apt}
	cat "$at"/sources.list "$at"/sources.list.d/*.list 2>/dev/null | awk '
		$1 == "deb" {
			options = ""; first = 2
			if ($2 ~ /^\[/) { do options = options " " $first; while ($(first++) !~ /\]$/ && first <= NF) }
			if ($(first + 1) ~ /^bookworm/) { $1 = ""; print "deb-src" $0 }
		}'
	awk 'BEGIN { RS = ""; FS = "\n" } {
		split("", field); name = ""
		for (i = 1; i <= NF; i++) {
			if ($i ~ /^#/) continue
			if ($i ~ /^[ \t]/) { field[name] = field[name] " " $i; continue }
			at = index($i, ":"); name = tolower(substr($i, 1, at - 1)); field[name] = substr($i, at + 1)
		}
		if (field["types"] !~ /(^|[ \t])deb([ \t]|$)/ || tolower(field["enabled"]) ~ /no|false/) next
		key = field["signed-by"]; gsub(/^[ \t]+|[ \t]+$/, "", key)
		if (key !~ /^\//) key = ""
		n = split(field["uris"], uri, " "); m = split(field["suites"], suite, " ")
		for (u = 1; u <= n; u++) for (s = 1; s <= m; s++) if (suite[s] ~ /^bookworm/)
			print "deb-src " (key == "" ? "" : "[signed-by=" key "] ") uri[u] " " suite[s] " " field["components"]
	}' "$at"/sources.list.d/*.sources 2>/dev/null
	return 0
}

if [ ${#missing[@]} -gt 0 ]; then
	as_root "packages"
	say "installing ${missing[*]}"
	quiet apt update
	# The packages' scripts would start a server of their own; nobody asked for one.
	if [ ! -e /usr/sbin/policy-rc.d ]; then
		printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
		chmod +x /usr/sbin/policy-rc.d
		trap 'rm -f /usr/sbin/policy-rc.d' EXIT
	fi
	quiet apt install --no-install-recommends --allow-downgrades "${missing[@]}"
fi

# 1:10.11.18-0+deb12u1 -> 10.11.18
upstream=${WANTED#*:}
upstream=${upstream%%-*}
tree=$SOURCE_DIR/mariadb-$upstream
if [ ! -e "$tree/sql/handler.h" ]; then
	list=/etc/apt/sources.list.d/weir-mariadb-source.list
	if ! apt-cache showsrc mariadb 2>/dev/null | grep -q "^Version: $WANTED\$"; then
		as_root "a deb-src entry"
		say "adding a deb-src entry ($list)"
		sources >"$SOURCE_DIR/deb-src"
		[ -s "$SOURCE_DIR/deb-src" ] || { say "no deb entry of suite bookworm is configured in /etc/apt"; exit 1; }
		cp "$SOURCE_DIR/deb-src" "$list"
		quiet apt update
	fi
	say "fetching the source of mariadb $WANTED (115 MB)"
	(cd "$SOURCE_DIR" && apt-get -q source --download-only "mariadb=$WANTED") >"$SOURCE_DIR/setup.log" 2>&1 || {
		tail -n 5 "$SOURCE_DIR/setup.log"
		say "the archive does not have the source of the server that is installed, $WANTED."
		say "WEIR_MARIADB_VERSION=1:10.11.18-0+deb12u1 make plugin replaces the server by one whose source it has."
		exit 1
	}
	# Only what is compiled against.
	tar -xzf "$SOURCE_DIR"/mariadb_"$upstream".orig.tar.gz -C "$SOURCE_DIR" --wildcards \
		'mariadb-*/sql/*.h' 'mariadb-*/include/*' 'mariadb-*/wsrep-lib/*' 'mariadb-*/storage/example/*' \
		'mariadb-*/sql/*.cc'
fi
echo "$tree" >"$SOURCE_DIR/current"
