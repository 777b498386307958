# shellcheck shell=bash
# Sourced by tools/demo and tools/test: puts a Debian machine with the CUDA toolkit into a state to build klap_jit,
# then configures and builds.
#
# Nothing that is there already is installed again, wherever it came from: each package is looked for by the file or
# command it provides, in the system's folders and in .deps/usr (a folder that can be carried to machines without
# network). Installing needs root; without it the command to run is printed instead.

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
carried="$root/.deps/usr"

# Package and what shows that it is there: a command, or a header below an include folder.
# shellcheck disable=SC2034  # used by the scripts that source this
build_packages=(
  cmake:cmake ninja-build:ninja g++:g++ python3:python3 pkg-config:pkg-config
  libspdlog-dev:spdlog/spdlog.h libfmt-dev:fmt/format.h libcli11-dev:CLI/CLI.hpp
  libtomlplusplus-dev:toml++/toml.h nlohmann-json3-dev:nlohmann/json.hpp
  libzstd-dev:zstd.h liblz4-dev:lz4.h libxxhash-dev:xxhash.h libdlib-dev:dlib/random_forest.h libpng-dev:png.h
  libkainjow-mustache-dev:kainjow/mustache.hpp
  libgtest-dev:gtest/gtest.h libgmock-dev:gmock/gmock.h libbenchmark-dev:benchmark/benchmark.h)
# shellcheck disable=SC2034
test_packages=(clang-format:clang-format clang-tidy:clang-tidy clang:clang++ openmpi-bin:mpirun libopenmpi-dev:mpicc
  zsh:zsh fish:fish)

fail() {
  echo "${0##*/}: $*" >&2
  exit 1
}

is_there() {
  case "$1" in
    *.h | *.hpp)
      local folder
      for folder in "$carried/include" /usr/local/include /usr/include "/usr/include/$(uname -m)-linux-gnu"; do
        [ -e "$folder/$1" ] && return 0
      done
      return 1
      ;;
    *) command -v "$1" > /dev/null ;;
  esac
}

# Prints the packages among "package:evidence" words that are missing.
missing_packages() {
  local word
  for word in "$@"; do
    is_there "${word#*:}" || echo "${word%%:*}"
  done
}

install_packages() {
  local missing command
  mapfile -t missing < <(missing_packages "$@")
  [ ${#missing[@]} = 0 ] && return 0
  command -v apt-get > /dev/null || fail "missing: ${missing[*]} (there is no apt-get to install them with)"
  command=(apt-get install -y --no-install-recommends "${missing[@]}")
  [ "$(id -u)" = 0 ] || fail "packages are missing and only root can install them; run: sudo ${command[*]}"
  echo "installing ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq || echo "apt-get update failed, trying with the lists that are there" >&2
  "${command[@]}" -qq > /dev/null || fail "could not install the packages; try: ${command[*]}"
}

# Finds nvcc 13 or newer and makes CMake find the same one.
find_toolkit() {
  local folder nvcc="" version
  for folder in "${CUDAToolkit_ROOT:-}" "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda; do
    if [ -n "$folder" ] && [ -x "$folder/bin/nvcc" ]; then
      nvcc="$folder/bin/nvcc"
      break
    fi
  done
  [ -n "$nvcc" ] || nvcc="$(command -v nvcc || true)"
  [ -n "$nvcc" ] || fail "the CUDA toolkit was not found: install version 13 (package cuda-toolkit-13-0 of" \
    "https://developer.nvidia.com/cuda-downloads), or set CUDA_HOME to where it is"
  version="$("$nvcc" --version | sed -n 's/.*release \([0-9]*\).*/\1/p')"
  [ "${version:-0}" -ge 13 ] || fail "$nvcc is of CUDA ${version:-unknown}; version 13 or newer is needed:" \
    "install it, or set CUDA_HOME to where it is"
  CUDAToolkit_ROOT="$(dirname "$(dirname "$nvcc")")"
  PATH="$CUDAToolkit_ROOT/bin:$PATH"
  export CUDAToolkit_ROOT PATH
}

# Takes more options for CMake.
# What is built stands in the array build_targets; everything if that is not set.
configure_and_build() {
  # Tests and programs are compiled several files at a time, all with precompiled headers: half as long in all.
  # The layers are compiled file by file unless "$@" says otherwise: after that, an edit costs little.
  local options=(-DCMAKE_UNITY_BUILD=ON -DKLAP_PRECOMPILE_HEADERS=ON -DKLAP_UNITY_LAYERS=OFF -DKLAP_QUICK_BUILD=OFF "$@") log
  [ -d "$carried" ] && options+=("-DCMAKE_PREFIX_PATH=$carried")
  cd "$root" || fail "cannot enter $root"
  log="$(cmake --preset release "${options[@]}" 2>&1)" || fail "configuring failed:"$'\n'"$log"
  cmake --build --preset release ${build_targets:+--target "${build_targets[@]}"} || fail "building failed"
}
