#!/bin/sh
# Builds the plug-in for Slurm: packaging/slurm/build.sh LIBRARY_DIR. Needs Slurm's spank.h, of the Slurm that will load it;
# SLURM_CFLAGS=-I/opt/slurm/include where it lies elsewhere.
set -eu
library=$1
source=$(cd "$(dirname "$0")" && pwd)/spank_polycast.c
cc=${CC:-cc}
# shellcheck disable=SC2086
if ! echo '#include <slurm/spank.h>' | "$cc" ${SLURM_CFLAGS:-} -E -o /dev/null - 2>/dev/null; then
    echo "spank: slurm/spank.h is not found: expected libslurm-dev (Debian), slurm-devel (Fedora, openSUSE) or SLURM_CFLAGS=-I/opt/slurm/include" >&2
    exit 1
fi
mkdir -p "$library/slurm"
# shellcheck disable=SC2086
"$cc" -std=c17 -D_GNU_SOURCE -O2 -g -fPIC -fvisibility=default -Wall -Wextra -Werror ${SLURM_CFLAGS:-} -shared -o "$library/slurm/.new" "$source" -ldl
mv "$library/slurm/.new" "$library/slurm/spank_polycast.so"
echo "spank: built; \`make install\` copies it, and plugstack.conf on all nodes needs the line"
echo "  optional PREFIX/lib/polycast/slurm/spank_polycast.so"
