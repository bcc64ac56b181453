// SPDX-License-Identifier: Apache-2.0
//
// What an estimator gets from the floors above: who listens, who runs the graphs of input pipelines. Copied; the
// objects behind it are shared and may be used from any thread.
#ifndef TUTTI_ESTIMATOR_ENVIRONMENT_H_
#define TUTTI_ESTIMATOR_ENVIRONMENT_H_

#include <cstdint>
#include <memory>

#include "base/log.h"
#include "base/object.h"
#include "data/graph_runner.h"

namespace tutti::impl::estimator {

struct Environment {
  base::Ref<base::Logger> logger;             // null: nobody listens
  std::shared_ptr<data::GraphRunner> graphs;  // null: pipelines with maps by graph are errors
  int32_t pipeline_threads = 0;               // 0 = the cores of the process
};

}  // namespace tutti::impl::estimator

#endif  // TUTTI_ESTIMATOR_ENVIRONMENT_H_
