# The package sources that this machine is configured with, for other suites of them, too. Sourced.

# A line (one-line style) for each deb entry of Debian 12's that is configured here, with its mirror, its suites and its key: from
# lines and from paragraphs (deb822), as apt itself understands them all.
#   apt_sources deb|deb-src [RELEASE]      with the suites of another release in the place of bookworm's
apt_sources() {
	local at=${WEIR_APT_SOURCES:-/etc/apt} kind=$1 release=${2:-bookworm}
	{
		cat "$at"/sources.list "$at"/sources.list.d/*.list 2>/dev/null | awk -v kind="$kind" '
			$1 == "deb" {
				options = ""; first = 2
				if ($2 ~ /^\[/) { do options = options " " $first; while ($(first++) !~ /\]$/ && first <= NF) }
				if ($(first + 1) ~ /^bookworm/) { $1 = ""; print kind $0 }
			}'
		awk -v kind="$kind" 'BEGIN { RS = ""; FS = "\n" } {
			split("", field); name = ""
			for (i = 1; i <= NF; i++) {
				if ($i ~ /^#/) continue
				if ($i ~ /^[ \t]/) { field[name] = field[name] " " $i; continue }
				at = index($i, ":"); name = tolower(substr($i, 1, at - 1)); field[name] = substr($i, at + 1)
			}
			if (field["types"] !~ /(^|[ \t])deb([ \t]|$)/ || tolower(field["enabled"]) ~ /no|false/) next
			key = field["signed-by"]; gsub(/^[ \t]+|[ \t]+$/, "", key)
			if (key !~ /^\//) key = ""
			n = split(field["uris"], uri, " "); m = split(field["suites"], suite, " ")
			for (u = 1; u <= n; u++) for (s = 1; s <= m; s++) if (suite[s] ~ /^bookworm/)
				print kind " " (key == "" ? "" : "[signed-by=" key "] ") uri[u] " " suite[s] " " field["components"]
		}' "$at"/sources.list.d/*.sources 2>/dev/null
	} | sed "s/ bookworm\([ -]\)/ $release\1/"
	return 0
}

# The mirror of a release (its main suite), of those configured here; none: nothing.
apt_mirror() { # RELEASE
	apt_sources deb "$1" | grep -m 1 " $1 " | sed 's/\[[^]]*\] //' | awk '{ print $2 }'
}

# One file of MariaDB's from a mirror's pool, by its name.
#   fetch_from_pool MIRROR FILE DIRECTORY LOG
fetch_from_pool() {
	/usr/lib/apt/apt-helper download-file "$1/pool/main/m/mariadb/${2//+/%2B}" "$3/$2" >"$4" 2>&1
}
