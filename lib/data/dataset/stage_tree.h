// SPDX-License-Identifier: Apache-2.0
//
// StageTree: the stages of a walk with what each has counted, from the last one to the sources, and what that says:
// how long each worked and waited, and which of them limits the walk (walk_report.h).
#ifndef TUTTI_DATA_DATASET_STAGE_TREE_H_
#define TUTTI_DATA_DATASET_STAGE_TREE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "data/dataset/stage_counters.h"

namespace tutti::impl::data {

struct StageTree {
  std::string name;
  /// Without counters it is part of the stage before it, or was not reached.
  bool is_counted = false;
  StageSums sums;
  std::vector<StageTree> inputs;  ///< datasets that functions of the stage have made among them

  /// Adds what others of equal names have counted, and those of `room` stages more that have no equal yet.
  void add(const StageTree &other, int64_t &room);
  static void add(std::vector<StageTree> &to, const StageTree &other, int64_t &room);

  /// The stages, the limit and the text of a report.
  base::Json to_json(double elapsed_ms) const;
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_DATASET_STAGE_TREE_H_
