# What depends on the moment or on chance, made the same: times, digests, tokens, passwords, the server's own words.
s/'20[0-9][0-9]-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-5][0-9]'/'TIME'/g
s/'202[5-9][01][0-9][0-3][0-9][0-2][0-9][0-5][0-9][0-5][0-9]'/'TIME'/g
s/0x3230\(3[0-9]\)\{12\}/TIME/g
s/\$P\$B[.\/0-9A-Za-z]*/PASSWORD/g
s/'1[6-9][0-9]\{8\}'/'SECONDS'/g
s/i:1[6-9][0-9]\{8\};/SECONDS;/g
# Numbers that MediaWiki draws for a page; what WordPress draws, and when it is to do what.
s/0\.[0-9]\{6,\}/DRAWN/g
/'cron'/d
/'\(secure_auth\|auth\|logged_in\|nonce\)_\(key\|salt\)'/d
/^-- \|^\/\*!/d
