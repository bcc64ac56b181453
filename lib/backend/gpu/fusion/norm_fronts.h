// SPDX-License-Identifier: Apache-2.0
//
// Fronts: elementwise nodes whose result is the dy of a batch normalisation's gradient, computed while that adds up its
// sums. They save a pass over memory, or three:
//
//  * dy = made of other values by a chain of usual steps (device_epilogue.h), of a residual block above all: it is
//    stored for whoever else reads it, and the gradient comes to the turn at which it is made;
//  * dy = the gradient of relu of the normalisation's own results, which nobody else reads: it is not stored. Whether a
//    result is positive is computed again from x, to the bit.
#ifndef TUTTI_BACKEND_GPU_FUSION_NORM_FRONTS_H_
#define TUTTI_BACKEND_GPU_FUSION_NORM_FRONTS_H_

#include <cstdint>
#include <vector>

#include "backend/gpu/device/device_batch_norm.h"
#include "backend/gpu/device/device_epilogue.h"
#include "backend/gpu/fusion/elementwise_trees.h"
#include "backend/gpu/kernel/kernel.h"
#include "backend/lowered_graph.h"

namespace tutti::impl::backend::gpu {

struct NormFront {
  int32_t norm = -1;                        ///< the step of the gradient, or of its moments
  std::vector<int32_t> steps;               ///< the nodes in order, the root last: it makes dy
  graph::ValueId first = graph::kNoValue;   ///< what the chain begins with; of relu's gradient, that of its result
  Epilogue epilogue{};                      ///< of it, without pointers
  std::vector<graph::ValueId> reads;        ///< by operand
  graph::ValueId offset = graph::kNoValue;  ///< the normalisation's, of relu's gradient alone

  bool is_of_relu() const { return offset != graph::kNoValue; }
  int32_t root() const { return steps.back(); }
  int32_t turn() const { return is_of_relu() ? norm : root(); }
};

/// At most one for each gradient and each root.
std::vector<NormFront> find_norm_fronts(const LoweredGraph &lowered, const ElementwiseTrees &trees);

/// What a kernel keeps of the front of its request, if there is one.
class KeptFront {
 public:
  explicit KeptFront(const KernelRequest &request);
  /// Adds to the work what there is of it in the frame; the epilogue lies in `place`.
  void put(const Frame &frame, Epilogue &place, BatchNormWork &work) const;

 private:
  bool exists_, is_of_relu_ = false;
  int32_t first_ = 0, count_ = 0, made_ = 0;  // inputs, and an output, of the frame
  Epilogue epilogue_{};
};

/// The call of both: inputs are those of the gradient with the front's first in place of dy, then what the front reads,
/// or the offset; outputs those of the gradient, then dy if it is stored.
base::Result<KernelCall> make_front_call(const LoweredGraph &lowered, const NormFront &front,
                                         std::vector<BoundedIntegers> &faults, int64_t *scratch_bytes);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_FUSION_NORM_FRONTS_H_
