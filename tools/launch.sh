#!/usr/bin/env bash
# Starts N processes of a program on this machine, by Open MPI's mpirun.
# usage: launch.sh -n N [--tag-output] [--restarts R [--again ARGUMENT]] PROGRAM [ARGUMENTS...]
# Where a process fails, mpirun ends the others; with --restarts all are started again, at most R times, with ARGUMENT
# behind the others. RUSH_RESTART in their environment says how often that has been done. It is not done after status 2:
# an option that is bad would be so again.
set -euo pipefail

fail() {
  printf 'launch: %s\n' "$*" >&2
  exit 2
}

count=
restarts=0
again=
tag=()
[[ ! -t 1 ]] || tag=(--tag-output)
while (($# > 0)); do
  case $1 in
    -n)
      [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || fail "-n needs a number of processes"
      count=$2
      shift
      ;;
    --restarts)
      [[ ${2:-} =~ ^[0-9]+$ ]] || fail "--restarts needs a number"
      restarts=$2
      shift
      ;;
    --again)
      again=${2:-}
      shift
      ;;
    --tag-output) tag=(--tag-output) ;;
    --) shift && break ;;
    -*) fail "unknown option $1" ;;
    *) break ;;
  esac
  shift
done
[[ -n $count ]] || fail "how many processes? -n N says it"
(($# > 0)) || fail "expected a program"
command -v mpirun >/dev/null || fail "there is no mpirun; Debian's package is openmpi-bin"

# Nothing is started on other machines, so no ssh is asked for.
export OMPI_MCA_plm=isolated
# More processes than processors are fine, none is bound to one, and root may start them, as in a container. Processes of
# one machine hand long messages over through shared memory, since containers often refuse to copy between processes.
export OMPI_MCA_btl_vader_single_copy_mechanism=${OMPI_MCA_btl_vader_single_copy_mechanism:-none}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# The processes share the processors, and would wait for each other's threads.
threads=$(($(nproc) / count))
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-$((threads > 0 ? threads : 1))}

run=(mpirun --oversubscribe --bind-to none "${tag[@]}" -n "$count")
((restarts > 0)) || RUSH_RESTART=0 exec "${run[@]}" "$@"

# A signal that ends mpirun is for the run, not for one attempt.
stopped=
trap 'stopped=1' INT TERM
for ((attempt = 0; ; ++attempt)); do
  status=0
  RUSH_RESTART=$attempt "${run[@]}" "$@" || status=$?
  ((status != 0 && status != 2 && attempt < restarts)) && [[ -z $stopped ]] || exit "$status"
  printf 'launch: the run has ended with status %d; restart %d of %d\n' "$status" $((attempt + 1)) "$restarts" >&2
  if ((attempt == 0)) && [[ -n $again ]]; then set -- "$@" "$again"; fi
done
