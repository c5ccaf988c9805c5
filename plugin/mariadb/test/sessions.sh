#!/bin/bash
# Scripted sessions, on InnoDB and on Weir, with the same answers: which statements wait, which are refused, which rows they see.
#   sessions.sh OUT [SCRIPT...]        (inside server.sh --run, which sets WEIR_SOCKET)
# A script (sessions/*.txt) has a line for each step: "1: SQL" runs SQL in session 1 and waits for the answer at most
# half a second; "1: -" waits for the answer that is owed, five seconds at most. (In one of the engines it may not be.)
# "1: DISCONNECT" ends the session; "1: ID" finds out its number for "2: KILL QUERY 1" and "2: KILL CONNECTION 1".
set -u
here=$(cd "$(dirname "$0")" && pwd)
out=$1
shift
[ $# -gt 0 ] || set -- "$here"/sessions/*.txt
exec perl "$here/sessions.pl" "$WEIR_SOCKET" "$out" "$@"
