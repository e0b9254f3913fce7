# shellcheck shell=bash
# Where ./rush finds CUDA, and the toolkit that it sets up below build/ where there is none. Sourced by ./rush, whose
# ROOT, CUDA, say, die, have and install_packages this uses.

# One release of CUDA as NVIDIA's wheels on PyPI: what its `cuda-toolkit` of this version asks for, and a cuDNN and an
# NCCL for it. The sizes and the oldest driver that runs it belong to the release: change them with it.
CUDA_VERSION=13.0.2
CUDA_SIZE="1.8 GB, 2.7 GB unpacked"
CUDA_DRIVER=580
CUDA_WHEELS=(nvidia-cuda-nvcc==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-runtime==13.0.96
  nvidia-cuda-cccl==13.0.85 nvidia-cuda-nvrtc==13.0.88 nvidia-nvjitlink==13.0.88 nvidia-nvtx==13.0.85
  nvidia-cuda-cupti==13.0.85 nvidia-cublas==13.1.0.3 nvidia-cufft==12.0.0.61 nvidia-curand==10.4.0.35
  nvidia-cusparse==12.6.3.3 nvidia-cusolver==12.0.4.66 nvidia-cudnn-cu13==9.19.0.56 nvidia-nccl-cu13==2.28.9)
CUDNN_FRONTEND_VERSION=1.32.0
# For 2:4 semi-structured matrices alone, so only where RUSH_CUSPARSELT=ON asks for it.
CUSPARSELT_VERSION=0.10.0
CUSPARSELT_SIZE="170 MB, 230 MB unpacked"

OWN_CUDA=$ROOT/build/cuda-$CUDA_VERSION
OWN_CUSPARSELT=$ROOT/build/cusparselt-$CUSPARSELT_VERSION

has_gpu() { [[ -e /dev/nvidiactl || -e /dev/dxg ]]; }

# Looks where cmake/cuda.cmake does.
has_nvcc() {
  have nvcc || [[ -n ${CUDACXX:-} || -x ${CUDA_HOME:-/usr/local/cuda}/bin/nvcc || -x ${CUDA_PATH:-}/bin/nvcc ]]
}
has_own_cuda() { [[ -d $OWN_CUDA ]]; }

# Prints CMake's arguments for the toolkit below build/, one on a line, where that is the one to use.
own_cuda_arguments() {
  [[ $CUDA != OFF ]] && ! has_nvcc && has_own_cuda || return 0
  printf '%s\n' "-DCMAKE_CUDA_COMPILER=$OWN_CUDA/nvidia/cu13/bin/nvcc" \
    "-DRUSH_CUDNN_DIR=${RUSH_CUDNN_DIR:-$OWN_CUDA/nvidia/cudnn}"
  if [[ -n ${RUSH_CUSPARSELT_DIR:-} || -d $OWN_CUSPARSELT ]]; then
    echo "-DRUSH_CUSPARSELT_DIR=${RUSH_CUSPARSELT_DIR:-$OWN_CUSPARSELT/nvidia/cu13}"
  fi
}

# Prints where the headers of NVIDIA's cudnn-frontend are, which come with no toolkit: a folder of the user's, or the
# wheel's, unpacked below build/. Without either, CMake asks for their release.
cudnn_frontend() {
  local folder=$ROOT/build/cudnn-frontend-$CUDNN_FRONTEND_VERSION
  if [[ -n ${RUSH_CUDNN_FRONTEND_DIR:-} ]]; then
    echo "$RUSH_CUDNN_FRONTEND_DIR"
    return
  fi
  if [[ ! -f $folder/include/cudnn_frontend.h && $CUDA != OFF ]] && { has_nvcc || has_own_cuda; }; then
    unpack_wheel "nvidia-cudnn-frontend==$CUDNN_FRONTEND_VERSION" "$folder.part.$$" 2>/dev/null &&
      mv -T "$folder.part.$$" "$folder" 2>/dev/null || rm -rf "$folder.part.$$"
  fi
  [[ ! -f $folder/include/cudnn_frontend.h ]] || echo "$folder/include"
}

