#!/usr/bin/env bash
# memory_estimates.sh BIN: programs say what they would need and train nothing; checkpointing needs less, and changes no
# result.
set -euo pipefail

bin=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

fail() {
  printf 'memory_estimates: %s\n' "$*" >&2
  exit 1
}

for ((i = 0; i < 400; ++i)); do echo "to be or not to be"; done >text
gpt=("$bin/gpt" --data text --n_layer 4 --n_head 2 --n_embd 64 --block_size 32 --batch_size 8 --max_new_tokens 0)

kib() { # PROGRAM ARGUMENTS...: the peak that it predicts
  "$@" --estimate_memory >out || fail "$* failed: $(<out)"
  local amount unit
  read -r amount unit < <(sed -n 's/^peak *//p' out)
  grep -q 'the largest batch size that fits: [1-9]' out || fail "no batch size in: $(<out)"
  awk -v amount="$amount" -v unit="$unit" \
    'BEGIN { print int(amount * (unit == "GiB" ? 1048576 : unit == "MiB" ? 1024 : unit == "KiB" ? 1 : 0)) }'
}

small=$(kib "$bin/mnist" --batch_size 8)
large=$(kib "$bin/mnist" --batch_size 256)
((small > 0 && large > 4 * small)) || fail "mnist: $small KiB for 8 digits, $large for 256"
resnet=$(kib "$bin/resnet" --batch_size 2 --image_size 32)
((resnet > 100000)) || fail "resnet18's weights alone take more"
if [[ -x $bin/gpt2 ]]; then  # which needs no vocabulary for this
  gpt2=$(RUSH_DATA=$scratch RUSH_ROOT=$scratch kib "$bin/gpt2" --n_layer 1 --batch_size 1 --block_size 32 --total_batch_size 32)
  ((gpt2 > 4 * 4 * 50304 * 768 / 1024)) || fail "gpt2: $gpt2 KiB are less than its embedding trains in"
fi
none=$(kib "${gpt[@]}")
every=$(kib "${gpt[@]}" --checkpoint every)
((every * 10 < none * 7)) || fail "gpt: $every KiB with checkpoints, $none without"
[[ ! -e out-gpt && ! -d out && $(ls) == $'out\ntext' ]] || fail "an estimate left files: $(ls)"

train() { # CHECKPOINT
  "${gpt[@]}" --checkpoint "$1" --max_iters 4 --eval_iters 1 --out_dir= --json "$1.json" >"$1.log" || fail "checkpoint $1 failed"
  grep val_loss "$1.json"
}
[[ $(train none) == "$(train every)" ]] || fail "checkpointing changes the loss"
train auto >/dev/null
grep -q '^0 of 4 blocks are checkpointed' auto.log || fail "auto: $(<auto.log)"
