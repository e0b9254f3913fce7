#!/usr/bin/env bash
# mesh_runs.sh LAUNCH PROGRAM [ARGUMENTS...]: gpt or gpt2, on meshes of one to four processes, has the losses of
# one process that has the whole model, within 1e-6: in its first four steps, and in four more from the checkpoint of the
# mesh before. It writes what one process writes; so do the weights in its model.safetensors, if it is gpt2. A checkpoint
# of whole weights is refused. And a signal to one process of a mesh ends all of them after the same step.
set -euo pipefail

launch=$1 program=$2
shift 2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
. "$(dirname "${BASH_SOURCE[0]}")/../own_texts.sh"
write_text >"$scratch/text"
mkdir "$scratch/gpt2"
write_vocabulary >"$scratch/gpt2/encoder.json"
printf 'l i\n' >"$scratch/gpt2/vocab.bpe"
export RUSH_DATA=$scratch
# A constant rate, so that a run may become longer.
small=(--data "$scratch/text" --n_layer 2 --n_head 4 --n_embd 32 --block_size 16 --learning_rate 1e-2 --min_lr 1e-2
  --warmup_iters 0 --eval_interval 4 --eval_iters 2 --max_new_tokens 8 --top_k 1 --allow_changes "$@")

fail() {
  printf 'mesh_runs: %s\n' "$*" >&2
  exit 1
}
losses() { sed -nE 's/^ *"(best_val_loss|loss)": ([0-9.e-]+),?$/\1 \2/p' "$1"; }
written() { sed -n '/^----$/,/^----$/p' "$1"; }
# compare MESH FILE STEPS: its losses are those of one process after so many steps.
compare() {
  paste <(losses "$2") <(losses "$scratch/alone$3.json") |
    awk '$1 != $3 || $2 - $4 > 1e-6 || $4 - $2 > 1e-6 { differs = 1 } END { exit differs || NR == 0 }' ||
    fail "$1 has the losses $(losses "$2"), one process $(losses "$scratch/alone$3.json")"
}

for steps in 4 8; do
  "$program" "${small[@]}" --max_iters $steps --out_dir "$scratch/alone$steps" --json "$scratch/alone$steps.json" \
    >"$scratch/alone.log"
done
before=
for mesh in "4 --fsdp 4" "4 --dp 2 --tp 2 --sequence_parallel" "2 --cp 2" "4 --pp 2 --tp 2 --micro_batches 2" \
  "4 --fsdp 2 --pp 2 --schedule interleaved --stages_per_process 2 --micro_batches 2 --checkpoint every" "1"; do
  read -ra options <<<"$mesh"
  run() { "$launch" -n "${options[0]}" "$program" "${small[@]}" "${options[@]:1}" "$@" >"$scratch/log" 2>&1; }
  if [[ -n $before ]]; then
    run --max_iters 8 --resume --out_dir "$before" --json "$scratch/second.json" || fail "$mesh: $(<"$scratch/log")"
    grep -q '^going on from .* 4$' "$scratch/log" || fail "$mesh has not gone on: $(<"$scratch/log")"
    compare "$mesh, going on from another," "$scratch/second.json" 8
    [[ $(cd "$before" && echo checkpoint*) == "checkpoint-8 checkpoint.safetensors" ]] || fail "$mesh leaves $(ls "$before")"
  fi
  if ((${#options[@]} > 1)); then
    before=$scratch/$mesh
    run --max_iters 4 --out_dir "$before" --json "$scratch/first.json" || fail "$mesh: $(<"$scratch/log")"
    compare "$mesh" "$scratch/first.json" 4
  fi
done
same_text() { [[ $(written "$1") == "$(written "$2")" ]] || fail "it writes $(<"$1"), and $(<"$2")"; }
same_text "$scratch/log" "$scratch/alone.log"
if [[ -f $before/model.safetensors ]]; then
  "$program" "${small[@]}" --init_from "$before/model.safetensors" --max_iters 0 >"$scratch/sampled"
  same_text "$scratch/sampled" "$scratch/alone.log"
fi
! run --max_iters 8 --micro_batches 2 --resume --out_dir "$scratch/alone4" || fail "a mesh has taken whole weights"
grep -q 'is of a run whose processes have the whole model' "$scratch/log" || fail "the refusal is $(<"$scratch/log")"

"$launch" -n 2 "$program" "${small[@]}" --tp 2 --max_iters 100000 --eval_interval 100000 --checkpoint_interval 20 \
  --out_dir "$scratch/stopped" >"$scratch/log" 2>&1 &
run=$!
ours() { pgrep -f -- "--out_dir $scratch/stopped\$" | while read -r pid; do
  [[ $(readlink "/proc/$pid/exe") != "$(readlink -f "$program")" ]] || echo "$pid"
done; }
until [[ -e $scratch/stopped/checkpoint-20 ]]; do
  kill -0 $run 2>/dev/null || fail "the run has ended: $(<"$scratch/log")"
  sleep 0.02
done
kill -INT "$(ours | tail -n 1)"
! wait $run || fail "a run that was stopped ends with status 0"
done=$(sed -nE 's/^.*: stopped .* after (step|iteration) ([0-9]+); .*$/\2/p' "$scratch/log" | sort -u)
[[ -n $done && -d $scratch/stopped/checkpoint-$done ]] || fail "it has stopped with $(ls "$scratch/stopped"): $(<"$scratch/log")"
