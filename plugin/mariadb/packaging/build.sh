#!/bin/bash
# A Debian package of the plugin for the very version of the server that it was built for.
#   build.sh PLUGIN WEIR OUT     prints the package's path; WEIR: the command weir, which weir-backup needs
# With SERVER_ROOT the server is that of another system's root (tools/root.sh).
# A plugin of another point release is refused by the server: so the package depends on exactly one, and apt keeps back
# an upgrade of the server until there is a package for it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
plugin=$1 weir=$2
mkdir -p "$3"
out=$(cd "$3" && pwd)
root=$(cd "$here/../../.." && pwd)
server=$(dpkg-query --admindir="${SERVER_ROOT:-}/var/lib/dpkg" -W -f='${Version}' mariadb-server-core)
architecture=$(dpkg --print-architecture)
ours=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version *= *"\(.*\)"/\1/p' "$root/Cargo.toml")
# 0.1.0+mariadb10.11.18-0+deb12u1
version=$ours+mariadb${server#*:}
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
install -D -m 644 "$plugin" "$tree/usr/lib/mysql/plugin/ha_weir.so"
# Half the archive's weight is for debuggers.
strip --strip-unneeded "$tree/usr/lib/mysql/plugin/ha_weir.so"
install -D -m 755 "$here/../tools/weir-backup" "$tree/usr/bin/weir-backup"
install -D -m 755 "$weir" "$tree/usr/bin/weir"
strip --strip-unneeded "$tree/usr/bin/weir"
install -D -m 644 "$here/weir.cnf" "$tree/etc/mysql/mariadb.conf.d/weir.cnf"
doc=$tree/usr/share/doc/mariadb-plugin-weir
install -D -m 644 "$here/../README.md" "$doc/README.md"
for page in settings moving backup servers differences alter full-text; do
	install -D -m 644 "$here/../../../docs/mariadb/$page.md" "$doc/$page.md"
done
{
	echo "The plugin's own files: GPL-2.0; the server's headers that it includes are GPL-2.0."
	echo "On Debian systems the text is in /usr/share/common-licenses/GPL-2."
	echo
	echo "The engine that is linked into it, and the command weir: MIT or Apache-2.0, at your choice. MIT:"
	echo
	cat "$root/LICENSE-MIT"
	echo
	cargo run --quiet --locked --manifest-path "$root/Cargo.toml" --package xtask -- notices weir-capi weir-cli
} >"$doc/copyright"
{
	echo "mariadb-plugin-weir ($version) unstable; urgency=medium"
	echo
	echo "  * Built for mariadb-server $server."
	echo
	echo " -- The Weir project <weir@localhost>  $(date -u -R -r "$plugin")"
} | gzip -9n >"$doc/changelog.Debian.gz"
gzip -9n "$doc/README.md"
chmod 644 "$doc"/*
# What the loader will look for, as Debian's own packages find it.
needs=$(cd "$tree" && mkdir -p debian && : >debian/control && dpkg-shlibdeps -O --ignore-missing-info \
	-eusr/lib/mysql/plugin/ha_weir.so -eusr/bin/weir 2>/dev/null | sed -n 's/^shlibs:Depends=//p')
rm -rf "$tree/debian"
mkdir -p "$tree/DEBIAN"
echo /etc/mysql/mariadb.conf.d/weir.cnf >"$tree/DEBIAN/conffiles"
cat >"$tree/DEBIAN/control" <<CONTROL
Package: mariadb-plugin-weir
Version: $version
Architecture: $architecture
Maintainer: The Weir project <weir@localhost>
Installed-Size: $(du -k -s --exclude=DEBIAN "$tree" | cut -f 1)
Depends: mariadb-server-core (= $server)${needs:+, $needs}
Recommends: mariadb-server (= $server)
Suggests: mariadb-backup (= $server)
Section: database
Priority: optional
Description: Weir storage engine for MariaDB
 ENGINE=Weir: transactions, rows locked one by one and consistent reads, with a
 throughput line that is flat and nothing to tune. Loaded at the next start of
 the server.
CONTROL
(cd "$tree" && find . -path ./DEBIAN -prune -o -type f -printf '%P\0' | sort -z | xargs -0 md5sum) >"$tree/DEBIAN/md5sums"
chmod 644 "$tree"/DEBIAN/*
find "$tree" -type d -exec chmod 755 {} +
package=$out/mariadb-plugin-weir_${version}_$architecture.deb
dpkg-deb --root-owner-group -Zxz --build "$tree" "$package" >/dev/null
echo "$package"
