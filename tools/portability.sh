# shellcheck shell=bash
# ./rush portability: builds the library and the runners of recorded answers with other compilers, for any x86-64-v3, and
# for AArch64, and runs them. Compilers, libraries and emulator are Debian's packages, unpacked below build/portability:
# nothing is installed, so nobody needs to be root. Sourced by ./rush, whose ROOT, JOBS, WERROR, say, die, misused, have,
# install_missing and check_path this uses.

PORTABILITY=$ROOT/build/portability
NOTHING=$PORTABILITY/nothing-installed  # an empty list of packages
PORTABILITY_NAMES=(gcc-11 clang-16 clang-newest x86-64-v3 aarch64)

# own_apt ARCHITECTURE STATUS apt-get | apt-cache ARGUMENTS...: as on a machine of this architecture that has the packages
# which the file STATUS lists, with lists and downloads of its own.
own_apt() {
  local state=$PORTABILITY/apt-$1 options=(-o "APT::Architecture=$1" -o "APT::Architectures=$1" -o APT::Sandbox::User=)
  options+=(-o "Dir::State=$state" -o "Dir::State::Lists=$state/lists" -o "Dir::State::status=$2" -o "Dir::Cache=$state")
  local tool=$3
  shift 3
  mkdir -p "$state/lists/partial" "$state/archives/partial"
  [[ -f $state/updated ]] || { apt-get -qq "${options[@]}" update >&2 && touch "$state/updated"; }
  "$tool" -q "${options[@]}" "$@"
}

