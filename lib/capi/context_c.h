// SPDX-License-Identifier: Apache-2.0
//
// Contexts behind handles: backends with their devices, the log, and the services that graphs of datasets need. A
// context may be a view of another one with a default strategy (tutti_strategy_get_context).
#ifndef TUTTI_CAPI_CONTEXT_C_H_
#define TUTTI_CAPI_CONTEXT_C_H_

#include <tutti/context.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/log.h"
#include "base/trace.h"
#include "capi/handles.h"
#include "capi/options_c.h"
#include "data/file/file_system.h"
#include "data/graph/graph_runner.h"
#include "distribute/strategy/strategy.h"

namespace tutti::impl::capi {

/// The recording of one context; kept between recordings.
struct Profile {
  const Ref<base::Tracer> tracer = base::make_ref<base::Tracer>(size_t{1} << 16);
  std::mutex mutex;
  // Guarded by mutex:
  bool is_running = false;
  std::string trace_path, report;
};

/// What contexts share with the views of them: everything but the default strategy.
struct ContextCore {
  /// Of all its backends, in the order in which these were named; as many as device_names.
  std::vector<distribute::DeviceChoice> devices;
  /// Runs initializers and what the backends of the devices cannot.
  backend::BackendRef reference;
  Ref<base::Logger> logger;
  std::shared_ptr<data::GraphRunner> graph_runner;
  /// Those of paths with a scheme.
  Ref<data::FileSystems> file_systems = base::make_ref<data::FileSystems>();
  const std::unique_ptr<Profile> profile = std::make_unique<Profile>();
  int32_t threads = 1;
  std::vector<std::string> device_names;
  std::vector<std::string> device_descriptions;  ///< JSON; with what describe_libraries() says when `has_libraries`
  std::once_flag has_libraries;
};

class ContextObject : public base::Object {
 public:
  explicit ContextObject(std::shared_ptr<ContextCore> core, distribute::StrategyRef strategy = nullptr)
      : core_(std::move(core)), strategy_(std::move(strategy)) {}

  const std::shared_ptr<ContextCore> &core() const { return core_; }
  /// The default strategy; null = one device, the first.
  const distribute::StrategyRef &strategy() const { return strategy_; }

 private:
  const std::shared_ptr<ContextCore> core_;
  const distribute::StrategyRef strategy_;
};

extern constinit HandleType<ContextObject> context_handles;

/// What the processes of a job tell each other while their backends find their devices; both empty for a process alone.
struct SharedValues {
  std::function<Status(std::string_view key, std::string_view value)> put;
  std::function<Result<std::string>(std::string_view key, int64_t timeout_ms)> get;
};

/// A context by options of the schema "context".
Result<Ref<ContextObject>> make_context(const ResolvedOptions &options, const SharedValues &shared = {});

/// The context of an argument; NULL = the default one, made on first use.
Result<Ref<ContextObject>> find_context(tutti_context *context);

/// INVALID_ARGUMENT unless both belong together; `what` names the second.
Status check_same_context(const ContextCore &a, const ContextCore &b, std::string_view what);

}  // namespace tutti::impl::capi

#endif  // TUTTI_CAPI_CONTEXT_C_H_
