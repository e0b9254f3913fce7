#!/usr/bin/env bash
# demo.sh LAUNCH MNIST: the demo on two processes comes to the test loss of one.
set -euo pipefail

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
training=(--digits 480 --batch_size 48 --epochs 1 --lr 2e-3)

"$2" "${training[@]}" --out_dir "$scratch/alone" --json "$scratch/alone.json" >"$scratch/alone.txt"
"$1" -n 2 "$2" "${training[@]}" --out_dir "$scratch/two" --json "$scratch/two.json" >"$scratch/two.txt"

test_loss() { sed -n 's/^ "test_loss": \([0-9.e-]*\),*$/\1/p' "$1"; }
alone=$(test_loss "$scratch/alone.json") two=$(test_loss "$scratch/two.json")
awk -v a="$alone" -v b="$two" 'BEGIN { d = a - b; exit !(a > 0 && d < 1e-6 && d > -1e-6) }' || {
  echo "the test loss is $alone with one process, and $two with two" >&2
  exit 1
}
[[ $(grep -c "test accuracy" "$scratch/two.txt") == $(grep -c "test accuracy" "$scratch/alone.txt") ]] || {
  echo "not only the first process has printed: $(<"$scratch/two.txt")" >&2
  exit 1
}
[[ -s $scratch/two/net.safetensors ]] || { echo "there are no weights in $(ls "$scratch/two")" >&2 && exit 1; }
