#!/bin/bash
# What an ALTER that takes long is at: stages of the performance schema, with how much of each is done.
#   stages.sh PLUGIN DIRECTORY
set -eu
here=$(cd "$(dirname "$0")" && pwd)
plugin=$1 directory=$2
. "$here/servers.sh"
start main --skip-networking --performance-schema=ON --performance-schema-instrument='stage/weir/%=ON' \
	--performance-schema-consumer-events-stages-current=ON --performance-schema-consumer-events-stages-history=ON \
	--performance-schema-consumer-events-stages-history-long=ON
sql main -e "CREATE DATABASE d; USE d; CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT) ENGINE=Weir;
	INSERT INTO t SELECT seq, seq%1000, seq%77 FROM seq_1_to_50000; ANALYZE TABLE t" >/dev/null
stages() { # how the statement is done, then its stages, each: name, done, expected
	sql main d -e "TRUNCATE performance_schema.events_stages_history_long; ALTER TABLE t $1;
		SELECT REPLACE(event_name, 'stage/weir/', ''), work_completed, work_estimated FROM performance_schema.events_stages_history_long
		WHERE event_name LIKE 'stage/weir/%' ORDER BY event_id"
}
# Of two indexes 50,000 rows are read and 100,000 entries loaded: reported each 1,024 steps.
has() { # stages name steps
	awk -F'\t' -v name="$2" -v steps="$3" '$1 ~ name && $2 <= steps && $2 > steps - 1024 && $3 >= $2 && $3 < steps * 1.5 { found = 1 } END { exit !found }' \
		<<<"$1" || die "no stage '$2' of $3 steps: $1"
}
said=$(stages "ADD KEY ka (a), ADD KEY kb (b), ALGORITHM=INPLACE")
has "$said" 'reading rows' 50000
has "$said" 'loading index entries' 100000
said=$(stages "FORCE, ALGORITHM=COPY")
has "$said" 'loading index entries' 100000
[[ "$said" != *'reading rows'* ]] || die "a copy that reads: $said"
[ "$(sql main -e "SELECT COUNT(*) FROM information_schema.processlist WHERE state LIKE 'altering table%'")" = 0 ] || die "a state that stays"
echo "stages: an ALTER reports its stages and how far it is"
