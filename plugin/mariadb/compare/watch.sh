#!/bin/bash
# How long the disk itself stood still, with something under way and nothing done: looked at ten times a second, so that a
# second with few commits in it can be told from one of the engine's. What a limit of the kernel's holds back is not under way.
#   watch.sh DIRECTORY      of which device; until SIGTERM, and then says so
set -eu
read -r major minor <<<"$(stat -c '%Hd %Ld' "$1")"
begun=$EPOCHREALTIME before='' since=0 longest=0 when=0 looked=0
end() {
	[ $looked -gt 0 ] || { echo "the disk: not in /proc/diskstats"; exit; }
	echo "the disk: longest with something under way and nothing done $((longest / 1000)) ms, $((when / 1000000)) s after the beginning" \
		"(looked at $looked times)"
	exit
}
trap end TERM INT
# Waiting by a builtin: no process is made for it.
exec {nothing}<> <(:)
while :; do
	read -r -t 0.1 -u "$nothing" || true
	while read -r a b _ reads _ _ _ writes _ _ _ under_way _; do
		[ "$a" != "$major" ] || [ "$b" != "$minor" ] || break
	done </proc/diskstats
	[ "$a" = "$major" ] && [ "$b" = "$minor" ] || continue
	now=${EPOCHREALTIME/./} looked=$((looked + 1))
	if [ "$under_way" = 0 ] || [ "$before" != "$reads $writes" ]; then
		before="$reads $writes" since=$now
	elif [ $((now - since)) -gt $longest ]; then
		longest=$((now - since)) when=$((since - ${begun/./}))
	fi
done
