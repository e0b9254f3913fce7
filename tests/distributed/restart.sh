#!/usr/bin/env bash
# restart.sh LAUNCH N KILLS PROGRAM [ARGUMENTS...]: processes of the program are killed at random moments, as often as
# KILLS says; started again, they come to the very weights of an undisturbed run. SEED chooses the moments.
set -euo pipefail

launch=$1 count=$2 kills=$3 program=$4
shift 4
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
  printf 'restart: %s\n' "$*" >&2
  exit 1
}
now() { date +%s%3N; }
ours() { pgrep -f -- "--out_dir $scratch/run( |\$)" | while read -r pid; do
  [[ $(readlink "/proc/$pid/exe") != "$(readlink -f "$program")" ]] || echo "$pid"
done; }

begin=$(now)
"$launch" -n "$count" "$program" "$@" --out_dir "$scratch/whole" >"$scratch/whole.txt"
duration=$(($(now) - begin))

"$launch" -n "$count" --restarts "$kills" --again --resume "$program" "$@" --out_dir "$scratch/run" \
  >"$scratch/run.txt" 2>"$scratch/run.log" &
run=$!
RANDOM=${SEED:-1}
killed=0
for ((left = kills; left > 0; --left)); do
  wanted=$((duration * (20 + RANDOM % 60) / 100))
  sleep "$((wanted / 1000)).$(printf '%03d' $((wanted % 1000)))"
  mapfile -t pids < <(ours)
  ((${#pids[@]} == 0)) || { kill -KILL "${pids[RANDOM % ${#pids[@]}]}" 2>/dev/null && ((++killed)); } || true
done
wait "$run" || fail "the run has ended with status $?: $(<"$scratch/run.log")"
((killed > 0)) || fail "no process was killed within $duration ms: $(<"$scratch/run.txt")"
# A second kill may come to what the first has left.
restarts=$(grep -c '; restart ' "$scratch/run.log" || true)
((restarts >= 1 && restarts <= killed)) || fail "$killed kills, and the log is $(<"$scratch/run.log")"
grep -q '^going on from' "$scratch/run.txt" || fail "it has started anew: $(<"$scratch/run.txt")"
for weights in "$scratch"/whole/*.safetensors; do
  [[ $weights != */checkpoint* ]] || continue
  cmp "$weights" "$scratch/run/${weights##*/}" || fail "the weights differ after $killed kills"
done
printf '%d kills, %d restarts, the same weights\n' "$killed" "$restarts"
