#!/bin/bash
# The engine's files encrypted with a key of the server's key management (file_key_management): nothing that tables hold is seen
# in them, over kill -9 under load; which server opens them; what a table may ask for.
#   encrypted.sh PLUGIN DIRECTORY [ROUNDS [WEIR]]      WEIR: the command weir, for a backup with the server's key file
set -eu
here=$(cd "$(dirname "$0")" && pwd)
plugin=$1 directory=$2 rounds=${3:-2} weir=${4:-}
. "$here/servers.sh"
of_server=$(dirname "$(find "$(mariadbd --no-defaults --verbose --help 2>/dev/null | awk '$1 == "plugin-dir" { print $2 }')" -name file_key_management.so 2>/dev/null)")
if [ ! -f "$of_server/file_key_management.so" ]; then
	echo "encrypted: this server has no file_key_management: not tested"
	exit
fi
mkdir "$directory/plugins"
ln -s "$plugins/ha_weir.so" "$of_server/file_key_management.so" "$directory/plugins/"
plugins=$directory/plugins
key() { head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n'; }
printf '1;%s\n7;%s\n' "$(key)" "$(key)" >"$directory/keys"
printf '1;%s\n7;%s\n' "$(key)" "$(key)" >"$directory/others"
with=(--skip-networking --plugin-load-add=file_key_management --weir-encrypt=ON --weir-encryption-key-id=7)
mine=(--file-key-management-filename="$directory/keys")
start main "${with[@]}" "${mine[@]}"
sql main -e "CREATE DATABASE work; USE work;
	CREATE TABLE secretive (id INT PRIMARY KEY AUTO_INCREMENT, secret_column VARCHAR(200), long_one TEXT, KEY (secret_column)) ENGINE=Weir ENCRYPTED=YES;
	CREATE TABLE counted (w INT PRIMARY KEY, n INT NOT NULL) ENGINE=Weir; INSERT INTO counted VALUES (1, 0), (2, 0)"
sql main work -e "CREATE TABLE other (a INT) ENGINE=Weir ENCRYPTED=YES ENCRYPTION_KEY_ID=1" 2>"$directory/refused" && die "another key was accepted"
grep -q "one key encrypts" "$directory/refused" || die "not in words: $(cat "$directory/refused")"
sql main work -e "CREATE TABLE same (a INT) ENGINE=Weir ENCRYPTED=YES ENCRYPTION_KEY_ID=7; ALTER TABLE same ADD b INT; DROP TABLE same"
[ "$(sql main -e "SHOW STATUS LIKE 'weir_encryption_key_version'" | cut -f 2)" = 1 ] || die "the status does not say the key's version"
# Which tables are encrypted, and by which key, in the information schema; for those that may see it.
shows() { # server, what each table is
	local seen
	seen=$(sql "$1" -e "SELECT table_name, encryption_scheme, key_id, key_version, current_key_version FROM information_schema.weir_encryption ORDER BY 1" | tr '\t\n' '  ')
	[ "$seen" = "$2" ] || die "weir_encryption of $1: '$seen', not '$2'"
}
shows main "work/counted 1 7 1 1 work/secretive 1 7 1 1 "
sql main -e "CREATE USER plain@localhost"
[ "$(mariadb --no-defaults -uplain -S "$sockets/main" -NB -e "SELECT COUNT(*) FROM information_schema.weir_encryption")" = 0 ] ||
	die "one without the PROCESS privilege sees which tables there are"
sql main -e "DROP USER plain@localhost"

# Everything that is written is seen in the clear, or it is not.
shown() { grep -rlaE "known plaintext|secret_column|secretive" "$directory/main/#weir" || true; }
write() { # worker
	local n
	for n in $(seq 1000000); do
		echo "BEGIN; INSERT INTO secretive (secret_column, long_one) VALUES ('known plaintext $1 $n', REPEAT('known plaintext ', $n % 900));
			UPDATE counted SET n=n+1 WHERE w=$1; COMMIT;"
	done 2>/dev/null | sql main work >/dev/null 2>&1 || true
}
for ((round = 0; round < rounds; round++)); do
	write 1 &
	write 2 &
	sleep 3
	# However slow the machine.
	for _ in $(seq 300); do
		[ "$(sql main work -e "SELECT SUM(n) FROM counted")" -le $((20 * (round + 1))) ] || break
		sleep 0.2
	done
	slay "$server"
	wait
	[ -z "$(shown)" ] || die "in the clear: $(shown)"
	start main "${with[@]}" "${mine[@]}"
	[ "$(sql main work -e "SELECT SUM(n) FROM counted")" = "$(sql main work -e "SELECT COUNT(*) FROM secretive WHERE secret_column LIKE 'known plaintext%'")" ] ||
		die "rows and their number differ"
	[ -z "$(sql main -e "CHECK TABLE work.secretive, work.counted" | grep -v OK)" ] || die "CHECK TABLE"
done
rows=$(sql main work -e "SELECT COUNT(*), MAX(id) FROM secretive")
[ "${rows%%	*}" -gt 10 ] || die "nothing was done: $rows"
# What is looked for would be seen: of a table that is not encrypted.
sql main work -e "CREATE TABLE clear ENGINE=Aria SELECT secret_column FROM secretive LIMIT 10; FLUSH TABLES clear"
grep -qa "known plaintext" "$directory/main/work/clear.MAD" || die "the look at files sees nothing"
mariadb-admin --no-defaults -uroot -S "$sockets/main" shutdown
while kill -0 "$server" 2>/dev/null; do sleep 0.1; done
unset "servers[$server]"
[ -z "$(shown)" ] || die "in the clear: $(shown)"

if [ -n "$weir" ]; then
	start main "${with[@]}" "${mine[@]}"
	"$weir" backup "$directory/main/#weir" "$directory/full" && die "a backup that could not be verified"
	"$weir" backup "$directory/main/#weir" "$directory/full" --key-file "$directory/keys"
	slay "$server"
	! grep -qa "known plaintext" "$directory/full" || die "the backup is in the clear"
	cp -a "$directory/main" "$directory/again"
	rm -rf "$directory/again/#weir"
	"$weir" restore "$directory/again/#weir" "$directory/full" --key-file "$directory/keys"
	"$weir" check "$directory/again/#weir" --key-file "$directory/keys" | tail -n 1
	start again "${with[@]}" "${mine[@]}"
	[ "$(sql again work -e "SELECT COUNT(*), MAX(id) FROM secretive")" = "$rows" ] || die "the backup lacks rows"
	slay "$server"
fi

# Other keys, and none: the server says so, and does not start (--weir=FORCE).
refused() { # words options...
	local words=$1
	shift
	: >"$directory/main/server.log"
	if (start main --skip-networking --plugin-load-add=file_key_management "$@") >/dev/null 2>&1; then die "started with $*"; fi
	grep -q "$words" "$directory/main/server.log" || die "no '$words' with $*"
}
refused "key 7, version 1" "${mine[@]}"
refused "another key" --file-key-management-filename="$directory/others" --weir-encrypt=ON
start main "${with[@]}" "${mine[@]}"
[ "$(sql main work -e "SELECT COUNT(*), MAX(id) FROM secretive")" = "$rows" ] || die "rows are gone"
slay "$server"
start plain --skip-networking
sql plain -e "CREATE DATABASE work; CREATE TABLE work.t (a INT) ENGINE=Weir ENCRYPTED=YES" 2>"$directory/refused" && die "ENCRYPTED without encryption"
grep -q "weir_encrypt" "$directory/refused" || die "not in words: $(cat "$directory/refused")"
sql plain -e "CREATE TABLE work.t (a INT) ENGINE=Weir"
for how in "ENCRYPTED=YES" "ENCRYPTED=YES, ALGORITHM=COPY" "ADD b INT, ENCRYPTED=YES" "PARTITION BY LIST (a) (PARTITION one VALUES IN (1) ENCRYPTED='YES')"; do
	sql plain work -e "ALTER TABLE t $how" 2>"$directory/refused" && die "ALTER TABLE ... $how without encryption"
	grep -q "weir_encrypt" "$directory/refused" || die "ALTER TABLE ... $how, not in words: $(cat "$directory/refused")"
done
sql plain work -e "ALTER TABLE t ENCRYPTED=NO; ALTER TABLE t ADD b INT; ALTER TABLE t DROP b, ENCRYPTED=DEFAULT"
shows plain "work/t 0 NULL NULL NULL "
slay "$server"
echo "encrypted: nothing in the clear, over $rounds kills"
