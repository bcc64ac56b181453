// SPDX-License-Identifier: Apache-2.0
//
// The kernel factories of the Routine, by file. kernel_list.cc says which op takes which.
#ifndef TUTTI_DATA_ROUTINE_KERNELS_H_
#define TUTTI_DATA_ROUTINE_KERNELS_H_

#include "data/routine_kernel.h"

namespace tutti::impl::data {

// decode_image.cc
base::Result<RoutineKernel> make_decode_jpeg(const RoutineNode &node);

// resize.cc
base::Result<RoutineKernel> make_resize(const RoutineNode &node);

// bytes_shapes.cc
base::Result<RoutineKernel> make_view(const RoutineNode &node);

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_ROUTINE_KERNELS_H_
