// SPDX-License-Identifier: Apache-2.0
//
// Batches of another size: unbatch, then batch. Rows that lie within one old batch go into the new one as a view or by
// one copy (Stage::next_view and next_rows of unbatch).
#include <utility>

#include "data/transform_parameters.h"

namespace tutti::impl::data {

using base::Result;

Result<DatasetRef> apply_rebatch(const DatasetRef &input, const RebatchParameters &parameters,
                                 TransformArguments &arguments) {
  if (!input->spec().is_batched()) {
    return base::invalid_argument("elements are single examples; expected batches (or use batch)");
  }
  TUTTI_ASSIGN(const DatasetRef rows, apply_unbatch(input, {}, arguments));
  return apply_batch(rows, {parameters.batch_size, parameters.drop_remainder}, arguments);
}

}  // namespace tutti::impl::data
