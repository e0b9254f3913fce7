#!/usr/bin/env bash
# kill_and_resume.sh KILLS PROGRAM RESUME_FLAGS -- ARGUMENTS...: runs PROGRAM once undisturbed, then again and again with
# SIGKILL at random moments, going on with RESUME_FLAGS each time. Whenever a run gets to its end, its weights (all that
# it leaves but checkpoint and reports) must be those of the undisturbed run, bit by bit.
set -euo pipefail

kills=$1 program=$2 resume=$3
shift 4

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
  printf 'kill_and_resume: %s\n' "$*" >&2
  exit 1
}
now() { date +%s%3N; }
weights() { find "$1" -name '*.safetensors' ! -name 'checkpoint*'; }

# Drawn digits and a text of its own, whatever data the machine has.
export RUSH_DATA=$scratch RUSH_ROOT=$scratch
for ((i = 0; i < 400; ++i)); do printf 'line %d of %d, %d\n' "$i" 400 $((i * i)); done >"$scratch/text"

run() { # FOLDER FLAGS...
  local folder=$1
  shift
  (cd "$scratch" && exec "$program" "$@" --out_dir "$folder" >"$scratch/log" 2>&1)
}

# Twice: the first run of a program also reads it from the disk.
run "$scratch/whole" "$@" || fail "the undisturbed run failed: $(<"$scratch/log")"
begin=$(now)
run "$scratch/whole" "$@" || fail "the undisturbed run failed: $(<"$scratch/log")"
duration=$(($(now) - begin))
expected=$(weights "$scratch/whole")
[[ -f $expected ]] || fail "expected one file of weights, got '$expected'"

RANDOM=${SEED:-1}
killed=0 finished=0 resumed=0
while ((killed < kills || finished == 0)); do
  # shellcheck disable=SC2086  # several flags
  (cd "$scratch" && exec "$program" "$@" --out_dir "$scratch/run" $resume >"$scratch/log" 2>&1) &
  child=$!
  if ((killed < kills)); then
    delay=$((RANDOM * duration / 32768))
    sleep "$(printf '%d.%03d' $((delay / 1000)) $((delay % 1000)))"
    kill -KILL "$child" 2>/dev/null || true
  fi
  status=0
  wait "$child" 2>/dev/null || status=$?
  if grep -q 'going on from' "$scratch/log"; then resumed=$((resumed + 1)); fi
  if ((status == 137)); then
    killed=$((killed + 1))
    leftovers=$({ find "$scratch/run" -name '*.tmp-*' 2>/dev/null || true; } | wc -l)  # there may be no folder yet
    ((leftovers <= killed)) || fail "a killed run left more than one temporary file"
  elif ((status == 0)); then
    finished=$((finished + 1))
    cmp "$expected" "$scratch/run/$(basename "$expected")" || fail "run $finished ended with other weights"
    rm -rf "$scratch/run"
  else
    fail "a resumed run failed with status $status: $(<"$scratch/log")"
  fi
done
((resumed > kills / 4)) || fail "only $resumed of $kills runs went on from a checkpoint: the test proves little"
printf 'killed %d times, went on %d times, ended %d times with the same weights (%d ms a run)\n' \
  "$killed" "$resumed" "$finished" "$duration"
