#!/usr/bin/env bash
# restart.sh LAUNCH N KILLS PROGRAM [ARGUMENTS...]: processes of the program are killed at random moments, as often as
# KILLS says, each after a checkpoint that the kill before has not seen; started again, they come to the very weights of
# an undisturbed run. SEED chooses the moments.
set -euo pipefail

launch=$1 count=$2 kills=$3 program=$4
shift 4
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
  printf 'restart: %s\n' "$*" >&2
  exit 1
}
ours() { pgrep -f -- "--out_dir $scratch/run( |\$)" | while read -r pid; do
  [[ $(readlink "/proc/$pid/exe") != "$(readlink -f "$program")" ]] || echo "$pid"
done; }

"$launch" -n "$count" "$program" "$@" --out_dir "$scratch/whole" >"$scratch/whole.txt"

"$launch" -n "$count" --restarts "$kills" --again --resume "$program" "$@" --out_dir "$scratch/run" \
  >"$scratch/run.txt" 2>"$scratch/run.log" &
run=$!
RANDOM=${SEED:-1}
killed=0
seen=
restarts() { grep -c '; restart ' "$scratch/run.log" || true; }
written() { stat -c %y "$scratch/run/checkpoint.safetensors" 2>/dev/null || true; }
under_way() { kill -0 "$run" 2>/dev/null; }
while ((killed < kills)) && under_way; do
  if [[ $(written) == "$seen" ]]; then
    sleep 0.01
    continue
  fi
  sleep "0.0$((RANDOM % 10))"
  mapfile -t pids < <(ours)
  ((${#pids[@]} == 0)) || { kill -KILL "${pids[RANDOM % ${#pids[@]}]}" 2>/dev/null && ((++killed)); } || true
  # The others are ended, too, before all start again.
  while (($(restarts) < killed)) && under_way; do sleep 0.01; done
  seen=$(written)
done
wait "$run" || fail "the run has ended with status $?: $(<"$scratch/run.log")"
((killed > 0)) || fail "no process was killed: $(<"$scratch/run.txt")"
(($(restarts) == killed)) || fail "$killed kills, and the log is $(<"$scratch/run.log")"
grep -q '^going on from' "$scratch/run.txt" || fail "it has started anew: $(<"$scratch/run.txt")"
for weights in "$scratch"/whole/*.safetensors; do
  [[ $weights != */checkpoint* ]] || continue
  cmp "$weights" "$scratch/run/${weights##*/}" || fail "the weights differ after $killed kills"
done
status=0
"$launch" -n 1 --restarts 1 "$program" --no_such_option 2>"$scratch/run.log" || status=$?
[[ $status == 2 && $(restarts) == 0 ]] || fail "a bad option, status $status: $(<"$scratch/run.log")"
printf '%d kills, the same weights\n' "$killed"
