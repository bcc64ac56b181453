// SPDX-License-Identifier: Apache-2.0
//
// What a prediction gives: named tensors with one row per input row, in input order, all computed from one weight
// version. Owns its memory: valid as long as it lives, whatever happens to the predictor.
//
// Threads: a value; the tensors are shared by reference and read only.
#ifndef TUTTI_ESTIMATOR_PREDICTOR_RESULT_BATCH_H_
#define TUTTI_ESTIMATOR_PREDICTOR_RESULT_BATCH_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tensor/tensor.h"

namespace tutti::impl::estimator::predictor {

struct ResultBatch {
  /// Names of the outputs, shared by all batches of a predictor; tensors[i] belongs to (*names)[i].
  std::shared_ptr<const std::vector<std::string>> names;
  std::vector<tensor::Tensor> tensors;
  int64_t first_row = 0;  // position of the first row in the stream; 0 for a single call
  int64_t row_count = 0;
  int64_t step = 0;  // of the weight version

  /// The tensor of an output; NOT_FOUND with the nearest name.
  base::Result<tensor::Tensor> get(std::string_view output) const;
};

/// All rows of consecutive batches in one. Requires at least one batch; OUT_OF_RANGE when rows do not follow each
/// other.
base::Result<ResultBatch> concatenate(const std::vector<ResultBatch> &batches);

}  // namespace tutti::impl::estimator::predictor

#endif  // TUTTI_ESTIMATOR_PREDICTOR_RESULT_BATCH_H_
