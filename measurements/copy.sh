#!/bin/sh
# How long `polycast cp` takes in labs, beside the time that one link needs for the same bytes; and udpcast, uftp, scp and rsync beside
# it where they are installed. As root, after `make build`: measurements/copy.sh [ROUNDS]. The machine's load is printed with each line.
# Buckets hold 64 KiB: with one packet each (`bucket=1600 measurements/copy.sh`) two processors carry 16 links of 60 Mb/s (docs/lab.md), and what is measured is the machine.
set -eu
cd "$(dirname "$0")/.."
tool=${POLYCAST_TOOL:-$PWD/target/tool/polycast}
rounds=${1:-3}
bucket=${bucket:-64KiB}
work=$(mktemp -d)
mount -t tmpfs none "$work"
trap 'umount -l "$work"; rmdir "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

load() { cut -d' ' -f1 /proc/loadavg; }

# bytes, Mb/s: seconds on a link, with the headers of TCP segments of 1448 bytes
wire() { awk -v b="$1" -v r="$2" 'BEGIN { printf "%.3f", b * 8 * 1538 / 1448 / (r * 1e6) }'; }

# name, lab, Mb/s, bytes, source
copy() {
    round=0
    while [ $round -lt "$rounds" ]; do
        round=$((round + 1))
        mkdir -p "$work/out"
        for host in $(seq 0 63); do mkdir -p "$work/out/h$host"; done
        began=$(date +%s.%N)
        "$tool" cp -r --json --lab "$2,burst=$bucket" "$5" "$work/out/%h/" > "$work/said" || true
        ended=$(date +%s.%N)
        seconds=$(sed -n 's/^  "seconds": \([0-9.]*\).*/\1/p' "$work/said")
        method=$(sed -n 's/^  "method": "\([a-z]*\)".*/\1/p' "$work/said")
        wire=$(wire "$4" "$3")
        echo "$1, ${method:-?}: ${seconds:-failed} s, wire $wire s, $(awk -v s="${seconds:-0}" -v w="$wire" -v b="$began" -v e="$ended" 'BEGIN { printf "%.2f x; lab and agents %.3f s", s / w, e - b - s }') (load $(load))"
        rm -rf "$work/out"
    done
}

# What the machine needs to write the same into 16 folders, without a network and without hashing: name, command that writes into its folder
plain() {
    began=$(date +%s.%N)
    pids=
    for host in $(seq 16); do
        mkdir -p "$work/out/h$host"
        (cd "$work/out/h$host" && exec $2) &
        pids="$pids $!"
    done
    for pid in $pids; do wait "$pid"; done
    ended=$(date +%s.%N)
    awk -v n="$1" -v b="$began" -v e="$ended" -v l="$(load)" 'BEGIN { printf "%s, written by 16 at once: %.3f s (load %s)\n", n, e - b, l }'
    rm -rf "$work/out"
}

head -c $((32 << 20)) /dev/urandom > "$work/32MiB"
head -c $((64 << 20)) /dev/urandom > "$work/64MiB"
head -c $((10 << 20)) /dev/urandom > "$work/10MiB"
mkdir "$work/files"
split -b 1024 -a 5 -d "$work/10MiB" "$work/files/f"
tar -C "$work" -cf "$work/files.tar" files

plain "64 MiB" "dd if=$work/64MiB of=file bs=64k status=none"
plain "10,240 files of 1 KiB" "tar xf $work/files.tar"
copy "16 hosts, 100 Mb/s, 32 MiB" hosts=16,rate=100mbit 100 $((32 << 20)) "$work/32MiB"
export POLYCAST_MULTICAST=off
copy "16 hosts, 100 Mb/s, 32 MiB" hosts=16,rate=100mbit 100 $((32 << 20)) "$work/32MiB"
unset POLYCAST_MULTICAST
# Where the machine is not the limit, and where it is.
for hosts in 2 3 4 8; do
    copy "$hosts hosts, 1 Gb/s, 64 MiB" "hosts=$hosts,rate=1gbit" 1000 $((64 << 20)) "$work/64MiB"
done
copy "16 hosts, 1 Gb/s, 64 MiB" hosts=16,rate=1gbit 1000 $((64 << 20)) "$work/64MiB"
copy "4 hosts, 200 Mb/s, 1 % loss, 32 MiB" hosts=4,rate=200mbit,loss=1% 200 $((32 << 20)) "$work/32MiB"
copy "16 hosts, 200 Mb/s, 1 % loss, 32 MiB" hosts=16,rate=200mbit,loss=1% 200 $((32 << 20)) "$work/32MiB"
copy "16 hosts, 100 Mb/s, one file of 10 MiB" hosts=16,rate=100mbit 100 $((10 << 20)) "$work/10MiB"
copy "16 hosts, 100 Mb/s, 10,240 files of 1 KiB" hosts=16,rate=100mbit 100 $((10 << 20)) "$work/files"
cat > "$work/four.conf" <<CONF
SwitchName=s0 Nodes=h0,h4,h8,h12
SwitchName=s1 Nodes=h1,h5,h9,h13
SwitchName=s2 Nodes=h2,h6,h10,h14
SwitchName=s3 Nodes=h3,h7,h11,h15
SwitchName=t Switches=s0,s1,s2,s3
CONF
export POLYCAST_MULTICAST=off
copy "four switches, hosts listed across them, 100 Mb/s, 32 MiB" "topology=$work/four.conf,rate=100mbit" 100 $((32 << 20)) "$work/32MiB"
unset POLYCAST_MULTICAST

