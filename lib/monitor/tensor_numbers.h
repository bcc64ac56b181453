// SPDX-License-Identifier: Apache-2.0
//
// Pure functions.
#ifndef TUTTI_MONITOR_TENSOR_NUMBERS_H_
#define TUTTI_MONITOR_TENSOR_NUMBERS_H_

#include <vector>

#include "base/status.h"
#include "tensor/tensor.h"

namespace tutti::impl::monitor {

/// The elements of a tensor of numbers or booleans; INVALID_ARGUMENT for texts.
base::Result<std::vector<double>> numbers_of(const tensor::Tensor &tensor);

}  // namespace tutti::impl::monitor

#endif  // TUTTI_MONITOR_TENSOR_NUMBERS_H_
