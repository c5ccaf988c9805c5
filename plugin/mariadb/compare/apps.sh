#!/bin/bash
# Applications on InnoDB and on Weir in one server, in turns: MediaWiki takes pages, WordPress posts and comments, each by its own
# code, from Debian's packages.
#   apps.sh PLUGIN DIRECTORY [mediawiki] [wordpress]
# Prints what one page, post or comment took (medians of ROUNDS turns of N, the application's own start left out) and the median of
# the turns' ratios, with the quarters around it. Afterwards each table has as many rows in the one as in the other, and is
# whole. ROUNDS, N may be set from outside. Missing packages are installed with apt-get.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../apps/common.sh"
: "${ROUNDS:=12}" "${N:=30}" "${LOG_MIB:=64}" "${POOL_MIB:=256}"
if [ "${1:-}" != --inside ]; then
	[ $# -ge 2 ] || { sed -n '2,7p' "$0" | sed 's/^# \?//'; exit 2; }
	plugin=$(realpath "$1") directory=$2
	shift 2
	mkdir -p "$directory"
	work=$directory
	packages php-cli php-mysql php-xml php-mbstring php-intl "${@:-mediawiki}"
	. "$here/options.sh"
	export ROUNDS N
	exec "$here/../tools/server.sh" "$plugin" "$directory" --run "$here/apps.sh --inside $(realpath "$directory") $*" "${durable_options[@]}"
fi
directory=$2
shift 2
[ $# -gt 0 ] || set -- mediawiki wordpress
php() { command php -d memory_limit=1G -d mysqli.default_socket="$WEIR_SOCKET" -d error_reporting=0 "$@"; }
sql -e "CREATE OR REPLACE USER app@localhost IDENTIFIED BY 'app'; GRANT ALL ON *.* TO app@localhost"

# Both engines get the same database: what the application's own installation made of it.
both() { # application
	mariadb-dump --no-defaults -uroot -S "$WEIR_SOCKET" --skip-dump-date "$1" >"$directory/$1.sql"
	for engine in InnoDB Weir; do
		sql -e "DROP DATABASE IF EXISTS $1_$engine; CREATE DATABASE $1_$engine"
		sed "s/ENGINE=[A-Za-z]*/ENGINE=$engine/" "$directory/$1.sql" | sql "$1_$engine"
		[ "$(sql -e "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema='$1_$engine' AND engine<>'$engine'")" = 0 ]
	done
}
install_mediawiki() {
	sql -e "CREATE OR REPLACE DATABASE mediawiki"
	# What its installer makes for searching is of MyISAM, by its own choice; a FULLTEXT key is not what is measured.
	rm -rf "$directory/conf"
	mkdir -p "$directory/conf"
	php /usr/share/mediawiki/maintenance/install.php --confpath "$directory/conf" --dbtype mysql --dbserver "localhost:$WEIR_SOCKET" \
		--dbname mediawiki --dbuser app --dbpass app --installdbuser app --installdbpass app --server http://localhost --scriptpath /w \
		--pass "a long word of passage" wiki admin >"$directory/install.log" 2>&1 || { tail "$directory/install.log"; exit 1; }
	sql mediawiki -e "ALTER TABLE searchindex DROP INDEX si_title, DROP INDEX si_text, ENGINE=InnoDB"
	both mediawiki
	for engine in InnoDB Weir; do
		sed "s/^\$wgDBname = .*/\$wgDBname = 'mediawiki_$engine';/" "$directory/conf/LocalSettings.php" >"$directory/$engine.php"
		echo "\$wgMainCacheType = CACHE_NONE; \$wgDisableSearchUpdate = false; \$wgSearchType = 'SearchEngineDummy'; \$wgJobRunRate = 0;" >>"$directory/$engine.php"
	done
}
# A turn prints the seconds that it took, as the application's own process measured them.
turn_mediawiki() { # engine round
	awk -v n="$N" -v round="$2" -v dir="$directory/pages" 'BEGIN {
		srand(round)
		for (p = 0; p < n; p++) {
			file = dir "/Page_" round "_" p ".txt"
			for (w = 0; w < 300 + 700 * rand(); w++) {
				word = "w" int(exp(rand() * 9))
				printf "%s ", w % 23 == 0 ? "[[Page " int(rand() * round) " " int(rand() * n) "|" word "]]" : w % 61 == 0 ? "\n\n== " word " ==\n[[Category:C" int(rand() * 40) "]]" : word > file
			}
			close(file)
		}
	}'
	php "$here/../apps/mediawiki/take_pages.php" --conf "$directory/$1.php" "$directory/pages" "$2"
}
install_wordpress() {
	sql -e "CREATE OR REPLACE DATABASE wordpress"
	php "$here/../apps/wordpress/turns.php" "$WEIR_SOCKET" wordpress install >"$directory/install.log" 2>&1 || { tail "$directory/install.log"; exit 1; }
	both wordpress
}
turn_wordpress() { php "$here/../apps/wordpress/turns.php" "$WEIR_SOCKET" "wordpress_$1" "$N" "$2"; }

for application in "$@"; do
	"install_$application"
	for round in $(seq $((ROUNDS + 1))); do
		engines="InnoDB Weir"
		[ $((round % 2)) = 0 ] || engines="Weir InnoDB"
		for engine in $engines; do
			rm -rf "$directory/pages"
			mkdir -p "$directory/pages"
			"turn_$application" $engine "$round" | awk -v e=$engine -v r="$round" '/^took / { if (r > 1) print e, $2, $3; n++ } END { exit !n }' ||
				{ echo "apps: $application on $engine says no time"; exit 1; }
		done
	done >"$directory/turns"
	# The first turn warms up.
	for what in $(awk '{ print $2 }' "$directory/turns" | sort -u); do
		grep " $what " "$directory/turns" | awk -v what="$application $what" -v each="$N" '
			function sorted(a, n,   i, j, v) { for (i = 2; i <= n; i++) { v = a[i]; for (j = i - 1; j >= 1 && a[j] > v; j--) a[j + 1] = a[j]; a[j + 1] = v } }
			$1 == "InnoDB" { i[++ni] = $3 } $1 == "Weir" { w[++nw] = $3 }
			END {
				for (k = 1; k <= ni; k++) r[k] = i[k] / w[k]
				sorted(r, ni); sorted(i, ni); sorted(w, nw); m = int((ni + 1) / 2); q = int((ni + 3) / 4)
				printf "%-20s Weir / InnoDB %5.2f (%.2f to %.2f); ms each %.1f and %.1f\n", what, r[m], r[q], r[ni + 1 - q], w[m] * 1000 / each, i[m] * 1000 / each
			}'
	done
	for table in $(sql -e "SELECT table_name FROM information_schema.tables WHERE table_schema='${application}_Weir'"); do
		counts=$(sql -e "SELECT (SELECT COUNT(*) FROM ${application}_InnoDB.$table), (SELECT COUNT(*) FROM ${application}_Weir.$table)")
		[ "${counts%	*}" = "${counts#*	}" ] || { echo "apps: $table: rows of InnoDB and of Weir: $counts"; failed=1; }
		[ -z "$(sql -e "CHECK TABLE ${application}_Weir.$table" | grep -v OK)" ] || { echo "apps: CHECK TABLE $table"; failed=1; }
	done
	[ -z "${failed:-}" ] || exit 1
	echo "$application: as many rows in each of the $(sql -e "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema='${application}_Weir'") tables, all whole"
done