# The same file to all by others, from host to host of one lab.
lab=copybench$$
on() {
    at=$1
    shift
    "$tool" lab exec "$lab" "$at" -- "$@" > /dev/null 2>&1 || true
}

# name, command: how long it takes, until all 15 have the file
beside() {
    name=$1
    shift
    began=$(date +%s.%N)
    "$@"
    ended=$(date +%s.%N)
    has=0
    for host in $others; do
        cmp -s "$work/32MiB" "$work/u/$host/32MiB" && has=$((has + 1))
    done
    awk -v n="$name" -v b="$began" -v e="$ended" -v w="$(wire $((32 << 20)) 100)" -v l="$(load)" -v h="$has" \
        'BEGIN { printf "%s, 16 hosts, 100 Mb/s, 32 MiB: %.3f s, %.2f x, %d of 15 have it (load %s)\n", n, e - b, (e - b) / w, h, l }'
    for host in $others; do rm -f "$work/u/$host/32MiB"; done
}

by_udpcast() {
    on h0 udp-sender --nokbd --interface e0 --min-receivers 15 --full-duplex --file "$work/32MiB"
    for pid in $pids; do wait "$pid" || true; done
}

# Told a little less than the link's rate, in Kb/s: it does not find that out.
by_uftp() {
    on h0 uftp -q -Y none -I e0 -R 95000 "$work/32MiB"
}

by_scp_to_each() {
    pids=
    for host in $others; do
        on h0 scp -q -P 2222 -i "$work/key" -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null \
            "$work/32MiB" "$host:$work/u/$host/" &
        pids="$pids $!"
    done
    for pid in $pids; do wait "$pid" || true; done
}

# Each from the one before it, one after the other: what rsync can do by itself.
by_rsync_chain() {
    before=h0
    file=$work/32MiB
    for host in $others; do
        on "$before" rsync --inplace "$file" "rsync://$host:8730/u/$host/"
        before=$host
        file=$work/u/$host/32MiB
    done
}

"$tool" lab up "$lab" --hosts 16 --rate 100mbit --burst "$bucket" > /dev/null
daemons=
finish() {
    for pid in $daemons; do kill "$pid" 2> /dev/null || true; done
    "$tool" lab down "$lab" > /dev/null 2>&1 || true
    umount -l "$work"
    rmdir "$work"
}
trap finish EXIT
others=$(seq -f h%g 1 15)
for host in $others; do mkdir -p "$work/u/$host"; done
round=0
while [ $round -lt "$rounds" ]; do
    round=$((round + 1))
    if command -v udp-sender > /dev/null; then
        pids=
        for host in $others; do
            on "$host" udp-receiver --nokbd --interface e0 --file "$work/u/$host/32MiB" &
            pids="$pids $!"
        done
        sleep 1
        beside udpcast by_udpcast
    fi
    if command -v uftpd > /dev/null; then
        started=
        for host in $others; do
            "$tool" lab exec "$lab" "$host" -- uftpd -d -I e0 -D "$work/u/$host" > /dev/null 2>&1 &
            started="$started $!"
        done
        sleep 1
        beside uftp by_uftp
        for pid in $started; do kill "$pid" 2> /dev/null || true; done
    fi
done
if [ -x /usr/sbin/sshd ]; then
    ssh-keygen -q -t ed25519 -N '' -f "$work/key"
    mkdir -p /run/sshd
    chmod 755 "$work"
    for host in $others; do
        "$tool" lab exec "$lab" "$host" -- /usr/sbin/sshd -D -p 2222 -h "$work/key" -o AuthorizedKeysFile="$work/key.pub" \
            -o StrictModes=no -o PidFile=none -o MaxStartups=100 > /dev/null 2>&1 &
        daemons="$daemons $!"
    done
    sleep 1
    beside "scp to each" by_scp_to_each
fi
if command -v rsync > /dev/null; then
    printf 'use chroot = no\nuid = 0\ngid = 0\n[u]\npath = %s/u\nread only = no\n' "$work" > "$work/rsyncd.conf"
    for host in $others; do
        "$tool" lab exec "$lab" "$host" -- rsync --daemon --no-detach --port 8730 --config "$work/rsyncd.conf" > /dev/null 2>&1 &
        daemons="$daemons $!"
    done
    sleep 1
    beside "rsync chain" by_rsync_chain
fi
