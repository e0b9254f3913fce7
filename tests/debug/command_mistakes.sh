#!/usr/bin/env bash
# usage: command_mistakes.sh PROGRAM
# Gives the commands of tools/gdb/rushlight_commands.py what they cannot use: each says so in one line, and gdb goes on.
set -euo pipefail
program=$1
said=$(gdb -nx -batch -iex "add-auto-load-safe-path $(dirname "$(readlink -f "$program")")" -ex 'set debuginfod enabled off' \
  -ex rush-next-op -ex rush-next-kernel -ex rush-next-node -ex rush-break-nan -ex rush-graph -ex 'rush-break-shape 2 -1' \
  -ex 'rush-graph nothing' -ex 'break rush::run_backward' -ex run -ex 'frame function main' -ex 'rush-graph x' \
  -ex 'rush-graph loss, deep' -ex 'rush-break-write w, 7' -ex rush-break-write "$program" 2>&1) || true  # the status is the last command's
while read -r line; do
  grep -qxF -- "$line" <<<"$said" || { echo "$said"; echo "not said: $line"; exit 1; }
done <<'TEXT'
rush-next-op: start the program first, with `start`
rush-next-kernel: start the program first, with `start`
rush-next-node: start the program first, with `start`
rush-break-nan: start the program first, with `start`
rush-graph: name a tensor, as in: rush-graph loss
rush-break-shape: the sizes are numbers, as in: rush-break-shape 2 3
rush-graph: No symbol "nothing" in current context.
the tensor has no grad_fn
rush-graph: No symbol "deep" in current context.
rush-break-write: [7] is no index of a tensor of shape [3]
rush-break-write: name a tensor, as in: rush-break-write loss
TEXT
if grep -q 'Python' <<<"$said"; then
  echo "$said"
  exit 1
fi
