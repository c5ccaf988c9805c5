#!/bin/bash
# MediaWiki, of Debian's package, driven by its own classes (mediawiki/walk.php), its search on a FULLTEXT key of the engine: one
# application of run.sh.
#   mediawiki.sh install WORK             what it needs
#   mediawiki.sh run WORK RESULTS         on the server of WEIR_SOCKET, whose default engine is ENGINE; "answer, tab, step" a line
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"
work=$2
at=/usr/share/mediawiki
case $1 in
install) packages php-cli php-mysql php-xml php-mbstring php-intl mediawiki ;;
run)
	sql -e "CREATE OR REPLACE DATABASE mediawiki; CREATE OR REPLACE USER app@localhost IDENTIFIED BY 'app'; GRANT ALL ON *.* TO app@localhost"
	conf=$3.conf
	rm -rf "$conf"
	mkdir -p "$conf"
	run_php() { php -d memory_limit=1G -d "mysqli.default_socket=$WEIR_SOCKET" -d error_reporting=0 "$@"; }
	run_php $at/maintenance/install.php --confpath "$conf" --dbtype mysql --dbserver "localhost:$WEIR_SOCKET" --dbname mediawiki \
		--dbuser app --dbpass app --installdbuser app --installdbpass app --server http://localhost --scriptpath /w \
		--pass "a long word of passage" wiki admin >"$3.log" 2>&1 || { tail "$3.log"; exit 1; }
	# Its installer names engines of its own choice.
	for table in $(sql -e "SELECT table_name FROM information_schema.tables WHERE table_schema='mediawiki' AND engine<>'$ENGINE'"); do
		sql mediawiki -e "ALTER TABLE $table ENGINE=$ENGINE"
	done
	echo '$wgMainCacheType = CACHE_NONE; $wgJobRunRate = 0; $wgSecretKey = "k"; $wgLocalTZoffset = 0;' >>"$conf/LocalSettings.php"
	run_php "$here/mediawiki/walk.php" --conf "$conf/LocalSettings.php" >"$3"
	run_php $at/maintenance/runJobs.php --conf "$conf/LocalSettings.php" >>"$3.log" 2>&1
	# Its own dump, and all of its pages once more from that.
	run_php $at/maintenance/dumpBackup.php --conf "$conf/LocalSettings.php" --full --quiet >"$3.xml"
	run_php $at/maintenance/importDump.php --conf "$conf/LocalSettings.php" --rootpage User:Again --quiet "$3.xml" >>"$3.log" 2>&1
	run_php $at/maintenance/rebuildtextindex.php --conf "$conf/LocalSettings.php" >>"$3.log" 2>&1
	run_php "$here/mediawiki/walk.php" --conf "$conf/LocalSettings.php" --searches >>"$3"
	# Sessions and caches, and work that is put off, go by the clock; users have tokens that are drawn.
	contents mediawiki 'job objectcache querycache querycachetwo querycache_info user l10n_cache module_deps site_stats' >>"$3"
	;;
esac
