#!/bin/sh
# Makes a wheel of what was laid out:
#   packaging/wheel/build.sh STAGE OUT PLATFORM
# PLATFORM is the tag of the systems that it runs on, such as manylinux_2_28_x86_64. PYTHON has the package `wheel`.
#
# The tool and the library come to where `make install` has them, below the environment: bin/polycast, lib/polycast. So they find each
# other in the same way, and lie beside the MPIs from PyPI, which do likewise.
set -eu
stage=$(cd "$1" && pwd)
mkdir -p "$2"
out=$(cd "$2" && pwd)
platform=$3
sources=$(cd "$(dirname "$0")" && pwd)
version=$("$stage/bin/polycast" --version | cut -d ' ' -f 2)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

root=$work/root
installed=$root/polycast-$version.data
about=$root/polycast-$version.dist-info
mkdir -p "$installed/data" "$installed/scripts" "$about/licenses" "$root/polycast"
cp "$sources"/polycast/*.py "$root/polycast/"
cp "$stage/bin/polycast" "$installed/scripts/"
# A wheel has no links.
(cd "$stage" && find . -mindepth 1 -maxdepth 1 ! -name bin -exec cp -rL {} "$installed/data/" \;)
sed "s/@VERSION@/$version/" "$sources/METADATA.in" >"$about/METADATA"
cp "$sources/../../LICENSE" "$about/licenses/"
cat >"$about/WHEEL" <<END
Wheel-Version: 1.0
Generator: polycast $version
Root-Is-Purelib: false
Tag: py3-none-$platform
END
# Whatever the umask was.
chmod -R u=rwX,go=rX "$root"
"${PYTHON:-python3}" -m wheel pack --dest-dir "$out" "$root" >/dev/null
echo "wheel: $out/polycast-$version-py3-none-$platform.whl"
