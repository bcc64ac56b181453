// SPDX-License-Identifier: Apache-2.0
//
// The names of NCCL for lib/backend/gpu/.
#ifndef TUTTI_BACKEND_CUDA_TUTTI_NCCL_H_
#define TUTTI_BACKEND_CUDA_TUTTI_NCCL_H_

#include <nccl.h>
#include <tutti_gpu.h>

#endif  // TUTTI_BACKEND_CUDA_TUTTI_NCCL_H_
