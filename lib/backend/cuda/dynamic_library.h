// SPDX-License-Identifier: Apache-2.0
//
// NVIDIA's libraries, opened on first use: the plug-in works without them, more slowly. Functions have their names of
// the headers.
//
//   TUTTI_ASSIGN(const CublasLt *lt, cublaslt());              // or one sentence that says what is missing
//   TUTTI_TRY(status_of(*lt, lt->cublasLtCreate(&handle), "opening cuBLASLt"));
//
// A library is looked for where the system's loader looks, then in the toolkit that the plug-in was built with. It is
// never closed.
//
// Threads: all functions may be called from any thread.
#ifndef TUTTI_BACKEND_CUDA_DYNAMIC_LIBRARY_H_
#define TUTTI_BACKEND_CUDA_DYNAMIC_LIBRARY_H_

#include <cublasLt.h>
#include <cudnn_graph.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.h"

namespace tutti::impl::backend::cuda {

struct CublasLt {
  decltype(&::cublasLtCreate) cublasLtCreate = nullptr;
  decltype(&::cublasLtDestroy) cublasLtDestroy = nullptr;
  decltype(&::cublasLtGetVersion) cublasLtGetVersion = nullptr;
  decltype(&::cublasLtGetStatusString) cublasLtGetStatusString = nullptr;
  decltype(&::cublasLtMatmul) cublasLtMatmul = nullptr;
  decltype(&::cublasLtMatmulAlgoGetHeuristic) cublasLtMatmulAlgoGetHeuristic = nullptr;
  decltype(&::cublasLtMatmulDescCreate) cublasLtMatmulDescCreate = nullptr;
  decltype(&::cublasLtMatmulDescDestroy) cublasLtMatmulDescDestroy = nullptr;
  decltype(&::cublasLtMatmulDescSetAttribute) cublasLtMatmulDescSetAttribute = nullptr;
  decltype(&::cublasLtMatmulPreferenceCreate) cublasLtMatmulPreferenceCreate = nullptr;
  decltype(&::cublasLtMatmulPreferenceDestroy) cublasLtMatmulPreferenceDestroy = nullptr;
  decltype(&::cublasLtMatmulPreferenceSetAttribute) cublasLtMatmulPreferenceSetAttribute = nullptr;
  decltype(&::cublasLtMatrixLayoutCreate) cublasLtMatrixLayoutCreate = nullptr;
  decltype(&::cublasLtMatrixLayoutDestroy) cublasLtMatrixLayoutDestroy = nullptr;
  decltype(&::cublasLtMatrixLayoutSetAttribute) cublasLtMatrixLayoutSetAttribute = nullptr;
};

struct Cudnn {
  decltype(&::cudnnCreate) cudnnCreate = nullptr;
  decltype(&::cudnnDestroy) cudnnDestroy = nullptr;
  decltype(&::cudnnSetStream) cudnnSetStream = nullptr;
  decltype(&::cudnnGetVersion) cudnnGetVersion = nullptr;
  decltype(&::cudnnGetErrorString) cudnnGetErrorString = nullptr;
  decltype(&::cudnnGetLastErrorString) cudnnGetLastErrorString = nullptr;
  decltype(&::cudnnBackendCreateDescriptor) cudnnBackendCreateDescriptor = nullptr;
  decltype(&::cudnnBackendDestroyDescriptor) cudnnBackendDestroyDescriptor = nullptr;
  decltype(&::cudnnBackendFinalize) cudnnBackendFinalize = nullptr;
  decltype(&::cudnnBackendSetAttribute) cudnnBackendSetAttribute = nullptr;
  decltype(&::cudnnBackendGetAttribute) cudnnBackendGetAttribute = nullptr;
  decltype(&::cudnnBackendExecute) cudnnBackendExecute = nullptr;
};

/// The functions of a library for the life of the process, or UNAVAILABLE.
base::Result<const CublasLt *> cublaslt();
base::Result<const Cudnn *> cudnn();

std::string version_of(const CublasLt &lt);
std::string version_of(const Cudnn &cudnn);
/// Ok when a library of this file is built for the version of CUDA that the plug-in is, whose streams it takes;
/// UNAVAILABLE naming both where the major ones differ.
base::Status check_built_for(std::string_view file, size_t cuda_version);

/// Ok, or what the library says while `action` ("multiplying matrices").
base::Status status_of(const CublasLt &lt, cublasStatus_t status, std::string_view action);
base::Status status_of(const Cudnn &cudnn, cudnnStatus_t status, std::string_view action);

}  // namespace tutti::impl::backend::cuda

#endif  // TUTTI_BACKEND_CUDA_DYNAMIC_LIBRARY_H_
