// SPDX-License-Identifier: Apache-2.0
#include "nn/constant_list.h"

#include <span>

#include "tensor/tensor.h"

namespace tutti::impl::nn {

ValueId constant_list(GraphBuilder &b, const std::vector<double> &values, ValueId like) {
  if (like == kNoValue) return kNoValue;
  const tensor::Shape shape({int64_t(values.size())});
  const std::vector<float> narrow(values.begin(), values.end());
  auto table = b.dtype(like) == tensor::DType::f64 ? tensor::Tensor::from_values(shape, std::span<const double>(values))
                                                   : tensor::Tensor::from_values(shape, std::span<const float>(narrow));
  if (!table.ok()) return b.fail(table.status());
  return b.cast(b.constant(table.take()), b.dtype(like));
}

}  // namespace tutti::impl::nn
