// SPDX-License-Identifier: Apache-2.0
//
// A list of numbers in a graph.
#ifndef TUTTI_NN_CONSTANT_LIST_H_
#define TUTTI_NN_CONSTANT_LIST_H_

#include <vector>

#include "nn/expansion.h"

namespace tutti::impl::nn {

/// A constant [count] of the dtype of `like`.
ValueId constant_list(GraphBuilder &b, const std::vector<double> &values, ValueId like);

}  // namespace tutti::impl::nn

#endif  // TUTTI_NN_CONSTANT_LIST_H_
