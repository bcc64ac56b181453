// SPDX-License-Identifier: Apache-2.0
#include "backend/hip/miopen.h"

#include <miopen/version.h>

#include "backend/gpu/runtime/opened_library.h"

namespace tutti::impl::backend::hip {

using base::Result;
using base::Status;
using gpu::OpenedLibrary;

namespace {

void find_passes(OpenedLibrary &library, Miopen &made) {
  library.find(made.forward.miopenGetSolution, "miopenConvolutionForwardGetSolution");
  library.find(made.forward.miopenCompileSolution, "miopenConvolutionForwardCompileSolution");
  library.find(made.forward.miopenImmediate, "miopenConvolutionForwardImmediate");
  library.find(made.backward_data.miopenGetSolution, "miopenConvolutionBackwardDataGetSolution");
  library.find(made.backward_data.miopenCompileSolution, "miopenConvolutionBackwardDataCompileSolution");
  library.find(made.backward_data.miopenImmediate, "miopenConvolutionBackwardDataImmediate");
  library.find(made.backward_weights.miopenGetSolution, "miopenConvolutionBackwardWeightsGetSolution");
  library.find(made.backward_weights.miopenCompileSolution, "miopenConvolutionBackwardWeightsCompileSolution");
  library.find(made.backward_weights.miopenImmediate, "miopenConvolutionBackwardWeightsImmediate");
}

/// All major versions so far have one file name, and enumerators and structures of another may differ.
Status check_version(const Miopen &made, const std::string &file) {
  TUTTI_ASSIGN(const std::string version, version_of(made));
  if (version.substr(0, version.find('.')) == std::to_string(MIOPEN_VERSION_MAJOR)) return Status();
  return base::unavailable(file, " is MIOpen ", version, ", and this plug-in was built for MIOpen ",
                           MIOPEN_VERSION_MAJOR);
}

Result<Miopen> load_miopen() { return open_miopen("libMIOpen.so.1", "/opt/rocm/lib"); }

}  // namespace

Result<Miopen> open_miopen(const std::string &file, const std::string &folder) {
  TUTTI_ASSIGN(OpenedLibrary library, OpenedLibrary::open(file, folder));
  Miopen made;
  library.find(made.miopenGetVersion, "miopenGetVersion");
  library.find(made.miopenGetErrorString, "miopenGetErrorString");
  library.find(made.miopenCreate, "miopenCreate");
  library.find(made.miopenDestroy, "miopenDestroy");
  library.find(made.miopenSetStream, "miopenSetStream");
  library.find(made.miopenCreateTensorDescriptor, "miopenCreateTensorDescriptor");
  library.find(made.miopenSet4dTensorDescriptorEx, "miopenSet4dTensorDescriptorEx");
  library.find(made.miopenDestroyTensorDescriptor, "miopenDestroyTensorDescriptor");
  library.find(made.miopenCreateConvolutionDescriptor, "miopenCreateConvolutionDescriptor");
  library.find(made.miopenInitConvolutionDescriptor, "miopenInitConvolutionDescriptor");
  library.find(made.miopenSetConvolutionGroupCount, "miopenSetConvolutionGroupCount");
  library.find(made.miopenSetConvolutionAttribute, "miopenSetConvolutionAttribute");
  library.find(made.miopenDestroyConvolutionDescriptor, "miopenDestroyConvolutionDescriptor");
  find_passes(library, made);
  TUTTI_TRY(library.all_found(file));
  TUTTI_TRY(check_version(made, file));
  return made;
}

Result<const Miopen *> miopen() { return gpu::loaded_once<Miopen, load_miopen>(); }

}  // namespace tutti::impl::backend::hip
