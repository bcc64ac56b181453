// SPDX-License-Identifier: Apache-2.0
//
// How a predict graph is computed on a device, for people: every kernel with its layout and bytes, and its time when
// asked. Compiles a program of its own, which is thrown away. Internal to this folder. Threads: the device's own.
#ifndef TUTTI_DISTRIBUTE_PREDICT_PREDICT_PLAN_H_
#define TUTTI_DISTRIBUTE_PREDICT_PREDICT_PLAN_H_

#include <cstdint>

#include "base/json.h"
#include "base/status.h"
#include "distribute/program/program_cache.h"
#include "distribute/weights/loaded_weights.h"
#include "graph/dim.h"

namespace tutti::impl::distribute {

/// {"workspace_bytes", "seconds" (of all), "kernels": [{"node", "op", "kernel", "layout", "bytes", "seconds"}, ...]},
/// the seconds, of the fastest of `timed_runs` runs over zeros, only when that is not 0.
base::Result<base::Json> describe_predict_plan(const GraphSource &source, const graph::SymbolBindings &bindings,
                                               LoadedWeights &loaded, int64_t rows, int64_t timed_runs);

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_PREDICT_PREDICT_PLAN_H_
