// SPDX-License-Identifier: Apache-2.0
//
// What Meson compiles to see whether nvcc works with the C++ compiler.
#include <cuda_runtime.h>

#include <concepts>

__global__ void probe(int *value) { *value = std::integral<int>; }
