// SPDX-License-Identifier: Apache-2.0
#include "nn/expansion.h"

namespace tutti::impl::nn {

ValueId expand_loss_l2_penalty(Expansion &e) {
  GraphBuilder &b = e.builder();
  return b.scale(b.reduce_sum(b.unary("square", e.input(0))), e.f64("rate"));
}

}  // namespace tutti::impl::nn
