#!/usr/bin/env bash
# faults.sh LAUNCH N FAULTS PROGRAM: as often as FAULTS says, or RUSH_FAULTS in the environment, one of N processes of the
# training has a fault: it is killed, stopped, throws, calls another collective, or has a full disk. All have to end within
# the time-out, 1 s, and 5 s more, with a line that names the rank, and the collective where it was one; started again, they
# come to the weights of an undisturbed run. SEED chooses ranks and steps.
set -euo pipefail

launch=$1 count=$2 faults=${RUSH_FAULTS:-$3} program=$4
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export RUSH_FLIGHT_RECORDER=$scratch/records

fail() {
  printf 'faults: %s\n' "$*" >&2
  exit 1
}

mkdir "$scratch/whole"
"$launch" -n "$count" "$program" "$scratch/whole"

kinds=(kill stop exception divergent full)
RANDOM=${SEED:-1}
for ((i = 0; i < faults; ++i)); do
  kind=${kinds[i % ${#kinds[@]}]} rank=$((RANDOM % count)) step=$((RANDOM % 40))
  [[ $kind != full ]] || rank=0 # which writes
  others="rank [0-9]+: [a-z_]+( of rank [0-9]+ of $count)? .*group 'default'"
  case $kind in
    kill) line="rank $rank .*signal 9" ;;
    stop) line="$others.*within the time-out of 1 s" ;;
    exception) line="rank $rank: no data for step $step" ;;
    divergent) line="the collectives of the group 'default' differ: .*rank $rank calls number [0-9]+ broadcast of 3 " ;;
    full) line="rank 0: .*checkpoint.pt.*File too large" ;;
  esac
  rm -rf "$scratch/run" && mkdir "$scratch/run"
  # Each line with the time at which it came, in ms.
  RUSH_FAULT="$kind $rank $step" "$launch" -n "$count" --restarts 1 "$program" "$scratch/run" 2>&1 >/dev/null |
    while IFS= read -r text; do printf '%s %s\n' "$(date +%s%3N)" "$text"; done >"$scratch/log" ||
    fail "$kind of rank $rank in step $step: the second attempt has failed, too: $(<"$scratch/log")"
  begun=$(sed -nE 's/.*fault at ([0-9]+) ms.*/\1/p' "$scratch/log") ended=$(sed -n 's/ launch: the run has ended.*//p' "$scratch/log")
  [[ $begun && $ended ]] || fail "$kind of rank $rank in step $step has not ended the run: $(<"$scratch/log")"
  ((ended - begun <= 6000)) || fail "$kind of rank $rank in step $step: the others went on for $((ended - begun)) ms"
  grep -qE "$line" "$scratch/log" || fail "$kind of rank $rank in step $step: expected '$line' in $(<"$scratch/log")"
  cmp "$scratch/whole/checkpoint.pt" "$scratch/run/checkpoint.pt" || fail "$kind of rank $rank in step $step: other weights"
  printf '%s of rank %d in step %d: %d ms\n' "$kind" "$rank" "$step" $((ended - begun))
done
