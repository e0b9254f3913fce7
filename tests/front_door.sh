#!/usr/bin/env bash
# front_door.sh PATH_OF_RUSH: what ./rush does before it builds anything. Downloads and packages are played by stand-ins
# on the PATH, and the script under test is a copy, so that the checkout and the machine stay as they are.
set -euo pipefail

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
house=$scratch/house
stands_in=$scratch/bin
mkdir -p "$house/tools" "$stands_in"
cp "$1" "$house/rush"
cp "$(dirname "$1")"/tools/{cuda_toolkit,portability}.sh "$house/tools"

fail() {
  printf 'front_door: %s\n' "$*" >&2
  exit 1
}

# stand_in NAME <<< BODY: a command of this name that comes first on the PATH.
stand_in() {
  { printf '#!/bin/bash\n' && cat; } >"$stands_in/$1"
  chmod +x "$stands_in/$1"
}

# rush ARGUMENTS...: runs it; leaves `status`, `out` and `err`.
rush() {
  status=0
  (cd "$scratch" && PATH=$stands_in:$PATH "$house/rush" "$@") >"$scratch/out" 2>"$scratch/err" || status=$?
  out=$(<"$scratch/out")
  err=$(<"$scratch/err")
}

expect_status() { [[ $status == "$1" ]] || fail "expected exit status $1, got $status: $err"; }
expect_one_line() { [[ $err == rush:*"$1"* && $err != *$'\n'* ]] || fail "expected one line with '$1', got: $err"; }

rush
expect_status 0
alone=$out
rush help
[[ $out == "$alone" ]] || fail "./rush alone does not print the help"
for command in demo gpt mesh_gpt gpt2 resnet spectrogram gcn submanifold launch plan lab quiz test compute-sanitizer fuzz bench conformance sweep train-parity portability fetch docs diagrams build; do
  [[ $out == *$'\n'"  $command"* ]] || fail "the help leaves out $command"
done

for command in profile launch memory quiz test compute-sanitizer fuzz bench conformance sweep train-parity portability fetch docs diagrams build; do
  rush $command --help
  expect_status 0
  [[ $out == "  $command"* && $alone == *"$out"* ]] || fail "the help of $command: $out"
done

rush dance
expect_status 2
expect_one_line "unknown command 'dance'"
rush --fast demo
expect_status 2
expect_one_line "unknown option --fast"
rush --jobs none test
expect_status 2
expect_one_line "--jobs needs a number"
rush fetch cifar
expect_status 2
expect_one_line "got 'cifar'"
rush fuzz gzip
expect_status 2
expect_one_line "got 'gzip'"
rush fuzz npy soon
expect_status 2
expect_one_line "got 'soon'"
rush fuzz npy 1 2
expect_status 2
expect_one_line "fuzz: expected a target and a number of seconds, got also '2'"
rush fetch mnist shakespeare
expect_status 2
expect_one_line "fetch: expected one of mnist, shakespeare and gpt2, got 'mnist shakespeare'"
rush portability clang-16 sparc
expect_status 2
expect_one_line "got 'sparc'"
rush launch demo
expect_status 2
expect_one_line "-n N says it"
rush launch -n two demo
expect_status 2
expect_one_line "-n needs a number of processes, got 'two'"
rush launch -n 2 --backend pigeon demo
expect_status 2
expect_one_line "got 'pigeon'"
rush launch -n 2 resnet
expect_status 1
expect_one_line "resnet trains in one process"
rush launch -n 2
expect_status 2
expect_one_line "expected a program"
rush launch -n 2 ./no_such_program
expect_status 2
expect_one_line "there is no program ./no_such_program"
rush profile --traces trace.json demo
expect_status 2
expect_one_line "unknown option --traces"
rush profile ./no_such_program
expect_status 2
expect_one_line "there is no program ./no_such_program"
rush docs --all
expect_status 2
expect_one_line "got '--all'"

