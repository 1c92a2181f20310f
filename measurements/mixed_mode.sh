#!/bin/sh
# Which form of the mixed-mode model fits where (docs/models.md, "Two levels"): a chain of 8 nodes of 4 ranks in a lab, segments x
# overlaps, beside what the nodes take among themselves and what ranks of a node take to share. After `make build`; as root, best with
# nothing else on the machine.
#
#     measurements/mixed_mode.sh [FOLDER]        RATE=100mbit SIZES=4MiB TIME=8s SEGMENTS='4 16 64 256 1024' (KiB)
#
# Parameters that are in the folder already are not measured again.
set -eu
cd "$(dirname "$0")/.."
folder=${1:-build/mixed-mode}
rate=${RATE:-100mbit} sizes=${SIZES:-4MiB} time=${TIME:-8s}
polycast=${TOOL:-build/stage/bin/polycast}
lab="hosts=8,rate=$rate,burst=4KiB"
mkdir -p "$folder"

# Overlaps of a column are powers of 4 up to the segment; what is shared at once is one buffer.
between='' levels=''
for segment in ${SEGMENTS:-4 16 64 256 1024}; do
    between="$between,chain:segment=${segment}KiB"
    way="two-level:between=chain,segment=${segment}KiB"
    levels="$levels,$way,overlap=none,$way"
    for overlap in 4 16 64 256; do
        [ "$overlap" -ge "$segment" ] || levels="$levels,$way,buffer=${overlap}KiB,overlap=${overlap}KiB"
    done
done

uptime
echo "parameters"
[ -s "$folder/params.json" ] || "$polycast" measure --lab "$lab" --ranks-per-host 4 --mpi openmpi --time 1s -o "$folder/params.json"
echo "the nodes among themselves"
"$polycast" bench --lab "$lab" --no-calibration --mpi openmpi --env POLYCAST_MULTICAST=off --variants "${between#,}" --sizes "$sizes" \
    --time "$time" --json "$folder/between.json"
echo "two levels"
"$polycast" bench --lab "$lab" --no-calibration --ranks-per-host 4 --mpi openmpi --env POLYCAST_MULTICAST=off --variants "${levels#,}" \
    --sizes "$sizes" --time "$time" --json "$folder/levels.json"
uptime
"$polycast" predict --params "$folder/params.json" --against "$folder/levels.json" --between "$folder/between.json"
