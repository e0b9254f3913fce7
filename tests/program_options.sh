#!/usr/bin/env bash
# program_options.sh FOLDER: what the programs in it make of their options. A bad one ends with 2 and one line before any
# data is read: the data that are named here do not exist, for which alone a program would end with 1.
set -euo pipefail

folder=$(cd "$1" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
export RUSH_DATA=$scratch RUSH_ROOT=$scratch  # drawn digits, and no texts

fail() {
  printf 'program_options: %s\n' "$*" >&2
  exit 1
}

# run STATUS PROGRAM ARGUMENTS...: leaves `out` and `err`. A model of a million layers would take longer.
run() {
  local wanted=$1 program=$2 status=0
  shift 2
  timeout 60 "$folder/$program" "$@" >"$scratch/stdout" 2>"$scratch/stderr" || status=$?
  out=$(<"$scratch/stdout") err=$(<"$scratch/stderr")
  [[ $status == "$wanted" ]] || fail "$program $* ends with $status instead of $wanted: $err"
}
# refused PROGRAM MESSAGE ARGUMENTS...
refused() {
  local program=$1 message=$2
  shift 2
  run 2 "$program" "$@"
  [[ $err == *"$message"* && $err != *$'\n'* && -z $out ]] || fail "$program $*: expected one line with '$message', got: $err"
}

programs=(mnist gpt mesh_gpt plan resnet spectrogram gcn submanifold)
for program in gpt2 rush_conformance rush_train_parity; do  # which are not built everywhere
  [[ ! -x $folder/$program ]] || programs+=("$program")
done

# One spelling, and one name for each thing that several programs have.
for program in "${programs[@]}"; do
  run 0 "$program" --help
  names=$(sed -n 's/^  \(--[^ ]*\) .*/\1/p' <<<"$out")
  [[ -n $names ]] || fail "$program --help lists no options"
  ! grep -vEx -- '--[a-z0-9]+(_[a-z0-9]+)*' <<<"$names" || fail "$program spells options in two ways"
  ! grep -Ex -- '--(lr|steps|iters|iterations|classes|batch|output|dir|warmup_steps)' <<<"$names" ||
    fail "$program has a name of its own for what others have"
  refused "$program" "unknown option --wibble" --wibble 3
  arguments=()
  [[ $program != rush_* ]] || arguments=(nowhere)
  refused "$program" "--device: expected" "${arguments[@]}" --device meta
  refused "$program" "tpu" "${arguments[@]}" --device tpu
done
for program in spectrogram gcn submanifold resnet mnist gpt mesh_gpt; do
  refused "$program" "--learning_rate: expected" --lr=-1
  refused "$program" "--seed: expected" --seed one
done
for program in spectrogram submanifold resnet gpt mesh_gpt; do refused "$program" "--max_iters: expected" --max-iters 99999999999; done

[[ ! -w /dev/full ]] || ! "$folder/gpt" --help >/dev/full 2>"$scratch/stderr" || fail "gpt --help into a full disk ends with 0"
transformers=(gpt)
[[ ! -x $folder/gpt2 ]] || transformers+=(gpt2)
for program in mnist "${transformers[@]}"; do
  refused "$program" "--resume and --overwrite exclude each other" --resume --overwrite
  refused "$program" "--resume needs the --out_dir" --resume --out_dir ""
done
for program in "${transformers[@]}"; do
  for option in n_layer n_head n_embd block_size batch_size max_iters warmup_iters eval_interval eval_iters \
    checkpoint_interval max_new_tokens top_k; do
    refused "$program" "--$option: expected a whole number from" --data nowhere "--$option" 1000000000000
  done
  refused "$program" "--n_embd 128 is no multiple of --n_head 3" --data nowhere --n_embd 128 --n_head 3
  refused "$program" "GiB, this machine has" --data nowhere --n_layer 1024 --n_embd 65536 --n_head 4
  refused "$program" "--graph needs --device cuda" --data nowhere --graph
  refused "$program" "--beta2: expected" --data nowhere --beta2 1
  refused "$program" "--dropout: expected" --data nowhere --dropout 1
  for option in "--dropout 0.1" "--dtype float16" --estimate_memory "--checkpoint auto"; do
    refused "$program" "${option%% 0.1} is for processes that have the whole model" --data nowhere --tp 2 $option
  done
done
refused gpt "--json: there is no folder" --data nowhere --json nowhere/results.json
[[ ! -x $folder/gpt2 ]] || refused gpt2 "is no multiple of a micro-batch" --data nowhere --total_batch_size 1000
refused mnist "--digits 20 make no batch of --batch_size 21" --digits 20 --batch-size 21
refused mnist "--json: there is no folder" --json nowhere/results.json
refused plan "--gpus: expected a whole number from 0 to 65536" gpt2 --gpus many
refused gcn "gcn: --nodes 100 is no multiple of --num_classes 7" --nodes 100 --num_classes 7

# Paths that are named and lead nowhere.
run 1 mnist --data "$scratch/nowhere" --out_dir "$scratch/mnist"
[[ $err == *"$scratch/nowhere: "*"./rush fetch mnist"* ]] || fail "mnist: $err"
run 1 gpt --data "$scratch/nowhere"
[[ $err == *nowhere* ]] || fail "gpt: $err"
if [[ -x $folder/gpt2 ]]; then
  refused gpt2 "no file 'nowhere.safetensors' (\`./rush fetch gpt2\`" --init_from nowhere.safetensors
  run 1 gpt2 --data "$scratch/nowhere"
  [[ $err == *"./rush fetch gpt2"*" or name GPT-2's with --"* ]] || fail "gpt2 without a vocabulary: $err"
fi

# What gpt writes begins with the prompt, which must be made of the text's characters.
for ((i = 0; i < 100; ++i)); do echo "to be or not to be"; done >text
small=(--data text --n_layer 1 --n_head 2 --n_embd 16 --block_size 16 --max_iters 1 --eval_iters 1 --out_dir "")
run 0 gpt "${small[@]}" --prompt "not to" --max_new_tokens 5
[[ $out == *$'----\nnot to'?????$'\n----'* ]] || fail "gpt --prompt: $out"
run 1 gpt "${small[@]}" --prompt "to bee!"
[[ $err == *"no character '!'"* && $out != *iteration* ]] || fail "gpt with a prompt of other characters: $err"