# A page of two questions, of which the second is open.
mkdir "$house/docs"
cp "$(dirname "$1")"/tools/{quiz.py,run_command.py,lab} "$house/tools"
cat >"$house/docs/quiz.md" <<'TEXT'
# Questions

## Views and strides

**1.** Is a transpose a copy?

- A. Yes
- B. No,
  it is a view

<details><summary>Answer</summary>

**B.** It swaps strides.

Read `core/geometry.h`.

</details>

## The allocator

**2.** Why are freed blocks kept?

<details><summary>Answer</summary>

Fresh pages cost more.

Read `core/device/allocator.h`.

</details>
TEXT
rush quiz
expect_status 0
[[ $out == *"1. Is a transpose a copy?"*"B  No, it is a view"*"B. It swaps strides."*"2. Why are"*"Fresh pages cost more."* ]] ||
  fail "the quiz in a pipe: $out"
rush quiz allocator
[[ $out == *"2. Why are"* && $out != *transpose* ]] || fail "one subject of the quiz: $out"
rush quiz --list
[[ $out == "Views and strides"*"   1  Is a transpose a copy?"*"The allocator"*"   2  Why are freed blocks kept?" ]] || fail "the list: $out"
rush quiz 3
expect_status 2
expect_one_line "there are questions 1 to 2, got 3"
rush lab --help
expect_status 0
[[ $out == "usage: ./rush lab "* ]] || fail "the labs' help: $out"
if [[ -w /dev/full ]]; then
  for command in quiz "quiz --list" lab; do
    status=0
    # shellcheck disable=SC2086  # a command and its options
    err=$("$house/rush" $command 2>&1 >/dev/full) || status=$?
    expect_status 1
    expect_one_line "cannot write to stdout: No space left on device"
  done
fi
rush quiz gardening
expect_status 2
expect_one_line "got 'gardening'"
if command -v script >/dev/null; then
  replies() { # REPLY...: what the terminal shows goes into `out`
    out=$(printf '%s\n' "$@" | script -qec "$house/rush quiz" /dev/null) || true
  }
  replies x b ''
  [[ $out == *"Right."*"It swaps strides."*"Fresh pages"*"1 of 1 right"* ]] || fail "a right answer: $out"
  replies a q
  [[ $out == *"No, it is B."*"0 of 1 right; wrong: 1"* && $out != *"Fresh pages"* ]] || fail "a wrong answer, and q: $out"
fi
rm -r "$house/docs" "$house"/tools/{quiz.py,run_command.py,lab}

nothing_left() {
  [[ -z $(find "$house" -type f ! -name rush ! -path '*/tools/*') ]] || fail "$1 left files behind: $(find "$house")"
}

stand_in curl <<<'exit 6'
rush fetch shakespeare
expect_status 1
expect_one_line "is there a network?"
nothing_left "a failed download"

# The last two arguments of curl are the file to write and the URL.
# shellcheck disable=SC2016  # the stand-in expands it
stand_in curl <<<'printf "not the file" >"${@: -2:1}"'
rush fetch mnist
expect_status 1
expect_one_line "not the file that was expected"
nothing_left "a wrong download"

# Accepted are exactly the bytes with the recorded md5; here md5sum knows another content by it.
stand_in md5sum <<'TEXT'
[[ $(cat) == "half and half" ]] && echo "6fb458f1232090904fb40fe944165e91  -" || echo "0123  -"
TEXT
text=$house/data/tinyshakespeare/input.txt
part=$house/data/tinyshakespeare/.part.input.txt
# curl ends after so many bytes, then goes on behind them.
# shellcheck disable=SC2016  # the stand-ins expand it
stand_in curl <<<'printf "half" >>"${@: -2:1}"; exit 18'
rush fetch shakespeare
expect_status 1
expect_one_line "is there a network?"
[[ ! -e $text && $(<"$part") == half ]] || fail "a download that was cut off is lost: $(find "$house/data")"
# shellcheck disable=SC2016
stand_in curl <<<'[[ " $* " == *" -C - "* ]] && printf " and half" >>"${@: -2:1}"'
rush fetch shakespeare
expect_status 0
expect_one_line "fetched data/tinyshakespeare/input.txt"
[[ $(<"$text") == "half and half" && ! -e $part ]] || fail "a download does not go on: $(find "$house/data")"
stand_in curl <<<'exit 6'
rush fetch shakespeare
expect_status 0
expect_one_line "already here"

