#!/bin/sh
# What was laid out as polycast-VERSION-linux-x86_64.tar.gz, to be unpacked anywhere:
#   packaging/portable/archive.sh STAGE OUT
set -eu
stage=$(cd "$1" && pwd)
mkdir -p "$2"
version=$("$stage/bin/polycast" --version | cut -d ' ' -f 2)
name=polycast-$version-linux-$(uname -m)
tar -C "$stage" --transform "s,^\.,$name,S" --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX -c . | gzip -9n >"$2/.new"
mv "$2/.new" "$2/$name.tar.gz"
echo "archive: $2/$name.tar.gz"
