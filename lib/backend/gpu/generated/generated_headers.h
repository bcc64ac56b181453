// SPDX-License-Identifier: Apache-2.0
//
// The headers that generated kernels include, as texts: the build puts them into the plug-in (embed_headers.py), so
// that a compiler at run time needs no file of this tree. A platform brings <tutti_gpu.h> and what there is of the
// standard library.
#ifndef TUTTI_BACKEND_GPU_GENERATED_GENERATED_HEADERS_H_
#define TUTTI_BACKEND_GPU_GENERATED_GENERATED_HEADERS_H_

#include <span>

namespace tutti::impl::backend::gpu {

struct GeneratedHeader {
  const char *name;  ///< as it is included: "backend/gpu/device/arithmetic-inl.h"
  const char *text;
};

std::span<const GeneratedHeader> generated_headers();

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_GENERATED_GENERATED_HEADERS_H_
