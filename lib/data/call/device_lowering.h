// SPDX-License-Identifier: Apache-2.0
//
// How nodes of a map become nodes of its device graph: what the functions in routine/device_ops.cc work with, one for
// each op that has no program form. Internal to device_graph.cc and routine/device_ops.cc.
//
// Threads: an object belongs to one thread.
#ifndef TUTTI_DATA_CALL_DEVICE_LOWERING_H_
#define TUTTI_DATA_CALL_DEVICE_LOWERING_H_

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "data/call/device_graph.h"
#include "graph/builder.h"
#include "graph/clone.h"

namespace tutti::impl::data {

/// Height, width and channels of images [batch, height, width, channels].
struct ImageDims {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;
};

class DeviceLowering {
 public:
  using Values = std::vector<graph::ValueId>;
  /// Whose values: those of the rows, or of the rows that they are mixed with.
  enum class Side : uint8_t { own = 0, partner = 1 };

  DeviceLowering(const GraphPlan &plan, const ElementSpec &from);
  base::Result<DeviceGraph> make(const std::vector<int32_t> &wanted);

  // For the functions of ops:

  graph::GraphBuilder &builder() { return builder_; }
  /// Input `index` of a node, as a value of the device graph.
  base::Result<graph::ValueId> input(const graph::Node &node, size_t index, Side side);
  /// Constant dims of images behind the batch; UNIMPLEMENTED where they are no such images.
  base::Result<ImageDims> image(const graph::Node &node, graph::ValueId value) const;
  /// An input [batch, values...] that the host draws for a node of this key (0 = its stable id): a scalar per row for
  /// one value.
  graph::ValueId draw(const graph::Node &node, int64_t key, RowDraw draw, Side side);
  /// Says that the node mixes rows.
  base::Status mix(const graph::Node &node, int64_t key);
  /// Most rows that a device gets at once.
  int64_t most_rows() const { return from_.batch_size; }

 private:
  base::Status lower(graph::ValueId value, Side side);
  base::Status lower_node(const graph::Node &node, Side side);
  base::Status check_program_node(const graph::Node &node, Side side) const;
  base::Result<graph::ValueId> make_input(const graph::Node &node, Side side);
  graph::NodeCloner &cloner(Side side) { return cloners_[static_cast<size_t>(side)]; }

  const GraphPlan &plan_;
  const ElementSpec &from_;
  graph::GraphBuilder builder_;
  std::array<graph::NodeCloner, 2> cloners_;
  DeviceGraph made_;
};

/// Adds what a node of an op in routine form is on a device; the node's outputs.
using DeviceOp = base::Result<DeviceLowering::Values> (*)(DeviceLowering &lowering, const graph::Node &node,
                                                          DeviceLowering::Side side);
/// Null for ops that have no such form.
DeviceOp find_device_op(std::string_view op);

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_CALL_DEVICE_LOWERING_H_
