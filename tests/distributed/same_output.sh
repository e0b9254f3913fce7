#!/usr/bin/env bash
# same_output.sh LAUNCH N PROGRAM: the lines "loss X" that the program prints on N processes are those that it prints alone,
# within 1e-5 of them, and there is one.
set -euo pipefail

launch=$1 count=$2 program=$3
losses() { sed -n 's/^loss \([0-9.e-]*\)$/\1/p'; }
alone=$("$program" | losses)
all=$("$launch" -n "$count" "$program" | losses)
[[ -n $alone ]] && paste <(printf '%s\n' "$alone") <(printf '%s\n' "$all") |
  awk 'NF != 2 || $1 - $2 > 1e-5 || $2 - $1 > 1e-5 { exit 1 }' || {
  printf 'losses alone:\n%s\non %s processes:\n%s\n' "$alone" "$count" "$all" >&2
  exit 1
}
