#!/bin/bash
# Times of whole calls, with kernels that are not compiled yet and with those that are, on the CPU, a GPU and both, and
# whether all write the same bytes:
#
#   xtask/card/cold.sh PHOTOGRAPHS [PROGRAM...]      programs to compare; target/release/tiepoint without any
#   GPU=opencl:0 ROUNDS=5 xtask/card/cold.sh ...     cuda:0 and 3 where they are not set
#
# Programs and devices take turns in every round. One row a command: the median of each in seconds.
set -euo pipefail
photographs=$(realpath "$1")
shift
programs=("${@:-target/release/tiepoint}")
gpu=${GPU:-cuda:0}
rounds=${ROUNDS:-3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mapfile -t all < <(find "$photographs" -maxdepth 1 -type f | sort)
a=${all[0]} b=${all[1]}

# Runs a command in an empty folder; its times go to `times`, the hash of what it wrote to `hashes`.
run() {
    local name=$1 mode=$2 program=$3 device=$4 out=$work/out start end
    shift 4
    rm -rf "$out"
    mkdir "$out"
    start=$(date +%s%N)
    (cd "$out" && "$program" "$@" --device "$device" --quiet)
    end=$(date +%s%N)
    rm -rf "$out/work"
    echo "$name $mode $(((end - start) / 1000))" >> "$work/times"
    echo "$name $(cd "$out" && find . -type f | sort | xargs cat | sha256sum | cut -c1-16)" >> "$work/hashes"
}

for ((round = 0; round < rounds; round++)); do
    for i in "${!programs[@]}"; do
        program=$(realpath "${programs[$i]}")
        for command in detect match register stereo collect; do
            case $command in
                detect) words=(detect "${all[@]}" --output '{}.csv') ;;
                match) words=(match "$a" "$b" --output matches.csv) ;;
                register) words=(register "$a" "$b" --output registered.png) ;;
                stereo) words=(stereo "$a" "$b" --disparities 128 --output disparities.tif) ;;
                collect) words=(collect "$photographs" --work work --output database.db) ;;
            esac
            for mode in "cpu cpu" "cold-both cpu+$gpu" "cold-gpu $gpu" "warm-both cpu+$gpu" "warm-gpu $gpu"; do
                read -r temperature device <<< "$mode"
                # A program of before knows no GPU beside the CPU.
                "$program" devices --device "$device" > "$work/known" 2>&1 || continue
                case $temperature in
                    cold-*) rm -rf "$work/cache" ;;
                    warm-*) ;;
                esac
                XDG_CACHE_HOME=$work/cache run "$command" "program$i/$temperature" "$program" "$device" "${words[@]}"
            done
        done
    done
done

python3 - "$work" << 'END'
import collections, statistics, sys
times, hashes = collections.defaultdict(list), collections.defaultdict(set)
for line in open(sys.argv[1] + "/times"):
    command, mode, micros = line.split()
    times[command, mode].append(int(micros) / 1e6)
for line in open(sys.argv[1] + "/hashes"):
    command, found = line.split()
    hashes[command].add(found)
modes = list(dict.fromkeys(mode for _, mode in times))
print("command", *modes, sep="\t")
for command in dict.fromkeys(command for command, _ in times):
    print(command, *(f"{statistics.median(times[command, mode]):.3f}" for mode in modes), sep="\t")
differ = [command for command, found in hashes.items() if len(found) > 1]
print("every file equal" if not differ else f"FILES DIFFER: {differ}")
sys.exit(bool(differ))
END
