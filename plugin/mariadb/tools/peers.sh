#!/bin/bash
# Fetches packages of the installed server's exact version and unpacks them below a directory, without installing
# them: other engines to compare with or to work with, and tools.
#   peers.sh DIRECTORY PACKAGE...
# Each that cannot be had is named, and the exit code is 1: what needs it does without, and says so.
set -eu
directory=$1
shift
version=$(dpkg-query -W -f='${Version}' mariadb-server-core)
mkdir -p "$directory"
directory=$(cd "$directory" && pwd)
missing=0
for package in "$@"; do
	[ ! -e "$directory/$package.is-$version" ] || continue
	# Downloaded by a user of apt's own, where there is one: the directory must not be ours alone.
	if (cd "$directory" && apt-get -qq download "$package=$version" 2>"$package.log"); then
		dpkg-deb -x "$directory/$package"_*.deb "$directory"
		rm -f "$directory/$package"_*.deb
		touch "$directory/$package.is-$version"
	else
		echo "peers: $package $version cannot be had:"
		tail -n 2 "$directory/$package.log"
		missing=1
	fi
done
exit $missing
