#!/usr/bin/env bash
# killed_saves.sh LAUNCH KILLS PROGRAM: PROGRAM (rush_distributed_tests) saves versions of a sharded checkpoint, one after
# the other, until one of its 2 or 4 processes is killed at a random moment. What is left must be the last version that
# was said to be saved, or the one after it, whole: the next run, of another number of processes, checks its values.
# RUSH_KILLS in the environment takes the place of KILLS, SEED chooses the moments.
set -euo pipefail

launch=$1 kills=${RUSH_KILLS:-$2} program=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export RUSH_TEST_CHECKPOINT=$scratch/checkpoint RUSH_TEST_SAVES

fail() {
  printf 'killed_saves: %s\n' "$*" >&2
  exit 1
}
log=$scratch/log
last() { sed -n "s/^$1 //p" "$log" | tail -n 1; }
run() { "$launch" -n "$1" "$program" --no-skip --test-case="saves until it is killed" >"$log" 2>&1; }
# The checkpoint is the last that was saved, or was about to be.
check_found() {
  found=$(last found)
  [[ $found == "$saved" || $found == $((saved + 1)) ]] ||
    fail "version $saved was saved, and then version '$found' is found: $(<"$log")"
  ((found == saved)) || ((++later))
}

RANDOM=${SEED:-1}
saved=0 later=0
for ((kill = 0; kill < kills; ++kill)); do
  count=$((kill % 2 ? 4 : 2))
  rm -f "$log"
  RUSH_TEST_SAVES=1000000 run "$count" &
  launched=$!
  until grep -q '^saved ' "$log" 2>/dev/null; do
    kill -0 "$launched" 2>/dev/null || fail "the processes have ended: $(<"$log")"
    sleep 0.01
  done
  check_found
  sleep "0.0$(printf '%03d' $((RANDOM % 1000)))"
  mapfile -t processes < <(sed -n 's/^process //p' "$log")
  ((${#processes[@]} == count)) || fail "expected $count processes: $(<"$log")"
  kill -KILL "${processes[RANDOM % count]}"
  ! wait "$launched" 2>/dev/null || fail "a killed run has ended well: $(<"$log")"
  saved=$(last saved)
done
RUSH_TEST_SAVES=0 run 4 || fail "the check at the end has failed: $(<"$log")"
check_found
RUSH_TEST_SAVES=1 run 2 || fail "the last save has failed: $(<"$log")"
named=$(grep -o 'model-[0-9]*-[0-9]*-of-[0-9]*.safetensors' "$RUSH_TEST_CHECKPOINT/model.safetensors.index.json" | sort -u)
there=$(cd "$RUSH_TEST_CHECKPOINT" && printf '%s\n' *.safetensors)
[[ $named == "$there" ]] || fail "leftovers: the index names $named, the folder has $there"
printf '%d kills, %d versions, %d of them found that nobody had said were saved\n' "$kills" "$found" "$later"
