// SPDX-License-Identifier: Apache-2.0
//
// A curve of precision and recall over thresholds, as TensorBoard's plug-in pr_curves reads it.
//
// Pure functions.
#ifndef TUTTI_MONITOR_PRECISION_RECALL_H_
#define TUTTI_MONITOR_PRECISION_RECALL_H_

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "monitor/summary.h"
#include "tensor/tensor.h"

namespace tutti::impl::monitor {

/// Of examples with truth values, predictions from 0 to 1, and weights (empty: 1 for each), as many of each: for
/// thresholds i / (thresholds - 1) true positives, false positives, true negatives, false negatives, precision and
/// recall. INVALID_ARGUMENT where the numbers do not fit together, or are out of range.
base::Status add_precision_recall(Summary &summary, std::string_view tag, const tensor::Tensor &labels,
                                  const tensor::Tensor &predictions, const tensor::Tensor &weights, int64_t thresholds);

}  // namespace tutti::impl::monitor

#endif  // TUTTI_MONITOR_PRECISION_RECALL_H_
