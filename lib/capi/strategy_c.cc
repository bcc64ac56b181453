// SPDX-License-Identifier: Apache-2.0
#include "capi/strategy_c.h"

#include <algorithm>

#include "base/text.h"
#include "capi/cluster_resolver_c.h"
#include "capi/guard.h"
#include "capi/options_c.h"
#include "distribute/strategy/auto_choice.h"
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

distribute::InputPipeline input_of_user(const distribute::Strategy &strategy) {
  return strategy.worker_input() == distribute::WorkerInput::own ? strategy.input_pipeline()
                                                                 : distribute::InputPipeline();
}

Result<distribute::StrategyRef> automatic_strategy(const ContextCore &core, int64_t batch_size,
                                                   int64_t logical_replicas) {
  TUTTI_ASSIGN(distribute::AutoChoice choice,
               distribute::choose_devices(core.devices, {core.threads, batch_size, logical_replicas}));
  core.logger->info("devices chosen: ", choice.reason);
  return distribute::Strategy::mirrored(std::move(choice.devices), choice.threads_per_replica);
}

Result<distribute::StrategyRef> choose_strategy(const ContextObject &context, const tutti_strategy *strategy,
                                                int64_t logical_replicas) {
  if (strategy == nullptr) {
    if (context.strategy() != nullptr) return context.strategy();
    return automatic_strategy(*context.core(), 0, logical_replicas);
  }
  TUTTI_ASSIGN(const Ref<StrategyObject> object, find(strategy, strategy_handles, "strategy"));
  TUTTI_TRY(check_same_context(*context.core(), *object->core(), "strategy"));
  if (context.strategy() != nullptr && context.strategy() != object->strategy())
    return base::invalid_argument(
        "argument 'strategy' is another strategy than that of the context, which is the scope of one: pass NULL, or a ",
        "context that is no scope");
  return object->strategy();
}

Result<distribute::StrategyRef> strategy_over_gpus(const ContextObject &context, int64_t count) {
  if (context.strategy() != nullptr)
    return base::invalid_argument("num_gpus is ", count, ", but the context is the scope of a strategy: set only one");
  const ContextCore &core = *context.core();
  std::vector<distribute::DeviceChoice> gpus = distribute::devices_with_own_memory(core.devices);
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

/// Those of the list; `count` 0: `all`.
Result<std::vector<distribute::DeviceChoice>> find_devices(const ContextCore &core, const char *const *names,
                                                           int64_t count,
                                                           const std::vector<distribute::DeviceChoice> &all) {
  if (count < 0) return base::invalid_argument("argument 'count' must be 0 or more, got ", count);
  if (count == 0) return all;
  TUTTI_TRY(require(names, "devices"));
  std::vector<distribute::DeviceChoice> chosen;
  for (int64_t i = 0; i < count; ++i) {
    TUTTI_ASSIGN(distribute::DeviceChoice device, find_device(core, names[i]));
    chosen.push_back(std::move(device));
  }
  return chosen;
}

Status emit_strategy(const ContextObject &context, distribute::StrategyRef strategy, tutti_strategy **out) {
  if (context.strategy() != nullptr)
    return base::failed_precondition(
        "the context is the scope of a strategy, in which no other one can be created: use the context that the ",
        "strategy was created with");
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
  if (options.text("workers").empty())
    return base::invalid_argument("the option workers is empty; expected the address of each worker");
  return cluster_of_list(options.text("workers"), options.i64("worker"));
}

Result<distribute::Cluster> workers_from_environment(const ResolvedOptions &options) {
  TUTTI_TRY(check_no_workers(options, "the environment"));
  return distribute::Cluster::from_environment();
}

distribute::WorkerInput worker_input(std::string_view text) {
  using distribute::WorkerInput;
  for (const WorkerInput input : {WorkerInput::own, WorkerInput::automatic, WorkerInput::file, WorkerInput::data}) {
    if (text == name(input)) return input;
  }
  return WorkerInput::whole;
}

/// `place`: where the workers have met before; null = at a place of the strategy's own.
Result<distribute::StrategyRef> make_multi_worker(const ContextCore &core, const ResolvedOptions &options,
                                                  distribute::Cluster cluster,
                                                  std::shared_ptr<distribute::MeetingPoint> place) {
  TUTTI_ASSIGN(auto devices, listed_devices(core, options.text("devices")));
  distribute::MultiWorkerOptions with{meeting_options(options, core.logger), {}, {}, distribute::WorkerInput::whole};
  with.open_engine = [] { return runtime::open_engine("gloo"); };
  with.place = std::move(place);
  with.worker_input = worker_input(options.text("worker_input"));
  return distribute::multi_worker(std::move(cluster), std::move(devices), std::move(with));
}

Status create_multi_worker(tutti_context *context, const tutti_options *options,
                           Result<distribute::Cluster> (*find_workers)(const ResolvedOptions &), tutti_strategy **out) {
  TUTTI_ASSIGN(const Ref<ContextObject> owner, find_context(context));
  TUTTI_ASSIGN(const ResolvedOptions resolved, resolve(options, "cluster"));
  TUTTI_ASSIGN(distribute::Cluster cluster, find_workers(resolved));
  TUTTI_ASSIGN(auto strategy, make_multi_worker(*owner->core(), resolved, std::move(cluster), nullptr));
  return emit_strategy(*owner, std::move(strategy), out);
}

/// Where the workers of a resolver have met; null where they have not.
Result<std::shared_ptr<distribute::MeetingPoint>> place_of(const ClusterResolverObject &resolver,
                                                           const ResolvedOptions &options) {
  const std::shared_ptr<const Connection> connected = resolver.connection();
  if (connected == nullptr) return std::shared_ptr<distribute::MeetingPoint>();
  for (const char *key : {"connect_timeout_ms", "job_secret"}) {
    if (options.was_set(key))
      return base::invalid_argument("the option ", key, " was given to tutti_cluster_resolver_connect already");
  }
  return connected->place;
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

int32_t tutti_strategy_create_auto(tutti_context *context, int64_t batch_size, tutti_strategy **out,
                                   tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    TUTTI_ASSIGN(const Ref<ContextObject> owner, find_context(context));
    if (batch_size < 0) return base::invalid_argument("argument 'batch_size' must be 0 or more, got ", batch_size);
    TUTTI_ASSIGN(distribute::StrategyRef strategy, automatic_strategy(*owner->core(), batch_size, 0));
    return emit_strategy(*owner, std::move(strategy), out);
  });
}

