// SPDX-License-Identifier: Apache-2.0
#include "backend/pjrt/interface/pjrt_plugin.h"

#include <dlfcn.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/shared_library.h"
#include "base/text.h"

namespace tutti::impl::backend::pjrt {

using base::Result;
using base::Status;

namespace {

/// Places in the table are those of this version and later ones.
constexpr int32_t kOldestMinor = 57;

/// Without these there is no running a program.
constexpr abi::Function kNeeded[] = {
    abi::kErrorDestroy,  abi::kErrorMessage,      abi::kErrorCode,     abi::kPluginInitialize,
    abi::kEventDestroy,  abi::kEventIsReady,      abi::kEventAwait,    abi::kEventOnReady,
    abi::kClientCreate,  abi::kClientDestroy,     abi::kClientCompile, abi::kClientAddressableDevices,
    abi::kDescriptionId, abi::kDeviceDescription, abi::kLoadedDestroy, abi::kClientBufferFromHost,
    abi::kLoadedExecute, abi::kBufferDestroy,     abi::kBufferToHost,
};

base::Json json_of(const abi::NamedValue &value) {
  switch (value.kind) {
    case abi::kText:
      return std::string(value.value.text, value.count);
    case abi::kInteger:
      return std::to_string(value.value.integer);
    case abi::kIntegers: {
      const std::vector<int64_t> numbers(value.value.integers, value.value.integers + value.count);
      return base::join(numbers, ".");
    }
    case abi::kFloat:
      return std::to_string(value.value.number);
    default:
      return value.value.truth ? "true" : "false";
  }
}

}  // namespace

Result<PluginRef> Plugin::open(const std::string &path) {
  static std::mutex mutex;
  static std::map<std::string, PluginRef> opened;  // kept, as the libraries are
  if (path.empty() || path.front() != '/')
    return base::invalid_argument("pjrt_plugin is ", base::quoted(path), ", expected an absolute path");
  std::lock_guard lock(mutex);
  if (const auto found = opened.find(path); found != opened.end()) return found->second;
  std::shared_ptr<Plugin> plugin(new Plugin(path));
  TUTTI_TRY(plugin->load());
  opened[path] = plugin;
  return PluginRef(plugin);
}

Status Plugin::load() {
  TUTTI_ASSIGN(void *const library, base::open_shared_library(path_));
  const auto entry = reinterpret_cast<const abi::Table *(*)()>(dlsym(library, "GetPjrtApi"));
  if (entry == nullptr) {
    dlclose(library);
    return base::unavailable(path_, " is no PJRT plug-in: it does not export GetPjrtApi");
  }
  table_ = entry();
  if (table_ == nullptr) return base::unavailable(path_, ": GetPjrtApi returned nothing");
  if (table_->version.major != 0 || table_->version.minor < kOldestMinor)
    return base::unavailable(path_, " has version ", version(), " of PJRT's C interface, expected 0.", kOldestMinor,
                             " or a later one of 0");
  for (const abi::Function function : kNeeded) {
    if (!has(function)) return lacks(function);
  }
  Call<abi::NoArguments> call;
  TUTTI_TRY(run(abi::kPluginInitialize, call));
  attributes_ = read_attributes();
  return Status();
}

std::string Plugin::version() const { return base::concat(table_->version.major, ".", table_->version.minor); }

std::string Plugin::read_attributes() const {
  Call<abi::PluginAttributes> call;
  base::JsonObject members;
  if (has(abi::kPluginAttributes) && run(abi::kPluginAttributes, call).ok()) {
    for (size_t i = 0; i < call.count; ++i)
      members.emplace_back(std::string(call.values[i].name, call.values[i].name_length), json_of(call.values[i]));
  }
  return base::Json(std::move(members)).dump();
}

bool Plugin::has(abi::Function function) const {
  return offsetof(abi::Table, functions) + (function + 1) * sizeof(table_->functions[0]) <= table_->size &&
         table_->functions[function] != nullptr;
}

Status Plugin::lacks(abi::Function function) const {
  return base::unavailable(path_, " (version ", version(), ") lacks function ", static_cast<int64_t>(function),
                           " of PJRT's C interface");
}

Status Plugin::run_raw(abi::Function function, abi::Head *arguments) const {
  if (!has(function)) return lacks(function);
  return take(table_->functions[function](arguments));
}

Status Plugin::take(abi::Error *error) const {
  if (error == nullptr) return Status();
  // These two give nothing back.
  const auto procedure = [&](abi::Function function, abi::Head *arguments) {
    reinterpret_cast<void (*)(void *)>(reinterpret_cast<void (*)()>(table_->functions[function]))(arguments);
  };
  Call<abi::ErrorMessage> message;
  message.error = error;
  procedure(abi::kErrorMessage, static_cast<abi::Head *>(&message));
  Call<abi::ErrorCode> code;
  code.error = error;
  table_->functions[abi::kErrorCode](static_cast<abi::Head *>(&code));
  const Status status(base::code_from_number(code.code), std::string(message.text, message.length));
  Call<abi::OneObject> destroy;
  destroy.object = error;
  procedure(abi::kErrorDestroy, static_cast<abi::Head *>(&destroy));
  return status;
}

void Plugin::destroy(abi::Function function, void *object) const {
  if (object == nullptr) return;
  Call<abi::OneObject> call;
  call.object = object;
  (void)run(function, call);
}

namespace {

/// What a callback of the plug-in and the thread that waits for it have in common.
struct Arrival {
  std::mutex mutex;
  std::condition_variable changed;
  bool has_come = false;
};

}  // namespace

Status Plugin::wait_until_ready(abi::Event *event, std::chrono::nanoseconds longest) const {
  auto arrival = std::make_shared<Arrival>();
  auto shared = std::make_unique<std::pair<const Plugin *, std::shared_ptr<Arrival>>>(this, arrival);
  Call<abi::EventOnReady> call;
  call.event = event;
  call.user = shared.get();
  call.callback = [](abi::Error *error, void *user) {
    const std::unique_ptr<std::pair<const Plugin *, std::shared_ptr<Arrival>>> own(
        static_cast<std::pair<const Plugin *, std::shared_ptr<Arrival>> *>(user));
    (void)own->first->take(error);  // told again by who awaits the event
    std::lock_guard lock(own->second->mutex);
    own->second->has_come = true;
    own->second->changed.notify_all();
  };
  TUTTI_TRY(run(abi::kEventOnReady, call));
  static_cast<void>(shared.release());  // the callback's
  std::unique_lock lock(arrival->mutex);
  if (arrival->changed.wait_for(lock, longest, [&] { return arrival->has_come; })) return Status();
  return base::deadline_exceeded("the device has not finished in ",
                                 std::chrono::duration_cast<std::chrono::seconds>(longest).count(), " seconds");
}

Status Plugin::wait(abi::Event *event, std::chrono::nanoseconds longest) const {
  if (event == nullptr) return Status();
  if (!is_ready(event)) TUTTI_TRY(wait_until_ready(event, longest));
  Call<abi::OneObject> call;
  call.object = event;
  const Status status = run(abi::kEventAwait, call);
  destroy(abi::kEventDestroy, event);
  return status;
}

bool Plugin::is_ready(abi::Event *event) const {
  Call<abi::EventIsReady> call;
  call.event = event;
  return !run(abi::kEventIsReady, call).ok() || call.is_ready;
}

}  // namespace tutti::impl::backend::pjrt
