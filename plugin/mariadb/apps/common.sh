# What the applications share: sourced by each.
sql() { mariadb --no-defaults -uroot -S "$WEIR_SOCKET" -N "$@"; }

# Debian's packages, if they are missing.
packages() {
	local missing=() package
	for package in "$@"; do
		dpkg -s "$package" >/dev/null 2>&1 || missing+=("$package")
	done
	[ ${#missing[@]} = 0 ] || {
		{ apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends "${missing[@]}"; } >"$work/packages.log" 2>&1 || {
			tail -n 5 "$work/packages.log"
			echo "apps: these packages cannot be installed: ${missing[*]}"
			exit 1
		}
	}
}

# A Python of its own, below WORK, with packages of the registry.
python_with() { # WORK PACKAGE...
	local python=$1/python
	shift
	packages gcc pkg-config libmariadb-dev
	if [ ! -x "$python/bin/pip" ]; then
		python3 -c 'import ensurepip, venv' 2>/dev/null || packages python3-venv python3-dev
		python3 -m venv "$python"
	fi
	"$python/bin/pip" install --quiet "$@"
}

# A package's source with its tests, below WORK (pip asks it for its metadata, which takes a while).
source_of() { # WORK PACKAGE VERSION
	[ ! -e "$1/$2/.version-$3" ] || return 0
	rm -rf "${1:?}/$2" "$1/download"
	"$1/python/bin/pip" download --quiet --no-deps --no-binary :all: --dest "$1/download" "$2==$3"
	mkdir -p "$1/$2"
	tar -xzf "$1/download"/*.tar.gz -C "$1/$2" --strip-components=1
	rm -rf "$1/download"
	touch "$1/$2/.version-$3"
}

# A database's tables, all of which are the engine's and whole: each with its rows, as "digest, tab, table". What depends on the
# moment is made the same: times, and what is drawn by chance (digests, tokens, passwords). Of the tables that the second argument
# lists, it is only asked whose they are, and whether they are whole.
contents() { # DATABASE [TABLES-NOT-COMPARED]
	local table
	sql -e "SELECT 'not of $ENGINE', table_name FROM information_schema.tables WHERE table_schema='$1' AND engine<>'$ENGINE' ORDER BY table_name"
	for table in $(sql -e "SELECT table_name FROM information_schema.tables WHERE table_schema='$1' ORDER BY table_name"); do
		[ -z "$(sql -e "CHECK TABLE $1.$table" | grep -v 'OK$')" ] || echo "not whole	$table"
		[[ " ${2:-} " != *" $table "* ]] || continue
		mariadb-dump --no-defaults -uroot -S "$WEIR_SOCKET" --skip-dump-date --skip-comments --skip-extended-insert --order-by-primary \
			--hex-blob "$1" "$table" | sed -f "$here/moments.sed" -e "s/ENGINE=$ENGINE//" >"$dumps/$table"
		echo "$(grep -c '^INSERT' "$dumps/$table") rows, $(md5sum <"$dumps/$table" | cut -c1-12)	$table"
	done
}
