// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/dynamic_library.h"

#include <dlfcn.h>

#include <string>

namespace tutti::impl::backend::cuda {

using base::Result;
using base::Status;

namespace {

/// An opened library and the first name that was not found in it.
class DynamicLibrary {
 public:
  static Result<DynamicLibrary> open(const std::string &file) {
    DynamicLibrary library;
    library.handle_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library.handle_ != nullptr) return library;
    const char *const reason = dlerror();
    const std::string sentence = reason != nullptr ? reason : "cannot be loaded";
    library.handle_ = dlopen((std::string(TUTTI_GPU_TOOLKIT "/lib64/") + file).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library.handle_ != nullptr) return library;
    return base::unavailable(sentence);
  }

  template <typename Function>
  void find(Function &function, const char *name) {
    function = reinterpret_cast<Function>(dlsym(handle_, name));
    if (function == nullptr && missing_.empty()) missing_ = name;
  }

  Status all_found(const std::string &file) const {
    return missing_.empty() ? Status() : base::unavailable(file, " has no ", missing_);
  }

 private:
  void *handle_ = nullptr;
  std::string missing_;
};

Result<CublasLt> load_cublaslt() {
  const std::string file = base::concat("libcublasLt.so.", CUBLAS_VER_MAJOR);
  TUTTI_ASSIGN(DynamicLibrary library, DynamicLibrary::open(file));
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
  TUTTI_ASSIGN(DynamicLibrary library, DynamicLibrary::open(file));
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
  TUTTI_TRY(library.all_found(file));
  return cudnn;
}

/// What `load` gave the first time. Never destroyed: programs may be released while the process ends.
template <typename Table, Result<Table> (*load)()>
Result<const Table *> loaded_once() {
  static const auto *const loaded = new Result<Table>(load());
  if (!loaded->ok()) return loaded->status();
  return &loaded->value();
}

}  // namespace

Result<const CublasLt *> cublaslt() { return loaded_once<CublasLt, load_cublaslt>(); }

Result<const Cudnn *> cudnn() { return loaded_once<Cudnn, load_cudnn>(); }

}  // namespace tutti::impl::backend::cuda
