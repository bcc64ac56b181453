// SPDX-License-Identifier: Apache-2.0
#include "backend/random_elements.h"

namespace tutti::impl::backend {

RandomRows RandomRows::of(const LoweredGraph &lowered, const graph::Node &node, int64_t key_attribute) {
  RandomRows result{BatchRows::of(lowered, node.outputs[0])};
  result.stream = static_cast<uint64_t>(key_attribute != 0 ? key_attribute : node.stable_id);
  return result;
}

}  // namespace tutti::impl::backend
