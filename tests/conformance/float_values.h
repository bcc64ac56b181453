// SPDX-License-Identifier: Apache-2.0
//
// Small tensors of f32 for tests of programs, and what they must hold.
#ifndef TUTTI_TESTS_CONFORMANCE_FLOAT_VALUES_H_
#define TUTTI_TESTS_CONFORMANCE_FLOAT_VALUES_H_

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "tensor/tensor.h"
#include "testing.h"

namespace tutti::impl::conformance {

inline tensor::Tensor floats(std::vector<int64_t> dims, std::vector<float> values) {
  return tensor::Tensor::from_values<float>(*tensor::Shape::make(dims), std::span<const float>(values)).take();
}

/// In row-major order, to 1e-5 of each.
inline void assert_values(const tensor::Tensor &tensor, std::vector<float> expected) {
  const tensor::Tensor wanted = floats({tensor.elements()}, std::move(expected));
  assert_ok(tensor::compare_close(assert_ok_value(tensor.reshape({tensor.elements()})), wanted, 1e-5, 1e-5));
}

}  // namespace tutti::impl::conformance

#endif  // TUTTI_TESTS_CONFORMANCE_FLOAT_VALUES_H_