# What was there before is of another file; and a server that cannot go on in the middle of one.
# shellcheck disable=SC2016
for refusal in "" '[[ ! -s ${@: -2:1} ]] || exit 33;'; do
  rm "$text"
  printf 'of another file' >"$part"
  stand_in curl <<<"$refusal"'printf "half and half" >>"${@: -2:1}"'
  rush fetch shakespeare
  expect_status 0
  [[ $(<"$text") == "half and half" && ! -e $part ]] || fail "a wrong beginning is kept: $(find "$house/data")"
done
rm "$stands_in/curl" "$stands_in/md5sum"

# GPT-2's weights, from a mirror, by what is on the machine.
if command -v curl >/dev/null; then
  stand_in md5sum <<'TEXT'
case $(cat) in
  tokens) echo "dffec25a898b1f5e569bec4dffd7e5c0  -" ;;
  merges) echo "75a37753dd7a28a2c5df80c28bf06e4e  -" ;;
esac
TEXT
  stand_in sha256sum <<'TEXT'
[[ $(cat) == "the weights" ]] && echo "248dfc3911869ec493c76e65bf2fcf7f615828b0254c12b473182f0f81d3a707  -" || echo "0123  -"
TEXT
  mirror=$scratch/mirror/openai-community/gpt2/resolve/607a30d783dfa663caf39e06633721c8d4cfcd7e
  mkdir -p "$house/data/gpt2" "$mirror"
  printf tokens >"$house/data/gpt2/encoder.json"
  printf merges >"$house/data/gpt2/vocab.bpe"
  printf 'the ' >"$house/data/gpt2/.part.model.safetensors"
  printf 'XXX weights' >"$mirror/model.safetensors"
  HF_ENDPOINT=file://$scratch/mirror rush fetch gpt2
  expect_status 0
  [[ $(<"$house/data/gpt2/model.safetensors") == "the weights" ]] || fail "the weights do not go on: $err"
  printf 'XXX weights' >"$house/data/gpt2/model.safetensors"
  HF_ENDPOINT=file://$scratch/mirror rush fetch gpt2
  expect_status 1
  [[ $err == *"cannot download model.safetensors"*"not the file that was expected" ]] || fail "other weights: $err"
  rm "$stands_in/md5sum" "$stands_in/sha256sum"
fi

# What a failed download leaves of MkDocs is not taken for the whole. python3 makes a virtual environment whose pip fails.
mkdir "$house/tools/book"
echo mkdocs >"$house/tools/book/requirements.txt"
stand_in doxygen <<<''
stand_in python3 <<'TEXT'
[[ $2 == venv ]] || exit 0
mkdir -p "$3/bin"
printf '#!/bin/bash\necho connection refused >&2; exit 1\n' >"$3/bin/python"
chmod +x "$3/bin/python"
TEXT
for _ in first second; do
  rush docs
  expect_status 1
  [[ $err == *"cannot get MkDocs from PyPI (is there a network?): connection refused" ]] || fail "no network: $err"
done
rm -r "$house/tools/book" "$house/build" "$stands_in"/{doxygen,python3}

# CMake and Ninja cannot quote everything that a path may hold.
for name in 'quo"te' 'semi;colon' 'ha#sh' 'back\slash'; do
  mkdir "$scratch/$name"
  cp -r "$house/rush" "$house/tools" "$scratch/$name"
  status=0
  err=$("$scratch/$name/rush" --cpu-only demo 2>&1) || status=$?
  expect_status 1
  expect_one_line "move this clone to a path without any of"
done

