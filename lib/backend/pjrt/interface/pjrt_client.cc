// SPDX-License-Identifier: Apache-2.0
#include "backend/pjrt/interface/pjrt_client.h"

#include <numeric>

#include "backend/pjrt/interface/compile_options.h"
#include "backend/pjrt/interface/shared_values.h"
#include "base/text.h"

namespace tutti::impl::backend::pjrt {

using base::Result;
using base::Status;
using tensor::DType;

namespace {

constexpr std::string_view kFormat = "mlir";
/// What plug-ins for processors call their number of devices.
constexpr std::string_view kDeviceCountOption = "cpu_device_count";
/// What costs call floating-point operations.
constexpr std::string_view kOperations = "flops";

abi::NamedValue integer_option(std::string_view name, int64_t value) {
  abi::NamedValue option{};
  option.size = sizeof(option);
  option.name = name.data();
  option.name_length = name.size();
  option.kind = abi::kInteger;
  option.value.integer = value;
  option.count = 1;
  return option;
}

}  // namespace

int32_t buffer_type(DType dtype) {
  switch (dtype) {
    case DType::boolean:
      return abi::kPred;
    case DType::i8:
      return abi::kS8;
    case DType::i16:
      return abi::kS16;
    case DType::i32:
      return abi::kS32;
    case DType::i64:
      return abi::kS64;
    case DType::u8:
      return abi::kU8;
    case DType::u16:
      return abi::kU16;
    case DType::u32:
      return abi::kU32;
    case DType::u64:
      return abi::kU64;
    case DType::f16:
      return abi::kF16;
    case DType::f32:
      return abi::kF32;
    case DType::f64:
      return abi::kF64;
    case DType::bf16:
      return abi::kBf16;
    default:
      return 0;
  }
}

// ---- what a client hands out ----

DeviceArray &DeviceArray::operator=(DeviceArray &&other) noexcept {
  std::swap(client_, other.client_);
  std::swap(buffer_, other.buffer_);
  return *this;
}

DeviceArray::~DeviceArray() {
  if (buffer_ != nullptr) client_->plugin().destroy(abi::kBufferDestroy, buffer_);
}

Completion &Completion::operator=(Completion &&other) noexcept {
  std::swap(client_, other.client_);
  std::swap(event_, other.event_);
  return *this;
}

Status Completion::wait() {
  if (event_ == nullptr) return Status();
  return client_->plugin().wait(std::exchange(event_, nullptr), client_->longest_wait());
}

bool Completion::is_ready() const { return event_ == nullptr || client_->plugin().is_ready(event_); }

LoadedProgram::~LoadedProgram() {
  client_->plugin().destroy(abi::kExecutableDestroy, executable_);
  client_->plugin().destroy(abi::kLoadedDestroy, loaded_);
}

Status LoadedProgram::execute(std::span<DeviceRun *const> runs) const {
  std::vector<abi::Buffer *const *> arguments;
  std::vector<abi::Buffer **> results;
  for (DeviceRun *const run : runs) {
    arguments.push_back(run->arguments.data());
    results.push_back(run->results.data());
  }
  std::vector<abi::Event *> done(runs.size(), nullptr);
  Call<abi::ExecuteOptions> options;
  Call<abi::Execute> call;
  call.executable = loaded_;
  call.options = &options;
  call.arguments = arguments.data();
  call.device_count = runs.size();
  call.argument_count = runs.front()->arguments.size();
  call.results = results.data();
  call.done = done.data();
  std::unique_lock lock(client_->launch_mutex(), std::defer_lock);
  if (runs.size() > 1) lock.lock();  // else two programs, each on half of the devices, may wait for the other half
  TUTTI_TRY(client_->plugin().run(abi::kLoadedExecute, call));
  for (size_t i = 0; i < runs.size(); ++i)
    runs[i]->done = Completion(client_, done[i]);
  return Status();
}

ProgramCost LoadedProgram::cost() const {
  ProgramCost found;
  if (executable_ == nullptr) return found;
  const Plugin &plugin = client_->plugin();
  Call<abi::CompiledMemory> memory;
  memory.executable = executable_;
  if (plugin.has(abi::kExecutableMemory) && plugin.run(abi::kExecutableMemory, memory).ok())
    found = {memory.code, memory.arguments, memory.results, memory.aliased, memory.temporary, -1};
  Call<abi::ExecutableCost> cost;
  cost.executable = executable_;
  if (!plugin.has(abi::kExecutableCost) || !plugin.run(abi::kExecutableCost, cost).ok()) return found;
  for (size_t i = 0; i < cost.count; ++i) {
    const abi::NamedValue &value = cost.values[i];
    if (std::string_view(value.name, value.name_length) == kOperations && value.kind == abi::kFloat)
      found.operations = static_cast<double>(value.value.number);
  }
  return found;
}

// ---- the client ----

Result<ClientRef> Client::create(PluginRef plugin, const ClientOptions &options) {
  std::shared_ptr<Client> client(new Client(std::move(plugin), options.longest_wait));
  TUTTI_TRY(client->open(options));
  return ClientRef(client);
}

Status Client::open(const ClientOptions &options) {
  if (!options.topology.empty()) return open_topology(options.topology);
  const abi::NamedValue count = integer_option(kDeviceCountOption, options.logical_devices);
  Call<abi::ClientCreate> call;
  share_values(options.host, call);
  call.options = &count;
  call.option_count = options.logical_devices > 0 ? 1 : 0;
  Status status = plugin_->run(abi::kClientCreate, call);
  if (!status.ok() && call.option_count != 0) {  // newer plug-ins refuse options that they do not know
    Call<abi::ClientCreate> plain;
    share_values(options.host, plain);
    status = plugin_->run(abi::kClientCreate, plain);
    call.client = plain.client;
  }
  if (!status.ok()) return base::unavailable(plugin_->path(), " finds no devices: ", status.message());
  client_ = call.client;
  Call<abi::ClientDevices> devices;
  devices.client = client_;
  TUTTI_TRY(plugin_->run(abi::kClientAddressableDevices, devices));
  devices_.assign(devices.devices, devices.devices + devices.count);
  for (abi::Device *const device : devices_) {
    Call<abi::DescriptionOf> of;
    of.device = device;
    TUTTI_TRY(plugin_->run(abi::kDeviceDescription, of));
    descriptions_.push_back(of.description);
  }
  return read_ids();
}

Status Client::open_topology(const std::string &name) {
  topology_name_ = name;
  Call<abi::TopologyCreate> call;
  call.name = topology_name_.data();
  call.name_length = topology_name_.size();
  if (const Status status = plugin_->run(abi::kTopologyCreate, call); !status.ok())
    return base::unavailable(plugin_->path(), " does not compile for ", base::quoted(name), ": ", status.message());
  topology_ = call.topology;
  Call<abi::TopologyDevices> devices;
  devices.topology = topology_;
  TUTTI_TRY(plugin_->run(abi::kTopologyDevices, devices));
  descriptions_.assign(devices.devices, devices.devices + devices.count);
  return read_ids();
}

Status Client::read_ids() {
  for (abi::DeviceDescription *const description : descriptions_) {
    Call<abi::DescriptionId> id;
    id.description = description;
    TUTTI_TRY(plugin_->run(abi::kDescriptionId, id));
    ids_.push_back(id.id);
  }
  return Status();
}

Status Client::check_runs() const {
  if (!only_compiles()) return Status();
  return base::failed_precondition("devices of the topology '", topology_name_, "' are not here: programs are only ",
                                   "compiled for them");
}

Client::~Client() {
  plugin_->destroy(abi::kTopologyDestroy, topology_);
  plugin_->destroy(abi::kClientDestroy, client_);
}

std::string Client::platform() const {
  return only_compiles() ? topology_name_ : text_of(abi::kClientPlatformName, client_);
}

std::string Client::platform_version() const {
  return only_compiles() ? std::string("compiled only") : text_of(abi::kClientPlatformVersion, client_);
}

std::string Client::text_of(abi::Function function, void *object) const {
  Call<abi::ObjectText> call;
  call.object = object;
  return plugin_->run(function, call).ok() ? std::string(call.text, call.length) : std::string();
}

std::string Client::device_kind(size_t device) const { return text_of(abi::kDescriptionKind, descriptions_[device]); }
std::string Client::device_text(size_t device) const { return text_of(abi::kDescriptionText, descriptions_[device]); }

bool Client::memory_stats(size_t device, Call<abi::MemoryStats> &stats) const {
  if (only_compiles()) return false;
  stats.device = devices_[device];
  return plugin_->has(abi::kDeviceMemoryStats) && plugin_->run(abi::kDeviceMemoryStats, stats).ok();
}

int64_t Client::memory_limit(size_t device) const {
  Call<abi::MemoryStats> stats;
  return memory_stats(device, stats) && stats.limit_is_set ? stats.bytes_limit : -1;
}

int64_t Client::memory_in_use(size_t device) const {
  Call<abi::MemoryStats> stats;
  return memory_stats(device, stats) ? stats.bytes_in_use : -1;
}

Result<DeviceArray> Client::upload(size_t device, DType dtype, std::span<const int64_t> dims, const void *data) const {
  TUTTI_TRY(check_runs());
  Call<abi::BufferFromHost> call;
  call.client = client_;
  call.data = data;
  call.type = buffer_type(dtype);
  call.dims = dims.data();
  call.rank = dims.size();
  call.semantics = abi::kOnlyDuringCall;
  call.device = devices_[device];
  TUTTI_TRY(plugin_->run(abi::kClientBufferFromHost, call));
  DeviceArray array(shared_from_this(), call.buffer);
  TUTTI_TRY(plugin_->wait(call.done, longest_wait_));
  return array;
}

Result<Completion> Client::download(const DeviceArray &array, size_t rank, void *data, int64_t bytes) const {
  std::vector<int64_t> order(rank);
  std::iota(order.rbegin(), order.rend(), int64_t{0});
  Call<abi::HostLayout> layout;
  layout.size = sizeof(abi::HostLayout);
  layout.tiled.size = sizeof(layout.tiled);
  layout.tiled.minor_to_major = order.data();
  layout.tiled.rank = rank;
  Call<abi::BufferToHost> call;
  call.source = array.get();
  call.layout = &layout;
  call.destination = data;
  call.bytes = static_cast<size_t>(bytes);
  TUTTI_TRY(plugin_->run(abi::kBufferToHost, call));
  return Completion(shared_from_this(), call.event);
}

Result<std::shared_ptr<const LoadedProgram>> Client::compile(std::string_view module,
                                                             std::span<const size_t> devices) const {
  Call<abi::ProgramCode> program;
  program.code = const_cast<char *>(module.data());
  program.code_size = module.size();
  program.format = kFormat.data();
  program.format_length = kFormat.size();
  // For a topology devices are as good as others.
  std::vector<int64_t> ids;
  for (size_t i = 0; i < devices.size() && !only_compiles(); ++i)
    ids.push_back(ids_[devices[i]]);
  const std::string options = compile_options(static_cast<int64_t>(devices.size()), ids);
  if (only_compiles()) {
    Call<abi::Compile> call;
    call.topology = topology_;
    call.program = &program;
    call.options = options.data();
    call.options_size = options.size();
    TUTTI_TRY(plugin_->run(abi::kCompile, call));
    return std::make_shared<const LoadedProgram>(shared_from_this(), nullptr, call.executable);
  }
  Call<abi::ClientCompile> call;
  call.client = client_;
  call.program = &program;
  call.options = options.data();
  call.options_size = options.size();
  TUTTI_TRY(plugin_->run(abi::kClientCompile, call));
  Call<abi::ExecutableOf> of;  // asked about costs; without it there are none
  of.loaded = call.executable;
  const bool is_known = plugin_->has(abi::kLoadedExecutable) && plugin_->run(abi::kLoadedExecutable, of).ok();
  return std::make_shared<const LoadedProgram>(shared_from_this(), call.executable, is_known ? of.executable : nullptr);
}

}  // namespace tutti::impl::backend::pjrt
