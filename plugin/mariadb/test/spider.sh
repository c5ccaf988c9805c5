#!/bin/bash
# Spider's tables over two servers whose tables are Weir's: rows go where they belong, a transaction over both is one,
# also when one of the two servers is killed between prepare and commit, and the shards add up.
#   spider.sh PLUGIN DIRECTORY PEERS      PEERS: where tools/peers.sh has unpacked mariadb-plugin-spider
set -eu
here=$(cd "$(dirname "$0")" && pwd)
plugin=$1 directory=$2 peers=$3
spider=$peers/usr/lib/mysql/plugin/ha_spider.so
[ -e "$spider" ] || spider=/usr/lib/mysql/plugin/ha_spider.so
[ -e "$spider" ] || { echo "spider: no mariadb-plugin-spider of this version: not tried"; exit 0; }
# Both plugins in one directory, for the server in front.
both=$(mktemp -d)
ln -s "$(realpath "$plugin")" "$both/ha_weir.so"
ln -s "$(realpath "$spider")" "$both/ha_spider.so"
plugin=$both/ha_weir.so
. "$here/servers.sh"
trap 'cleanup; rm -rf "$both"' EXIT
port=$((20000 + RANDOM % 10000))

# A shard listens on loopback alone. Each at an address of its own: Spider knows the members of a transaction by host.
shard() { start shard$1 --port=$((port + $1)) --server-id=$1 --bind-address=127.0.0.$1 --skip-name-resolve; }
for number in 1 2; do
	shard $number
	eval "shard$number=$server"
	sql shard$number -e "CREATE USER spider@'127.0.0.%' IDENTIFIED BY 'spider'; GRANT ALL ON *.* TO spider@'127.0.0.%'; CREATE DATABASE work; USE work;
		CREATE TABLE account (id INT PRIMARY KEY, owner VARCHAR(20), v INT NOT NULL, KEY (owner)) ENGINE=Weir"
done
start front --skip-networking --plugin-load-add=ha_weir --plugin-load-add=ha_spider --spider-internal-xa=1 --spider-support-xa=1
# What mariadb-plugin-spider sets up at the first start after it is installed.
for _ in $(seq 100); do
	[ -n "$(sql front -e "SELECT 1 FROM information_schema.tables WHERE table_schema='mysql' AND table_name='spider_xa'")" ] && break
	sleep 0.1
done
for number in 1 2; do
	sql front -e "CREATE SERVER shard$number FOREIGN DATA WRAPPER mysql OPTIONS (HOST '127.0.0.$number', PORT $((port + number)), DATABASE 'work', USER 'spider', PASSWORD 'spider')"
done
sql front -e "CREATE DATABASE work; USE work;
	CREATE TABLE account (id INT PRIMARY KEY, owner VARCHAR(20), v INT NOT NULL, KEY (owner)) ENGINE=SPIDER
		COMMENT='wrapper \"mysql\", table \"account\"' PARTITION BY RANGE (id) (
		PARTITION low VALUES LESS THAN (500) COMMENT='srv \"shard1\"', PARTITION high VALUES LESS THAN MAXVALUE COMMENT='srv \"shard2\"')"

sql front work -e "INSERT INTO account SELECT seq - 1, CONCAT('o', seq % 7), 0 FROM seq_1_to_1000"
counts="$(sql shard1 work -e 'SELECT COUNT(*), MAX(id) FROM account') $(sql shard2 work -e 'SELECT COUNT(*), MIN(id) FROM account')"
[ "$counts" = $'500\t499 500\t500' ] || die "the rows are not where they belong: $counts"
[ "$(sql front work -e "SELECT COUNT(*) FROM account WHERE owner='o3'")" = 143 ] || die "a key over both shards"
sql front work -e "BEGIN; UPDATE account SET v=v-5 WHERE id=1; UPDATE account SET v=v+5 WHERE id=999; COMMIT"
sql front work -e "BEGIN; UPDATE account SET v=v-7 WHERE id=2; UPDATE account SET v=v+7 WHERE id=998; ROLLBACK"
values="$(sql shard1 work -e 'SELECT SUM(v), SUM(v<>0) FROM account') $(sql shard2 work -e 'SELECT SUM(v), SUM(v<>0) FROM account')"
[ "$values" = $'-5\t1 5\t1' ] || die "transactions over both shards: $values"

# Money goes to and fro, and now this shard dies, now that one.
move() {
	local from to
	for _ in $(seq 300); do
		from=$((RANDOM % 500)) to=$((500 + RANDOM % 500))
		# A client that meets an error does not commit what came before it.
		echo "BEGIN NOT ATOMIC DECLARE EXIT HANDLER FOR SQLEXCEPTION ROLLBACK; START TRANSACTION;
			UPDATE account SET v=v-1 WHERE id=$from; UPDATE account SET v=v+1 WHERE id=$to; COMMIT; END//"
	done | sql front work --force --delimiter=// >/dev/null 2>&1 || true
}
# What a coordinator leaves prepared when a shard dies under it is decided by its own record, mysql.spider_xa.
declare -A ended=([COMMIT]=0 [ROLLBACK]=0)
decide() { # shard
	local name global branch end
	sql shard$1 -e "XA RECOVER FORMAT='SQL'" >"$directory/prepared"
	while read -r _ _ _ name; do
		IFS=, read -r global branch _ <<<"$name"
		end=$(sql front -e "SELECT status FROM mysql.spider_xa WHERE status='COMMIT' AND LEFT(data, gtrid_length + bqual_length)=CONCAT($global, $branch)")
		[ -n "$end" ] || end=ROLLBACK
		sql shard$1 -e "XA $end $name"
		ended[$end]=$((ended[$end] + 1))
	done <"$directory/prepared"
}
for round in $(seq 8); do
	victim=$((1 + round % 2)) movers=()
	for _ in 1 2 3 4; do move & movers+=($!); done
	sleep "0.$((RANDOM % 5 + 4))"
	eval "slay \$shard$victim"
	sleep 0.3
	shard $victim
	eval "shard$victim=$server"
	wait "${movers[@]}"
	decide 1
	decide 2
	sum=$(sql front work -e 'SELECT SUM(v) FROM account')
	[ "$sum" = 0 ] || die "round $round: half of a transaction over both shards is there: $sum"
done
for number in 1 2; do
	[ -z "$(sql shard$number work -e 'CHECK TABLE account' | grep -v OK)" ] || die "CHECK TABLE on shard $number"
done
moved=$(sql front work -e 'SELECT SUM(ABS(v)) FROM account')
[ "$moved" -gt 10 ] || die "hardly anything was moved"
echo "spider: two shards of Weir, a transaction over both is one, also with kill -9 of a shard, 8 times; of what was prepared then, ${ended[COMMIT]} committed, ${ended[ROLLBACK]} rolled back"
