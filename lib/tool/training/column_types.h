// SPDX-License-Identifier: Apache-2.0
//
// Types of the columns of CSV files, found out from their first rows where a configuration names none.
#ifndef TUTTI_TOOL_TRAINING_COLUMN_TYPES_H_
#define TUTTI_TOOL_TRAINING_COLUMN_TYPES_H_

#include <string>
#include <vector>

#include "tool/config/config_node.h"

namespace tutti::tool {

/// Gives each column that `types` of the source names none for: f32 if the first 1,000 rows have nothing but numbers
/// there, i64 if it is a label and they are whole, else bytes. Of a source that is no CSV file, cannot be opened, or
/// has types for all, nothing changes. Types that are defaults, from another source, are kept for the columns that
/// both have.
void find_column_types(ConfigNode &data);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_TRAINING_COLUMN_TYPES_H_
