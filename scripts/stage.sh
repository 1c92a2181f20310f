#!/bin/sh
# Lays out what `make install` copies: stripped objects, documents in the order of the checkout so that their links hold,
# man pages and completions, which the tool writes itself.
#   scripts/stage.sh TOOL LIBRARY_DIR STAGE DEBUG
# DEBUG gets the debug information, in the same order; debuggers find it in .debug/ beside each object.
set -eu
built_tool=$1
library=$2
stage=$3
debug=$4

rm -rf "$stage" "$debug"

# FROM TO: the object without its debug information, which goes apart.
strip_into() {
    mkdir -p "$stage/$(dirname "$2")" "$debug/$(dirname "$2")/.debug"
    apart=$debug/$(dirname "$2")/.debug/$(basename "$2").debug
    objcopy --only-keep-debug "$1" "$apart"
    objcopy --strip-unneeded --add-gnu-debuglink="$apart" "$1" "$stage/$2"
}

strip_into "$built_tool" bin/polycast
for object in "$library"/*.so "$library"/polycast-witness "$library"/doors/*.so "$library"/openmpi*/*.so "$library"/bench/polycast-bench-* "$library"/slurm/*.so; do
    # Open MPI's component is there where its headers are, Slurm's plug-in after `make spank` only.
    [ ! -e "$object" ] || strip_into "$object" "lib/polycast/${object#"$library"/}"
done

mkdir -p "$stage/include" "$stage/share/polycast"
cp include/*.h "$stage/include/"
cp tuning/*.toml "$stage/share/polycast/"

# What finds it for compilers and shells, wherever the folder lies.
version=$("$stage/bin/polycast" --version | cut -d ' ' -f 2)
# FROM TO: with the version.
versioned() {
    mkdir -p "$stage/$(dirname "$2")"
    sed "s/@VERSION@/$version/g" "packaging/$1" >"$stage/$2"
}
versioned polycast.pc.in lib/pkgconfig/polycast.pc
versioned cmake/polycast-config.cmake lib/cmake/polycast/polycast-config.cmake
versioned cmake/polycast-config-version.cmake.in lib/cmake/polycast/polycast-config-version.cmake
versioned modulefile.in "share/modulefiles/polycast/$version"

documents=$stage/share/doc/polycast
mkdir -p "$documents/fuzz" "$documents/include" "$documents/tests/cases"
cp -r README.md CHANGELOG.md CONTRIBUTING.md LICENSE docs examples packaging "$documents/"
cp fuzz/README.md "$documents/fuzz/"
cp tests/README.md "$documents/tests/"
cp tests/cases/README.md "$documents/tests/cases/"
# What is long, as distributions have it: more than half of it is spared. Links lead to what is there then.
long=$(cd "$documents" && find CHANGELOG.md docs -name '*.md' ! -name README.md \( -size +4k -o -path '*/decisions/*' \))
for page in $long; do
    printf '%s\n' "s|\(](\([^):]*/\)\{0,1\}$(basename "$page")\)\([#)]\)|\1.gz\3|g"
done >"$stage/links.sed"
find "$documents" -name '*.md' -exec sed -i -f "$stage/links.sed" {} +
rm "$stage/links.sed"
# shellcheck disable=SC2086
(cd "$documents" && gzip -9n $long)
# Once is enough.
ln -s ../../polycast "$documents/tuning"
for header in include/*.h; do
    ln -s "../../../../$header" "$documents/$header"
done

tool=$stage/bin/polycast
mkdir -p "$stage/share/man/man1" "$stage/share/bash-completion/completions" "$stage/share/zsh/site-functions" \
    "$stage/share/fish/vendor_completions.d"
"$tool" man-pages "$stage/share/man/man1"
gzip -9n "$stage"/share/man/man1/*
# Half of it is indentation, which means nothing in it.
"$tool" completions bash | sed 's/^ *//' >"$stage/share/bash-completion/completions/polycast"
"$tool" completions zsh >"$stage/share/zsh/site-functions/_polycast"
"$tool" completions fish >"$stage/share/fish/vendor_completions.d/polycast.fish"
