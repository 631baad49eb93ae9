#!/bin/sh
# Runs everything that needs a card, on a machine with nothing but its driver: `cargo xtask card` packs this with the
# programs. Prints one line for docs/card.md at the end; the output of each program is in logs/.
set -u
cd "$(dirname "$0")" || exit 1
began=$(date +%s)
mkdir -p logs cache
export LD_LIBRARY_PATH="/usr/local/nvidia/lib64:/usr/local/cuda/lib64:${LD_LIBRARY_PATH:-}"
export TIEPOINT_CACHE="$PWD/cache" TIEPOINT_REQUIRE_GPU=1 TIEPOINT_REQUIRE_CUDA=1 RUST_BACKTRACE=0
# NVIDIA's OpenCL is found by a file that containers lack. Other drivers are tested elsewhere and left out here, by
# name, since some loaders list them nevertheless.
mkdir -p vendors && echo libnvidia-opencl.so.1 >vendors/nvidia.icd
export OCL_ICD_VENDORS="$PWD/vendors/"
echo "devices:" && ./tiepoint devices
TIEPOINT_TEST_DEVICE=$(./tiepoint devices | sed -n 's/^cuda:0 *\([^,]*\),.*/\1/p')
export TIEPOINT_TEST_DEVICE

passed=0 failed=0 skipped=0
: >skipped && : >ran
# tests NAME PROGRAM ARGUMENTS: runs a program of tests for at most 400 s.
tests() {
    name=$1 && shift
    timeout 400 "$@" >"logs/$name" 2>&1
    code=$?
    set -- $(sed -n 's/^test result: .* \([0-9]*\) passed; \([0-9]*\) failed.*/\1 \2/p' "logs/$name") 0 0
    skips=$(grep -c '^SKIPPED' "logs/$name")
    # The output of a test is printed below its name.
    awk '/^---- .* stdout ----$/ { name = $2; sub(/.*::/, "", name) } /^SKIPPED/ { print name }' "logs/$name" >>skipped
    sed -n 's/^test \(.*::\)\{0,1\}\([a-z0-9_]*\) \.\.\. ok$/\2/p' "logs/$name" >>ran
    # A program that crashed or was stopped counts as failed.
    bad=$2 && [ "$code" -ne 0 ] && [ "$bad" -eq 0 ] && bad=1
    passed=$((passed + $1)) failed=$((failed + bad)) skipped=$((skipped + skips))
    echo "$name: $1 passed, $bad failed, $skips said that they were skipped"
    [ "$bad" -eq 0 ] || grep -E '^(test .* FAILED|---- |.*panicked)' "logs/$name" | head -20
}
tests devices ./devices --show-output --test-threads 4
tests foreign ./foreign --show-output --test-threads 4
tests nvrtc ./nvrtc --show-output
tests library ./library gpu --show-output --test-threads 8 --skip compiles_for_every --skip compile_for_every

python=none
if python3 -c 'import sys, numpy, pytest; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    python=$(python3 -V | cut -d' ' -f2)
    PYTHONPATH="$PWD/python:$PWD/python/tests" timeout 260 python3 -m pytest --verbose -p no:cacheprovider \
        python/tests/test_cuda.py python/tests/test_streams.py \
        python/tests/test_device.py::test_calls_beside_each_other_repeat_themselves >logs/python 2>&1
    code=$?
    count() { sed -n "s/.*[^0-9]\([0-9][0-9]*\) $1.*/\1/p" logs/python | tail -1; }
    ok=$(count passed) bad=$(count failed) errors=$(count error) skips=$(count skipped)
    bad=$((${bad:-0} + ${errors:-0})) && [ "$code" -ne 0 ] && [ "$bad" -eq 0 ] && bad=1
    passed=$((passed + ${ok:-0})) failed=$((failed + bad)) skipped=$((skipped + ${skips:-0}))
    echo "python: ${ok:-0} passed, $bad failed, ${skips:-0} skipped"
    for outcome in 'PASSED ran' 'SKIPPED skipped'; do
        sed -n "s/^.*tests.\(test_[a-z]*\.py::test_[a-z0-9_]*\).* ${outcome% *}.*/\1/p" logs/python >>"${outcome#* }"
    done
fi
# A claim whose test did not run counts as failed.
for test in $(cat claimed); do
    why=
    grep -qx "$test" ran || why="did not run"
    grep -qx "$test" skipped && why="was skipped"
    [ -z "$why" ] || { echo "claimed, but $why: $test" && failed=$((failed + 1)); }
done

card=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -1 | sed 's/, / | /')
echo
echo "| $(date +%F) | $(cat revision) | ${card:-no card | none} | $python | $passed | $failed | $skipped | $(($(date +%s) - began)) |"
[ "$failed" -eq 0 ]
