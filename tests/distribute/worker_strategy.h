// SPDX-License-Identifier: Apache-2.0
//
// The strategy of a worker of a test (worker_processes.h), and what data it has where workers have their own.
#ifndef TUTTI_TESTS_DISTRIBUTE_WORKER_STRATEGY_H_
#define TUTTI_TESTS_DISTRIBUTE_WORKER_STRATEGY_H_

#include <string>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "distribute/strategy/multi_worker_strategy.h"
#include "distribute/training_case.h"
#include "runtime/engine_list.h"
#include "worker_processes.h"

namespace tutti::testing {

namespace base = impl::base;
namespace distribute = impl::distribute;

/// The rows of a worker that has its own: 23 of the first, 9, 0, so that some end first and one has none.
inline std::vector<int64_t> own_rows(int worker) {
  const int64_t counts[] = {23, 9, 0}, begins[] = {0, 23, 32};
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < counts[worker]; ++i)
    rows.push_back(begins[worker] + i);
  return rows;
}

/// On these devices; `timeout_ms`: for the others to come.
inline Result<StrategyRef> worker_strategy_on(const WorkerCall &call, std::vector<distribute::DeviceChoice> devices,
                                              bool own_input, int64_t timeout_ms) {
  TUTTI_ASSIGN(auto cluster, distribute::Cluster::with_leader(call.address, call.workers, call.worker));
  distribute::MultiWorkerOptions options;
  options.open_engine = [] { return impl::runtime::open_engine(getenv("TUTTI_TEST_ENGINE")); };
  options.build_id = impl::backend::build_id();
  options.connect_timeout_ms = timeout_ms;
  options.worker_input = own_input ? distribute::WorkerInput::own : distribute::WorkerInput::whole;
  return distribute::multi_worker(std::move(cluster), std::move(devices), std::move(options));
}

/// With so many devices of the test's backend.
inline Result<StrategyRef> worker_strategy(const WorkerCall &call, int devices, bool own_input, int64_t timeout_ms) {
  TUTTI_ASSIGN(const impl::backend::BackendRef backend, open_test_backend(devices));
  std::vector<distribute::DeviceChoice> chosen;
  for (int32_t i = 0; i < devices; ++i)
    chosen.push_back({backend, i});
  return worker_strategy_on(call, std::move(chosen), own_input, timeout_ms);
}

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_DISTRIBUTE_WORKER_STRATEGY_H_
