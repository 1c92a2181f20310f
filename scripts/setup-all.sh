#!/bin/sh
# What the tests of `make test-all` need beside what scripts/setup.sh test asks for: Slurm, which they start for themselves in a
# temporary directory (Debian's is built with what both MPIs need to be started by srun), what packages are made and looked at with,
# a browser for the pages of reports, an ssh daemon to copy files to, and the applications of examples/applications.
set -eu
packages=
is_there() {
    PATH=$PATH:/usr/sbin:/sbin command -v "$1" >/dev/null
}
for command in slurmctld slurmd srun munged; do
    is_there "$command" || packages="slurm-wlm munge"
done
[ -e /usr/include/slurm/spank.h ] || packages="$packages libslurm-dev"
is_there rpmspec || packages="$packages rpm"
is_there sshd || packages="$packages openssh-server"
is_there dpkg-shlibdeps || packages="$packages dpkg-dev"
ls /usr/lib/*/libblas.so >/dev/null 2>&1 || packages="$packages libblas-dev"
is_there lmp || packages="$packages lammps"
is_there pw.x || packages="$packages quantum-espresso"
[ -e /usr/share/espresso/pseudo/Si.pz-vbc.UPF ] || packages="$packages quantum-espresso-data"
is_there abinit || packages="$packages abinit"
[ -e /usr/share/abinit ] || packages="$packages abinit-data"
for command in lintian rpmlint debootstrap cmake chromium patch; do
    is_there "$command" || packages="$packages $command"
done
[ -n "$packages" ] || exit 0
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "setup: \`make test-all\` needs more packages; on Debian, as root: apt-get install -y --no-install-recommends $packages" >&2
    exit 1
fi
echo "setup: apt-get install -y --no-install-recommends $packages"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086
apt-get install -y -qq --no-install-recommends $packages >/dev/null
