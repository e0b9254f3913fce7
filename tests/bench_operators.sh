#!/usr/bin/env bash
# bench_operators.sh PATH_OF_COMPARE.PY [RUSH_TIME_OPERATORS]: what `./rush bench operators` makes of times, which stand-ins
# for both sides name. RUSH_TIME_OPERATORS, where it is built, then times every tiny case beside a stand-in.
set -euo pipefail

compare=$1
real=${2:-}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/bin"
export PYTHONDONTWRITEBYTECODE=1

fail() {
  printf 'bench_operators: %s\n' "$*" >&2
  exit 1
}

# stand_in PATH <<< BODY
stand_in() {
  cat >"$1"
  chmod +x "$1"
}

# 2 us, but 5, or 6 of a sum, for a case of two dimensions, and an error or an end for some; each case goes into a log.
stand_in "$scratch/bin/rush_time_operators" <<'TEXT'
#!/usr/bin/env python3
import json, os, sys
print(json.dumps({"device": "cpu"}), flush=True)
log = open(os.path.join(os.path.dirname(__file__), "../log"), "a", buffering=1)
for line in sys.stdin:
    case = json.loads(line)
    log.write(f"ours {' '.join(sys.argv[1:])} {line}")
    if case["id"] == "add.Tensor/tiny":
        print("a kernel has failed", file=sys.stderr)
        sys.exit(3)
    large = len(case["args"][0]["shape"]) > 1
    answer = {"seconds": 2e-6 if not large else 6e-6 if case["op"] == "aten::add.Tensor" else 5e-6}
    print(json.dumps({"error": "no square today"} if case["op"] == "aten::square" else answer), flush=True)
TEXT

# Whatever is asked for takes 4 us. Its device fails after add.Tensor/mid. `-c "import torch"` finds one.
stand_in "$scratch/peer" <<'TEXT'
#!/usr/bin/env python3
import json, os, sys, time
if sys.argv[1] == "-c":
    sys.exit()
print(json.dumps({"torch": "2.0", "device": "cpu"}), flush=True)
log = open(os.path.join(os.path.dirname(__file__), "log"), "a", buffering=1)
for line in sys.stdin:
    case = json.loads(line)
    log.write(f"theirs {' '.join(sys.argv[2:])} {line}")
    wrong = case["id"].startswith("square/tiny") or case["id"] == "abs/mid"
    answer = {"error": "none here"} if wrong else {"seconds": 4e-6}
    if case["id"] == "add.Tensor/mid":
        print(json.dumps({**answer, "ends": True}), flush=True)
        time.sleep(0.2)
        sys.exit(1)
    print(json.dumps(answer), flush=True)
TEXT

operators() { python3 "$compare" --build "$scratch" --peer-python "$scratch/peer" "$@" 2>"$scratch/err"; }

# Three tiny cases of 2 us, two large ones of 5 and three of 6, all beside 4: the mean of the ratios is 0.949.
few='^(abs|square|add.Tensor)/(tiny|mid|big)(/bwd)?$'
out=$(operators "$few" --over 1.2 --errors --json "$scratch/all.json") || fail "it ends with an error: $(<"$scratch/err")"
grep -Eq '^abs/tiny +2 us +4 us +0\.50$' <<<"$out" || fail "the times of abs/tiny are not there: $out"
summary=$(sed -n '/^[0-9]* cases, /,$p' <<<"$out")
[[ $(head -1 <<<"$summary") == "8 cases, geometric mean 0.949, 3 faster than PyTorch, 5 over 1.2" ]] || fail "the summary: $out"
[[ $(sed -n 2p <<<"$summary") == "5 cases fail on one side, 2 on both" ]] || fail "the failures: $out"
slow=$(sed -n '3,7s/ .* / /p' <<<"$summary")
[[ $slow == $'add.Tensor/mid 1.50\nadd.Tensor/big 1.50\nadd.Tensor/big/bwd 1.50\nabs/big 1.25\nabs/big/bwd 1.25' ]] ||
  fail "the slow cases are not listed, worst first: $out"
! grep -q '^abs/tiny' <<<"$summary" || fail "a fast case is listed: $out"
grep -Eq '^square/mid +ours: no square today$' <<<"$out" || fail "an error of ours is not listed: $out"
grep -Eq '^square/tiny +ours: no square today; PyTorch: none here$' <<<"$out" || fail "errors of both: $out"
grep -Eq '^add.Tensor/tiny +ours: a kernel has failed$' <<<"$out" || fail "the end of the process is not told: $out"
grep -Eq '^add.Tensor/tiny/bwd +2 us' <<<"$out" || fail "no process went on behind the one that ended: $out"
python3 - "$scratch/all.json" <<'TEXT' || fail "the file of results is wrong"
import json, sys
results = json.load(open(sys.argv[1]))
rows = {row["case"]: row for row in results["rows"]}
assert results["torch"] == "2.0" and results["threads"] == 1 and len(rows) == 15, results
assert rows["abs/big"].pop("ratio") == 5e-6 / 4e-6
assert rows["abs/big"] == {"case": "abs/big", "ours": {"seconds": 5e-6}, "peer": {"seconds": 4e-6}}
assert rows["abs/mid"]["peer"] == {"error": "none here"} and "ratio" not in rows["abs/mid"]
TEXT
out=$(operators "$few")
[[ $out == *"(--errors lists them)"* && $out != *"no square today"* ]] || fail "errors are listed that nobody asked for: $out"

