#!/usr/bin/env bash
# usage: by_hand.sh PREFIX LIBDIR COMPILER SOURCE [LIBRARY...]
# Links a program to the installed library, and to the libraries that this needs, without CMake; gdb must find the printers
# in it all the same.
set -euo pipefail
prefix=$1 libdir=$2 compiler=$3 source=$4
needed=("${@:5}")
for library in "${needed[@]}"; do needed+=("-Wl,-rpath,$(dirname "$library")"); done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$compiler" -std=c++20 -g -I"$prefix/include/rushlight" "$source" -o "$work/program" -L"$prefix/$libdir" -lrushlight "${needed[@]}" -pthread
said=$(gdb -nx -batch -iex "add-auto-load-safe-path $work" -ex 'set debuginfod enabled off' -ex 'break rush::Tensor::backward' \
  -ex run -ex 'frame function main' -ex 'print x' -ex 'show rush-skip' -ex 'help rush-graph' "$work/program" 2>&1 || true)
echo "$said"
for line in '= float32[4, 3] cpu, version=0' 'step goes over: all' 'rush-graph TENSOR'; do grep -qF "$line" <<<"$said"; done
