#!/bin/bash
# Whether the package is as it should be: what it holds and wants, that a server started from an unpacked copy of it has
# the engine, and that another version of the server is not good enough.
#   test.sh PACKAGE DIRECTORY
set -eu
tree=$(cd "$(dirname "$0")/../../.." && pwd)
package=$1 directory=$2
rm -rf "$directory"
mkdir -p "$directory"
directory=$(cd "$directory" && pwd)
die() { echo "package: $*"; exit 1; }
server=$(dpkg-query -W -f='${Version}' mariadb-server-core)
listed=$(dpkg-deb -c "$package")
for file in usr/lib/mysql/plugin/ha_weir.so usr/bin/weir-backup usr/bin/weir etc/mysql/mariadb.conf.d/weir.cnf \
	usr/share/doc/mariadb-plugin-weir/copyright usr/share/doc/mariadb-plugin-weir/changelog.Debian.gz; do
	grep -q "root/root .* \./$file\$" <<<"$listed" || die "no $file that is root's"
done
grep -qv 'root/root' <<<"$listed" && die "not all files are root's"
grep -E '^-.{7}w' <<<"$listed" && die "a file that any user may write"
notices=$(dpkg-deb --fsys-tarfile "$package" | tar -xO ./usr/share/doc/mariadb-plugin-weir/copyright)
grep -q "^---- parking_lot " <<<"$notices" || die "the notices of the crates that are linked into it are missing"
depends=$(dpkg-deb -f "$package" Depends)
[[ $depends == *"mariadb-server-core (= $server)"* ]] || die "depends on $depends"
[[ $depends == *libc6* ]] || die "the libraries that it needs are not named: $depends"
grep -aq "$tree\|${CARGO_HOME:-$HOME/.cargo}" <(dpkg-deb --fsys-tarfile "$package") && die "paths of this machine are in it"
if command -v lintian >/dev/null; then
	lintian --fail-on error "$package" || die "lintian"
fi

# Into a root of its own; dpkg itself looks at the dependencies.
root=$directory/root
mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates"
: >"$root/var/lib/dpkg/status"
install() { dpkg --root="$root" --force-not-root --force-script-chrootless --log=/dev/null "$@" >"$directory/dpkg.log" 2>&1; }
pretend() { # version of the server
	local name
	: >"$root/var/lib/dpkg/status"
	for name in mariadb-server-core libc6 libgcc-s1 libstdc++6; do
		printf 'Package: %s\nStatus: install ok installed\nArchitecture: %s\nMaintainer: x <x@localhost>\nVersion: %s\nDescription: x\n\n' \
			$name "$(dpkg --print-architecture)" "$([ $name = mariadb-server-core ] && echo "$1" || dpkg-query -W -f='${Version}' $name)" >>"$root/var/lib/dpkg/status"
	done
}
pretend 1:10.11.1-1
install -i "$package" && die "installs for a server that it does not load in"
grep -q "mariadb-server-core (= $server)" "$directory/dpkg.log" || die "$(cat "$directory/dpkg.log")"
pretend "$server"
install -i "$package" || die "$(cat "$directory/dpkg.log")"

user=()
[ "$(id -u)" != 0 ] || user=(--user=root)
data=$directory/data
socket=$(mktemp -u /tmp/weir-deb-XXXXXX)
mariadb-install-db --no-defaults "${user[@]}" --datadir="$data" --auth-root-authentication-method=normal --skip-test-db >/dev/null 2>&1
# As the package's own configuration says, and nothing else.
mariadbd --defaults-file="$root/etc/mysql/mariadb.conf.d/weir.cnf" "${user[@]}" --datadir="$data" --socket="$socket" --pid-file="$data/pid" \
	--skip-networking --plugin-dir="$root/usr/lib/mysql/plugin" >"$directory/server.log" 2>&1 &
process=$!
trap 'kill $process 2>/dev/null; wait $process' EXIT
for _ in $(seq 3000); do
	mariadb-admin --no-defaults -uroot -S "$socket" ping >/dev/null 2>&1 && break
	kill -0 $process 2>/dev/null || break
	sleep 0.1
done
found=$(mariadb --no-defaults -uroot -S "$socket" -N -e "CREATE DATABASE d; CREATE TABLE d.t (a INT PRIMARY KEY) ENGINE=Weir;
	INSERT INTO d.t VALUES (1); SELECT engine FROM information_schema.tables WHERE table_schema='d'") || die "$(tail "$directory/server.log")"
[ "$found" = Weir ] || die "the table's engine is $found"
[ "$("$root/usr/bin/weir" check "$data/#weir" | tail -n 1)" = sound ] || die "the command weir does not fit the plugin"
mariadb --no-defaults -uroot -S "$socket" -e "UNINSTALL SONAME 'ha_weir'" 2>/dev/null && die "the engine can be taken away"
echo "package: $(basename "$package") installs for $server alone, and the server has the engine"
