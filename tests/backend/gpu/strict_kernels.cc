// SPDX-License-Identifier: Apache-2.0
//
// The kernels as the emulated GPU compiles them.
#include "strict_kernels.cu"
