// SPDX-License-Identifier: Apache-2.0
#include "capi/cluster_resolver_c.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "capi/guard.h"
#include "distribute/strategy/multi_worker_strategy.h"
#include "distribute/strategy/tpu_cluster.h"
#include "runtime/tpu_chips.h"

namespace tutti::impl::capi {

constinit HandleType<ClusterResolverObject> cluster_resolver_handles{"cluster_resolver"};

namespace {

/// What the backends of the workers tell each other, by the table of their meeting.
SharedValues values_of(const Connection &connection) {
  if (connection.is_alone()) return {};
  const distribute::GatheredWorkers &workers = connection.workers;
  const int64_t limit_ms = connection.options.i64("connect_timeout_ms");
  return {[workers, limit_ms](std::string_view key, std::string_view value) {
            return workers.table->put(base::concat(workers.key_prefix, "devices/", key), value,
                                      base::Deadline::after_ms(limit_ms), false);
          },
          [workers](std::string_view key, int64_t timeout_ms) {
            return distribute::wait_for_value(workers, base::concat("devices/", key), timeout_ms);
          }};
}

/// What there is in place of a TPU.
std::string other_devices() {
  const Result<Ref<ContextObject>> context = find_context(nullptr);
  if (!context.ok()) return "";
  return base::concat("; the default context has ", base::join((*context)->core()->device_names, ", "));
}

Status no_tpu(std::string_view why) {
  const std::string chips = runtime::describe_tpu_chips();
  return base::unavailable(why, "; this machine has ", chips.empty() ? "no TPU" : chips, other_devices());
}

}  // namespace

Status check_no_workers(const ResolvedOptions &options, std::string_view who) {
  for (const char *key : {"workers", "worker"}) {
    if (options.was_set(key))
      return base::invalid_argument("the option ", key, " must not be set where ", who, " lists the workers");
  }
  return Status();
}

Result<distribute::Cluster> cluster_of_list(std::string_view workers, int64_t worker) {
  std::vector<std::string> addresses;
  for (const std::string &part : base::split(workers, ','))
    addresses.emplace_back(base::trim(part));
  const int64_t index = std::clamp<int64_t>(worker, -1, distribute::Cluster::kMostWorkers);
  return distribute::Cluster::make(std::move(addresses), static_cast<int32_t>(index));
}

distribute::MeetingOptions meeting_options(const ResolvedOptions &options, const Ref<base::Logger> &logger) {
  distribute::MeetingOptions with;
  with.build_id = backend::build_id();
  with.connect_timeout_ms = options.i64("connect_timeout_ms");
  with.job_secret = options.text("job_secret");
  if (with.job_secret.empty()) with.job_secret = distribute::job_secret_from_environment();
  if (logger) with.warn = [logger](const std::string &line) { logger->warning(line); };
  return with;
}

Status ClusterResolverObject::connect(ResolvedOptions options) {
  const std::lock_guard turn(turn_);
  if (connection() != nullptr) return base::failed_precondition("the workers of this cluster resolver are connected");
  TUTTI_TRY(check_no_workers(options, "the cluster resolver"));
  auto made = std::make_shared<Connection>(
      Connection{options, std::make_shared<distribute::MeetingPoint>(cluster_, meeting_options(options, {})), {}});
  if (cluster_.task_type() == distribute::TaskType::evaluator)
    return base::invalid_argument("this process is the evaluator of the cluster, which does not train with the others");
  if (cluster_.worker_count() > 1) {
    TUTTI_ASSIGN(made->workers, made->place->meet(1, nullptr));
  }
  const std::lock_guard lock(mutex_);
  connection_ = std::move(made);
  return Status();
}

namespace {

/// On this worker alone.
Result<Ref<ContextObject>> open_devices(ResolvedOptions options, const Connection &connection) {
  if (const std::string &backend = options.text("backend"); !backend.empty() && backend != "pjrt")
    return base::invalid_argument("option 'backend' is ", base::quoted(backend), ", expected \"pjrt\" for TPUs");
  if (options.text("pjrt_plugin").empty())
    return no_tpu(
        "no library for TPUs is named: set the option pjrt_plugin, or TPU_LIBRARY_PATH and call "
        "tutti_options_set_from_environment");
  options.set("backend", std::string("pjrt"));
  Result<Ref<ContextObject>> made = make_context(options, values_of(connection));
  if (made.code() == base::Code::unavailable) return no_tpu(made.status().message());
  return made;
}

}  // namespace

Status ClusterResolverObject::initialize(ResolvedOptions options) {
  const std::lock_guard turn(turn_);
  const std::shared_ptr<const Connection> connected = connection();
  if (connected == nullptr)
    return base::failed_precondition("the workers are not connected: call tutti_cluster_resolver_connect first");
  if (context()) return base::failed_precondition("the devices of this cluster resolver are initialized");
  Result<Ref<ContextObject>> made = open_devices(std::move(options), *connected);
  if (!connected->is_alone()) {
    // A library that exchanges values needs worker 0 until all are through.
    const std::string what = base::concat("initialization ", ++attempts_);
    TUTTI_TRY(distribute::conclude_together(connected->workers, cluster_.worker_index(), what, made.status(),
                                            connected->options.i64("connect_timeout_ms")));
  }
  TUTTI_TRY(made.status());
  const std::lock_guard lock(mutex_);
  context_ = made.take();
  return Status();
}

std::shared_ptr<const Connection> ClusterResolverObject::connection() const {
  const std::lock_guard lock(mutex_);
  return connection_;
}

Ref<ContextObject> ClusterResolverObject::context() const {
  const std::lock_guard lock(mutex_);
  return context_;
}

Result<void *> ClusterResolverObject::context_handle() {
  const std::lock_guard lock(mutex_);
  if (context_ && context_handle_.get() == nullptr) TUTTI_TRY(context_handle_.set(context_, context_handles));
  return context_handle_.get();
}

namespace {

Status emit_resolver(Result<distribute::Cluster> cluster, tutti_cluster_resolver **out) {
  TUTTI_TRY(cluster.status());
  return emit(base::make_ref<ClusterResolverObject>(cluster.take()), cluster_resolver_handles, out);
}

}  // namespace
}  // namespace tutti::impl::capi