# Sets a toolkit up where --cuda asks for one and there is none. It appears whole or not at all; a set-up that was cut
# off goes on with the wheel at which it stopped.
set_up_cuda() {
  [[ $CUDA == ON ]] && ! has_nvcc && ! has_own_cuda || return 0
  check_driver
  has_pip || ! have apt-get || install_packages python3-pip
  has_pip || die "there is no CUDA toolkit, and setting one up needs Python's pip: install python3-pip, or put nvcc on the PATH"
  local part=$OWN_CUDA.part lock wheel number=0 reason
  mkdir -p "$part"
  exec {lock}>"$part/lock"
  flock "$lock"  # another ./rush may be at it, in which case this one waits
  if ! has_own_cuda; then
    say "there is no CUDA toolkit: setting CUDA $CUDA_VERSION up in build/ from PyPI ($CUDA_SIZE)"
    for wheel in "${CUDA_WHEELS[@]}"; do
      number=$((number + 1))
      [[ ! -f $part/$wheel ]] || continue
      [[ ! -t 2 ]] || printf '%s of %s: %s\e[K\r' "$number" "${#CUDA_WHEELS[@]}" "$wheel" >&2
      reason=$(unpack_wheel "$wheel" "$part" 2>&1) ||
        die "cannot get $wheel from PyPI (is there a network, and room on the disk?): ${reason##*$'\n'}"
      touch "$part/$wheel"
    done
    complete_toolkit "$part/nvidia"
    rm "$part/lock"
    mv -T "$part" "$OWN_CUDA"
    [[ ! -t 2 ]] || printf '\e[K' >&2
  fi
  exec {lock}>&-
}

# Adds cuSPARSELt to the toolkit below build/ where that is the one to use. It appears whole or not at all.
set_up_cusparselt() {
  [[ ${RUSH_CUSPARSELT:-} == ON && -z ${RUSH_CUSPARSELT_DIR:-} && $CUDA != OFF && ! -d $OWN_CUSPARSELT ]] || return 0
  has_own_cuda && ! has_nvcc || return 0
  local part=$OWN_CUSPARSELT.part.$$ reason
  say "setting cuSPARSELt $CUSPARSELT_VERSION up in build/ from PyPI ($CUSPARSELT_SIZE)"
  if ! reason=$(unpack_wheel "nvidia-cusparselt-cu13==$CUSPARSELT_VERSION" "$part" 2>&1); then
    rm -rf "$part"
    die "cannot get cuSPARSELt from PyPI (is there a network, and room on the disk?): ${reason##*$'\n'}"
  fi
  mv -T "$part" "$OWN_CUSPARSELT" 2>/dev/null || rm -rf "$part"  # another ./rush was faster
}

# CUDA's libraries start on an older driver too, and then fail at the first call.
check_driver() {
  local version
  version=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null) || return 0
  [[ $version =~ ^([0-9]+)\. ]] || return 0
  ((BASH_REMATCH[1] >= CUDA_DRIVER)) || die "there is no CUDA toolkit, and CUDA $CUDA_VERSION from PyPI needs NVIDIA's driver" \
    "$CUDA_DRIVER or newer (this is ${version%%$'\n'*}): update it, or install a toolkit that suits it"
}

has_pip() { python3 -m pip --version >/dev/null 2>&1; }

# unpack_wheel NAME==VERSION FOLDER: downloads a wheel from PyPI, or wherever pip is told to, and unpacks it. On failure
# pip's complaint is on stderr.
unpack_wheel() {
  local download=$2/download
  rm -rf "$download"
  mkdir -p "$download"
  TMPDIR=$download python3 -m pip download --quiet --disable-pip-version-check --no-cache-dir --no-deps \
    --only-binary :all: --dest "$download" "$1" >/dev/null &&
    python3 -m zipfile -e "$download"/*.whl "$2" && rm -rf "$download"
}

# What wheels cannot hold: the right to execute, lib64 where nvcc looks for it, and the names that a linker looks for.
complete_toolkit() {
  local library name
  chmod +x "$1"/cu13/bin/* "$1"/cu13/nvvm/bin/*
  ln -sfn lib "$1/cu13/lib64"
  for library in "$1"/*/lib/lib*.so.*; do
    name=${library##*/}
    ln -sf "$name" "${library%/*}/${name%%.so.*}.so"
  done
}
