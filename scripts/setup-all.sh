#!/bin/sh
# What the tests of `make test-all` need beside what scripts/setup.sh test asks for: Slurm, which they start for themselves in a
# temporary directory. Debian's is built with what both MPIs need to be started by srun.
set -eu
packages=
for command in slurmctld slurmd srun munged; do
    PATH=$PATH:/usr/sbin:/sbin command -v "$command" >/dev/null || packages="slurm-wlm munge"
done
[ -n "$packages" ] || exit 0
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "setup: \`make test-all\` needs Slurm and munge; on Debian, as root: apt-get install -y --no-install-recommends $packages" >&2
    exit 1
fi
echo "setup: apt-get install -y --no-install-recommends $packages"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086
apt-get install -y -qq --no-install-recommends $packages >/dev/null
