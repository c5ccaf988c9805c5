#!/bin/bash
# Random statements of three sessions, in an order that is the same for both engines, until the seconds are over.
#   random_sessions.sh OUT SECONDS [SEED]      (inside server.sh --run, which sets WEIR_SOCKET)
# Without a seed each run has its own. Ends at the first script that is answered otherwise, and leaves both answers in OUT.
set -u
here=$(cd "$(dirname "$0")" && pwd)
out=$1 seconds=$2 seed=${3:-$((RANDOM * 32768 + RANDOM))}
mkdir -p "$out"
scripts=0
while [ $SECONDS -lt "$seconds" ]; do
	perl "$here/random_sessions.pl" "$WEIR_SOCKET" "$out" $seed 40 >"$out/said" || { cat "$out/said"; exit 1; }
	cat "$out/said" >>"$out/all"
	seed=$((seed + 1))
	scripts=$((scripts + 1))
done
waits=$(grep -o '[0-9]* waits' "$out/all" | awk '{ n += $1 } END { print n }')
echo "random sessions: $scripts scripts, in which sessions waited $waits times, same as InnoDB, but for $(grep -c ': open: ' "$out/all") that are open"
