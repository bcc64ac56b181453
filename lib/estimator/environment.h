// SPDX-License-Identifier: Apache-2.0
//
// What an estimator gets from the floors above: who listens, who runs the graphs of input pipelines, how many threads
// there are. Copied; the objects behind it are shared and may be used from any thread.
//
// One number bounds what is kept busy at a time by one call that trains, evaluates or predicts: the option `threads` of
// its context, by default the cores that the process may use. The devices come first. Each has the thread that drives
// it, and as many more as `threads_per_replica` says, as long as all devices have them; what is left, at least one
// thread, runs the input pipeline. With more devices than threads each device has one. Threads that only wait are not
// counted: the caller's, the saver's, those that sleep in callbacks of maps.
#ifndef TUTTI_ESTIMATOR_ENVIRONMENT_H_
#define TUTTI_ESTIMATOR_ENVIRONMENT_H_

#include <cstdint>
#include <memory>
#include <string>

#include "base/log.h"
#include "base/object.h"
#include "base/trace.h"
#include "data/graph/graph_runner.h"

namespace tutti::impl::estimator {

struct Environment {
  base::Ref<base::Logger> logger;             // null: nobody listens
  std::shared_ptr<data::GraphRunner> graphs;  // null: pipelines with maps by graph are errors
  int32_t threads = 0;                        // 0 = the cores of the process
  base::Ref<base::Tracer> tracer;             // null: nothing is ever traced
  std::string version{};                      // of the library, for people
};

/// How a call's threads are shared out.
struct ThreadShares {
  int32_t per_device = 1;
  int32_t pipeline = 1;
};
ThreadShares share_threads(const Environment &environment, int32_t devices, int64_t wanted_per_device);

}  // namespace tutti::impl::estimator

#endif  // TUTTI_ESTIMATOR_ENVIRONMENT_H_
