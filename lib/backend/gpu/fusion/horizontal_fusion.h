// SPDX-License-Identifier: Apache-2.0
//
// Calls that do the same to different operands, and do not need each other, as one launch (rows_kernel.h): the updates
// of all variables, statistics, scaled gradients. Networks have many small variables, and a launch for each costs more
// than its work.
//
// All are done when the last of them was to be. find() chooses them by what they read and write as values, and lets the
// memory plan keep what the earlier ones read until then; join() makes sure of it by what each call in between touches
// in memory.
//
//   HorizontalFusion joined = HorizontalFusion::find(lowered, batch, by_step, wishes);   // before kernels are compiled
//   plan_storage(lowered, wishes) ...
//   joined.join(calls, segment_ends, place_of);
#ifndef TUTTI_BACKEND_GPU_FUSION_HORIZONTAL_FUSION_H_
#define TUTTI_BACKEND_GPU_FUSION_HORIZONTAL_FUSION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "backend/gpu/generated/generated_kernels.h"
#include "backend/gpu/kernel/rows_kernel.h"
#include "backend/lowered_graph.h"
#include "backend/storage_plan.h"

namespace tutti::impl::backend::gpu {

/// Where an operand lies.
struct PlacedBytes {
  Location location;
  int64_t bytes = 0;
};

class HorizontalFusion {
 public:
  /// Sets KernelCall::group and wishes.kept_until. A call reads no more than 1 MiB, and a group 16 MiB, that would not
  /// be kept otherwise.
  static HorizontalFusion find(const LoweredGraph &lowered, KernelBatch &batch, std::vector<KernelCall> &by_step,
                               StorageWishes &wishes);

  /// Replaces calls of a group by one. `place_of`: of a position in the table of pointers.
  void join(std::vector<KernelCall> &calls, std::vector<int32_t> &segment_ends,
            const std::function<PlacedBytes(int32_t)> &place_of);

  /// Of all tables; after join().
  int64_t rows_bytes() const { return rows_bytes_; }

 private:
  KernelCall make_call(std::vector<KernelCall> &calls, const std::vector<size_t> &members);

  std::vector<std::shared_ptr<const RowsKernel>> kernels_;  // by group
  int64_t rows_bytes_ = 0;
};

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_FUSION_HORIZONTAL_FUSION_H_
