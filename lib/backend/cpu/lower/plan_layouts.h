// SPDX-License-Identifier: Apache-2.0
//
// Layouts of state entries: kernels of convolutions lie as their forward pass wants them. This is also the one place
// where convolutions are timed (level `fast`), since it comes before anybody waits for an answer: compiling a graph
// later only looks the times up.
#ifndef TUTTI_BACKEND_CPU_LOWER_PLAN_LAYOUTS_H_
#define TUTTI_BACKEND_CPU_LOWER_PLAN_LAYOUTS_H_

#include <tutti/plugin/backend.h>

#include <string>

#include "backend/cpu/convolution/convolution_times.h"
#include "backend/plan_cache.h"
#include "base/status.h"

namespace tutti::impl::backend::cpu {

/// The text of tutti_layout_table.plan. `log` gets a line when the cache is of no use.
base::Result<std::string> plan_layouts(const tutti_compile_request &request, const PlanCache &cache,
                                       const ConvolutionTimes::Log &log);

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_LOWER_PLAN_LAYOUTS_H_
