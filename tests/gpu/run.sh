#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# run.sh [OPTION...] [WORD...]: on a machine with an NVIDIA GPU, nvcc, Meson, Ninja and a Python with PyTorch: builds a
# release with the CUDA backend in build/gpu and does, in this order,
#
#   tests       the conformance suites, whole networks, several logical devices, two processes with a GPU each where there
#               are two, kill and resume, the C interface
#   sanitize    small cases under compute-sanitizer: memcheck, racecheck; "partial" is what it did not get through
#   bench       training and prediction against PyTorch on the same GPU, one part for each case; all GPUs against one, of one
#               process and with a process for each; what a training takes of the host
#   accuracy    networks that train on Fashion-MNIST as they do on processors
#   soak        1,000 training steps with as much memory free at the end as at the beginning, also through the estimator
#
# WORDs are these, or names of their parts as --list prints them; without any, all. Results: results.md, results.json and
# logs.txt, the ends of what all parts printed, in build/gpu/results (or the folder that TUTTI_RESULTS names), written behind
# each part; whole outputs in build/gpu/logs. Beside them plans.tar.xz: times of algorithms and machine code, for the next call.
# What was done with the same sources is not done again, also where the folder of results was brought along from a call on
# another machine with such a GPU; of other sources it tells how long parts take.
#
#   --minutes N  begins nothing that would not end within so many minutes, the build included, and begins with what matters
#                most: a few quick tests, resnet50 and gpt2 against PyTorch, the other tests and benchmarks, sanitizers of
#                kernels that have changed, accuracy, soak; what takes long behind what is short, and what failed with these
#                sources once more at the end. Benchmarks take fewer quadruples
#   --again      does what was done, too
#   --no-build   with what is built
#   --list       prints the parts
#   --requirements   prints what must hold, which the parts show
#
# A machine that is lent for minutes compiles nothing if a build is brought along, one file in the same sources:
#
#   --archive [FILE]        on a machine without a GPU: builds, and packs programs, libraries and images in
#                           build/gpu-build.tar.xz; with TUTTI_FASHION_MNIST=none no images, which are half of it
#   --architectures LIST    for these GPUs, 90-real if nothing is said
#
# Where that file is, run.sh unpacks it and builds nothing; of other sources than those here it is not taken.
#
# Ends with 1 if something failed; 3 if something is left, partial, inconclusive or could not be done here for another reason
# than that it needs more GPUs; 0 else.
#
# What a build lacks (headers of nlohmann_json, zlib, cmocka, protozero and CLI11, PyYAML; Gloo and Fashion-MNIST are
# optional) is fetched where apt or pip reaches an archive; elsewhere the one sentence that it ends with says what to bring,
# and from where.
#
# TUTTI_GPU_BUILD  another file than build/gpu-build.tar.xz, with a build that was brought along
# TUTTI_PACKAGES   a folder with unpacked packages, brought along from carry.sh or fetched; build/packages
# TUTTI_BUILD_DIR  another build folder than build/gpu
# TUTTI_CACHE_DIR  another folder for plans than build/gpu/plans, which is carried nowhere
# TUTTI_SETUP_ARGS more arguments for `meson setup` when it is first configured
set -eu
cd "$(dirname "$0")/../.."
case ${1:-} in
-h | --help)
    sed -n '4,48{s/^# \{0,1\}//;p}' tests/gpu/run.sh
    exit 0
    ;;
esac
exec python3 tests/gpu/run_parts.py "$@"
