// SPDX-License-Identifier: Apache-2.0
//
// Several datasets of equal specs whose elements become one sequence: concatenate, interleave, sample_from.
// Threads: pure functions.
#ifndef TUTTI_DATA_DATASET_DATASET_LIST_H_
#define TUTTI_DATA_DATASET_DATASET_LIST_H_

#include <vector>

#include "base/status.h"
#include "data/dataset/dataset.h"

namespace tutti::impl::data {

/// Equal components and batch sizes; INVALID_ARGUMENT shows both specs.
base::Status check_equal(const ElementSpec &expected, const ElementSpec &got);

struct DatasetList {
  std::vector<DatasetRef> datasets;
  ElementSpec spec;         ///< exact batches only if all have them
  Cardinality cardinality;  ///< of all together
};

/// `first` and the others; INVALID_ARGUMENT when one is missing or the specs differ.
base::Result<DatasetList> list_datasets(const DatasetRef &first, const std::vector<DatasetRef> &others);

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_DATASET_DATASET_LIST_H_