# Blocks in turn, with the same options and cases on both sides.
rm "$scratch/log"
operators '^(a|logical_)' --device cuda --threads 3 --seconds 0.25 >"$scratch/out" || fail "blocks: $(<"$scratch/err")"
python3 - "$scratch/log" <<'TEXT' || fail "the sides do not get the same cases in turn: $(cut -c1-6 "$scratch/log" | uniq -c)"
import itertools, sys
lines = [line.split(" ", 1) for line in open(sys.argv[1])]
blocks = [(side, [rest for _, rest in block]) for side, block in itertools.groupby(lines, lambda line: line[0])]
assert [side for side, _ in blocks] == ["ours", "theirs"] * (len(blocks) // 2) and len(blocks) >= 4
assert all(blocks[i][1] == blocks[i + 1][1] for i in range(0, len(blocks), 2))
assert all(len(cases) == 100 for _, cases in blocks[:-2])
assert all(line.startswith("--device cuda --threads 3 --seconds 0.25 {") for _, line in lines)
TEXT

# What the notation of table.py means.
python3 - "$(dirname "$compare")" <<'TEXT' || fail "the table is not what its notation says"
import sys
sys.path.insert(0, sys.argv[1])
import table
positional, named = table.parsed('[d[2,3]@t, None], i32[4]<9, f[]=unit!, "ij,jk->ik", dtype=bfloat16, device=device')
assert positional == (
    [{"shape": [2, 3], "dtype": "float64", "fill": "randn", "layout": "t"}, None],
    {"shape": [4], "dtype": "int32", "fill": "int:0:9"},
    {"shape": [], "dtype": "float32", "fill": "rand:0.01:0.99", "grad": False},
    "ij,jk->ik",
), positional
assert named == {"dtype": {"dtype": "bfloat16"}, "device": {"device": True}}, named
cases = table.cases()
assert len(cases) > 4000 and sum(case["id"].endswith("/bwd") == case.get("grad", False) for case in cases) == len(cases)
TEXT
[[ $(operators --list '^abs/tiny') == $'abs/tiny\nabs/tiny/bwd' ]] || fail "--list lists other cases"
[[ $({ operators --list || true; } | head -1) == ceil/tiny && ! -s $scratch/err ]] ||
  fail "it does not end quietly where a pipe does: $(<"$scratch/err")"

# one_line ARGUMENTS... : fails with a single line.
one_line() {
  ! operators "$@" >"$scratch/out" || fail "$* does not fail"
  [[ $(wc -l <"$scratch/err") == 1 && $(<"$scratch/err") == "rush: bench operators: "* ]] || fail "$*: $(<"$scratch/err")"
}
one_line --peer-python "$scratch/nobody"
grep -q 'there is no PyTorch for .*/nobody: ' "$scratch/err" || fail "PyTorch's absence is not told: $(<"$scratch/err")"
one_line --peer-python "$(type -P false)"
one_line nothing_of_that_name
one_line '('
one_line tiny --json "$scratch/no/such/folder/file.json"
one_line tiny --build "$scratch/no/build"

# Ours itself: what its library has is timed, forward and backward, and a case that throws does not end it.
[[ -n $real ]] || exit 0
cp "$real" "$scratch/bin/rush_time_operators"
out=$(operators /tiny --seconds 0.0001 --errors) || fail "ours: $(<"$scratch/err")"
timed=$(sed -n 's/^\([0-9]*\) cases, geometric mean .*/\1/p' <<<"$out")
((timed > 500)) || fail "of the tiny cases, $timed are timed: $out"
grep -Eq '^add.Tensor/tiny/bwd +[0-9]' <<<"$out" || fail "no backward pass is timed: $out"
! grep 'ours: ' <<<"$out" | grep -v 'is not registered' || fail "tiny cases fail"
answers=$("$real" --seconds 0.0001 <<'TEXT'
{"op": "aten::mm", "args": [{"shape": [2, 3], "dtype": "float32", "fill": "randn"}, {"shape": [2, 3], "dtype": "float32", "fill": "randn"}], "kwargs": {}}
{"op": "aten::t", "args": [{"shape": [2, 3], "dtype": "float32", "fill": "randn"}], "kwargs": {}}
TEXT
) || fail "ours ends with an error: $answers"
[[ $(sed -n 2p <<<"$answers") == '{"error":'*mm* && $(sed -n 3p <<<"$answers") == '{"seconds":'* ]] || fail "ours: $answers"
