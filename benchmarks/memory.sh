#!/usr/bin/env bash
# The table of docs/out_of_memory.md: the peak that is predicted for a training of GPT-2, the one that is measured, and the
# time of a step, without and with what needs less memory. usage: benchmarks/memory.sh BUILD [gpt2's OPTIONS...]
set -euo pipefail
gpt2=$1/bin/gpt2
shift
common=("$@")
(($# > 0)) || common=(--n_layer 6 --n_head 6 --n_embd 384 --block_size 256 --batch_size 16)

printf '%-46s %12s %12s %10s\n' options predicted measured step
row() {
  local step
  step=$("$gpt2" "${common[@]}" "$@" --max_iters 4 --eval_iters 0 --max_new_tokens 0 --out_dir= | grep '^step 4')
  printf '%-46s %12s %12s %10s\n' "$*" "$("$gpt2" "${common[@]}" "$@" --estimate_memory | sed -n 's/^peak *//p')" \
    "$(sed -n 's/.*, \([0-9.]* GiB\)$/\1/p' <<<"$step")" "$(sed -n 's/.*, \([0-9.]* ms\),.*/\1/p' <<<"$step")"
}
row
row --dtype bfloat16
row --checkpoint every
row --checkpoint every --dtype bfloat16
row --batch_size 4 --total_batch_size 4096
row --batch_size 4 --total_batch_size 4096 --checkpoint every
