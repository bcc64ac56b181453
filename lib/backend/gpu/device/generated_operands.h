// SPDX-License-Identifier: Apache-2.0
//
// The one argument of kernels that are compiled at run time: plain data, passed by value.
#ifndef TUTTI_BACKEND_GPU_DEVICE_GENERATED_OPERANDS_H_
#define TUTTI_BACKEND_GPU_DEVICE_GENERATED_OPERANDS_H_

#include <cstdint>

#include "backend/gpu/device/element_program.h"
#include "backend/gpu/device/fused_program.h"
#include "backend/gpu/device/reduction_data.h"
#include "backend/gpu/device/rows.h"

namespace tutti::impl::backend::gpu {

struct GeneratedOperands {
  ElementPlaces places;      ///< all aligned to 16
  Rows<ElementPlaces> rows;  ///< of several calls: in place of these
  FusedPlaces fused;         ///< of a multi-output fusion: in place of these; not aligned
  // Of reductions alone.
  void *partials;  ///< results of a first pass; null: there is one pass
  ReductionLayout layout;
  ReduceWalk outer_walk, row_walk;  ///< where the tree's elements are
  double divisor, start;
};

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_GENERATED_OPERANDS_H_
