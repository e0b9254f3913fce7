#!/usr/bin/env bash
# gpt_best.sh GPT: of a run whose validation loss rises again, the weights of the best estimate are kept: they are those of
# a run that stops there, bit by bit, and the loss in the last line is theirs.
set -euo pipefail

program=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

fail() {
  printf 'gpt_best: %s\n' "$*" >&2
  exit 1
}

# The first nine tenths, to train on, have the letters of the last, and not their order.
for ((i = 0; i < 360; ++i)); do echo "to be or not to be"; done >text
for ((i = 0; i < 40; ++i)); do echo "eb ot ton ro eb ot"; done >>text

# The learning rate is the same at every iteration, so that a shorter run is the beginning of a longer one.
run() { # NAME ITERATIONS
  "$program" --data text --n_layer 1 --n_head 2 --n_embd 16 --block_size 16 --batch_size 4 --eval_interval 2 --eval_iters 2 \
    --warmup_iters 0 --learning_rate 1e-2 --min_lr 1e-2 --max_new_tokens 0 --max_iters "$2" --out_dir "$1" --json "$1.json" \
    >"$1.log" || fail "the run of $2 iterations failed"
}
number() { sed -n "s/^ *\"$2\": \([-0-9.e]*\),*$/\1/p" "$1.json"; }

run long 40
best=$(number long best_iteration)
[[ $best =~ ^[0-9]+$ ]] && ((0 < best && best < 40)) || fail "the best of 40 iterations is '$best': the test proves nothing"
printf -v loss '%.4f' "$(number long best_val_loss)"
grep -q "^iteration $best: .*, val loss $loss, best val loss $loss$" long.log || fail "iteration $best: $(<long.log)"
grep -q "^iteration 40: .*, best val loss $loss$" long.log || fail "the best loss is forgotten: $(<long.log)"

run short "$best"
cmp short/ckpt.safetensors long/ckpt.safetensors || fail "the weights kept are not those of iteration $best"
[[ $(tail -n 1 long.log) =~ ^"val loss "[0-9]+\.[0-9]{4}$ ]] || fail "the last line is '$(tail -n 1 long.log)'"
[[ $(tail -n 1 long.log) == "$(tail -n 1 short.log)" ]] || fail "the last line is not of the weights kept"

# Without --learning_rate it is 3e-3 at a width of 128 and falls with the width.
"$program" --data text --n_layer 1 --n_head 2 --n_embd 32 --block_size 16 --max_iters 0 --max_new_tokens 0 --out_dir "" \
  --json default.json >/dev/null
[[ $(number default learning_rate) == 0.012 ]] || fail "the learning rate of width 32 is $(number default learning_rate)"
