// SPDX-License-Identifier: Apache-2.0
//
// Division of a dataset by elements (division.h). Threads: any.
#ifndef TUTTI_DATA_PIPELINE_ELEMENT_DIVISION_H_
#define TUTTI_DATA_PIPELINE_ELEMENT_DIVISION_H_

#include <cstdint>
#include <string>

#include "base/status.h"
#include "data/dataset/dataset.h"

namespace tutti::impl::data {

struct ElementDivision {
  DatasetRef dataset;
  std::string behind;  ///< name of the last dataset that all workers compute as a whole
};

/// Of a dataset of batches.
base::Result<ElementDivision> divide_elements(const DatasetRef &dataset, int32_t worker, int32_t workers);

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_PIPELINE_ELEMENT_DIVISION_H_
