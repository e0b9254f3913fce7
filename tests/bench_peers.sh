#!/usr/bin/env bash
# bench_peers.sh PATH_OF_COMPARE.PY: what `./rush bench peers` makes of measurements. Our benchmarks and PyTorch's side are
# played by stand-ins, whose times are known.
set -euo pipefail

compare=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/bin" "$scratch/peers"

fail() {
  printf 'bench_peers: %s\n' "$*" >&2
  exit 1
}

# stand_in PATH <<< BODY
stand_in() {
  cat >"$1"
  chmod +x "$1"
}

# 2, 4 and 9 ms in three rounds: the median is 4.
stand_in "$scratch/bin/rush_bench" <<'TEXT'
#!/usr/bin/env python3
import json, os, re, sys
NAMES = ["kernels/add/real_time", "kernels/sum/real_time", "training/gpt/min_time:2.000/real_time", "other/thing",
         "cuda_training/gpt2/32/min_time:2.000/real_time"]
options = dict(each.split("=", 1) for each in sys.argv[1:] if "=" in each)
if "--benchmark_list_tests" in sys.argv:
    print("\n".join(NAMES))
    sys.exit()
counter = os.path.join(os.path.dirname(__file__), "rounds")
rounds = int(open(counter).read()) if os.path.exists(counter) else 0
open(counter, "w").write(str(rounds + 1))
rows = []
for name in NAMES:
    if not re.search(options["--benchmark_filter"], name):
        continue
    row = {"name": name, "real_time": (2.0, 9.0, 4.0)[rounds % 3], "time_unit": "ms"}
    if name.startswith("training"):
        row["per_step"] = 0.5
    if "sum" in name:
        row.update(error_occurred=True, error_message="no sums today")
    rows.append(row)
json.dump({"benchmarks": rows}, open(options["--benchmark_out"], "w"))
TEXT

# Whatever is asked for takes 8 ms. `-c "import torch"` finds one.
stand_in "$scratch/peer" <<'TEXT'
#!/usr/bin/env python3
import json, sys
if sys.argv[1] == "-c":
    sys.exit()
print(json.dumps({"torch": "2.0", "gpu": None}), flush=True)
for line in sys.stdin:
    answer = {"seconds": 0.008}
    if line.startswith("training/gpt"):
        answer["mode"] = "max-autotune" if "--max-autotune" in sys.argv else "reduce-overhead"
    print(json.dumps(answer), flush=True)
TEXT

peers() { python3 "$compare" --build "$scratch" --threads 1 "$@" 2>"$scratch/err"; }

out=$(peers --peer-python "$scratch/peer" --json "$scratch/all.json") || fail "it ends with an error: $(<"$scratch/err")"
grep -Eq '^kernels/add +4 ms +8 ms +0\.50 +1\.00$' <<<"$out" || fail "the medians of kernels/add are not there: $out"
grep -Eq '^training/gpt +500 ms +8 ms +62\.50 +1\.00  missed  \(reduce-overhead\)$' <<<"$out" ||
  fail "a step is not what is counted, or the mode is not named: $out"
grep -Eq '^kernels/sum +ours: no sums today$' <<<"$out" || fail "an error is not passed on: $out"
grep -Eq '^geometric mean of 2 ratios +5\.59$' <<<"$out" || fail "the ratios have no mean: $out"
! grep -Eq 'other|cuda' <<<"$out" || fail "without a GPU, or a peer, there is nothing to compare: $out"
python3 - "$scratch/all.json" <<'TEXT' || fail "the file of results is wrong"
import json, sys
results = json.load(open(sys.argv[1]))
rows = {row["workload"]: row for row in results["rows"]}
assert results["rounds"] == 3 and rows["kernels/add"]["ratio"] == 0.5
assert [round(each["seconds"], 9) for each in rows["kernels/add"]["ours"]] == [0.002, 0.009, 0.004]
assert "no sums today" in rows["kernels/sum"]["error"]
TEXT

out=$(peers --peer-python "$scratch/peer" --max-autotune --rounds 1 gpt$)
grep -q '(max-autotune)$' <<<"$out" || fail "--max-autotune does not reach PyTorch's side: $out"

[[ $(peers --list 'gpt$') == training/gpt ]] || fail "--list lists other workloads"

# Of several ways to run a step the fastest is measured, as the last one that is made; what fails is left out.
cat >"$scratch/torch.py" <<'TEXT'
class compiler:
    reset = staticmethod(lambda: None)


class cuda:
    is_available = staticmethod(lambda: False)
TEXT
PYTHONPATH="$scratch:$(dirname "$compare")" python3 - 2>"$scratch/err" <<'TEXT' || fail "not the fastest mode: $(<"$scratch/err")"
import time
import torch_modes

SECONDS = {"default": 0.004, "reduce-overhead": 0.001, "eager, CUDA graph by hand": 0.002}
made = []


def make(mode):
    made.append(str(mode))
    if str(mode) not in SECONDS:
        raise ValueError("it does not compile")
    return lambda: time.sleep(SECONDS[str(mode)])


measure = torch_modes.in_fastest_mode(make, torch_modes.all_modes(), "cpu", lambda step: {"seconds": 1}, calls=2)
result = measure()
assert result["seconds"] == 1 and result["mode"] == made[-1] == "reduce-overhead", result
assert set(result["modes"]) == set(SECONDS) and len(made) == 5, made
torch_modes.max_autotune = True
assert len(torch_modes.all_modes()) == 6
try:
    torch_modes.in_fastest_mode(make, [torch_modes.Mode("max-autotune")], "cpu", None)
    raise AssertionError("nothing works, and it is not said")
except RuntimeError as error:
    assert "none of the modes works: max-autotune" in str(error)
TEXT
grep -q "in the mode 'default, CUDA graph by hand': ValueError: it does not compile" "$scratch/err" ||
  fail "the mode that fails is not named: $(<"$scratch/err")"

# one_line ARGUMENTS... : fails with a single line.
one_line() {
  ! peers "$@" >"$scratch/out" || fail "$* does not fail"
  [[ $(wc -l <"$scratch/err") == 1 && $(<"$scratch/err") == "rush: bench peers: "* ]] || fail "$*: $(<"$scratch/err")"
}
one_line --peer-python "$scratch/nobody"
one_line --peer-python "$scratch/peer" nothing_of_that_name
