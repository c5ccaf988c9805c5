# Servers of a test's own, by name, below one directory. Sourced with $plugin and $directory set.

rm -rf "$directory"
mkdir -p "$directory"
directory=$(cd "$directory" && pwd)
plugins=$(cd "$(dirname "$plugin")" && pwd)
user=()
[ "$(id -u)" != 0 ] || user=(--user=root)
sockets=$(mktemp -d /tmp/weir-kill-XXXXXX)
# Those that are running, by process: a number may belong to another process later.
declare -A servers=()
# kill -9, and waits until it is gone.
slay() { # process
	unset "servers[$1]"
	kill -9 "$1" 2>/dev/null || return 0
	while kill -0 "$1" 2>/dev/null; do sleep 0.02; done
}
# From now on servers can be made to kill themselves at a step of a change of definitions (die.c): its number, from 0, goes
# into the file $die_at, which must not be there while a server starts.
can_die() {
	die_at=$directory/die
	cc -shared -fPIC -O1 -Wall -o "$die_at.so" "$here/die.c" -ldl
	export WEIR_SERVER_ENV="LD_PRELOAD=$die_at.so DIE=$die_at"
}
cleanup() {
	for pid in "${!servers[@]}"; do slay "$pid"; done
	rm -rf "$sockets"
}
trap cleanup EXIT

die() { echo "$(basename "$0" .sh): $*"; tail -n 15 "$directory"/*/server.log; exit 1; }
sql() { mariadb --no-defaults -uroot -S "$sockets/$1" -N "${@:2}"; }

# How the plugin is loaded.
loaded=(--plugin-load-add=ha_weir --weir=FORCE --weir-memory=64M --weir-log-capacity=16M --weir-store="${WEIR_STORE:-ANY}")
# Starts, or starts again, a server; $server is its process. Without --port it listens nowhere but on its socket.
start() { # name options...
	local name=$1 data=$directory/$1
	shift
	if [ ! -d "$data/mysql" ]; then
		mariadb-install-db --no-defaults "${user[@]}" --datadir="$data" --auth-root-authentication-method=normal \
			--skip-test-db >"$directory/install.log" 2>&1 || die "no data directory"
	fi
	read -ra variables <<<"${WEIR_SERVER_ENV:-}"
	rm -f "$sockets/$name"
	# Of its own: a server that starts removes the temporary files of others.
	mkdir -p "$sockets/$name.tmp"
	env "${variables[@]}" mariadbd --no-defaults "${user[@]}" --datadir="$data" --socket="$sockets/$name" --pid-file="$data/my.pid" \
		--tmpdir="$sockets/$name.tmp" --bind-address=127.0.0.1 --plugin-dir="$plugins" --plugin-maturity=experimental "${loaded[@]}" \
		--innodb-buffer-pool-size=32M "$@" \
		>>"$data/server.log" 2>&1 &
	server=$!
	servers[$server]=$name
	# The shell need not report its death.
	disown $server
	# The socket comes when all else is there: looking for it takes the server's processors no time.
	for _ in $(seq 9000); do
		[ -S "$sockets/$name" ] && mariadb-admin --no-defaults -uroot -S "$sockets/$name" ping >/dev/null 2>&1 && return
		kill -0 $server 2>/dev/null || die "$name does not start"
		sleep 0.01
	done
	die "$name does not answer"
}
