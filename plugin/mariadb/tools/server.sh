#!/bin/bash
# A private MariaDB with Weir, on a socket below a directory of ours. It ends with this script.
#   server.sh PLUGIN DIRECTORY [server options...]          runs until Ctrl-C
#   server.sh PLUGIN DIRECTORY --run COMMAND [options...]   runs COMMAND (a shell line), then stops
set -eu
plugin=$1 directory=$2
shift 2
command=
if [ "${1:-}" = --run ]; then
	command=$2
	shift 2
fi
mkdir -p "$directory"
directory=$(cd "$directory" && pwd)
plugins=$(cd "$(dirname "$plugin")" && pwd)
data=$directory/mariadb
# A socket's path is at most 107 bytes.
socket=$data/my.sock
[ ${#socket} -lt 100 ] || socket=$(mktemp -u /tmp/weir-XXXXXX.sock)
user=()
[ "$(id -u)" != 0 ] || user=(--user=root)

# Temporary files of its own: a server that starts removes those that others have in /tmp.
mkdir -p "$directory/tmp"
if [ ! -d "$data/mysql" ]; then
	mariadb-install-db --no-defaults "${user[@]}" --datadir="$data" --tmpdir="$directory/tmp" --auth-root-authentication-method=normal \
		--skip-test-db >"$directory/install.log" 2>&1 || { cat "$directory/install.log"; exit 1; }
fi
# Variables for the server alone: a sanitizer's library is nothing for the clients.
read -ra variables <<<"${WEIR_SERVER_ENV:-}"
env "${variables[@]}" mariadbd --no-defaults "${user[@]}" --datadir="$data" --socket="$socket" --pid-file="$data/my.pid" \
	--tmpdir="$directory/tmp" --skip-networking --plugin-dir="$plugins" --plugin-maturity=experimental --plugin-load-add=ha_weir \
	--weir=FORCE "$@" >"$data/server.log" 2>&1 &
server=$!
stop() {
	kill -TERM $server 2>/dev/null || true
	wait $server || true
}
trap stop EXIT
trap 'exit 130' INT TERM
for _ in $(seq 300); do
	mariadb-admin --no-defaults -uroot -S "$socket" ping >/dev/null 2>&1 && break
	kill -0 $server 2>/dev/null || { tail -n 20 "$data/server.log"; exit 1; }
	sleep 0.1
done
export WEIR_SOCKET=$socket
if [ -n "$command" ]; then
	bash -c "$command"
	exit
fi
mariadb --no-defaults -uroot -S "$socket" -e 'CREATE DATABASE IF NOT EXISTS weir'
echo "MariaDB with Weir is up. Connect:  mariadb -uroot -S $socket weir"
echo "and say:  CREATE TABLE t (id INT PRIMARY KEY, name TEXT) ENGINE=Weir;"
echo "Its log: $data/server.log. Ctrl-C stops it; the data stay."
wait $server
