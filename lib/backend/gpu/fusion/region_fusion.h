// SPDX-License-Identifier: Apache-2.0
//
// Multi-output fusion in regions: which nodes of a region are one launch, and in what order launches come. Elementwise
// nodes over the same rows and columns are one, however many of their results are stored; slices of columns, reshapes
// and broadcasts are ways to read, and concat is a way to store. An operation on all gates of a recurrent layer that
// slices alone read is computed for each slice. Everything else is a call of its own.
//
//   const RegionPlan plan = plan_region(lowered, region, places);
//   for (const RegionStep &step : plan.steps)      // plan.groups[step.group], or the node step.node
//
// A region is small, and what it costs is the number of its launches: a loop repeats them.
#ifndef TUTTI_BACKEND_GPU_FUSION_REGION_FUSION_H_
#define TUTTI_BACKEND_GPU_FUSION_REGION_FUSION_H_

#include <cstdint>
#include <vector>

#include "backend/gpu/device/fused_program.h"
#include "backend/lowered_graph.h"
#include "graph/graph.h"

namespace tutti::impl::backend::gpu {

/// How a loop gives a region its parameters, the states, then elements of the sequences, then what it captures, and
/// takes its results, the states, then what is stacked. Empty for other regions. A pitch counts elements from one row
/// (the last axis) to the next, where a value lies in something wider.
struct LoopPlaces {
  size_t states = 0, sequences = 0;
  std::vector<int64_t> parameter_pitches;  ///< 0: it is dense
  std::vector<int64_t> result_pitches;     ///< of a further place, beside its own memory; 0: there is none

  int64_t of_parameter(size_t index) const { return index < parameter_pitches.size() ? parameter_pitches[index] : 0; }
  int64_t of_result(size_t index) const { return index < result_pitches.size() ? result_pitches[index] : 0; }
};

/// Where an output of a group goes.
struct FusedTarget {
  graph::ValueId value = graph::kNoValue;  ///< to its memory, or
  int32_t result = -1;                     ///< to the further place of the region's result
};

/// Nodes that are one launch.
struct FusedGroup {
  FusedProgram program{};
  std::vector<graph::ValueId> inputs;  ///< by input of the program
  std::vector<FusedTarget> outputs;    ///< by output
  int32_t nodes = 0;
};

struct RegionStep {
  graph::NodeId node = graph::kNoNode;  ///< or
  int32_t group = -1;
};

struct RegionPlan {
  std::vector<RegionStep> steps;
  std::vector<FusedGroup> groups;
  /// By result: is it stored in its further place? Else whoever wants it there copies it.
  std::vector<char> is_placed;
  /// By parameter: is it read as if it were dense? So it is where someone wants it so, whatever its pitch.
  std::vector<char> is_dense;
};

RegionPlan plan_region(const LoweredGraph &lowered, const graph::Region &region, const LoopPlaces &places);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_FUSION_REGION_FUSION_H_
