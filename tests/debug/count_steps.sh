#!/usr/bin/env bash
# usage: count_steps.sh PROGRAM SOURCE LIMIT
# Counts gdb's `step`s from the line of SOURCE with `a + b` to the functor that adds two floats. The program carries the rules
# that make them few; without these, LIMIT steps must not be enough.
set -euo pipefail
program=$1 source=$2 limit=$3
line=$(grep -n 'a + b' "$source" | cut -d: -f1)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/count.py" <<TEXT
count = 0
while count < $limit and not gdb.selected_frame().name().startswith("rush::functors::Add::"):
    gdb.execute("step")
    count += 1
print("stopped after %d steps in %s" % (count, gdb.selected_frame().name()))
TEXT

steps() {  # SETTING of rush-skip
  gdb -nx -batch -iex "add-auto-load-safe-path $(dirname "$(readlink -f "$program")")" -ex 'set debuginfod enabled off' \
    -ex 'set width 0' -ex "break $source:$line" -ex run -ex "set rush-skip $1" -x "$work/count.py" "$program" 2>&1
}

with_rules=$(steps all)
echo "$with_rules"
grep -q "^stopped after .* steps in rush::functors::Add" <<<"$with_rules" || { echo "more than $limit steps"; exit 1; }
without=$(steps off)
grep -q "^stopped after $limit steps in" <<<"$without" || { echo "$without"; echo "no steps without the rules"; exit 1; }
! grep -q "^stopped after .* steps in rush::functors::Add" <<<"$without" || { echo "the rules make no difference"; exit 1; }
