#!/bin/bash
# SQLAlchemy's own suite, those tests of it that a database answers: one application of run.sh.
#   sqlalchemy.sh install WORK                  its source of the Python registry, and what it needs, below WORK
#   sqlalchemy.sh run WORK RESULTS [TEST...]    on the server of WEIR_SOCKET, whose default engine is ENGINE; "outcome, tab, test" a line
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"
work=$2
case $1 in
install)
	python_with "$work" mysqlclient 'greenlet>=1' 'typing-extensions>=4.6' 'pytest>=7,<9'
	source_of "$work" sqlalchemy 2.0.58
	;;
run)
	export RESULTS=$3
	shift 3
	[ $# -gt 0 ] || set -- test
	sql -e "CREATE OR REPLACE DATABASE test; CREATE OR REPLACE DATABASE test_schema"
	[ "$(sql -e "SELECT engine FROM information_schema.engines WHERE support='DEFAULT'")" = "$ENGINE" ]
	cd "$work/sqlalchemy"
	# Types are mypy's affair, call counts that of one version of Python.
	PYTHONPATH=$here/sqlalchemy:lib "$work/python/bin/python" -m pytest -p outcomes -p no:cacheprovider -q --maxfail=100000 \
		--backend-only --nomypy --ignore=test/aaa_profiling --disable-asyncio --log-level=CRITICAL \
		--dburi "mariadb+mysqldb://root@localhost/test?charset=utf8mb4&unix_socket=$WEIR_SOCKET" "$@" || [ $? = 1 ]
	;;
esac
