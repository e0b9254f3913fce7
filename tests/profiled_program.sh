#!/usr/bin/env bash
# profiled_program.sh MNIST [LAUNCH]: a program that RUSH_PROFILE has recorded prints its operators and leaves a trace, and
# goes on where it cannot; of several processes, which LAUNCH starts, each does.
set -euo pipefail

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

fail() {
  printf 'profiled_program: %s\n' "$*" >&2
  exit 1
}

run=("$1" --digits 240 --batch_size 32 --epochs 1 --overwrite --out_dir run)

RUSH_PROFILE=trace.json.gz "${run[@]}" >out 2>err || fail "it failed: $(<err)"
for expected in 'aten::convolution ' 'aten::convolution_backward ' '# of Calls' 'Self CPU time total: ' \
  'Most memory was in use after '; do
  grep -qF -- "$expected" err || fail "no '$expected' in: $(<err)"
done
[[ $(gzip -dc trace.json.gz | tail -n 1) == ']}' ]] || fail "the trace has no end"
gzip -dc trace.json.gz | grep -F '"name": "ConvolutionBackward"' >nodes || fail "the trace has no nodes of the backward pass"
(($(gzip -dc trace.json.gz | grep -c '"name": "memory of cpu"') > 100)) || fail "the trace does not draw the memory"
(($(gzip -dc trace.json.gz | grep -c '"cat": "cpu_op"') > 500)) || fail "the trace has few events"

if [[ -n ${2-} ]]; then
  RUSH_PROFILE=several.json.gz "$2" -n 2 "${run[@]}" >out 2>err || fail "two processes failed: $(<err)"
  for rank in 0 1; do
    gzip -dc several.rank$rank.json.gz | tail -n 1 | grep -qFx ']}' || fail "rank $rank has left $(ls)"
    grep -q "The profile of rank $rank:$" out err || fail "no table of rank $rank in: $(<err)"
  done
  [[ ! -e several.json.gz ]] || fail "two processes leave $(ls)"
  mkdir traces.json.d
  RUSH_PROFILE=traces.json.d/trace.gz "$2" -n 2 "${run[@]}" >out 2>err || fail "two processes failed: $(<err)"
  gzip -t traces.json.d/trace.rank{0,1}.gz || fail "two processes leave $(ls traces*)"
fi

RUSH_PROFILE='' "${run[@]}" >out 2>err || fail "it failed without a file: $(<err)"
grep -qF 'aten::convolution ' err || fail "no table without a file"

RUSH_PROFILE=no/such/folder/trace.json "${run[@]}" >out 2>err || fail "it ended where it can write no trace"
[[ $(<err) == 'profile: no/such/folder/trace.json: '* ]] || fail "expected why there is no trace, got: $(<err)"

if [[ -e /dev/full ]]; then
  RUSH_PROFILE=/dev/full "${run[@]}" >out 2>err || fail "it ended on a full disk"
  grep -q 'profile: /dev/full: .*space' err || fail "expected that the disk is full, got: $(<err)"
fi
