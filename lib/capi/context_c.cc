// SPDX-License-Identifier: Apache-2.0
#include "capi/context_c.h"

#include <tutti/version.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "base/log_level.h"
#include "base/text.h"
#include "base/thread.h"
#include "capi/guard.h"
#include "capi/hook_c.h"
#include "capi/host_call.h"
#include "capi/options_c.h"
#include "data/graph/backend_graph_runner.h"
#include "runtime/backend_list.h"
#include "runtime/plugin_loader.h"

namespace tutti::impl::capi {

constinit HandleType<ContextObject> context_handles{"context"};

namespace {

base::Severity to_severity(int32_t backend_severity) { return static_cast<base::Severity>(backend_severity + 1); }

backend::HostOptions host_options(const ContextCore &core, int64_t memory_bytes, const SharedValues &shared) {
  backend::HostOptions host;
  host.shared_put = shared.put;
  host.shared_get = shared.get;
  host.log = [logger = core.logger](int32_t severity, const std::string &message) {
    logger->log(to_severity(severity), message);
  };
  backend::trace_into(host, core.profile->tracer);
  host.thread_budget = core.threads;
  if (memory_bytes > 0) host.memory = std::make_shared<backend::MemoryBudget>(memory_bytes);
  return host;
}

/// "0,2" -> [0, 2].
Result<base::JsonArray> listed_gpus(const std::string &text) {
  base::JsonArray gpus;
  std::string_view rest = text;
  while (!rest.empty()) {
    int64_t number = -1;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    const auto length = static_cast<size_t>(end - rest.data());
    const bool is_last = length == rest.size();
    if (error != std::errc() || number < 0 || (!is_last && (rest[length] != ',' || length + 1 == rest.size())))
      return base::invalid_argument("option 'gpus' is ", base::quoted(text), ", expected numbers such as \"0,2\"");
    gpus.emplace_back(number);
    rest.remove_prefix(is_last ? length : length + 1);
  }
  return gpus;
}

/// Of the option `backend`: one, or several with commas between them.
std::vector<std::string> listed_backends(const ResolvedOptions &options) {
  std::vector<std::string> names;
  for (const std::string &part : base::split(options.text("backend"), ','))
    names.emplace_back(base::trim(part));
  return names;
}

constexpr std::string_view kPjrt = "pjrt";

/// What a backend is opened with. Of several, those that are linked in are for processors and know no options of GPUs.
Result<std::string> settings_of(const ResolvedOptions &options, std::string_view name, bool knows_gpus) {
  const int64_t devices = options.i64("logical_devices");
  base::Json settings = base::JsonObject{};
  if (devices > 0) settings.set("logical_devices", devices);
  if (!options.text("plan_cache").empty()) settings.set("plan_cache", options.text("plan_cache"));
  TUTTI_ASSIGN(base::JsonArray gpus, listed_gpus(options.text("gpus")));
  for (const char *const key : {"pjrt_plugin", "pjrt_topology"}) {
    if (name == kPjrt && options.was_set(key)) settings.set(key, options.text(key));
  }
  if (!knows_gpus) return settings.dump();
  if (!gpus.empty()) settings.set("gpus", std::move(gpus));
  if (options.was_set("gpu_memory_fraction")) settings.set("gpu_memory_fraction", options.f64("gpu_memory_fraction"));
  if (options.flag("gpu_uses_host_memory")) settings.set("gpu_uses_host_memory", true);
  return settings.dump();
}

Result<std::vector<backend::BackendRef>> open(const ResolvedOptions &options, const backend::HostOptions &host) {
  const std::string &plugin = options.text("plugin");
  const std::vector<std::string> names = plugin.empty() ? listed_backends(options) : std::vector<std::string>{plugin};
  const auto is_linked = [](const std::string &name) {
    return std::ranges::any_of(runtime::linked_backends(), [&](const auto &linked) { return linked.name == name; });
  };
  const bool all_linked = std::ranges::all_of(names, is_linked);
  for (const char *const key : {"pjrt_plugin", "pjrt_topology"}) {
    if (options.was_set(key) && !options.is_from_environment(key) && std::ranges::find(names, kPjrt) == names.end())
      return base::invalid_argument("option '", key, "' is set, but option 'backend' does not name pjrt");
  }
  std::vector<backend::BackendRef> backends;
  for (const std::string &name : names) {
    TUTTI_ASSIGN(const std::string settings, settings_of(options, name, all_linked || !is_linked(name)));
    const bool is_any = name.empty() && names.size() == 1;
    TUTTI_ASSIGN(backend::BackendRef backend, !plugin.empty()
                                                  ? runtime::load_plugin(name, settings, host, backend::build_id())
                                              : is_any ? runtime::open_best_backend(settings, host)
                                                       : runtime::open_backend(name, settings, host));
    backends.push_back(std::move(backend));
  }
  return backends;
}

base::Json describe_with_memory(const backend::DeviceDescription &device, const std::string &backend,
                                int64_t memory_bytes) {
  base::JsonObject links;
  for (const backend::DeviceLink &link : device.links)
    links.emplace_back(link.device, base::JsonObject{{"rank", link.rank}, {"atomics", link.has_atomics}});
  base::Json description(base::JsonObject{{"name", device.name},
                                          {"backend", backend},
                                          {"kind", device.kind},
                                          {"memory_bytes", memory_bytes},
                                          {"description", device.description},
                                          {"reaches", base::JsonArray(device.reaches.begin(), device.reaches.end())},
                                          {"links", std::move(links)},
                                          {"memory", device.memory}});
  if (!device.pci.empty()) description.set("pci", device.pci);
  if (device.numa_node >= 0) description.set("numa_node", device.numa_node);
  return description;
}

Status describe_devices(const backend::BackendRef &backend, ContextCore &core) {
  const backend::MemoryBudget *budget = backend->memory_budget();
  if (backend->device_count() == 0) return base::unavailable("backend '", backend->name(), "' has no devices here");
  for (int32_t i = 0; i < backend->device_count(); ++i) {
    TUTTI_ASSIGN(const backend::DeviceDescription device, backend->describe_device(i));
    if (std::ranges::find(core.device_names, device.name) != core.device_names.end()) {
      return base::invalid_argument("option 'backend' names two backends that have a device ",
                                    base::quoted(device.name));
    }
    core.devices.push_back({backend, i});
    core.device_names.push_back(device.name);
    core.device_descriptions.push_back(
        describe_with_memory(device, backend->name(), budget != nullptr ? budget->limit() : device.memory_bytes)
            .dump());
  }
  return Status();
}

/// The default context, made on first use and kept until the process ends.
struct DefaultContext {
  std::mutex mutex;
  Ref<ContextObject> context;  // guarded by mutex
};

DefaultContext &default_context() {
  static DefaultContext *const instance = new DefaultContext;
  return *instance;
}

}  // namespace

Result<Ref<ContextObject>> make_context(const ResolvedOptions &options, const SharedValues &shared) {
  if (options.was_set("allow_growth") && !options.flag("allow_growth"))
    return base::unimplemented(
        "option 'allow_growth' is false, but memory is never reserved in advance: it is allocated on demand, and ",
        "gpu_memory_fraction and memory_bytes limit it");
  auto core = std::make_shared<ContextCore>();
  core->logger = base::make_ref<base::Logger>();
  TUTTI_TRY(base::log_to_standard_error(*core->logger, options.text("log_level")));
  const int64_t threads = options.i64("threads");
  core->threads = threads > 0 ? static_cast<int32_t>(threads) : base::available_cores();
  const backend::HostOptions host = host_options(*core, options.i64("memory_bytes"), shared);
  TUTTI_ASSIGN(const std::vector<backend::BackendRef> backends, open(options, host));
  TUTTI_ASSIGN(core->reference, runtime::open_backend("reference", "{}", host));
  backend::BackendRef runs_graphs = core->reference;
  for (const backend::BackendRef &backend : backends) {
    TUTTI_TRY(describe_devices(backend, *core));
    if (runs_graphs == core->reference && backend->has_host_memory()) runs_graphs = backend;
  }
  TUTTI_ASSIGN(backend::DeviceRef device, runs_graphs->open_device(0));
  core->graph_runner = data::BackendGraphRunner::create(std::move(device), backend::Level::repeatable);
  return base::make_ref<ContextObject>(std::move(core));
}

Result<Ref<ContextObject>> find_context(tutti_context *context) {
  if (context != nullptr) return find(context, context_handles, "context");
  DefaultContext &shared = default_context();
  const std::lock_guard lock(shared.mutex);
  if (!shared.context) {
    TUTTI_ASSIGN(const ResolvedOptions options, resolve(nullptr, "context"));
    TUTTI_ASSIGN(shared.context, make_context(options));
  }
  return shared.context;
}

Status check_same_context(const ContextCore &a, const ContextCore &b, std::string_view what) {
  if (&a == &b) return Status();
  return base::invalid_argument("argument '", what, "' belongs to another context");
}

}  // namespace tutti::impl::capi