using namespace tutti::impl;
using namespace tutti::impl::capi;

int32_t tutti_cluster_resolver_create_list(const char *workers, int64_t worker, tutti_cluster_resolver **out,
                                           tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    TUTTI_TRY(require(workers, "workers"));
    return emit_resolver(cluster_of_list(workers, worker), out);
  });
}

int32_t tutti_cluster_resolver_create_tf_config(const char *text, tutti_cluster_resolver **out, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    TUTTI_TRY(require(text, "text"));
    return emit_resolver(distribute::Cluster::from_tf_config(text), out);
  });
}

int32_t tutti_cluster_resolver_create_from_environment(const char *launcher, tutti_cluster_resolver **out,
                                                       tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    return emit_resolver(launcher == nullptr || *launcher == '\0'
                             ? distribute::Cluster::from_environment()
                             : distribute::Cluster::from_launcher(launcher, distribute::variables_from_environment()),
                         out);
  });
}

int32_t tutti_cluster_resolver_create_tpu(const char *tpu, const char *metadata, tutti_cluster_resolver **out,
                                          tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    TUTTI_TRY(require(tpu, "tpu"));
    return emit_resolver(distribute::tpu_cluster(tpu, metadata != nullptr ? metadata : ""), out);
  });
}

TUTTI_DEFINE_COUNTING(cluster_resolver, cluster_resolver_handles)

int64_t tutti_cluster_resolver_get_worker_count(const tutti_cluster_resolver *resolver) {
  const Ref<ClusterResolverObject> object = peek(resolver, cluster_resolver_handles);
  return object ? object->cluster().worker_count() : -1;
}

int64_t tutti_cluster_resolver_get_worker_index(const tutti_cluster_resolver *resolver) {
  const Ref<ClusterResolverObject> object = peek(resolver, cluster_resolver_handles);
  return object ? object->cluster().worker_index() : -1;
}

const char *tutti_cluster_resolver_get_address(const tutti_cluster_resolver *resolver, int64_t worker) {
  const Ref<ClusterResolverObject> object = peek(resolver, cluster_resolver_handles);
  if (!object || worker < 0 || worker >= object->cluster().worker_count()) return nullptr;
  return object->cluster().address(static_cast<int32_t>(worker)).c_str();
}

const char *tutti_cluster_resolver_get_json(const tutti_cluster_resolver *resolver) {
  const Ref<ClusterResolverObject> object = peek(resolver, cluster_resolver_handles);
  return object ? object->json().c_str() : nullptr;
}

int32_t tutti_cluster_resolver_connect(tutti_cluster_resolver *resolver, const tutti_options *options,
                                       tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_ASSIGN(const Ref<ClusterResolverObject> object, find(resolver, cluster_resolver_handles, "resolver"));
    TUTTI_ASSIGN(ResolvedOptions resolved, resolve(options, "cluster"));
    return object->connect(std::move(resolved));
  });
}

int32_t tutti_cluster_resolver_initialize(tutti_cluster_resolver *resolver, const tutti_options *options,
                                          tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_ASSIGN(const Ref<ClusterResolverObject> object, find(resolver, cluster_resolver_handles, "resolver"));
    TUTTI_ASSIGN(ResolvedOptions resolved, resolve(options, "context"));
    return object->initialize(std::move(resolved));
  });
}

tutti_context *tutti_cluster_resolver_get_context(tutti_cluster_resolver *resolver) {
  return guard_value<tutti_context *>(nullptr, [&]() -> tutti_context * {
    const Ref<ClusterResolverObject> object = peek_shared(resolver, cluster_resolver_handles);
    if (!object) return nullptr;
    const Result<void *> handle = object->context_handle();
    return handle.ok() ? static_cast<tutti_context *>(*handle) : nullptr;
  });
}
