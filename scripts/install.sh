#!/bin/sh
# Copies a folder as `make build` laid it out, readable for everybody whatever the umask was:
#   scripts/install.sh FROM TO
set -eu
# Of the folders, too.
umask 022
from=$1
to=$2
(cd "$from" && find . -type f) | while read -r file; do
    mode=644
    [ ! -x "$from/$file" ] || mode=755
    install -D -m "$mode" "$from/$file" "$to/$file"
done
(cd "$from" && find . -type l) | while read -r link; do
    mkdir -p "$(dirname "$to/$link")"
    rm -rf "${to:?}/$link"
    cp -P "$from/$link" "$to/$link"
done
echo "installed in $to: $(du -sh "$from" | cut -f 1)"
