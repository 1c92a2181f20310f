#!/bin/sh
# How long `polycast cp` takes in labs, beside the time that one link needs for the same bytes; and udpcast and uftp beside it where
# they are installed. As root, after `make build`: benches/copy.sh [ROUNDS]. The machine's load is printed with each line.
set -eu
cd "$(dirname "$0")/.."
tool=${POLYCAST_TOOL:-$PWD/target/release/polycast}
rounds=${1:-3}
work=$(mktemp -d)
mount -t tmpfs none "$work"
trap 'umount -l "$work"; rmdir "$work"' EXIT INT TERM

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
        seconds=$("$tool" cp -r --json --lab "$2" "$5" "$work/out/%h/" | sed -n 's/^  "seconds": \([0-9.]*\).*/\1/p')
        wire=$(wire "$4" "$3")
        echo "$1: ${seconds:-failed} s, wire $wire s, $(awk -v s="${seconds:-0}" -v w="$wire" 'BEGIN { printf "%.2f", s / w }') x (load $(load))"
        rm -rf "$work/out"
    done
}

head -c $((32 << 20)) /dev/urandom > "$work/32MiB"
head -c $((64 << 20)) /dev/urandom > "$work/64MiB"
head -c $((10 << 20)) /dev/urandom > "$work/10MiB"
mkdir "$work/files"
split -b 1024 -a 5 -d "$work/10MiB" "$work/files/f"

copy "16 hosts, 100 Mb/s, 32 MiB" hosts=16,rate=100mbit 100 $((32 << 20)) "$work/32MiB"
copy "16 hosts, 1 Gb/s, 64 MiB" hosts=16,rate=1gbit 1000 $((64 << 20)) "$work/64MiB"
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
copy "four switches, hosts listed across them, 100 Mb/s, 32 MiB" "topology=$work/four.conf,rate=100mbit" 100 $((32 << 20)) "$work/32MiB"

# One file to all by multicast: udpcast, with its own rate limit a little below the link's; uftp likewise.
lab=copybench$$
others() {
    "$tool" lab up "$lab" --hosts 16 --rate 100mbit > /dev/null
    trap '"$tool" lab down "$lab" > /dev/null 2>&1; umount -l "$work"; rmdir "$work"' EXIT INT TERM
    if command -v udp-sender > /dev/null; then
        pids=
        for host in $(seq 1 15); do
            "$tool" lab exec "$lab" "h$host" -- udp-receiver --nokbd --interface e0 --file "$work/u$host" > /dev/null 2>&1 &
            pids="$pids $!"
        done
        sleep 1
        began=$(date +%s.%N)
        "$tool" lab exec "$lab" h0 -- udp-sender --nokbd --interface e0 --min-receivers 15 --full-duplex --file "$work/32MiB" > /dev/null 2>&1
        for pid in $pids; do wait "$pid"; done
        awk -v b="$began" -v e="$(date +%s.%N)" -v w="$(wire $((32 << 20)) 100)" -v l="$(load)" \
            'BEGIN { printf "udpcast, 16 hosts, 100 Mb/s, 32 MiB: %.3f s, %.2f x (load %s)\n", e - b, (e - b) / w, l }'
        rm -f "$work"/u*
    else
        echo "udpcast: not installed"
    fi
}
others
