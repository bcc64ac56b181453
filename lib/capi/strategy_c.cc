// SPDX-License-Identifier: Apache-2.0
#include "capi/strategy_c.h"

#include <algorithm>

#include "base/text.h"
#include "capi/guard.h"
#include "capi/options_c.h"
#include "distribute/strategy/multi_worker_strategy.h"
#include "runtime/engine_list.h"

namespace tutti::impl::capi {

constinit HandleType<StrategyObject> strategy_handles{"strategy"};

StrategyObject::StrategyObject(std::shared_ptr<ContextCore> core, distribute::StrategyRef strategy)
    : core_(std::move(core)), strategy_(std::move(strategy)) {
  for (const distribute::DeviceChoice &device : strategy_->devices()) {
    const auto found = std::ranges::find_if(core_->devices, [&](const distribute::DeviceChoice &of_context) {
      return of_context.backend == device.backend && of_context.index == device.index;
    });
    device_names_.push_back(core_->device_names[static_cast<size_t>(found - core_->devices.begin())]);
  }
}

Result<void *> StrategyObject::context() {
  const std::lock_guard lock(mutex_);
  if (context_.get() == nullptr)
    TUTTI_TRY(context_.set(base::make_ref<ContextObject>(core_, strategy_), context_handles));
  return context_.get();
}

Result<distribute::StrategyRef> choose_strategy(const ContextObject &context, const tutti_strategy *strategy) {
  if (strategy == nullptr) {
    if (context.strategy() != nullptr) return context.strategy();
    return distribute::Strategy::one_device(context.core()->devices.front());
  }
  TUTTI_ASSIGN(const Ref<StrategyObject> object, find(strategy, strategy_handles, "strategy"));
  TUTTI_TRY(check_same_context(*context.core(), *object->core(), "strategy"));
  return object->strategy();
}

Result<distribute::StrategyRef> strategy_over_gpus(const ContextObject &context, int64_t count) {
  if (context.strategy() != nullptr)
    return base::invalid_argument("num_gpus is ", count, ", but the context is the scope of a strategy: set only one");
  const ContextCore &core = *context.core();
  std::vector<distribute::DeviceChoice> gpus;
  std::ranges::copy_if(core.devices, std::back_inserter(gpus),
                       [](const distribute::DeviceChoice &device) { return !device.backend->has_host_memory(); });
  if (count > static_cast<int64_t>(gpus.size())) {
    return base::invalid_argument("num_gpus is ", count, ", but the context has ", gpus.size(),
                                  gpus.size() == 1 ? " GPU" : " GPUs", "; its devices are ",
                                  base::join(core.device_names, ", "));
  }
  gpus.resize(static_cast<size_t>(count));
  return distribute::Strategy::mirrored(std::move(gpus));
}

namespace {

Result<distribute::DeviceChoice> find_device(const ContextCore &core, const char *name) {
  if (name == nullptr) return base::invalid_argument("a device name is NULL");
  for (size_t i = 0; i < core.device_names.size(); ++i) {
    if (core.device_names[i] == name) return core.devices[i];
  }
  return base::not_found("no device ", base::quoted(name), "; the context has ", base::join(core.device_names, ", "));
}

Status emit_strategy(const ContextObject &context, distribute::StrategyRef strategy, tutti_strategy **out) {
  return emit(base::make_ref<StrategyObject>(context.core(), std::move(strategy)), strategy_handles, out);
}

/// The devices of a list, or all.
Result<std::vector<distribute::DeviceChoice>> listed_devices(const ContextCore &core, const std::string &list) {
  if (list.empty()) return core.devices;
  std::vector<distribute::DeviceChoice> chosen;
  for (const std::string &part : base::split(list, ',')) {
    TUTTI_ASSIGN(distribute::DeviceChoice device, find_device(core, std::string(base::trim(part)).c_str()));
    chosen.push_back(std::move(device));
  }
  return chosen;
}

Result<distribute::Cluster> listed_workers(const ResolvedOptions &options) {
  std::vector<std::string> addresses;
  for (const std::string &part : base::split(options.text("workers"), ','))
    addresses.emplace_back(base::trim(part));
  if (options.text("workers").empty())
    return base::invalid_argument("the option workers is empty; expected the address of each worker");
  return distribute::Cluster::make(std::move(addresses), static_cast<int32_t>(options.i64("worker")));
}

Result<distribute::Cluster> workers_from_environment(const ResolvedOptions &options) {
  for (const char *key : {"workers", "worker"}) {
    if (options.was_set(key))
      return base::invalid_argument("the option ", key, " must not be set where the environment lists the workers");
  }
  return distribute::Cluster::from_environment();
}

Status create_multi_worker(tutti_context *context, const tutti_options *options,
                           Result<distribute::Cluster> (*find_workers)(const ResolvedOptions &), tutti_strategy **out) {
  TUTTI_ASSIGN(const Ref<ContextObject> owner, find_context(context));
  TUTTI_ASSIGN(const ResolvedOptions resolved, resolve(options, "cluster"));
  TUTTI_ASSIGN(auto devices, listed_devices(*owner->core(), resolved.text("devices")));
  TUTTI_ASSIGN(distribute::Cluster cluster, find_workers(resolved));
  distribute::MultiWorkerOptions with;
  with.open_engine = [] { return runtime::open_engine("gloo"); };
  with.build_id = backend::build_id();
  with.connect_timeout_ms = resolved.i64("connect_timeout_ms");
  with.job_secret = resolved.text("job_secret");
  if (with.job_secret.empty()) with.job_secret = distribute::job_secret_from_environment();
  with.warn = [logger = owner->core()->logger](const std::string &line) { logger->warning(line); };
  with.divides_input = resolved.text("worker_input") == "own";
  TUTTI_ASSIGN(auto strategy, distribute::multi_worker(std::move(cluster), std::move(devices), std::move(with)));
  return emit_strategy(*owner, std::move(strategy), out);
}

}  // namespace
}  // namespace tutti::impl::capi