using namespace tutti::impl;
using namespace tutti::impl::capi;

int32_t tutti_context_create(const tutti_options *options, tutti_context **out, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    TUTTI_ASSIGN(const ResolvedOptions resolved, resolve(options, "context"));
    TUTTI_ASSIGN(Ref<ContextObject> context, make_context(resolved));
    return emit(std::move(context), context_handles, out);
  });
}

TUTTI_DEFINE_COUNTING(context, context_handles)

int32_t tutti_context_set_log(tutti_context *context, tutti_log_fn log, void *user, tutti_destroy_fn destroy,
                              int32_t minimum_severity, tutti_error **err) {
  return guard(err, [&]() -> Status {
    const auto owner = std::make_shared<UserPointer>(user, destroy);
    TUTTI_ASSIGN(const Ref<ContextObject> object, find_context(context));
    if (minimum_severity < TUTTI_LOG_DEBUG || minimum_severity > TUTTI_LOG_ERROR)
      return base::invalid_argument("argument 'minimum_severity' must be one of TUTTI_LOG_..., got ", minimum_severity);
    base::Logger &logger = *object->core()->logger;
    logger.set_threshold(static_cast<base::Severity>(minimum_severity));
    if (log == nullptr) {
      logger.set_sink({});
      return Status();
    }
    const auto one_at_a_time = std::make_shared<std::mutex>();
    logger.set_sink([log, owner, one_at_a_time](base::Severity severity, std::string_view message) {
      const std::string text(message);
      const std::lock_guard lock(*one_at_a_time);
      (void)catch_thrown("the log function", [&] { log(owner->get(), static_cast<int32_t>(severity), text.c_str()); });
    });
    return Status();
  });
}