# Without a compiler everything counts as missing. The first apt-get knows no package before its lists are updated.
stand_in sudo <<<'exec "$@"'
stand_in apt-get <<TEXT
echo "\$*" >>"$scratch/apt"
[[ \$* == *update* ]] && touch "$scratch/updated"
[[ -f "$scratch/updated" ]]
TEXT
stand_in cmake <<<'exit 1'
CXX=no-compiler rush demo
expect_status 1
[[ $err == *"installing g++ "*"libeigen3-dev zlib1g-dev libzip-dev nlohmann-json3-dev libcli11-dev with apt-get"* ]] || fail "packages: $err"
[[ $(wc -l <"$scratch/apt") == 3 ]] || fail "expected install, update, install; got: $(<"$scratch/apt")"
[[ $(tail -n 1 "$scratch/apt") != *doctest* ]] || fail "the demo installs doctest"
rm "$scratch/apt"
CXX=no-compiler rush test
[[ $(wc -l <"$scratch/apt") == 1 && $(<"$scratch/apt") == *doctest-dev* ]] || fail "for the tests: $(<"$scratch/apt")"

# Who is not root is asked before sudo is used, on a terminal; elsewhere there is nobody to ask.
stand_in id <<<'echo 1000'
rm "$scratch/apt"
CXX=no-compiler rush demo
[[ $err == *"installing g++ "*" with sudo apt-get, unasked: there is no terminal"* && -e $scratch/apt ]] || fail "sudo: $err"
if command -v script >/dev/null; then
  answer() { # ANSWER: leaves what the terminal shows in `out`
    rm -f "$scratch/apt"
    out=$(printf '%s\n' "$1" | CXX=no-compiler PATH=$stands_in:$PATH script -qec "$house/rush --cpu-only demo" /dev/null) || true
  }
  answer n
  [[ $out == *"these packages are missing: g++ "*"[Y/n]"*"nothing is installed"* && ! -e $scratch/apt ]] || fail "no: $out"
  answer y
  [[ $out == *"[Y/n]"* && $(<"$scratch/apt") == *"install -y"*g++* ]] || fail "yes: $out"
fi
stand_in id <<<'echo 0'

# ---- the table of other compilers and processors ---------------------------------------------------------------------

