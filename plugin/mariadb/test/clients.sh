# Syncs that can be held back or fail (sync.c: $sync.hold, $sync.here, $sync.fail), and clients of the server `main` that commit
# meanwhile. Sourced behind servers.sh.
sync=$directory/sync
cc -shared -fPIC -O1 -Wall -o "$sync.so" "$here/sync.c" -ldl
export WEIR_SERVER_ENV="LD_PRELOAD=$sync.so SYNC=$sync"

# Several at once, so that most are left to the thread that syncs for all.
sessions() { # first statement-with-%d
	local n
	clients=()
	for n in 0 1 2 3 4; do
		# shellcheck disable=SC2059
		printf "$2; SELECT 'acknowledged';" $(($1 + n)) | mariadb --no-defaults -uroot -S "$sockets/main" -N d >"$directory/said.$n" 2>&1 &
		clients+=($!)
	done
}
acknowledged() { cat "$directory"/said.? | grep -cx acknowledged || true; }
# How many got an error, when all have ended: $errors.
ended() {
	local client
	errors=0
	for client in "${clients[@]}"; do wait "$client" || errors=$((errors + 1)); done
}