using namespace tutti::impl;
using namespace tutti::impl::capi;

int32_t tutti_strategy_create_one_device(tutti_context *context, const char *device, tutti_strategy **out,
                                         tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    TUTTI_ASSIGN(const Ref<ContextObject> owner, find_context(context));
    distribute::DeviceChoice chosen = owner->core()->devices.front();
    if (device != nullptr) {
      TUTTI_ASSIGN(chosen, find_device(*owner->core(), device));
    }
    TUTTI_ASSIGN(distribute::StrategyRef strategy, distribute::Strategy::one_device(std::move(chosen)));
    return emit_strategy(*owner, std::move(strategy), out);
  });
}

int32_t tutti_strategy_create_mirrored(tutti_context *context, const char *const *devices, int64_t count,
                                       tutti_strategy **out, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    TUTTI_ASSIGN(const Ref<ContextObject> owner, find_context(context));
    if (count < 0) return base::invalid_argument("argument 'count' must be 0 or more, got ", count);
    if (count > 0) TUTTI_TRY(require(devices, "devices"));
    std::vector<distribute::DeviceChoice> chosen;
    if (count == 0) chosen = owner->core()->devices;
    for (int64_t i = 0; i < count; ++i) {
      TUTTI_ASSIGN(distribute::DeviceChoice device, find_device(*owner->core(), devices[i]));
      chosen.push_back(std::move(device));
    }
    TUTTI_ASSIGN(distribute::StrategyRef strategy, distribute::Strategy::mirrored(std::move(chosen)));
    return emit_strategy(*owner, std::move(strategy), out);
  });
}

int32_t tutti_strategy_create_multi_worker(tutti_context *context, const tutti_options *options, tutti_strategy **out,
                                           tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    return create_multi_worker(context, options, listed_workers, out);
  });
}

int32_t tutti_strategy_create_multi_worker_from_environment(tutti_context *context, const tutti_options *options,
                                                            tutti_strategy **out, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    return create_multi_worker(context, options, workers_from_environment, out);
  });
}

TUTTI_DEFINE_COUNTING(strategy, strategy_handles)

int64_t tutti_strategy_get_replica_count(const tutti_strategy *strategy) {
  const Ref<StrategyObject> object = peek(strategy, strategy_handles);
  return object ? object->strategy()->replicas_in_all() : -1;
}

int64_t tutti_strategy_get_worker_count(const tutti_strategy *strategy) {
  const Ref<StrategyObject> object = peek(strategy, strategy_handles);
  return object ? object->strategy()->workers().count : -1;
}

int64_t tutti_strategy_get_worker_index(const tutti_strategy *strategy) {
  const Ref<StrategyObject> object = peek(strategy, strategy_handles);
  return object ? object->strategy()->workers().index : -1;
}

int64_t tutti_strategy_get_input_pipeline_count(const tutti_strategy *strategy) {
  const Ref<StrategyObject> object = peek(strategy, strategy_handles);
  return object ? object->strategy()->input_pipeline().count : -1;
}

int64_t tutti_strategy_get_input_pipeline_id(const tutti_strategy *strategy) {
  const Ref<StrategyObject> object = peek(strategy, strategy_handles);
  return object ? object->strategy()->input_pipeline().id : -1;
}

const char *tutti_strategy_get_device(const tutti_strategy *strategy, int64_t replica) {
  const Ref<StrategyObject> object = peek(strategy, strategy_handles);
  if (!object || replica < 0 || replica >= static_cast<int64_t>(object->device_names().size())) return nullptr;
  return object->device_names()[static_cast<size_t>(replica)].c_str();
}

tutti_context *tutti_strategy_get_context(tutti_strategy *strategy) {
  return guard_value<tutti_context *>(nullptr, [&]() -> tutti_context * {
    const Ref<StrategyObject> object = peek_shared(strategy, strategy_handles);
    if (!object) return nullptr;
    const Result<void *> handle = object->context();
    return handle.ok() ? static_cast<tutti_context *>(*handle) : nullptr;
  });
}
