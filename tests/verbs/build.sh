#!/bin/sh
# Builds the stand-ins for libibverbs.so.1 and librdmacm.so.1 (tests/verbs/emulated.h), and the programs that try them.
#   tests/verbs/build.sh DIRECTORY [FLAGS…]
# FLAGS go to the compiler: sanitizers, for example.
set -eu
directory=$1
shift
cd "$(dirname "$0")"
flags="-std=c17 -O2 -g -fPIC -fvisibility=hidden -Wall -Wextra -Werror"
cc=${CC:-cc}
mkdir -p "$directory"
# Written beside and renamed: tests build them at the same time.
link() {
    name=$1
    shift
    # shellcheck disable=SC2086
    "$cc" $flags "$@" -o "$directory/.$name.$$"
    mv "$directory/.$name.$$" "$directory/$name"
}
link libibverbs.so.1 "$@" -D_GNU_SOURCE -shared -Wl,-soname,libibverbs.so.1 -Wl,--version-script=libibverbs.map \
    device.c completion.c queue_pair.c wire.c
link librdmacm.so.1 "$@" -D_GNU_SOURCE -shared -Wl,-soname,librdmacm.so.1 -Wl,--version-script=librdmacm.map manager.c \
    "$directory/libibverbs.so.1"
for program in exercise layout; do
    [ ! -e "$program.c" ] || link "$program" "$@" "$program.c" ../../doors/verbs/*.c \
        -I../../doors/verbs "$directory/librdmacm.so.1" "$directory/libibverbs.so.1" -Wl,-rpath,"$directory"
done
