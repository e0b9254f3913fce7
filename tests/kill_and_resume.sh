#!/usr/bin/env bash
# kill_and_resume.sh KILLS PROGRAM -- ARGUMENTS...: runs PROGRAM once undisturbed, then again and again with SIGINT,
# SIGTERM and SIGKILL in turn, at random moments, going on each time: by the command that a stopped run prints, or else
# with --resume. Whenever a run gets to its end, its weights (all that it leaves but checkpoint and reports) must be those
# of the undisturbed run, bit by bit. RUSH_KILLS in the environment takes the place of KILLS, SEED chooses the moments.
# Where many of them fall before the training begins, as on a machine on which it is short, more signals follow, until
# enough of them have stopped a run in order and enough runs have gone on.
set -euo pipefail
set -m  # without it, what a script starts in the background ignores SIGINT

kills=${RUSH_KILLS:-$1} program=$2
shift 3

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

fail() {
  printf 'kill_and_resume: %s\n' "$*" >&2
  exit 1
}
now() { date +%s%3N; }
weights() { find "$1" -name '*.safetensors' ! -name 'checkpoint*'; }
leftovers() { find run -name '*.rush-tmp-*' 2>/dev/null || true; } # there may be no folder yet

# Drawn digits, a text and a vocabulary of its own, whatever data the machine has.
export RUSH_DATA=$scratch RUSH_ROOT=$scratch
unset RUSH_CALLED_AS
. "$(dirname "${BASH_SOURCE[0]}")/own_texts.sh"
write_text >text
write_vocabulary >encoder.json
printf 'l i\n' >vocab.bpe

# Twice: the first run of a program also reads it from the disk.
for folder in first whole; do
  begin=$(now)
  "$program" "$@" --out_dir "$folder" >log 2>&1 || fail "the undisturbed run failed: $(<log)"
  duration=$(($(now) - begin))
done
expected=$(weights whole)
[[ -f $expected ]] || fail "expected one file of weights, got '$expected'"

printf -v anew '%q ' "$program" "$@" --out_dir run --resume
go_on=$anew
signals=()  # but for one that whoever started this has made to be ignored, as nohup does
for signal in INT TERM KILL; do [[ -n $(trap -p "$signal") ]] || signals+=("$signal"); done
RANDOM=${SEED:-1}
killed=0 finished=0 resumed=0 stopped=0
more_to_kill() { ((killed < kills || killed < 4 * kills && (resumed <= kills / 4 || stopped <= kills / 6))); }
while more_to_kill || ((finished == 0)); do
  # As a run leaves it that is killed between naming a file and renaming it.
  planted=
  if [[ -d run ]]; then
    planted=run/planted.rush-tmp-0
    : >"$planted"
  fi
  begin=$(now)
  eval "exec $go_on" >log 2>&1 &
  child=$! killer=
  if more_to_kill; then
    delay=$((RANDOM * duration / 32768))
    (sleep "$(printf '%d.%03d' $((delay / 1000)) $((delay % 1000)))" && kill "-${signals[killed % ${#signals[@]}]}" "$child") 2>/dev/null &
    killer=$!
    disown "$killer"  # or else the shell reports its end
  fi
  status=0
  wait "$child" 2>/dev/null || status=$?
  [[ -z $killer ]] || kill -KILL "-$killer" 2>/dev/null || true

  went_on=$(grep -c 'going on from' log || true)
  resumed=$((resumed + went_on))
  # How fast the machine is changes with what else it does.
  ((status != 0 || went_on != 0)) || duration=$(($(now) - begin))
  ((went_on == 0)) || [[ ! -e $planted ]] || fail "a leftover was not removed at the start: $(<log)"
  [[ -z $planted ]] || rm -f "$planted"
  (($(leftovers | wc -l) <= 1)) || fail "a killed run left more than one temporary file: $(leftovers)"
  go_on=$anew
  case $status in
    0)
      finished=$((finished + 1))
      [[ -z $(leftovers) ]] || fail "run $finished ended with leftovers: $(leftovers)"
      cmp "$expected" "run/$(basename "$expected")" || fail "run $finished ended with other weights"
      rm -rf run
      ;;
    130 | 143 | 137)
      killed=$((killed + 1))
      if printed=$(sed -n 's/^.*: stopped by .*; to go on: //p' log) && [[ -n $printed ]]; then
        stopped=$((stopped + 1))
        [[ -z $(leftovers) ]] || fail "a stopped run left $(leftovers)"
        go_on=$printed
      fi
      ;;
    *) fail "a resumed run failed with status $status: $(<log)" ;;
  esac
done
((resumed > kills / 4)) || fail "only $resumed of $killed runs went on from a checkpoint: the test proves little"
((stopped > kills / 6)) || fail "only $stopped of $killed runs were stopped in order: the test proves little"
printf 'killed %d times (%d of them stopped in order), went on %d times, ended %d times with the same weights (%d ms a run)\n' \
  "$killed" "$stopped" "$resumed" "$finished" "$duration"
