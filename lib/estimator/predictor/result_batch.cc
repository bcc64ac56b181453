// SPDX-License-Identifier: Apache-2.0
#include "estimator/predictor/result_batch.h"

#include <cstring>

#include "base/name_suggestions.h"

namespace tutti::impl::estimator::predictor {

using base::Result;
using tensor::Tensor;

namespace {

Result<Tensor> concatenate_output(const std::vector<ResultBatch> &batches, size_t index, int64_t rows) {
  const Tensor &first = batches.front().tensors[index];
  if (first.rank() == 0) return base::internal_error("output ", index, " has no rows");
  TUTTI_ASSIGN(Tensor all, Tensor::allocate(first.dtype(), first.shape().with_rows(rows)));
  auto *to = static_cast<char *>(all.mutable_data());
  for (const ResultBatch &batch : batches) {
    const Tensor &part = batch.tensors[index];
    if (part.dtype() != first.dtype() || !(part.shape().row_shape() == first.shape().row_shape())) {
      return base::invalid_argument("output '", (*batch.names)[index], "' is ", part.describe(), " in rows from ",
                                    batch.first_row, " on and ", first.describe(),
                                    " before: rows of different shapes do not fit into one tensor");
    }
    if (part.size_bytes() > 0) memcpy(to, part.data(), static_cast<size_t>(part.size_bytes()));
    to += part.size_bytes();
  }
  return all;
}

}  // namespace

Result<Tensor> ResultBatch::get(std::string_view output) const {
  for (size_t i = 0; i < names->size(); ++i) {
    if ((*names)[i] == output) return tensors[i];
  }
  return base::not_found("there is no output '", output, "'", base::but_there_are(output, *names));
}

Result<ResultBatch> concatenate(const std::vector<ResultBatch> &batches) {
  if (batches.size() == 1) return batches.front();
  ResultBatch all;
  all.names = batches.front().names;
  all.first_row = batches.front().first_row;
  all.step = batches.front().step;
  for (const ResultBatch &batch : batches) {
    if (batch.first_row != all.first_row + all.row_count) {
      return base::out_of_range("rows from ", batch.first_row, " on do not follow row ", all.first_row + all.row_count);
    }
    all.row_count += batch.row_count;
  }
  for (size_t i = 0; i < all.names->size(); ++i) {
    TUTTI_ASSIGN(Tensor output, concatenate_output(batches, i, all.row_count));
    all.tensors.push_back(std::move(output));
  }
  return all;
}

}  // namespace tutti::impl::estimator::predictor
