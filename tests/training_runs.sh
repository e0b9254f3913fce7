#!/usr/bin/env bash
# training_runs.sh MNIST GPT: what training programs do with the folder of another run, with signals, a full disk, a
# stdout that cannot be written, and a training that diverges. docs/training_runs.md describes it.
set -euo pipefail
set -m  # without it, what a script starts in the background ignores SIGINT

mnist=$1 gpt=$2
scratch=$(mktemp -d)
trap 'jobs -p | xargs -r kill -KILL 2>/dev/null; rm -rf "$scratch"' EXIT
cd "$scratch"
export RUSH_DATA=$scratch RUSH_ROOT=$scratch
unset RUSH_CALLED_AS
for ((i = 0; i < 400; ++i)); do printf 'line %d of %d, %d\n' "$i" 400 $((i * i)); done >text

fail() {
  printf 'training_runs: %s\n' "$*" >&2
  exit 1
}

model=(--data text --n_layer 1 --n_head 2 --n_embd 16 --block_size 16 --batch_size 4 --eval_iters 2 --max_new_tokens 0
  --checkpoint_interval 5)

# expect STATUS TEXT COMMAND...: runs it, and looks for one line with this text on its stderr.
expect() {
  local wanted=$1 text=$2 status=0
  shift 2
  "$@" >out 2>err || status=$?
  [[ $status == "$wanted" ]] || fail "expected status $wanted, got $status: $* $(<err)"
  [[ $(<err) == *"$text"* ]] || fail "expected '$text', got: $(<err)"
}
gpt() { "$gpt" "${model[@]}" "$@"; }
into() { # FILE COMMAND...: its stdout goes there
  local file=$1
  shift
  "$@" >"$file"
}

# Starts a long run in the folder $1, and waits until it trains.
begin() {
  local folder=$1
  "$gpt" "${model[@]}" --max_iters 1000000 --out_dir "$folder" >"$folder.out" 2>"$folder.err" &
  child=$!
  for ((i = 0; i < 600; ++i)); do
    ! grep -qs '^iteration 0' "$folder.out" || return 0
    sleep 0.1
  done
  fail "the run in $folder does not begin: $(<"$folder.err")"
}
# Waits for $child, which must end with the status $1.
ended() {
  local status=0
  wait "$child" 2>/dev/null || status=$?
  [[ $status == "$1" ]] || fail "expected a run that ends with $1, got $status"
}
until_file() { # TEST PATH
  for ((i = 0; i < 600; ++i)); do
    ! test "$1" "$2" || return 0
    sleep 0.1
  done
  fail "waited in vain for $1 $2"
}

# Whether whoever started this has made it ignore the signal, as nohup does.
ignored() { [[ -n $(trap -p "$1") ]]; }

# Two runs in one folder, and the signals that end one.
if ignored INT; then signal=TERM status=143; else signal=INT status=130; fi
begin a
expect 1 "a: process $child on " gpt --out_dir a
expect 1 "a: process $child on " gpt --out_dir a --overwrite
kill "-$signal" "$child"
ended "$status"
grep -q "^gpt: stopped by SIG$signal after iteration [0-9]*; to go on: $gpt .* --resume$" a.err || fail "no command: $(<a.err)"
before=$(md5sum <a/checkpoint.safetensors)
expect 1 "--resume goes on from it, --overwrite starts anew" gpt --out_dir a
expect 1 "max_iters: saved with '1000000', now '100'; a run goes on with the settings that it began with" \
  gpt --out_dir a --resume --max_iters 100
expect 1 "batch_size: saved with '4', now '8'" gpt --out_dir a --resume --allow_changes --max_iters 1000000 --batch_size 8
tr a-z A-Z <text >other
expect 1 "text: saved with" gpt --out_dir a --resume --max_iters 1000000 --data other
[[ $(md5sum <a/checkpoint.safetensors) == "$before" ]] || fail "a run that was refused changed the checkpoint"

# SIGHUP is as good as the others, and ignored under nohup.
if ! ignored HUP; then
  begin b
  kill -HUP "$child"
  ended 129
fi
(trap '' HUP && begin c && kill -HUP "$child" && sleep 0.5 && kill -TERM "$child" && ended 143) || fail "nohup"

# A checkpoint that cannot be written: warnings, and later another one.
begin d
until mkdir d/checkpoint.safetensors 2>/dev/null; do rm -f d/checkpoint.safetensors; done  # a folder in its place
for ((i = 0; i < 600; ++i)); do ! grep -q 'warning: d/checkpoint.safetensors: .*; the run goes on' d.err || break; sleep 0.1; done
((i < 600)) || fail "no warning: $(<d.err)"
rmdir d/checkpoint.safetensors
until_file -f d/checkpoint.safetensors
kill -TERM "$child"
ended 143

# stdout.
expect 1 "cannot write to stdout: No space left on device; stopped after iteration 1; to go on: " \
  into /dev/full gpt --out_dir e --eval_interval 1000
expect 1 "cannot write to stdout: No space left on device" into /dev/full "$mnist" --digits 240 --out_dir f
(gpt --out_dir g --max_iters 1000000 --eval_interval 10 2>err || echo $? >status) | head -n 1 >/dev/null
[[ $(<status) == 1 ]] || fail "a pipe that nobody reads: $(<err)"
grep -qF 'cannot write to stdout: Broken pipe; stopped after iteration ' err || fail "a pipe that nobody reads: $(<err)"

# A run that diverges keeps its last good checkpoint, and goes on from there with a lower rate.
expect 1 "the training has diverged" gpt --out_dir h --max_iters 50 --learning_rate 1000 --weight_decay 1000 --checkpoint_interval 1
expect 0 "" gpt --out_dir h --max_iters 50 --learning_rate 1e-3 --weight_decay 0.1 --resume --allow_changes
grep -q "^changed: learning_rate: saved with '1000', now '0.001'" out || fail "a change in silence: $(<out)"
grep -q '^val loss [0-9]' out || fail "no loss: $(<out)"
expect 1 "the training has diverged" "$mnist" --digits 240 --batch_size 16 --epochs 10 --lr 1000 --out_dir i

# The demo's second run is as its first.
for ((i = 0; i < 2; ++i)); do expect 0 "" "$mnist" --digits 240 --epochs 1 --out_dir j; done
