// SPDX-License-Identifier: Apache-2.0
//
// The table of backend_ops_test: every op on its dtypes and on shapes that break things (no rows, one element, odd
// sizes, broadcasting). To add an op: a line in the function of its family.
#ifndef TUTTI_TESTS_CONFORMANCE_BACKEND_CASES_H_
#define TUTTI_TESTS_CONFORMANCE_BACKEND_CASES_H_

#include <string>
#include <vector>

#include "backend_under_test.h"
#include "graph/attribute.h"
#include "tensor/tensor.h"

namespace tutti::impl::conformance {

using tensor::DType;
using ShapeDims = std::vector<int64_t>;

/// An input filled with reproducible random values: uniform in [low, high), or whole numbers of that range.
struct Operand {
  DType dtype = DType::f32;
  ShapeDims dims;
  double low = -2, high = 2;
  bool is_whole = false;
};

struct OpCase {
  std::string op;
  std::vector<Operand> inputs;
  graph::Attributes attributes = {};
  /// What to add to the graph; absent = the op on the inputs.
  BuildFunction build = {};
  /// 0 = by dtype.
  double relative = 0, absolute = 0;

  std::string describe() const;
};

std::vector<OpCase> elementwise_cases();
std::vector<OpCase> reduction_cases();
std::vector<OpCase> shape_cases();
std::vector<OpCase> product_cases();  // matmul, convolution, pooling
std::vector<OpCase> attention_cases();
std::vector<OpCase> normalization_cases();
std::vector<OpCase> loss_cases();
std::vector<OpCase> training_cases();  // updates, random

/// The tensor of an operand; `seed` tells the inputs of a case apart.
base::Result<tensor::Tensor> make_operand(const Operand &operand, uint64_t seed);
/// One of each shape, with seeds from `first_seed` on.
base::Result<std::vector<tensor::Tensor>> make_operands(const std::vector<std::vector<int64_t>> &shapes,
                                                        tensor::DType dtype, uint64_t first_seed);

/// Of f32 or f64.
double element(const tensor::Tensor &values, int64_t i);
/// Of f32 or f64: the root mean square of what is finite. A sum of terms that cancel is exact to its terms' size.
double size_of(const tensor::Tensor &values);

inline Operand whole(DType dtype, ShapeDims dims, double low, double high) {
  return {dtype, std::move(dims), low, high, true};
}
inline Operand positive(DType dtype, ShapeDims dims) { return {dtype, std::move(dims), 0.1, 3.0, false}; }

}  // namespace tutti::impl::conformance

#endif  // TUTTI_TESTS_CONFORMANCE_BACKEND_CASES_H_