int32_t tutti_strategy_create_mirrored(tutti_context *context, const char *const *devices, int64_t count,
                                       tutti_strategy **out, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    TUTTI_ASSIGN(const Ref<ContextObject> owner, find_context(context));
    const ContextCore &core = *owner->core();
    TUTTI_ASSIGN(auto chosen, find_devices(core, devices, count, core.devices));
    TUTTI_ASSIGN(distribute::StrategyRef strategy, distribute::Strategy::mirrored(std::move(chosen)));
    return emit_strategy(*owner, std::move(strategy), out);
  });
}

int32_t tutti_strategy_create_central_storage(tutti_context *context, const char *storage, const char *const *devices,
                                              int64_t count, tutti_strategy **out, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    TUTTI_ASSIGN(const Ref<ContextObject> owner, find_context(context));
    const ContextCore &core = *owner->core();
    const auto gpus = distribute::devices_with_own_memory(core.devices);
    TUTTI_ASSIGN(auto chosen, find_devices(core, devices, count, gpus.empty() ? core.devices : gpus));
    distribute::DeviceChoice place = chosen.front();
    if (storage != nullptr) {
      TUTTI_ASSIGN(place, find_device(core, storage));
    }
    TUTTI_ASSIGN(distribute::StrategyRef strategy,
                 distribute::Strategy::central_storage(std::move(place), std::move(chosen)));
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

int32_t tutti_strategy_create_multi_worker_from_resolver(tutti_context *context, tutti_cluster_resolver *resolver,
                                                         const tutti_options *options, tutti_strategy **out,
                                                         tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    TUTTI_ASSIGN(const Ref<ContextObject> owner, find_context(context));
    TUTTI_ASSIGN(const Ref<ClusterResolverObject> object, find(resolver, cluster_resolver_handles, "resolver"));
    TUTTI_ASSIGN(const ResolvedOptions resolved, resolve(options, "cluster"));
    TUTTI_TRY(check_no_workers(resolved, "the cluster resolver"));
    TUTTI_ASSIGN(auto place, place_of(*object, resolved));
    TUTTI_ASSIGN(auto strategy, make_multi_worker(*owner->core(), resolved, object->cluster(), std::move(place)));
    return emit_strategy(*owner, std::move(strategy), out);
  });
}

int32_t tutti_strategy_create_tpu(tutti_cluster_resolver *resolver, tutti_strategy **out, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    TUTTI_ASSIGN(const Ref<ClusterResolverObject> object, find(resolver, cluster_resolver_handles, "resolver"));
    const std::shared_ptr<const Connection> connected = object->connection();
    if (connected == nullptr)
      return base::failed_precondition("the workers are not connected: call tutti_cluster_resolver_connect first");
    const Ref<ContextObject> owner = object->context();
    if (!owner)
      return base::failed_precondition("the devices are not initialized: call tutti_cluster_resolver_initialize first");
    if (object->cluster().worker_count() > 1) {
      TUTTI_ASSIGN(auto strategy,
                   make_multi_worker(*owner->core(), connected->options, object->cluster(), connected->place));
      return emit_strategy(*owner, std::move(strategy), out);
    }
    TUTTI_ASSIGN(auto devices, listed_devices(*owner->core(), connected->options.text("devices")));
    TUTTI_ASSIGN(auto strategy, distribute::Strategy::mirrored(std::move(devices)));
    return emit_strategy(*owner, std::move(strategy), out);
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
  return object ? input_of_user(*object->strategy()).count : -1;
}

int64_t tutti_strategy_get_input_pipeline_id(const tutti_strategy *strategy) {
  const Ref<StrategyObject> object = peek(strategy, strategy_handles);
  return object ? input_of_user(*object->strategy()).id : -1;
}

int64_t tutti_strategy_get_per_replica_batch_size(const tutti_strategy *strategy, int64_t global_batch_size) {
  const Ref<StrategyObject> object = peek(strategy, strategy_handles);
  if (!object || global_batch_size < 0) return -1;
  const int64_t replicas = object->strategy()->replicas_in_all();
  return global_batch_size / replicas + (global_batch_size % replicas != 0 ? 1 : 0);
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
