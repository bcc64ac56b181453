// SPDX-License-Identifier: Apache-2.0
//
// The kernels that AMD's libraries have: matrix products (rocBLAS), and convolutions of one pixel, which are products.
// What it does not take, or where it is missing, the kernels of gpu/ do.
#ifndef TUTTI_BACKEND_HIP_HIP_LIBRARY_H_
#define TUTTI_BACKEND_HIP_HIP_LIBRARY_H_

#include <cstdint>
#include <memory>

#include "backend/gpu/library.h"
#include "base/status.h"

namespace tutti::impl::backend::hip {

/// For a GPU, which is current. Null where the plug-in was built without the headers of the libraries. A library is
/// used by one thread at a time.
base::Result<std::unique_ptr<gpu::Library>> open_library(int32_t ordinal);

}  // namespace tutti::impl::backend::hip

#endif  // TUTTI_BACKEND_HIP_HIP_LIBRARY_H_