int64_t tutti_context_get_device_count(tutti_context *context) {
  return guard_value<int64_t>(-1, [&]() -> int64_t {
    const Result<Ref<ContextObject>> object = find_context(context);
    return object.ok() ? static_cast<int64_t>((*object)->core()->device_names.size()) : -1;
  });
}

namespace {

const char *device_text(tutti_context *context, int64_t index, std::vector<std::string> ContextCore::*texts) {
  return guard_value<const char *>(nullptr, [&]() -> const char * {
    const Result<Ref<ContextObject>> object = find_context(context);
    if (!object.ok()) return nullptr;
    const std::vector<std::string> &list = (*(*object)->core()).*texts;
    return index >= 0 && index < static_cast<int64_t>(list.size()) ? list[static_cast<size_t>(index)].c_str() : nullptr;
  });
}

/// They are loaded when somebody asks, not with the context: that takes a while.
void add_libraries(ContextCore &core) {
  std::map<const backend::Backend *, base::Json> known;
  for (size_t d = 0; d < core.devices.size(); ++d) {
    const backend::Backend &backend = *core.devices[d].backend;
    if (!known.contains(&backend)) known[&backend] = backend.describe_libraries().value_or(base::JsonObject());
    base::Json description = base::Json::parse(core.device_descriptions[d]).value_or(base::JsonObject());
    description.set("libraries", known[&backend]);
    core.device_descriptions[d] = description.dump();
  }
}

/// Why backends cannot be used, by name; found out once and kept.
struct Unavailability {
  std::mutex mutex;
  std::map<std::string, std::string, std::less<>> reasons;  // guarded by mutex; "" = usable
};

}  // namespace

const char *tutti_context_get_device_name(tutti_context *context, int64_t index) {
  return device_text(context, index, &ContextCore::device_names);
}

const char *tutti_context_describe_device(tutti_context *context, int64_t index) {
  guard_value<bool>(false, [&] {
    const Result<Ref<ContextObject>> object = find_context(context);
    if (!object.ok()) return false;
    ContextCore &core = *(*object)->core();
    std::call_once(core.has_libraries, [&] { add_libraries(core); });
    return true;
  });
  return device_text(context, index, &ContextCore::device_descriptions);
}

const char *tutti_why_unavailable(const char *backend) {
  return guard_value<const char *>("out of memory", [&]() -> const char * {
    static Unavailability *const known = new Unavailability;
    const std::string name = backend != nullptr ? backend : "";
    const std::lock_guard lock(known->mutex);
    auto found = known->reasons.find(name);
    if (found == known->reasons.end()) {
      const auto opened = runtime::open_backend(name, "{}", {});
      found = known->reasons.emplace(name, opened.ok() ? "" : opened.status().message()).first;
    }
    return found->second.empty() ? nullptr : found->second.c_str();
  });
}