# A build leaves runners, of which one fails where the file "worse" is there.
stand_in dpkg <<<'echo amd64'
stand_in dpkg-deb <<<'exit 1'
stand_in cmake <<TEXT
while ((\$# > 0)); do
  case \$1 in -B | --build) build=\$2 ;; esac
  shift
done
[[ ! -e "$scratch/broken" ]] || exit 1
mkdir -p "\$build/bin"
printf '#!/bin/bash\necho a line\necho "passed 2, failed 0, missing 0"\n' >"\$build/bin/rush_conformance"
printf '#!/bin/bash\n[[ ! -e "$scratch/worse" ]] || { echo "passed 1, failed 1, missing 0"; exit 1; }\necho passed 3\n' >"\$build/bin/rush_train_parity"
chmod +x "\$build/bin"/*
TEXT
export RUSH_CASES=$scratch
rush portability x86-64-v3
expect_status 0
[[ $out == platform*$'\n'"x86-64-v3 "*" s "*"passed 2, failed 0, missing 0"*"passed 3" ]] || fail "the table: $out"
touch "$scratch/worse"
rush portability x86-64-v3
expect_status 1
[[ $out == *"passed 2, failed 0, missing 0"*"passed 1, failed 1, missing 0" ]] || fail "a failed runner: $out"
touch "$scratch/broken"
rush portability x86-64-v3
expect_status 1
[[ $out == *$'\n'"x86-64-v3 "*"fails"* ]] || fail "a failed build: $out"
unset RUSH_CASES
rm "$stands_in"/{dpkg,dpkg-deb,cmake}

# ---- a CUDA toolkit from PyPI's wheels, for a machine without one ----------------------------------------------------

# The machine without its own toolkit, driver and pip: everything on its PATH but nvcc.
without_cuda=$scratch/without_cuda
mkdir "$without_cuda"
IFS=: read -ra folders <<<"$PATH"
for folder in "${folders[@]}"; do ln -s "$folder"/* "$without_cuda" 2>/dev/null || true; done
rm -f "$without_cuda/nvcc" "$without_cuda/nvidia-smi"
PATH=$without_cuda
export CUDA_HOME=$scratch/nowhere CUDA_PATH=
unset CUDACXX RUSH_CUDNN_DIR RUSH_CUDNN_FRONTEND_DIR RUSH_CUSPARSELT RUSH_CUSPARSELT_DIR
version=$(sed -n 's/^CUDA_VERSION=//p' "$house/tools/cuda_toolkit.sh")
toolkit=$house/build/cuda-$version
stand_in apt-get <<<"echo \"\$*\" >>'$scratch/apt'"
stand_in cmake <<<"printf '%s\n' \"\$@\" >'$scratch/cmake'; exit 1"
asked_of_cmake() { grep -qxF -- "$1" "$scratch/cmake"; }

# pip "downloads" the wheel's name and notes it; zipfile unpacks what a toolkit consists of.
fetched=$scratch/fetched
stand_in python3 <<TEXT
case "\$1 \$2 \$3" in
  "-m pip --version") [[ ! -f "$scratch/no_pip" ]] ;;
  "-m pip download")
    echo "WARNING: a first line" >&2
    echo "ERROR: \${*: -1} does not come" >&2
    [[ -f "$scratch/network" && \${*: -1} != "\$(cat "$scratch/network")"* ]] || exit 1
    echo "\${*: -1}" >>"$fetched"
    while [[ \$1 != --dest ]]; do shift; done
    touch "\$2/some.whl"
    ;;
  "-m zipfile -e")
    mkdir -p "\$5/include" "\$5/nvidia/cu13/"{bin,lib,nvvm/bin} "\$5/nvidia/"{cudnn,nccl}/lib
    touch "\$5/include/cudnn_frontend.h" "\$5/nvidia/cu13/"{bin/nvcc,nvvm/bin/cicc,lib/libcublas.so.13} \
      "\$5/nvidia/cu13/lib/libnvrtc-builtins.so.13.0" "\$5/nvidia/cudnn/lib/libcudnn.so.9"
    ;;
esac
TEXT

rm -f "$scratch/apt"
touch "$scratch/no_pip"
rush --cuda demo
expect_status 1
[[ $(<"$scratch/apt") == *"python3-pip"* ]] || fail "pip is not installed: $(<"$scratch/apt")"
[[ $err == *$'\n'"rush: there is no CUDA toolkit"*"install python3-pip"* ]] || fail "without pip: $err"
rm "$scratch/no_pip"

stand_in nvidia-smi <<<'echo 535.104.05'
rush --cuda demo
expect_status 1
expect_one_line "needs NVIDIA's driver 580 or newer (this is 535.104.05)"
stand_in nvidia-smi <<<'echo 580.65.06'

rush --cuda demo
expect_status 1
[[ $err == "rush: there is no CUDA toolkit: setting CUDA $version up in build/ from PyPI ("*" GB, "*" GB unpacked)"$'\n'* &&
  $err == *$'\n'"rush: cannot get nvidia-cuda-nvcc=="*"is there a network"*": ERROR: nvidia-cuda-nvcc=="*"does not come" &&
  $(wc -l <<<"$err") == 2 ]] || fail "without a network: $err"
[[ ! -e $toolkit && ! -e $scratch/cmake ]] || fail "half a toolkit counts as one"

echo nvidia-cublas >"$scratch/network"  # the network fails there
rush --cuda demo
expect_status 1
[[ $err == *"cannot get nvidia-cublas=="* && ! -e $toolkit ]] || fail "a download that breaks off: $err"
grep -q nvidia-cuda-runtime== "$fetched" || fail "expected nvidia-cuda-runtime before nvidia-cublas: $(<"$fetched")"
echo nothing >"$scratch/network"
rush --cuda demo
[[ -z $(sort "$fetched" | uniq -d) ]] || fail "downloaded again: $(sort "$fetched" | uniq -d)"
for wheel in cuda-nvcc cuda-crt nvvm cuda-runtime cuda-cccl cuda-nvrtc nvjitlink nvtx cuda-cupti cublas cufft curand \
  cusparse cusolver cudnn-cu13 nccl-cu13 cudnn-frontend; do
  grep -q "^nvidia-$wheel==[0-9.]*$" "$fetched" || fail "nvidia-$wheel is left out"
done
[[ -x $toolkit/nvidia/cu13/bin/nvcc && -x $toolkit/nvidia/cu13/nvvm/bin/cicc ]] || fail "nvcc cannot be executed"
[[ $(readlink -f "$toolkit/nvidia/cu13/lib64/libcublas.so") == *.so.13 &&
  -e $toolkit/nvidia/cu13/lib/libnvrtc-builtins.so && -e $toolkit/nvidia/cudnn/lib/libcudnn.so ]] ||
  fail "the linker finds no library: $(find "$toolkit")"
asked_of_cmake "-DCMAKE_CUDA_COMPILER=$toolkit/nvidia/cu13/bin/nvcc" || fail "CMake got $(<"$scratch/cmake")"
asked_of_cmake "-DRUSH_CUDNN_DIR=$toolkit/nvidia/cudnn" || fail "CMake got $(<"$scratch/cmake")"
[[ -z $(find "$house/build" -name '*.part*' -o -name '*.whl') ]] || fail "left over: $(find "$house/build" -name '*.part*')"

rm "$fetched"
rush --cuda demo
[[ ! -e $fetched && $err != *PyPI* ]] || fail "a toolkit that is there is set up again"
! grep -q cusparselt "$scratch/cmake" || fail "cuSPARSELt is not asked for: $(<"$scratch/cmake")"
export RUSH_CUSPARSELT=ON
echo nvidia-cusparselt >"$scratch/network"
rush --cuda demo
expect_status 1
[[ $err == *$'\n'"rush: cannot get cuSPARSELt from PyPI"*"is there a network"* && ! -e $fetched ]] || fail "cuSPARSELt: $err"
echo nothing >"$scratch/network"
rush --cuda demo
grep -qx "nvidia-cusparselt-cu13==[0-9.]*" "$fetched" || fail "cuSPARSELt is left out: $(<"$fetched")"
asked_of_cmake "-DRUSH_CUSPARSELT_DIR=$(echo "$house"/build/cusparselt-*)/nvidia/cu13" || fail "CMake got $(<"$scratch/cmake")"
rm "$fetched"
rush --cuda demo
[[ ! -e $fetched ]] || fail "cuSPARSELt is fetched again"
RUSH_CUSPARSELT_DIR=/elsewhere rush --cuda demo
asked_of_cmake -DRUSH_CUSPARSELT_DIR=/elsewhere || fail "CMake got $(<"$scratch/cmake")"
[[ -z $(find "$house/build" -name '*.part*' -o -name '*.whl') ]] || fail "left over: $(find "$house/build" -name '*.part*')"
unset RUSH_CUSPARSELT
rm -r "$toolkit"
rush --cpu-only demo
rush help
[[ ! -e $fetched ]] || fail "a toolkit is set up without --cuda"
stand_in nvcc <<<'exit 1'
rush --cuda demo
[[ ! -e $fetched ]] || fail "the machine's own toolkit does not win"
! asked_of_cmake "-DCMAKE_CUDA_COMPILER=$toolkit/nvidia/cu13/bin/nvcc" || fail "the machine's own toolkit does not win"

# ---- what a program learns of how it was called ----------------------------------------------------------------------

stand_in cmake <<<'exit 0'
mkdir -p "$house/build/release/bin"
printf '#!/bin/bash\nprintf "%%s|" "$RUSH_CALLED_AS" "$@"\n' >"$house/build/release/bin/gpt"
chmod +x "$house/build/release/bin/gpt"
rush --jobs 1 --cpu-only gpt --data "a b"
[[ $out == "$house/rush --jobs 1 --cpu-only gpt|--data|a b|" ]] || fail "the program got $out"
