#!/usr/bin/env bash
# usage: count_frames.sh PROGRAM LIMIT
# Counts the frames from the program's `a + b` to the functor that adds two floats.
set -euo pipefail
program=$1 limit=$2
trace=$(gdb -nx -batch -ex 'set debuginfod enabled off' -ex 'set width 0' -ex 'break rush::functors::Add::operator()<float>' \
  -ex run -ex 'backtrace' "$program" 2>&1)
echo "$trace"
frames=$(grep -cE '^#[0-9]+ ' <<<"$trace" || true)
[[ $frames -gt 1 ]] && grep -qE "^#$((frames - 1)) +.*main \(\)" <<<"$trace" || { echo "the functor was not reached from main"; exit 1; }
count=$((frames - 1))  # without main
echo "$count frames from a + b to the functor, at most $limit allowed"
((count <= limit))
