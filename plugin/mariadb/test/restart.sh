#!/bin/bash
# What is there after the server was stopped in order and started again.
#   restart.sh PLUGIN DIRECTORY
set -eu
here=$(cd "$(dirname "$0")" && pwd)
server() {
	"$here/../tools/server.sh" "$1" "$2" --run "mariadb --no-defaults -uroot -S \$WEIR_SOCKET -N --force 2>/dev/null" --weir-memory=64M \
		--weir-log-capacity=64M "${@:3}"
}
rm -rf "$2"
server "$1" "$2" <<'SQL' >/dev/null
CREATE DATABASE d; USE d;
CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(10), b TEXT, KEY(a)) ENGINE=Weir;
INSERT INTO t(a,b) VALUES ('x', REPEAT('long', 10000)), ('y', NULL), (NULL, '');
UPDATE t SET a='z' WHERE id=2;
DELETE FROM t WHERE id=3;
CREATE TEMPORARY TABLE gone (a INT) ENGINE=Weir;
XA START 'kept'; INSERT INTO t(a) VALUES ('xa'); XA END 'kept'; XA PREPARE 'kept';
SQL
got=$(server "$1" "$2" <<'SQL' || true
USE d;
SELECT id, a, LENGTH(b) FROM t;
XA RECOVER;
XA COMMIT 'kept';
INSERT INTO t(a) VALUES ('next');
SELECT id, a FROM t WHERE a IN ('xa', 'next') ORDER BY id;
CHECK TABLE t;
SELECT @@weir_durability, @@weir_memory, @@weir_log_capacity;
SET GLOBAL weir_log_capacity=134217728; SET weir_durability='LAZY'; INSERT INTO t(a) VALUES ('lazy');
SELECT @@weir_durability, @@weir_log_capacity, COUNT(*) FROM t;
SET GLOBAL weir_log_capacity=1000000000000;
SELECT COUNT(*) > 30 FROM information_schema.global_status WHERE variable_name LIKE 'weir%';
SELECT variable_value > 0 FROM information_schema.global_status WHERE variable_name = 'weir_commits';
DROP DATABASE d; CREATE DATABASE d; CREATE TABLE d.t (a INT) ENGINE=Weir; SELECT COUNT(*) FROM d.t;
SQL
)
got=$(printf '%s\n' "$got" | tr '\t' ' ')
want="1 x 40000
2 z NULL
1 4 0 kept
4 xa
5 next
d.t check status OK
SYNCED 67108864 67108864
LAZY 134217728 5
1
1
0"
[ "$got" = "$want" ] || { echo "restart: expected:"; echo "$want"; echo "got:"; echo "$got"; exit 1; }
echo "restart: rows, numbers, settings and a prepared transaction are there after a restart"
