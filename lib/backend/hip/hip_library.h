// SPDX-License-Identifier: Apache-2.0
//
// The kernels that AMD's libraries have: matrix products and convolutions of one pixel, which are products (rocBLAS),
// other convolutions (MIOpen). What they do not take, or where they are missing, the kernels of gpu/ do.
#ifndef TUTTI_BACKEND_HIP_HIP_LIBRARY_H_
#define TUTTI_BACKEND_HIP_HIP_LIBRARY_H_

#include <cstdint>
#include <memory>

#include "backend/gpu/library/library.h"
#include "base/status.h"

namespace tutti::impl::backend::hip {

/// For a GPU, which is current. Null where the plug-in was built without the headers of the libraries. A library is
/// used by one thread at a time.
base::Result<std::unique_ptr<gpu::Library>> open_library(int32_t ordinal);

// Its parts, each null where its header was missing: rocblas_library.cc or no_rocblas_library.cc, ...
base::Result<std::unique_ptr<gpu::Library>> open_rocblas_library(int32_t ordinal);
base::Result<std::unique_ptr<gpu::Library>> open_miopen_library(int32_t ordinal);

}  // namespace tutti::impl::backend::hip

#endif  // TUTTI_BACKEND_HIP_HIP_LIBRARY_H_
