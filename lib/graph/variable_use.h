// SPDX-License-Identifier: Apache-2.0
//
// For errors about variables of another shape than they are read with: what in a model asks for that shape. Pure
// functions.
#ifndef TUTTI_GRAPH_VARIABLE_USE_H_
#define TUTTI_GRAPH_VARIABLE_USE_H_

#include <string>

#include "graph/model.h"

namespace tutti::impl::graph {

/// "; node 'dense/matmul' takes it with feature 'x', f32 [batch, 5]": the first node that takes the variable, changed
/// in form at most, together with something computed from rows. "" if there is none.
std::string describe_use(const Model &model, const VariableSpec &variable);

}  // namespace tutti::impl::graph

#endif  // TUTTI_GRAPH_VARIABLE_USE_H_
