#!/usr/bin/env bash
# same_loss.sh LAUNCH N LOSS DIFFERENCE PROGRAM [ARGUMENTS...]: the program on N processes comes to the LOSS of one, by
# its --json, with a smaller DIFFERENCE.
set -euo pipefail

launch=$1 count=$2 loss=$3 difference=$4 program=$5
shift 5
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# A text that stays as it is, and for gpt2 a vocabulary.
. "$(dirname "${BASH_SOURCE[0]}")/../own_texts.sh"
mkdir "$scratch/gpt2" "$scratch/tinyshakespeare"
write_text >"$scratch/tinyshakespeare/input.txt"
write_vocabulary >"$scratch/gpt2/encoder.json"
printf 'l i\n' >"$scratch/gpt2/vocab.bpe"
export RUSH_DATA=$scratch

"$program" "$@" --out_dir "$scratch/alone" --json "$scratch/alone.json" >"$scratch/alone.txt"
"$launch" -n "$count" "$program" "$@" --out_dir "$scratch/all" --json "$scratch/all.json" >"$scratch/all.txt"

fail() {
  echo "$*" >&2
  exit 1
}
last_loss() { sed -n "s/^ *\"$loss\": \([0-9.e-]*\),*$/\1/p" "$1" | tail -n 1; }
alone=$(last_loss "$scratch/alone.json") all=$(last_loss "$scratch/all.json")
awk -v a="$alone" -v b="$all" -v most="$difference" 'BEGIN { d = a - b; exit !(a > 0 && d < most && d > -most) }' ||
  fail "$loss is $alone with one process, and $all with $count"
[[ $(wc -l <"$scratch/all.txt") == $(wc -l <"$scratch/alone.txt") ]] ||
  fail "not only the first process has printed: $(<"$scratch/all.txt")"
[[ -n $(find "$scratch/all" -name '*.safetensors') ]] || fail "there are no weights in $(ls "$scratch/all")"
