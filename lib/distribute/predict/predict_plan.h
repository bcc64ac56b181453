// SPDX-License-Identifier: Apache-2.0
//
// How a predict graph is computed on devices, for people: every kernel with its layout and bytes, and its time when
// asked. Compiles programs of their own, which are thrown away. Internal to this folder. Threads: any.
#ifndef TUTTI_DISTRIBUTE_PREDICT_PREDICT_PLAN_H_
#define TUTTI_DISTRIBUTE_PREDICT_PREDICT_PLAN_H_

#include <cstdint>
#include <memory>

#include "base/cancel.h"
#include "base/json.h"
#include "base/status.h"
#include "distribute/predict/device_pool.h"
#include "distribute/predict/predict_programs.h"
#include "distribute/predict/predict_weights.h"
#include "graph/model.h"

namespace tutti::impl::distribute {

/// INVALID_ARGUMENT unless `rows` rows of the model can be planned: an error when a feature has another dim that
/// varies.
base::Status check_plan(const graph::Model &model, int64_t rows, int64_t timed_runs);

/// On the first device of each kind: {"step", "rows", "device", "computed_rows", "workspace_bytes", "seconds" (of all),
/// "kernels": [{"node", "op", "kernel", "layout", "bytes", "seconds"}, ...]}, the seconds, of the fastest of
/// `timed_runs` runs over zeros, only when that is not 0. Of the first kind; "others": an array of the further ones.
base::Result<base::Json> describe_predict_plan(const PredictPrograms &programs, DevicePool &pool,
                                               const std::shared_ptr<const LoadedVersion> &version, int64_t rows,
                                               int64_t timed_runs, const base::CancelToken *cancel);

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_PREDICT_PREDICT_PLAN_H_
