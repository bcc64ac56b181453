// SPDX-License-Identifier: Apache-2.0
//
// Positions of the elements of a sequence, for layers that tell their inputs of them.
#ifndef TUTTI_NN_LAYERS_POSITIONS_H_
#define TUTTI_NN_LAYERS_POSITIONS_H_

#include <string_view>

#include "graph/builder.h"

namespace tutti::impl::nn {

class Expansion;

/// How channels are turned: pair i by the angle position / base^(2 i / channels).
struct Rotation {
  double base = 10000;
  bool is_adjacent = false;  ///< pairs are channels 2 i and 2 i + 1, else i and i + channels / 2
};

/// [count], i32: first, first + 1, ...
graph::ValueId positions_from(graph::GraphBuilder &builder, const graph::Dim &first, const graph::Dim &count);
/// The lengths of rows, or of bags of them, as i32: what says how many of `longest` positions count. Those that are no
/// integers are an error of `e`; a run fails with the number of a row whose length is not 0 to `longest`, found in the
/// scope "lengths".
graph::ValueId lengths_within(Expansion &e, graph::ValueId lengths, const graph::Dim &longest);
/// x [batch, length, ..., channels], an even number of them; positions [length] or [batch, length], integers.
graph::ValueId rotated(graph::GraphBuilder &builder, graph::ValueId x, graph::ValueId positions,
                       const Rotation &rotation);

}  // namespace tutti::impl::nn

#endif  // TUTTI_NN_LAYERS_POSITIONS_H_
