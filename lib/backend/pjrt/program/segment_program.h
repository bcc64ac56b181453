// SPDX-License-Identifier: Apache-2.0
//
// A lowered graph as programs of StableHLO, one for each segment between external nodes, and what their arguments and
// results are. Constants, inputs and state are read anew by each segment; other values that later segments use are
// results of one and arguments of the others. A state entry that a segment writes is donated to it where it also reads
// it, so that an update is in place.
//
// For several devices a graph is one program, which reduces over them itself.
//
//   TUTTI_ASSIGN(const SegmentedProgram program, SegmentedProgram::emit(lowered, {}));
//   for (const SegmentText &segment : program.segments) compile(segment.module);
#ifndef TUTTI_BACKEND_PJRT_PROGRAM_SEGMENT_PROGRAM_H_
#define TUTTI_BACKEND_PJRT_PROGRAM_SEGMENT_PROGRAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "backend/bounded_integers.h"
#include "backend/executable.h"
#include "backend/lowered_graph.h"
#include "base/status.h"

namespace tutti::impl::backend::pjrt {

/// Where an argument comes from or a result goes.
enum class Slot : int8_t {
  scalars,   ///< the run scalars, i64[TUTTI_RUN_SCALAR_COUNT]
  input,     ///< input `index` of the run
  output,    ///< output `index`
  state,     ///< state entry `index`
  carried,   ///< carried value `index`, between segments of a run
  external,  ///< the operand of external `index`, flat, in the workspace
  fault,     ///< i64[3] of what was wrong in the data, carried between segments, too
};

struct SegmentPort {
  Slot slot = Slot::scalars;
  int32_t index = 0;
};

struct SegmentText {
  std::string module;
  std::vector<SegmentPort> arguments, results;
  /// By argument: it is donated to a result.
  std::vector<char> is_donated;
  bool checks_data = false;  ///< its fault may be new
};

struct SegmentOptions {
  bool may_donate = true;  ///< donation_probe.h
  int32_t replicas = 1;    ///< devices that run it together
};

struct SegmentedProgram {
  std::vector<SegmentText> segments;
  std::vector<ExternalDescription> externals;
  /// What faults are about, by number − 1.
  std::vector<BoundedIntegers> checks;
  int32_t carried_count = 0;
  int64_t workspace_bytes = 0;

  static base::Result<SegmentedProgram> emit(const LoweredGraph &lowered, const SegmentOptions &options);
};

}  // namespace tutti::impl::backend::pjrt

#endif  // TUTTI_BACKEND_PJRT_PROGRAM_SEGMENT_PROGRAM_H_
