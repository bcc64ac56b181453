// SPDX-License-Identifier: Apache-2.0
//
// A contributor, one logical replica: what a replica has of it. A value; internal to this folder.
#ifndef TUTTI_DISTRIBUTE_TRAIN_CONTRIBUTOR_H_
#define TUTTI_DISTRIBUTE_TRAIN_CONTRIBUTOR_H_

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backend/executable.h"
#include "distribute/input/input_binding.h"
#include "distribute/plan/kept_outputs.h"
#include "distribute/program/program_cache.h"

namespace tutti::impl::distribute {

/// A key of no rows: what else it says is as it was, or 1.
inline void clear_key(size_t symbols, ShapeKey &key) {
  key.resize(symbols, 1);
  if (!key.empty()) key.front() = 0;
}

/// Its partial sums, its programs and what they run with.
struct Contributor {
  int32_t index = 0;                              // among all contributors
  backend::Buffer partials, report, accumulated;  // the last one empty where nothing is accumulated apart
  std::unique_ptr<ProgramCache> accumulate_programs, finish_programs;
  ShapeKey key, finish_key;
  const GraphSource *variant = nullptr;        // of what it runs in a step, the first one (TrainProgramSet)
  std::array<BoundProgram *, 3> accumulate{};  // by position
  BoundProgram *current = nullptr;             // the one of this micro-batch
  BoundProgram *finish = nullptr;
  int64_t binding = -1;  // number of the binding that `components` were found for
  std::vector<int32_t> components;
  // What each micro-batch runs with: the stream may not have passed one when the next begins.
  struct Arguments {
    std::vector<const void *> inputs;
    std::vector<void *> results;
    backend::RunScalars scalars;
  };
  std::vector<Arguments> arguments;
  RowRange rows;
  std::unique_ptr<KeptOutputs> outputs;  // null unless they, or rows of summaries, are kept
  // Shared factors: which of them the results of accumulate are (-1: an output); inputs of finish, and the components
  // of those that are features (else -1).
  std::vector<int32_t> results;
  std::vector<const void *> finish_inputs;
  std::vector<int32_t> finish_components;
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_TRAIN_CONTRIBUTOR_H_
