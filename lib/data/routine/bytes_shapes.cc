// SPDX-License-Identifier: Apache-2.0
//
// Ops that leave bytes as they are.
#include "data/routine/kernels.h"

namespace tutti::impl::data {

using base::Result;
using base::Status;
using tensor::Shape;

// identity, stop_gradient, reshape.
Result<RoutineKernel> make_view(const RoutineNode &node) {
  const bool is_same = node.output(0).dims == node.input(0).dims;
  return RoutineKernel([is_same](RoutineFrame &frame) -> Status {
    const RoutineValue &x = frame.input(0);
    if (is_same) return frame.output_view(0, x.shape, 0);
    TUTTI_ASSIGN(const Shape shape, frame.known_shape(0));
    if (x.shape.elements() != shape.elements()) {
      return base::invalid_argument(x.shape, " cannot be reshaped to ", shape);
    }
    return frame.output_view(0, shape, 0);
  });
}

}  // namespace tutti::impl::data
