#!/bin/bash
# WordPress, of Debian's package, driven by its own functions (wordpress/walk.php): one application of run.sh.
#   wordpress.sh install WORK             what it needs
#   wordpress.sh run WORK RESULTS         on the server of WEIR_SOCKET, whose default engine is ENGINE; "answer, tab, step" a line
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"
work=$2
case $1 in
install) packages php-cli php-mysql php-xml php-mbstring php-intl wordpress ;;
run)
	sql -e "CREATE OR REPLACE DATABASE wordpress; CREATE OR REPLACE USER app@localhost IDENTIFIED BY 'app'; GRANT ALL ON *.* TO app@localhost"
	run_php() { php -d memory_limit=1G -d error_reporting=0 "$here/wordpress/walk.php" "$WEIR_SOCKET" wordpress "$@"; }
	run_php install >"$3.log" 2>&1 || { tail "$3.log"; exit 1; }
	run_php walk >"$3"
	contents wordpress >>"$3"
	;;
esac
