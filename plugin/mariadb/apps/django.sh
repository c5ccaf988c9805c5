#!/bin/bash
# Django's own suite, those tests of it that may use a database: one application of run.sh.
#   django.sh install WORK                  its source of the Python registry, and what it needs, below WORK
#   django.sh run WORK RESULTS [TEST...]    on the server of WEIR_SOCKET, whose default engine is ENGINE; "outcome, tab, test" a line
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"
work=$2
case $1 in
install)
	python_with "$work" mysqlclient 'asgiref>=3.8.1' 'sqlparse>=0.3.1' 'Pillow>=6.2.1' 'jinja2>=2.11' docutils PyYAML tblib tzdata
	source_of "$work" django 5.2.19
	;;
run)
	export RESULTS=$3
	shift 3
	cd "$work/django/tests"
	PYTHONPATH=$here/django:.. "$work/python/bin/python" -W ignore runtests.py --settings=settings --noinput --parallel=1 --exclude-tag=selenium "$@" ||
		[ $? = 1 ]
	;;
esac
