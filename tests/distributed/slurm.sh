#!/usr/bin/env bash
# slurm.sh SCRIPT: how the job script calls srun, which a stand-in plays.
set -euo pipefail

script=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
  echo "$*" >&2
  exit 1
}

cat >"$scratch/srun" <<'STAND_IN'
#!/usr/bin/env bash
echo "$OMP_NUM_THREADS threads, restart $RUSH_RESTART:$(printf ' [%s]' "$@")"
STAND_IN
chmod +x "$scratch/srun"

# expect LINE VARIABLES... -- ARGUMENTS...
expect() {
  local line=$1 variables=() told
  shift
  while [[ $1 != -- ]]; do
    variables+=("$1")
    shift
  done
  shift
  told=$(env -i "${variables[@]}" PATH="$scratch:$PATH" bash "$script" "$@")
  [[ $told == "$line" ]] || fail "expected $line, got $told"
}

bash -n "$script"
srun="[--mpi=pmix] [--kill-on-bad-exit=1]"
expect "1 threads, restart 0: $srun [program] [--name] [two words]" -- program --name "two words"
expect "8 threads, restart 0: $srun [program]" SLURM_CPUS_PER_TASK=8 SLURM_RESTART_COUNT=0 -- --again --resume program
expect "2 threads, restart 3: $srun [program] [x] [--resume]" SLURM_CPUS_PER_TASK=2 SLURM_RESTART_COUNT=3 -- --again --resume program x
expect "4 threads, restart 1: $srun [program]" SLURM_CPUS_PER_TASK=2 SLURM_RESTART_COUNT=1 OMP_NUM_THREADS=4 -- program
status=0
PATH="$scratch:$PATH" bash "$script" 2>/dev/null || status=$?
[[ $status == 2 ]] || fail "a job without a program has ended with status $status"