# unpack FOLDER ARCHITECTURE STATUS PACKAGE...: these, and those of their dependencies that STATUS does not list. The
# folder appears whole or not at all.
unpack() {
  local folder=$PORTABILITY/$1 architecture=$2 status=$3 part=$PORTABILITY/$1.part package names
  shift 3
  [[ ! -d $folder ]] || return 0
  say "unpacking $* below build/portability"
  rm -rf "$part"
  mkdir -p "$part/packages"
  own_apt "$architecture" "$status" apt-get -s install --no-install-recommends "$@" >"$part/plan" ||
    die "apt-get knows no such packages: $*"
  # A cross compiler has a C library of its own; a compiler for this machine looks for its C++ library beside itself.
  mapfile -t names < <(sed -n 's/^Inst \([^ :]*\).*/\1/p' "$part/plan" |
    if [[ $status == "$NOTHING" ]]; then grep -vxE 'libc6|libc6-dev|linux-libc-dev|libgcc-s1|libcrypt-dev'; else cat; fi)
  [[ $status == "$NOTHING" ]] || names+=(libstdc++6 libgcc-s1)
  (cd "$part/packages" && own_apt "$architecture" "$status" apt-get -q=2 download "${names[@]}") ||
    die "cannot download: ${names[*]}"
  for package in "$part/packages"/*.deb; do dpkg-deb -x "$package" "$part"; done
  rm -r "$part/packages"
  mv "$part" "$folder"
}

# The newest of the compilers clang-N that Debian has, as N.
newest_clang() {
  own_apt "$(dpkg --print-architecture)" /var/lib/dpkg/status apt-cache pkgnames clang- |
    sed -n 's/^clang-\([0-9]*\)$/\1/p' | sort -n | tail -n 1
}

# wrap NAME FOLDER PROGRAM: makes a command of the unpacked program, which needs the libraries beside it; prints its path.
wrap() {
  local command=$PORTABILITY/bin/$1 root=$PORTABILITY/$2
  mkdir -p "$PORTABILITY/bin"
  [[ -x $command ]] || {
    printf '#!/bin/bash\nLD_LIBRARY_PATH=%q exec %q "$@"\n' "$root/usr/lib/$(uname -m)-linux-gnu" "$root/$3" >"$command"
    chmod +x "$command"
  }
  echo "$command"
}

# Sets `compiler`, CMake's `arguments`, and the `emulator` that runs the programs, for a platform.
prepare_platform() {
  local machine status=/var/lib/dpkg/status
  machine=$(dpkg --print-architecture)
  arguments=() emulator=()
  case $1 in
    clang-*)
      unpack "$1-root" "$machine" "$status" "$1"
      compiler=$(wrap "$1" "$1-root" "usr/lib/llvm-${1#clang-}/bin/clang++")
      ;;
    gcc-*)
      unpack "$1-root" "$machine" "$status" "g++-${1#gcc-}"
      compiler=$(wrap "$1" "$1-root" "usr/bin/g++-${1#gcc-}")
      ;;
    x86-64-v3)
      compiler=${CXX:-c++}
      arguments=(-DRUSH_NATIVE=OFF)
      ;;
    aarch64) prepare_aarch64 "$machine" "$status" ;;
  esac
}

# Debian's cross compiler, arm64's own libraries, and qemu's emulator of one program.
prepare_aarch64() {
  local tools=$PORTABILITY/aarch64-tools libraries=$PORTABILITY/aarch64-libraries script
  unpack aarch64-tools "$1" "$2" g++-aarch64-linux-gnu qemu-user-static
  # The linker's scripts name libraries by their paths on a machine that has them installed.
  for script in "$tools"/usr/aarch64-linux-gnu/lib/lib{c,m}.so; do
    sed -i 's#/usr/aarch64-linux-gnu/lib/##g' "$script"
  done
  : >"$NOTHING"
  unpack aarch64-libraries arm64 "$NOTHING" zlib1g-dev libzip-dev libeigen3-dev nlohmann-json3-dev libcli11-dev doctest-dev
  compiler=$(wrap aarch64-g++ aarch64-tools usr/bin/aarch64-linux-gnu-g++)
  local found=$libraries/usr/lib/aarch64-linux-gnu
  arguments=(-DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DRUSH_NATIVE=OFF
    "-DCMAKE_FIND_ROOT_PATH=$libraries" -DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY -DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY
    -DCMAKE_FIND_ROOT_PATH_MODE_PACKAGE=ONLY -DCMAKE_LIBRARY_ARCHITECTURE=aarch64-linux-gnu
    "-DCMAKE_EXE_LINKER_FLAGS=-Wl,-rpath-link,$found:$libraries/lib/aarch64-linux-gnu")
  emulator=("$tools/usr/bin/qemu-aarch64-static" -L "$tools/usr/aarch64-linux-gnu"
    -E "LD_LIBRARY_PATH=$found:$libraries/lib/aarch64-linux-gnu:$tools/usr/aarch64-linux-gnu/lib")
}

# The last line of a runner; whether it says that all passed.
run_cases() { # RUNNER CASES LOG
  local status=0
  "${emulator[@]}" "$build/bin/$1" "$2" >"$3" 2>&1 || status=$?
  tail -n 1 "$3"
  return "$status"
}

row() { printf '%-12s %-10s %-8s %-38s %s\n' "$@"; }

# One platform's row of the table; fails unless everything passed.
try_platform() {
  local name=$1 compiler arguments emulator build=$PORTABILITY/$1 version built conformance=- parity=- status=0
  prepare_platform "$name"
  version=$("$compiler" -dumpfullversion 2>/dev/null || "$compiler" -dumpversion)
  mkdir -p "$build"
  local start=$SECONDS
  say "building build/portability/$name with $(basename "$compiler") $version"
  if cmake -S "$ROOT" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_COMPILER=$compiler" "${arguments[@]}" \
    -DRUSH_CUDA=OFF -DRUSH_GPT2=OFF -DRUSH_BUILD_BENCHMARKS=OFF "-DRUSH_WERROR=$WERROR" >"$build/log" 2>&1 &&
    cmake --build "$build" -j "$JOBS" --target rush_conformance rush_train_parity >>"$build/log" 2>&1; then
    built="$((SECONDS - start)) s"
    if [[ -d $CASES ]]; then
      conformance=$(run_cases rush_conformance "$CASES/visible.jsonl" "$build/conformance.log") || status=1
      parity=$(run_cases rush_train_parity "$CASES/train" "$build/parity.log") || status=1
    fi
  else
    built="fails"
    status=1
    tail -n 3 "$build/log" >&2
    say "build/portability/$name/log says more"
  fi
  row "$name" "$version" "$built" "$conformance" "$parity"
  return "$status"
}

portability() {
  local name names=("${@:-${PORTABILITY_NAMES[@]}}") status=0
  for name in "${names[@]}"; do
    [[ $name =~ ^(gcc-[0-9]+|clang-[0-9]+|clang-newest|x86-64-v3|aarch64)$ ]] ||
      misused "portability: expected ${PORTABILITY_NAMES[*]}, clang-N or gcc-N, got '$name'"
  done
  have apt-get && have dpkg-deb || die "portability needs Debian's apt-get: it unpacks its compilers"
  install_missing
  check_path
  CASES=${RUSH_CASES:-$ROOT/../shared/conformance}
  [[ -d $CASES ]] || say "no recorded answers in $CASES: only building (RUSH_CASES names another folder)"
  row platform version build conformance "training parity"
  for name in "${names[@]}"; do
    [[ $name != clang-newest ]] || name=clang-$(newest_clang)
    (try_platform "$name") || status=1
  done
  exit "$status"
}
