#!/bin/sh
# Installs what `cargo build` has made: the C interface as a shared and a static library with header and pkg-config file,
# the command weir, its manual pages, the licences. `make install` calls it.
#
#   install.sh BUILT VERSION [--remove]
#
# BUILT: the folder with libweir_capi.so, libweir_capi.a and weir; what of the last is missing is left out. VERSION: of
# the package. In the environment, as is usual: PREFIX (/usr/local), LIBDIR, INCLUDEDIR, BINDIR, MANDIR, DOCDIR, and
# DESTDIR, which is put before all of them and stands in no file. --remove: takes the same files away.
set -eu

built=$1 version=$2 remove=${3:-}
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../../..

prefix=${PREFIX:-/usr/local}
libdir=${LIBDIR:-$prefix/lib}
includedir=${INCLUDEDIR:-$prefix/include}
bindir=${BINDIR:-$prefix/bin}
mandir=${MANDIR:-$prefix/share/man}
docdir=${DOCDIR:-$prefix/share/doc/weir}
destdir=${DESTDIR:-}

for folder in "$prefix" "$libdir" "$includedir" "$bindir" "$mandir" "$docdir"; do
    case $folder in
        *[[:space:]\&\|\\]*) echo "install: '$folder' has a character that a pkg-config file cannot hold" >&2; exit 2 ;;
        /*) ;;
        *) echo "install: '$folder' is not absolute (PREFIX=$prefix)" >&2; exit 2 ;;
    esac
done

# libweir.so.0.1.0, of the interface libweir.so.0.1; see build.rs.
case $version in
    0.*) interface=$(echo "$version" | cut -d. -f1,2) ;;
    *) interface=${version%%.*} ;;
esac

if [ "$remove" = --remove ]; then
    rm -f "$destdir$libdir/libweir.so" "$destdir$libdir/libweir.so.$interface" "$destdir$libdir/libweir.so.$version" \
        "$destdir$libdir/libweir.a" "$destdir$libdir/pkgconfig/weir.pc" "$destdir$includedir/weir.h" \
        "$destdir$bindir/weir" "$destdir$mandir/man1/weir.1" "$destdir$mandir/man1"/weir-*.1 \
        "$destdir$docdir/birds.c" "$destdir$docdir/LICENSE-MIT" "$destdir$docdir/LICENSE-APACHE"
    rmdir "$destdir$docdir" 2>/dev/null || true
    exit 0
fi

for file in libweir_capi.so libweir_capi.a; do
    [ -f "$built/$file" ] || { echo "install: there is no $built/$file" >&2; exit 2; }
done

install -d "$destdir$libdir/pkgconfig" "$destdir$includedir" "$destdir$docdir"
install -m 755 "$built/libweir_capi.so" "$destdir$libdir/libweir.so.$version"
if [ "$interface" != "$version" ]; then
    ln -sf "libweir.so.$version" "$destdir$libdir/libweir.so.$interface"
fi
ln -sf "libweir.so.$interface" "$destdir$libdir/libweir.so"
install -m 644 "$built/libweir_capi.a" "$destdir$libdir/libweir.a"
install -m 644 "$here/../include/weir.h" "$destdir$includedir/weir.h"
install -m 644 "$here/../examples/birds.c" "$root/LICENSE-MIT" "$root/LICENSE-APACHE" "$destdir$docdir"
sed -e "s|@PREFIX@|$prefix|" -e "s|@LIBDIR@|$libdir|" -e "s|@INCLUDEDIR@|$includedir|" -e "s|@VERSION@|$version|" \
    "$here/weir.pc.in" > "$destdir$libdir/pkgconfig/weir.pc"
chmod 644 "$destdir$libdir/pkgconfig/weir.pc"

if [ -x "$built/weir" ]; then
    install -d "$destdir$bindir" "$destdir$mandir/man1"
    install -m 755 "$built/weir" "$destdir$bindir/weir"
    "$built/weir" man "$destdir$mandir/man1"
fi
