#!/usr/bin/env bash
# usage: [RUSH_GDB=GDB] replay_gdb.sh PAGE.md PROGRAM [--core]
# Runs the commands of the page's ```gdb blocks on the program, and looks for every line of its ```text blocks in what gdb
# prints, in order. "..." in a line stands for anything. With --core, a core dump is taken where the page's `run` stops, and
# the other commands are tried on it, without a process.
set -euo pipefail
page=$1 program=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

block() { awk -v kind="$1" '$0 == "```" kind { inside = 1; next } $0 == "```" { inside = 0 } inside' "$page"; }
block gdb >"$work/commands"
block text >"$work/expected"
[[ -s $work/commands && -s $work/expected ]] || { echo "$page: no gdb or text blocks"; exit 1; }

# The printers come out of the program, which must be declared safe.
session() {
  "${RUSH_GDB:-gdb}" -nx -batch -iex "add-auto-load-safe-path $(dirname "$(readlink -f "$program")")" -ex 'set debuginfod enabled off' \
    -ex 'set width 0' -ex 'set style enabled off' "$@"
}

what=("$program")
if [[ ${3:-} == --core ]]; then
  grep -E '^(break|run)' "$work/commands" >"$work/start"
  session -x "$work/start" -ex "generate-core-file $work/core" "$program" >"$work/made" 2>&1 ||
    true
  [[ -s $work/core ]] || { echo "no core dump was made"; cat "$work/made"; exit 1; }
  sed -i -E '/^(break|run)/d' "$work/commands"
  what+=("$work/core")
fi
session -x "$work/commands" "${what[@]}" >"$work/printed" 2>"$work/errors" || true

awk -v printed="$work/printed" '
  function matches(line, pattern,   parts, n, i, at) {
    n = split(pattern, parts, /\.\.\./)
    for (i = 1; i <= n; ++i) {
      if (parts[i] == "") continue
      at = index(line, parts[i])
      if (!at) return 0
      line = substr(line, at + length(parts[i]))
    }
    return 1
  }
  /[^ ]/ {
    sub(/^ +/, "")
    wanted = $0
    found = 0
    while ((getline line < printed) > 0) if (matches(line, wanted)) { found = 1; break }
    if (!found) { print "not printed (in this order): " wanted; exit 1 }
    ++count
  }
  END { if (count) print count " lines found" }' "$work/expected" || { cat "$work/printed" "$work/errors"; exit 1; }
