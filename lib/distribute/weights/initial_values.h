// SPDX-License-Identifier: Apache-2.0
//
// First values of variables: initializer specs run as one graph of random ops, keyed by the variable's name. The same
// for any number of replicas; pure function of (model, seed). Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_WEIGHTS_INITIAL_VALUES_H_
#define TUTTI_DISTRIBUTE_WEIGHTS_INITIAL_VALUES_H_

#include <vector>

#include "backend/backend.h"
#include "base/status.h"
#include "graph/model.h"
#include "tensor/tensor.h"

namespace tutti::impl::distribute {

/// Values in order of `variables`. INVALID_ARGUMENT naming variable and initializer when there is no such initializer.
base::Result<std::vector<tensor::Tensor>> initial_values(const std::vector<graph::VariableSpec> &variables,
                                                         int64_t seed, backend::Device &device);

/// A tensor with every element `value`.
base::Result<tensor::Tensor> filled(tensor::DType dtype, const std::vector<int64_t> &dims, double value);

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_WEIGHTS_INITIAL_VALUES_H_
