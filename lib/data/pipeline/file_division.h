// SPDX-License-Identifier: Apache-2.0
//
// Division of a dataset by files (division.h). Files are those of sources that read lists of them, also of several such
// sources that interleave or concatenate, and the elements of which flat_map or interleave_callback make datasets,
// where they are paths. Threads: any.
#ifndef TUTTI_DATA_PIPELINE_FILE_DIVISION_H_
#define TUTTI_DATA_PIPELINE_FILE_DIVISION_H_

#include <cstdint>
#include <string>

#include "base/status.h"
#include "data/dataset/dataset.h"

namespace tutti::impl::data {

struct FileDivision {
  DatasetRef dataset;   ///< null: it cannot be divided by files,
  std::string refusal;  ///< for this reason
  int64_t own = 0, all = 0;
};

/// Of a dataset of batches. Errors are those of making it again.
base::Result<FileDivision> divide_files(const DatasetRef &dataset, int32_t worker, int32_t workers);

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_PIPELINE_FILE_DIVISION_H_
