// SPDX-License-Identifier: Apache-2.0
//
// What a command line does to examples before they are looked at or written.
#ifndef TUTTI_TOOL_DATASET_PREPARATION_H_
#define TUTTI_TOOL_DATASET_PREPARATION_H_

#include <cstdint>
#include <string>
#include <tutti/tutti.hpp>
#include <vector>

#include "tool/command/command.h"
#include "tool/dataset/map_expression.h"

namespace tutti::tool {

struct Preparation {
  std::vector<MapStatement> maps;
  std::vector<std::string> selected;  // NAME or NEW = OLD; none = all components
  int64_t shuffle_buffer = 0;         // 0 = the order of the source
  int64_t seed = 0;                   // of iterators
};

/// Its options, in a section of their own. The preparation lives as long as the command.
void add_preparation_options(Command &command, Preparation &preparation);

/// The dataset shuffled, mapped, and with the components that were selected, which keep their roles. Throws UsageError
/// and tutti::Error.
Dataset prepare(const Dataset &dataset, const Preparation &preparation, const Context &context);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_DATASET_PREPARATION_H_
