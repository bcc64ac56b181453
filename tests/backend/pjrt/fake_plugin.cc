// SPDX-License-Identifier: Apache-2.0
#include "backend/pjrt/fake_plugin.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "backend/pjrt/interface/pjrt_abi.h"

using namespace tutti::impl::backend::pjrt;

namespace {

constexpr size_t kFunctions = 100;
constexpr int kInvalid = 3, kResourceExhausted = 8, kUnavailable = 14;

std::atomic<int64_t> live_objects{0}, calls{0};

struct Counted {
  Counted() { ++live_objects; }
  ~Counted() { --live_objects; }
  Counted(const Counted &) = delete;
};

struct FakeError : Counted {
  int code;
  std::string text;
};
struct FakeEvent : Counted {};
struct FakeClient : Counted {};
struct FakeType {
  size_t bytes;
};
struct FakeExecutable : Counted {
  std::vector<FakeType> results;
};
struct FakeBuffer : Counted {
  std::vector<char> data;
};

int devices[2];  // only their addresses count

std::string setting(std::string_view name) {
  const char *const all = std::getenv("TUTTI_FAKE_PJRT");
  const std::string_view text = all != nullptr ? all : "";
  if (text == name) return "yes";
  return text.starts_with(std::string(name) + "=") ? std::string(text.substr(name.size() + 1)) : "";
}

abi::Error *make_error(int code, const char *text) {
  auto *const error = new FakeError;
  error->code = code;
  error->text = text;
  return reinterpret_cast<abi::Error *>(error);
}

abi::Event *make_event() { return reinterpret_cast<abi::Event *>(new FakeEvent); }

/// Counts a call; an error where it is the one that is to fail.
abi::Error *begin_call() {
  const int64_t number = ++calls;
  const std::string failing = setting("fail");
  return !failing.empty() && number == std::atoll(failing.c_str()) ? make_error(kResourceExhausted, "no memory left")
                                                                   : nullptr;
}

/// The types behind "-> (" of the module's main function.
std::vector<FakeType> result_types(std::string_view module) {
  std::vector<FakeType> types;
  const size_t begin = module.find("-> ("), end = module.find(") {", begin);
  for (size_t at = module.find("tensor<", begin); at < end; at = module.find("tensor<", at + 1)) {
    std::string_view type = module.substr(at + 7, module.find('>', at) - at - 7);
    size_t bytes = 1;
    for (size_t cut = type.find('x'); cut != std::string_view::npos; cut = type.find('x')) {
      bytes *= static_cast<size_t>(std::atoll(std::string(type.substr(0, cut)).c_str()));
      type.remove_prefix(cut + 1);
    }
    const size_t bits =
        static_cast<size_t>(std::atoll(std::string(type.substr(type.find_first_of("0123456789"))).c_str()));
    types.push_back({bytes * (bits == 1 ? 1 : bits / 8)});
  }
  return types;
}

template <typename Arguments>
Arguments &as(void *arguments) {
  return *static_cast<Arguments *>(static_cast<abi::Head *>(arguments));
}

template <typename Object>
abi::Error *destroy(void *arguments) {
  delete static_cast<Object *>(as<abi::OneObject>(arguments).object);
  return nullptr;
}

abi::Error *nothing(void *) { return begin_call(); }

// ---- errors and events ----

abi::Error *error_message(void *arguments) {
  auto &call = as<abi::ErrorMessage>(arguments);
  const auto *const error = reinterpret_cast<const FakeError *>(call.error);
  call.text = error->text.data();
  call.length = error->text.size();
  return nullptr;
}

abi::Error *error_code(void *arguments) {
  auto &call = as<abi::ErrorCode>(arguments);
  call.code = reinterpret_cast<const FakeError *>(call.error)->code;
  return nullptr;
}

abi::Error *event_is_ready(void *arguments) {
  as<abi::EventIsReady>(arguments).is_ready = setting("never").empty();
  return begin_call();
}

// ---- clients and devices ----

abi::Error *make_callback_error(int32_t code, const char *text, size_t length) {
  return make_error(code, std::string(text, length).c_str());
}

/// One of two processes: tells its number, and waits for that of the other one.
abi::Error *meet_the_other(abi::ClientCreate &call, int own) {
  if (call.get == nullptr || call.put == nullptr || call.try_get == nullptr)
    return make_error(kInvalid, "there is no way to the other process");
  const abi::MakeError fail = make_callback_error;
  const std::string keys[] = {"number/0", "number/1"}, values[] = {"zero", "one"};
  abi::KeyValueTryGet early{};
  early.key = "nobody/puts/this", early.key_length = std::strlen(early.key);
  early.make_error = &fail, early.user = call.try_get_user;
  abi::Error *const none = call.try_get(&early);
  if (none == nullptr) return make_error(kInvalid, "there is a value that nobody has put");
  delete reinterpret_cast<FakeError *>(none);
  abi::KeyValuePut put{};
  put.key = keys[own].data(), put.key_length = keys[own].size();
  put.value = values[own].data(), put.value_length = values[own].size();
  put.make_error = &fail, put.user = call.put_user;
  if (abi::Error *const error = call.put(&put)) return error;
  abi::KeyValueGet get{};
  get.key = keys[1 - own].data(), get.key_length = keys[1 - own].size();
  get.timeout_ms = 20000, get.make_error = &fail, get.user = call.get_user;
  if (abi::Error *const error = call.get(&get)) return error;
  const bool is_right = std::string_view(get.value, get.value_length) == values[1 - own];
  get.release(get.value);
  return is_right ? nullptr : make_error(kInvalid, "the other process has said something else");
}

abi::Error *create_client(void *arguments) {
  if (abi::Error *const error = begin_call()) return error;
  if (!setting("no_devices").empty()) return make_error(kUnavailable, "no TPU in this machine");
  if (const std::string own = setting("worker"); !own.empty()) {
    if (abi::Error *const error = meet_the_other(as<abi::ClientCreate>(arguments), std::atoi(own.c_str())))
      return error;
  }
  as<abi::ClientCreate>(arguments).client = reinterpret_cast<abi::Client *>(new FakeClient);
  return nullptr;
}

abi::Error *object_text(void *arguments) {
  auto &call = as<abi::ObjectText>(arguments);
  call.text = setting("lies").empty() ? "fake" : nullptr;
  call.length = setting("lies").empty() ? 4 : 0;
  return begin_call();
}

abi::Error *client_devices(void *arguments) {
  static const std::array<abi::Device *, 2> list = {reinterpret_cast<abi::Device *>(&devices[0]),
                                                    reinterpret_cast<abi::Device *>(&devices[1])};
  auto &call = as<abi::ClientDevices>(arguments);
  call.devices = list.data();
  call.count = list.size();
  return begin_call();
}

abi::Error *device_description(void *arguments) {
  auto &call = as<abi::DescriptionOf>(arguments);
  call.description = reinterpret_cast<abi::DeviceDescription *>(call.device);
  return begin_call();
}

abi::Error *description_id(void *arguments) {
  auto &call = as<abi::DescriptionId>(arguments);
  call.id = call.description == reinterpret_cast<abi::DeviceDescription *>(&devices[1]) ? 1 : 0;
  return begin_call();
}

abi::Error *memory_stats(void *arguments) {
  auto &call = as<abi::MemoryStats>(arguments);
  const bool lies = !setting("lies").empty();
  call.bytes_in_use = lies ? INT64_MAX : 0;
  call.bytes_limit = lies ? -7 : int64_t{1} << 30;
  call.limit_is_set = true;
  return begin_call();
}

// ---- programs and buffers ----

abi::Error *compile(void *arguments) {
  if (abi::Error *const error = begin_call()) return error;
  auto &call = as<abi::ClientCompile>(arguments);
  auto *const made = new FakeExecutable;
  made->results = result_types({call.program->code, call.program->code_size});
  call.executable = reinterpret_cast<abi::LoadedExecutable *>(made);
  return nullptr;
}

abi::Error *executable_of(void *arguments) {
  if (abi::Error *const error = begin_call()) return error;
  as<abi::ExecutableOf>(arguments).executable = reinterpret_cast<abi::Executable *>(new FakeExecutable);
  return nullptr;
}

abi::Error *compiled_memory(void *arguments) {
  auto &call = as<abi::CompiledMemory>(arguments);
  call.code = call.arguments = call.results = setting("lies").empty() ? 2500 : INT64_MIN;
  return begin_call();
}

abi::Error *compile_for_topology(void *arguments) {
  if (abi::Error *const error = begin_call()) return error;
  auto &call = as<abi::Compile>(arguments);
  if (!setting("too_large").empty()) return make_error(kResourceExhausted, "exceeds the memory of the device (15.75G)");
  call.executable = reinterpret_cast<abi::Executable *>(new FakeExecutable);
  return nullptr;
}

abi::Error *create_topology(void *arguments) {
  if (abi::Error *const error = begin_call()) return error;
  auto &call = as<abi::TopologyCreate>(arguments);
  if (std::string_view(call.name, call.name_length) != "fake:1x2") return make_error(kInvalid, "expected fake:1x2");
  call.topology = reinterpret_cast<abi::TopologyDescription *>(new FakeClient);
  return nullptr;
}

abi::Error *topology_devices(void *arguments) {
  static const std::array<abi::DeviceDescription *, 2> list = {reinterpret_cast<abi::DeviceDescription *>(&devices[0]),
                                                               reinterpret_cast<abi::DeviceDescription *>(&devices[1])};
  auto &call = as<abi::TopologyDevices>(arguments);
  call.devices = list.data();
  call.count = list.size();
  return begin_call();
}

abi::Error *buffer_from_host(void *arguments) {
  if (abi::Error *const error = begin_call()) return error;
  auto &call = as<abi::BufferFromHost>(arguments);
  call.buffer = reinterpret_cast<abi::Buffer *>(new FakeBuffer);
  call.done = make_event();
  return nullptr;
}

abi::Error *buffer_to_host(void *arguments) {
  if (abi::Error *const error = begin_call()) return error;
  auto &call = as<abi::BufferToHost>(arguments);
  std::memset(call.destination, 0, call.bytes);
  call.event = make_event();
  return nullptr;
}

abi::Error *execute(void *arguments) {
  if (abi::Error *const error = begin_call()) return error;
  auto &call = as<abi::Execute>(arguments);
  const auto &made = *reinterpret_cast<FakeExecutable *>(call.executable);
  for (size_t i = 0; i < made.results.size(); ++i) {
    auto *const buffer = new FakeBuffer;
    buffer->data.resize(made.results[i].bytes);
    call.results[0][i] = reinterpret_cast<abi::Buffer *>(buffer);
  }
  if (call.done != nullptr) call.done[0] = make_event();
  return nullptr;
}

struct FakeTable {
  abi::Table head;
  abi::Error *(*more[kFunctions])(void *);
};

FakeTable make_table() {
  FakeTable table{};
  table.head.size = offsetof(abi::Table, functions) + kFunctions * sizeof(table.more[0]);
  table.head.version = {0, nullptr, 0, 90};
  if (const std::string version = setting("version"); !version.empty()) {
    const size_t dot = version.find('.');
    table.head.version.major = std::atoi(version.substr(0, dot).c_str());
    table.head.version.minor = std::atoi(version.substr(dot + 1).c_str());
  }
  auto *const functions = table.head.functions;
  functions[abi::kErrorDestroy] = destroy<FakeError>;
  functions[abi::kErrorMessage] = error_message;
  functions[abi::kErrorCode] = error_code;
  functions[abi::kPluginInitialize] = nothing;
  functions[abi::kEventDestroy] = destroy<FakeEvent>;
  functions[abi::kEventIsReady] = event_is_ready;
  functions[abi::kEventAwait] = nothing;
  functions[abi::kEventOnReady] = nothing;  // and never calls back
  functions[abi::kClientCreate] = create_client;
  functions[abi::kClientDestroy] = destroy<FakeClient>;
  functions[abi::kClientPlatformName] = object_text;
  functions[abi::kClientPlatformVersion] = object_text;
  functions[abi::kClientAddressableDevices] = client_devices;
  functions[abi::kClientCompile] = compile;
  functions[abi::kClientBufferFromHost] = buffer_from_host;
  functions[abi::kDescriptionId] = description_id;
  functions[abi::kDescriptionKind] = object_text;
  functions[abi::kDescriptionText] = object_text;
  functions[abi::kDeviceDescription] = device_description;
  functions[abi::kDeviceMemoryStats] = memory_stats;
  functions[abi::kExecutableDestroy] = destroy<FakeExecutable>;
  functions[abi::kLoadedDestroy] = destroy<FakeExecutable>;
  functions[abi::kLoadedExecutable] = executable_of;
  functions[abi::kLoadedExecute] = execute;
  functions[abi::kBufferDestroy] = destroy<FakeBuffer>;
  functions[abi::kBufferToHost] = buffer_to_host;
  functions[abi::kExecutableMemory] = compiled_memory;
  functions[abi::kTopologyCreate] = create_topology;
  functions[abi::kTopologyDestroy] = destroy<FakeClient>;
  functions[abi::kTopologyDevices] = topology_devices;
  functions[abi::kCompile] = compile_for_topology;
  if (const std::string without = setting("without"); !without.empty()) functions[std::atoi(without.c_str())] = nullptr;
  return table;
}

}  // namespace

int64_t fake_pjrt_live_objects() { return live_objects; }
int64_t fake_pjrt_take_calls() { return calls.exchange(0); }

const void *GetPjrtApi() {
  static FakeTable table;
  table = make_table();
  return &table;
}
