// SPDX-License-Identifier: Apache-2.0
//
// Maps of a command line as the graph of a map transform.
//
//   apply_maps(dataset, {parse_map("image = resize(decode_image(image), size=[224, 224])")}, context);
//
// The ops are those of the registry by their names. What stands in a call by position are its inputs: components,
// calls, or numbers, texts and lists of them, which become constants of the type that the other inputs have. What
// stands with a name are attributes. Of an op with several outputs it is the first. As in any map graph of the C
// interface, values have the rows of a batch in front: axes are counted from the end or from 1 on, and shapes begin
// with the word batch, as in reshape(x, dims=[batch, -1]).
#ifndef TUTTI_TOOL_DATASET_MAP_GRAPH_H_
#define TUTTI_TOOL_DATASET_MAP_GRAPH_H_

#include <tutti/tutti.hpp>
#include <vector>

#include "tool/dataset/map_expression.h"

namespace tutti::tool {

/// The dataset behind one map of all statements in their order, with automatic parallelism; each replaces the component
/// it names or adds a feature, and sees what those before it gave. Random ops of several statements draw
/// independently of each other. Throws UsageError that shows the place in the statement.
Dataset apply_maps(const Dataset &dataset, const std::vector<MapStatement> &statements, const Context &context);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_DATASET_MAP_GRAPH_H_
