// SPDX-License-Identifier: Apache-2.0
//
// MIOpen, opened on first use: the plug-in works without it, more slowly. Functions have their names of the header.
//
//   TUTTI_ASSIGN(const Miopen *miopen, miopen());                // or one sentence that says what is missing
//   TUTTI_TRY(status_of(*miopen, miopen->miopenCreate(&handle), "opening MIOpen"));
//
// Threads: all functions may be called from any thread; calls with one handle are made one at a time.
#ifndef TUTTI_BACKEND_HIP_MIOPEN_H_
#define TUTTI_BACKEND_HIP_MIOPEN_H_

#include <miopen/miopen.h>
#include <tutti_gpu.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.h"

namespace tutti::impl::backend::hip {

/// The functions of one pass of convolutions, which have one type for all three: without the pass in their names. Each
/// pass has an order of its own in which it names the tensors.
struct MiopenPass {
  decltype(&::miopenConvolutionForwardGetSolution) miopenGetSolution = nullptr;
  decltype(&::miopenConvolutionForwardCompileSolution) miopenCompileSolution = nullptr;
  decltype(&::miopenConvolutionForwardImmediate) miopenImmediate = nullptr;
};

struct Miopen {
  decltype(&::miopenGetVersion) miopenGetVersion = nullptr;
  decltype(&::miopenGetErrorString) miopenGetErrorString = nullptr;
  decltype(&::miopenCreate) miopenCreate = nullptr;
  decltype(&::miopenDestroy) miopenDestroy = nullptr;
  decltype(&::miopenSetStream) miopenSetStream = nullptr;
  decltype(&::miopenCreateTensorDescriptor) miopenCreateTensorDescriptor = nullptr;
  decltype(&::miopenSet4dTensorDescriptorEx) miopenSet4dTensorDescriptorEx = nullptr;
  decltype(&::miopenDestroyTensorDescriptor) miopenDestroyTensorDescriptor = nullptr;
  decltype(&::miopenCreateConvolutionDescriptor) miopenCreateConvolutionDescriptor = nullptr;
  decltype(&::miopenInitConvolutionDescriptor) miopenInitConvolutionDescriptor = nullptr;
  decltype(&::miopenSetConvolutionGroupCount) miopenSetConvolutionGroupCount = nullptr;
  decltype(&::miopenSetConvolutionAttribute) miopenSetConvolutionAttribute = nullptr;
  decltype(&::miopenDestroyConvolutionDescriptor) miopenDestroyConvolutionDescriptor = nullptr;
  MiopenPass forward, backward_data, backward_weights;
};

/// The functions of a shared library, looked for where the loader looks, then in `folder`; never closed. UNAVAILABLE
/// and what is missing, also where it is of another major version than the header.
base::Result<Miopen> open_miopen(const std::string &file, const std::string &folder);

/// The functions for the life of the process, or UNAVAILABLE.
base::Result<const Miopen *> miopen();

/// "3.4.0"
base::Result<std::string> version_of(const Miopen &miopen);

/// Ok, or what the library says while `action` ("convolving images"): UNIMPLEMENTED where it has nothing of the kind.
base::Status status_of(const Miopen &miopen, miopenStatus_t status, std::string_view action);

}  // namespace tutti::impl::backend::hip

#endif  // TUTTI_BACKEND_HIP_MIOPEN_H_
