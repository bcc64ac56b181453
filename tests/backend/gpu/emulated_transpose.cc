// SPDX-License-Identifier: Apache-2.0
//
// The kernel as the emulated GPU compiles it.
#include "backend/gpu/device/device_transpose.cu"
