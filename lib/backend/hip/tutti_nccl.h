// SPDX-License-Identifier: Apache-2.0
//
// The names of RCCL, which are NCCL's, for lib/backend/gpu/.
#ifndef TUTTI_BACKEND_HIP_TUTTI_NCCL_H_
#define TUTTI_BACKEND_HIP_TUTTI_NCCL_H_

#include <rccl/rccl.h>
#include <tutti_gpu.h>

#endif  // TUTTI_BACKEND_HIP_TUTTI_NCCL_H_
