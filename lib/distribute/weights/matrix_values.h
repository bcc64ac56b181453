// SPDX-License-Identifier: Apache-2.0
//
// First values that are made for a matrix as a whole, on the host. A variable with more axes than two is a matrix with
// as many columns as its last axis.
//
// Threads: functions without state. Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_WEIGHTS_MATRIX_VALUES_H_
#define TUTTI_DISTRIBUTE_WEIGHTS_MATRIX_VALUES_H_

#include "base/status.h"
#include "graph/model.h"
#include "tensor/tensor.h"

namespace tutti::impl::distribute {

/// `gain` on the diagonal, else 0. INVALID_ARGUMENT unless there are two axes.
base::Status make_identity(const graph::VariableSpec &variable, double gain, tensor::Tensor &value);

/// Makes `gain` times a matrix with orthonormal columns, or rows where there are fewer of them, out of one with
/// normally distributed elements, such that all such matrices are equally likely (Saxe et al., 2014). INVALID_ARGUMENT
/// for fewer than two axes.
base::Status make_orthogonal(const graph::VariableSpec &variable, double gain, tensor::Tensor &value);

/// Fills a variable whose initializer is derived (graph/initializer.h) from the initial value of another, seen as a
/// matrix with as many columns as that has in its last axis. INVALID_ARGUMENT for another number of elements.
base::Status make_derived(const graph::VariableSpec &variable, const tensor::Tensor &source, tensor::Tensor &value);

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_WEIGHTS_MATRIX_VALUES_H_
