#!/bin/bash
# Fetches packages of the installed server's exact version and unpacks them below a directory, without installing
# them: other engines to compare with or to work with, and tools. The libraries that they need are installed.
#   peers.sh DIRECTORY PACKAGE...
# A version that a mirror's index does not list any more may be in its pool (no index's signature covers it then). Each that cannot
# be had is named, and the exit code is 1: what needs it does without, and says so.
set -eu
. "$(dirname "$0")/sources.sh"
directory=$1
shift
version=$(dpkg-query -W -f='${Version}' mariadb-server-core)
mkdir -p "$directory"
directory=$(cd "$directory" && pwd)
missing=0
from_pool() { # package
	local mirror
	while read -r mirror; do
		! fetch_from_pool "${mirror%/}" "$1_${version#*:}_$(dpkg --print-architecture).deb" "$directory" "$directory/$1.pool.log" || return 0
	done < <(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | sort -u)
	return 1
}
# Of what a package depends on, the libraries that are not here.
lacking() { # file
	dpkg-deb -f "$1" Depends | tr ',' '\n' | sed 's/^ *\([^ (|:]*\).*/\1/' | grep '^lib' | while read -r library; do
		dpkg -s "$library" >/dev/null 2>&1 || echo "$library"
	done
}
with_libraries() { # package
	local libraries
	mapfile -t libraries < <(lacking "$directory/$1"_*.deb)
	[ ${#libraries[@]} = 0 ] ||
		DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=120 install --no-install-recommends "${libraries[@]}" >"$directory/$1.log" 2>&1
}
for package in "$@"; do
	[ ! -e "$directory/$package.is-$version" ] || continue
	# Downloaded by a user of apt's own, where there is one: the directory must not be ours alone.
	if (cd "$directory" && apt-get -qq download "$package=$version" 2>"$package.log") || from_pool "$package" && with_libraries "$package"; then
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
