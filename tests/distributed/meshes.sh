#!/usr/bin/env bash
# meshes.sh LAUNCH N PROGRAM: on each of twelve meshes of four processes, or of six of eight, mesh_gpt has the losses of
# one process, within 1e-6: in its first ten steps from the beginning, and in ten more from the checkpoint of the mesh
# before.
set -euo pipefail

launch=$1 count=$2 program=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
. "$(dirname "${BASH_SOURCE[0]}")/../own_texts.sh"
write_text >"$scratch/text"
small=(--data "$scratch/text" --n_layer 4 --n_head "$count" --n_embd 32 --block_size 32 --batch_size 16 --log_interval 5
  --checkpoint_interval 10 --eval_iters 1)

fail() {
  printf 'meshes: %s\n' "$*" >&2
  exit 1
}
losses() { sed -nE 's/^ *"(val_)?loss": ([0-9.e-]+),?$/\2/p' "$1"; }
# compare MESH FILE BEGIN: its losses are those of one process from place BEGIN on.
compare() {
  local expected
  expected=$(losses "$scratch/alone.json" | tail -n "+$3" | head -n "$(losses "$2" | wc -l)")
  paste <(losses "$2") <(printf '%s\n' "$expected") |
    awk 'NF != 2 || $1 - $2 > 1e-6 || $2 - $1 > 1e-6 { differs = 1 } END { exit differs || NR == 0 }' ||
    fail "$1 has the losses $(losses "$2" | tr '\n' ' '), one process $(tr '\n' ' ' <<<"$expected")"
}

"$program" "${small[@]}" --max_iters 20 --out_dir "$scratch/alone" --json "$scratch/alone.json" >/dev/null
"$program" "${small[@]}" --max_iters 10 --out_dir "$scratch/before" >/dev/null
[[ $count == [48] ]] || fail "no meshes of $count processes"
meshes=("--dp 4" "--fsdp 4" "--dp 2 --fsdp 2" "--tp 4" "--tp 4 --sequence_parallel" "--tp 2 --fsdp 2 --sequence_parallel"
  "--cp 4" "--cp 2 --tp 2" "--cp 2 --fsdp 2" "--pp 4 --schedule gpipe --micro_batches 4"
  "--pp 2 --tp 2 --micro_batches 4" "--pp 2 --fsdp 2 --schedule interleaved --stages_per_process 2 --micro_batches 2")
((count == 4)) || meshes=("--dp 2 --fsdp 4" "--tp 8 --sequence_parallel" "--cp 2 --fsdp 2 --tp 2"
  "--pp 2 --dp 2 --tp 2 --sequence_parallel --micro_batches 2" "--pp 4 --fsdp 2 --micro_batches 4 --schedule gpipe"
  "--pp 2 --cp 2 --tp 2 --schedule interleaved --stages_per_process 2 --micro_batches 2")
for mesh in "${meshes[@]}"; do
  read -ra options <<<"$mesh"
  run() { "$launch" -n "$count" "$program" "${small[@]}" "${options[@]}" "$@" 2>&1 || fail "$mesh has failed"; }
  run --max_iters 20 --resume --out_dir "$scratch/before" --json "$scratch/second.json" >"$scratch/log"
  grep -q '^going on from .*, iteration 10$' "$scratch/log" || fail "$mesh has not gone on: $(<"$scratch/log")"
  compare "$mesh, going on from another," "$scratch/second.json" 3
  rm -rf "$scratch/before"
  run --max_iters 10 --out_dir "$scratch/before" --eval_iters 0 --json "$scratch/first.json" >"$scratch/log"
  compare "$mesh" "$scratch/first.json" 1
done
printf '%d meshes\n' "${#meshes[@]}"
