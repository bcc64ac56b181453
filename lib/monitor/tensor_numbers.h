// SPDX-License-Identifier: Apache-2.0
//
// Pure functions.
#ifndef TUTTI_MONITOR_TENSOR_NUMBERS_H_
#define TUTTI_MONITOR_TENSOR_NUMBERS_H_

#include <vector>

#include "base/status.h"
#include "base/thread.h"
#include "tensor/tensor.h"

namespace tutti::impl::monitor {

/// Calls `take` with each element of a tensor of numbers or booleans, in their order; INVALID_ARGUMENT for texts.
base::Status for_numbers(const tensor::Tensor &tensor, base::FunctionRef<void(double)> take);
/// The elements of a tensor of numbers or booleans; INVALID_ARGUMENT for texts.
base::Result<std::vector<double>> numbers_of(const tensor::Tensor &tensor);

}  // namespace tutti::impl::monitor

#endif  // TUTTI_MONITOR_TENSOR_NUMBERS_H_
