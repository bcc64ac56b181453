// SPDX-License-Identifier: Apache-2.0
//
// The last map of a pipeline as a graph that a device runs: ops on images, which exist in routine form alone, become
// ops that backends compile, and what random ones draw becomes inputs that the host fills. Both take the same numbers
// in the same order, so results of image ops are those of the Routine bit for bit.
//
//   map            image u8[batch, 40, 40, 3] -> random_crop -> normalize_image -> image f32[batch, 32, 32, 3]
//   device graph   image, draw/0 i32[batch] (where each row's window begins) -> gather -> cast, mul, add -> image
//
// Every row is computed on its own, so a device may get any part of the rows. Ops that mix rows (mixup, cutmix) take
// what their row is mixed with from inputs of their own: each input and draw comes once more, for the partners.
//
// Threads: values and pure functions.
#ifndef TUTTI_DATA_CALL_DEVICE_GRAPH_H_
#define TUTTI_DATA_CALL_DEVICE_GRAPH_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/random/philox.h"
#include "base/status.h"
#include "data/dataset/dataset.h"
#include "data/element/element.h"
#include "data/graph/graph_plan.h"
#include "data/graph/graph_runner.h"
#include "graph/graph.h"

namespace tutti::impl::data {

/// What one random op draws for each row.
struct RowDraw {
  /// Where a row is: in the batch, of so many rows, and among those that a device gets.
  struct Place {
    int64_t row = 0;
    int64_t rows = 1;
    int64_t local_row = 0;
  };
  tensor::DType dtype = tensor::DType::i32;
  int64_t values = 1;  ///< per row
  int64_t stream = 0;  ///< key of the random sequence
  /// Writes the values of one row; `random` begins with its sequence.
  std::function<void(base::RandomStream random, const Place &place, void *to)> fill;

  int64_t row_bytes() const { return values * static_cast<int64_t>(tensor::size_bytes(dtype)); }
};

struct DeviceGraph {
  struct Input {
    std::string name;
    int32_t component = -1;   ///< of the elements before the map, or
    int32_t draw = -1;        ///< position in `draws`
    bool of_partner = false;  ///< of the row that each row is mixed with
  };
  struct Result {
    std::string name;
    int32_t component = -1;  ///< of the elements behind the map
  };
  graph::SealedGraph graph;  ///< "batch" is its only symbol, and every input and result begins with it
  std::vector<Input> inputs;
  std::vector<Result> results;
  std::vector<RowDraw> draws;
  /// Key of the sequence that says how far partners are away, where rows are mixed.
  std::optional<int64_t> mixing;

  /// Of the rows of a batch: row i is mixed with row (i + rotation) % rows. `scalars` as for the whole batch.
  int64_t rotation(const GraphScalars &scalars) const;
  /// Fills a draw for rows [begin, end) of the batch; those that they are mixed with where `rotation` is not 0.
  static void fill(const RowDraw &draw, const GraphScalars &scalars, int64_t begin, int64_t end, int64_t rotation,
                   void *to);
};

/// The map that is the last to compute in the pipeline and asks for devices (parameter on_device); null when there is
/// none. Behind it only prefetch and options may stand.
const Dataset *trailing_device_map(const Dataset &dataset);

/// The graph for the components of the map's elements that `wanted` says. UNIMPLEMENTED with the reason where a device
/// cannot do what the map does: it says which node, or what of the elements.
base::Result<DeviceGraph> make_device_graph(const Dataset &map, const std::vector<int32_t> &wanted);

/// For people: that a map runs on the host, and why.
std::string refusal_of_device_map(const base::Status &status);

/// Why maps that ask for devices do not get them, one text for each.
std::vector<std::string> refused_device_maps(const Dataset &dataset);

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_CALL_DEVICE_GRAPH_H_
