#!/usr/bin/env bash
# planned_memory.sh LAUNCH MESH_GPT PLAN: on nine meshes of two and four processes, a step of mesh_gpt takes the memory that
# the planner says, within 10 %, by formulas and by a dry run. And it takes what --measure has written.
set -euo pipefail

launch=$1 mesh_gpt=$2 plan=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for ((i = 0; i < 400; ++i)); do printf 'line %d of %d, %d\n' "$i" 400 $((i * i)); done >"$scratch/text"
sizes=(--n_layer 4 --n_head 4 --n_embd 128 --block_size 128 --batch_size 16)

fail() {
  printf 'planned_memory: %s\n' "$*" >&2
  exit 1
}
number() { sed -nE "s/^ *\"$1\": ([0-9.e+-]+),?$/\\1/p" "$2"; }

"$launch" -n 2 "$plan" mesh_gpt "${sizes[@]}" --measure "$scratch/rates.json" >"$scratch/log" || fail "cannot measure"
grep -q '^2 processes at once, each: products' "$scratch/log" || fail "what is measured is not said: $(<"$scratch/log")"

meshes=("2 --dp 2" "2 --fsdp 2" "2 --tp 2 --sequence_parallel" "2 --cp 2" "2 --pp 2 --micro_batches 4"
  "4 --fsdp 2 --tp 2 --sequence_parallel" "4 --cp 2 --tp 2" "4 --pp 2 --fsdp 2 --micro_batches 2"
  "4 --pp 2 --schedule interleaved --stages_per_process 2 --micro_batches 4 --dp 2")
for mesh in "${meshes[@]}"; do
  read -ra options <<<"$mesh"
  "$plan" mesh_gpt "${sizes[@]}" "${options[@]:1}" --rates "$scratch/rates.json" --json "$scratch/plan.json" >/dev/null
  "$launch" -n "${options[0]}" "$mesh_gpt" --data "$scratch/text" "${sizes[@]}" "${options[@]:1}" --max_iters 3 \
    --eval_iters 0 --out_dir "$scratch/out" --json "$scratch/run.json" >"$scratch/log" 2>&1 ||
    fail "$mesh has failed: $(<"$scratch/log")"
  measured=$(number peak_bytes "$scratch/run.json")
  for key in peak_bytes dry_run_bytes; do
    predicted=$(number "$key" "$scratch/plan.json")
    awk -v p="$predicted" -v m="$measured" 'BEGIN { exit !(m > 0 && p > 0.9 * m && p < 1.1 * m) }' ||
      fail "$mesh takes $measured bytes; $key says $predicted"
  done
done

# The options that are proposed are those of mesh_gpt.
"$plan" mesh_gpt "${sizes[@]}" --gpus 4 --memory 0.02 --best 1 --rates "$scratch/rates.json" >"$scratch/log"
read -ra options < <(tail -n 1 "$scratch/log" | grep -o ' --.*')
"$launch" -n 4 "$mesh_gpt" --data "$scratch/text" "${sizes[@]}" "${options[@]}" --max_iters 1 --eval_iters 0 \
  --out_dir "$scratch/out" >"$scratch/log" 2>&1 || fail "the proposed ${options[*]} has failed: $(<"$scratch/log")"
printf '%d meshes\n' "${#meshes[@]}"
