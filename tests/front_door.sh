#!/usr/bin/env bash
# front_door.sh PATH_OF_RUSH: what ./rush does before it builds anything. Downloads and packages are played by stand-ins
# on the PATH, and the script under test is a copy, so that the checkout and the machine stay as they are.
set -euo pipefail

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
house=$scratch/house
stands_in=$scratch/bin
mkdir -p "$house" "$stands_in"
cp "$1" "$house/rush"

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
for command in demo gpt test fuzz bench conformance train-parity fetch build; do
  [[ $out == *$'\n'"  $command"* ]] || fail "the help leaves out $command"
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

nothing_left() { [[ -z $(find "$house" -type f ! -name rush) ]] || fail "$1 left files behind: $(find "$house")"; }

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

# Accepted are exactly the bytes with the recorded md5; here md5sum says that they are.
stand_in md5sum <<<'echo "6fb458f1232090904fb40fe944165e91  -"'
rush fetch shakespeare
expect_status 0
expect_one_line "fetched data/tinyshakespeare/input.txt"
[[ $(<"$house/data/tinyshakespeare/input.txt") == "not the file" ]] || fail "the fetched file is not what curl wrote"
stand_in curl <<<'exit 6'
rush fetch shakespeare
expect_status 0
expect_one_line "already here"
rm "$stands_in/md5sum"

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
[[ $err == *"installing g++ "*"libeigen3-dev zlib1g-dev libzip-dev nlohmann-json3-dev with apt-get"* ]] || fail "packages: $err"
[[ $(wc -l <"$scratch/apt") == 3 ]] || fail "expected install, update, install; got: $(<"$scratch/apt")"
[[ $(tail -n 1 "$scratch/apt") != *doctest* ]] || fail "the demo installs doctest"
rm "$scratch/apt"
CXX=no-compiler rush test
[[ $(wc -l <"$scratch/apt") == 1 && $(<"$scratch/apt") == *doctest-dev* ]] || fail "for the tests: $(<"$scratch/apt")"
