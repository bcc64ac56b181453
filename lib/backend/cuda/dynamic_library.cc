// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/dynamic_library.h"

#include <string>

#include "backend/gpu/runtime/opened_library.h"

namespace tutti::impl::backend::cuda {

using base::Result;
using gpu::OpenedLibrary;

namespace {

constexpr const char *kFolder = TUTTI_GPU_TOOLKIT "/lib64";

Result<CublasLt> load_cublaslt() {
  const std::string file = base::concat("libcublasLt.so.", CUBLAS_VER_MAJOR);
  TUTTI_ASSIGN(OpenedLibrary library, OpenedLibrary::open(file, kFolder));
  CublasLt lt;
  library.find(lt.cublasLtCreate, "cublasLtCreate");
  library.find(lt.cublasLtDestroy, "cublasLtDestroy");
  library.find(lt.cublasLtGetVersion, "cublasLtGetVersion");
  library.find(lt.cublasLtGetStatusString, "cublasLtGetStatusString");
  library.find(lt.cublasLtMatmul, "cublasLtMatmul");
  library.find(lt.cublasLtMatmulAlgoGetHeuristic, "cublasLtMatmulAlgoGetHeuristic");
  library.find(lt.cublasLtMatmulDescCreate, "cublasLtMatmulDescCreate");
  library.find(lt.cublasLtMatmulDescDestroy, "cublasLtMatmulDescDestroy");
  library.find(lt.cublasLtMatmulDescSetAttribute, "cublasLtMatmulDescSetAttribute");
  library.find(lt.cublasLtMatmulPreferenceCreate, "cublasLtMatmulPreferenceCreate");
  library.find(lt.cublasLtMatmulPreferenceDestroy, "cublasLtMatmulPreferenceDestroy");
  library.find(lt.cublasLtMatmulPreferenceSetAttribute, "cublasLtMatmulPreferenceSetAttribute");
  library.find(lt.cublasLtMatrixLayoutCreate, "cublasLtMatrixLayoutCreate");
  library.find(lt.cublasLtMatrixLayoutDestroy, "cublasLtMatrixLayoutDestroy");
  library.find(lt.cublasLtMatrixLayoutSetAttribute, "cublasLtMatrixLayoutSetAttribute");
  TUTTI_TRY(library.all_found(file));
  return lt;
}

Result<Cudnn> load_cudnn() {
  const std::string file = base::concat("libcudnn.so.", CUDNN_MAJOR);
  TUTTI_ASSIGN(OpenedLibrary library, OpenedLibrary::open(file, kFolder));
  Cudnn cudnn;
  library.find(cudnn.cudnnCreate, "cudnnCreate");
  library.find(cudnn.cudnnDestroy, "cudnnDestroy");
  library.find(cudnn.cudnnSetStream, "cudnnSetStream");
  library.find(cudnn.cudnnGetVersion, "cudnnGetVersion");
  library.find(cudnn.cudnnGetErrorString, "cudnnGetErrorString");
  library.find(cudnn.cudnnGetLastErrorString, "cudnnGetLastErrorString");
  library.find(cudnn.cudnnBackendCreateDescriptor, "cudnnBackendCreateDescriptor");
  library.find(cudnn.cudnnBackendDestroyDescriptor, "cudnnBackendDestroyDescriptor");
  library.find(cudnn.cudnnBackendFinalize, "cudnnBackendFinalize");
  library.find(cudnn.cudnnBackendSetAttribute, "cudnnBackendSetAttribute");
  library.find(cudnn.cudnnBackendGetAttribute, "cudnnBackendGetAttribute");
  library.find(cudnn.cudnnBackendExecute, "cudnnBackendExecute");
  decltype(&::cudnnGetCudartVersion) cuda_version = nullptr;
  library.find(cuda_version, "cudnnGetCudartVersion");
  TUTTI_TRY(library.all_found(file));
  TUTTI_TRY(check_built_for(file, cuda_version()));
  return cudnn;
}

}  // namespace

Result<const CublasLt *> cublaslt() { return gpu::loaded_once<CublasLt, load_cublaslt>(); }

Result<const Cudnn *> cudnn() { return gpu::loaded_once<Cudnn, load_cudnn>(); }

}  // namespace tutti::impl::backend::cuda
