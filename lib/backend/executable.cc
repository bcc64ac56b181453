// SPDX-License-Identifier: Apache-2.0
#include "backend/executable.h"

#include <vector>

#include "backend/host_services.h"
#include "base/json.h"

namespace tutti::impl::backend {

using base::Json;
using base::JsonObject;
using base::JsonReader;
using base::Result;
using base::Status;

namespace {

struct PrecisionEntry {
  Precision precision;
  std::string_view name;
  int32_t flag;  // TUTTI_COMPILE_*, 0 = none
};

/// By number.
constexpr PrecisionEntry kPrecisions[] = {
    {Precision::f32, "f32", 0},
    {Precision::bf16_where_faster, "bf16_where_faster", TUTTI_COMPILE_BF16_WHERE_FASTER},
    {Precision::tf32_where_faster, "tf32_where_faster", TUTTI_COMPILE_TF32_WHERE_FASTER},
    {Precision::f16_where_faster, "f16_where_faster", TUTTI_COMPILE_F16_WHERE_FASTER},
};

int32_t port_index(const std::vector<PortDescription> &ports, std::string_view name) {
  for (size_t i = 0; i < ports.size(); ++i) {
    if (ports[i].name == name) return static_cast<int32_t>(i);
  }
  return -1;
}

Result<tensor::DType> read_dtype(const JsonReader &reader) {
  TUTTI_ASSIGN(const std::string text, reader.get_string("dtype"));
  return tensor::parse_dtype(text);
}

Result<std::vector<PortDescription>> read_ports(const JsonReader &root, std::string_view key) {
  TUTTI_ASSIGN(const JsonReader list, root.get(key));
  TUTTI_ASSIGN(const std::vector<JsonReader> elements, list.elements());
  std::vector<PortDescription> ports;
  for (const JsonReader &reader : elements) {
    PortDescription port;
    TUTTI_ASSIGN(port.name, reader.get_string("name"));
    TUTTI_ASSIGN(port.dtype, read_dtype(reader));
    TUTTI_ASSIGN(port.dims, reader.get_integers("dims"));
    TUTTI_ASSIGN(port.bytes, reader.get_integer("bytes"));
    ports.push_back(std::move(port));
  }
  return ports;
}

Result<ExternalDescription> read_external(const JsonReader &reader) {
  ExternalDescription external;
  TUTTI_ASSIGN(external.kind, reader.get_string("kind"));
  TUTTI_ASSIGN(external.label, reader.get_string("label"));
  TUTTI_ASSIGN(const int64_t arena, reader.get_integer("arena"));
  external.arena = static_cast<int32_t>(arena);
  TUTTI_ASSIGN(external.offset, reader.get_integer("offset"));
  TUTTI_ASSIGN(external.elements, reader.get_integer("elements"));
  TUTTI_ASSIGN(external.dtype, read_dtype(reader));
  return external;
}

Result<ExecutableDescription> read_description(std::string_view text) {
  TUTTI_ASSIGN(const Json json, Json::parse(text));
  const JsonReader root(json, "executable");
  ExecutableDescription description;
  TUTTI_ASSIGN(description.inputs, read_ports(root, "inputs"));
  TUTTI_ASSIGN(description.outputs, read_ports(root, "outputs"));
  TUTTI_ASSIGN(description.workspace_bytes, root.get_integer("workspace_bytes"));
  TUTTI_ASSIGN(description.workspace_alignment, root.get_integer("workspace_alignment", 64));
  TUTTI_ASSIGN(const JsonReader list, root.get("externals"));
  TUTTI_ASSIGN(const std::vector<JsonReader> externals, list.elements());
  for (const JsonReader &reader : externals) {
    TUTTI_ASSIGN(ExternalDescription external, read_external(reader));
    description.externals.push_back(std::move(external));
  }
  if (const Json *report = json.find("report")) description.report_json = report->dump();
  return description;
}

/// The C request with the texts it points to.
struct RawRequest {
  RawRequest(std::span<const DeviceRef> devices, const CompileRequest &request) {
    JsonObject object;
    for (const auto &[symbol, value] : request.bindings)
      object.emplace_back(symbol, value);
    bindings = Json(std::move(object)).dump();
    state = request.state == nullptr ? StateTable().to_text() : request.state->to_text();
    for (const DeviceRef &device : devices)
      handles.push_back(device->handle());
    raw.struct_size = sizeof(raw);
    raw.graph_text = request.graph_text->c_str();
    raw.bindings_json = bindings.c_str();
    raw.state_json = state.c_str();
    raw.level = static_cast<int32_t>(request.level);
    raw.threads = request.threads;
    raw.devices = handles.data();
    raw.device_count = static_cast<int32_t>(handles.size());
    raw.flags = request.flags;
    raw.flags |= kPrecisions[static_cast<size_t>(request.precision)].flag;
    raw.cancel = request.cancel;
  }
  RawRequest(const RawRequest &) = delete;

  std::string bindings, state;
  std::vector<tutti_device *> handles;
  tutti_compile_request raw{};
};

}  // namespace

Status check_precision(Precision precision, Level level) {
  if (precision == Precision::f32 || level == Level::fast) return Status();
  return base::invalid_argument("precision is ", name(precision),
                                ", which needs determinism fast: where it is faster is ",
                                "measured, and repeatable results must not depend on measurements");
}

std::string_view name(Precision precision) { return kPrecisions[static_cast<size_t>(precision)].name; }

Precision precision_of(std::string_view text) {
  for (const PrecisionEntry &entry : kPrecisions) {
    if (entry.name == text) return entry.precision;
  }
  return Precision::f32;
}

int32_t ExecutableDescription::input_index(std::string_view name) const { return port_index(inputs, name); }
int32_t ExecutableDescription::output_index(std::string_view name) const { return port_index(outputs, name); }

Program &Program::operator=(Program &&other) noexcept {
  std::swap(executable_, other.executable_);
  std::swap(table_, other.table_);
  std::swap(handle_, other.handle_);
  return *this;
}

Program::~Program() {
  if (handle_ != nullptr) table_->release(handle_);
}

Result<ExecutableRef> Executable::compile(Device &device, const CompileRequest &request) {
  const DeviceRef one = device.shared_from_this();
  return compile(std::span(&one, 1), request);
}

Result<ExecutableRef> Executable::compile(std::span<const DeviceRef> devices, const CompileRequest &request) {
  if (request.graph_text == nullptr || devices.empty())
    return base::invalid_argument("compiling needs a graph and a device");
  const RawRequest raw(devices, request);
  const tutti_executable_table &table = *devices.front()->api().executable;
  tutti_executable *handle = nullptr;
  ErrorSink sink;
  TUTTI_TRY(sink.take(table.compile(&raw.raw, &handle, sink.handle())));
  std::shared_ptr<Executable> executable(new Executable(devices.front(), handle));
  std::string text;
  ErrorSink describe_sink;
  TUTTI_TRY(describe_sink.take(table.describe(handle, collect_text, &text, describe_sink.handle())));
  TUTTI_ASSIGN(executable->description_, read_description(text));
  return ExecutableRef(std::move(executable));
}

Executable::~Executable() { device_->api().executable->release(handle_); }

Result<Program> Executable::bind(Device &device, std::span<void *const> arenas, void *workspace) const {
  if (description_.workspace_bytes > 0 && workspace == nullptr)
    return base::invalid_argument("binding needs a workspace of ", description_.workspace_bytes, " bytes");
  tutti_bind_request request{};
  request.struct_size = sizeof(request);
  request.device = device.handle();
  request.arenas = arenas.data();
  request.arena_count = static_cast<int32_t>(arenas.size());
  request.workspace = workspace;
  tutti_program *handle = nullptr;
  ErrorSink sink;
  const tutti_program_table *table = device.api().program;
  TUTTI_TRY(sink.take(table->bind(handle_, &request, &handle, sink.handle())));
  return Program(shared_from_this(), table, handle);
}

Result<std::vector<LayoutProposal>> plan_layouts(Device &device, const CompileRequest &request) {
  std::vector<LayoutProposal> proposals;
  const tutti_layout_table *table = device.api().layout;
  if (table == nullptr || table->plan == nullptr) return proposals;
  const DeviceRef one = device.shared_from_this();
  const RawRequest raw(std::span(&one, 1), request);
  std::string text;
  ErrorSink sink;
  TUTTI_TRY(sink.take(table->plan(&raw.raw, collect_text, &text, sink.handle())));
  TUTTI_ASSIGN(const Json json, Json::parse(text));
  TUTTI_ASSIGN(const std::vector<JsonReader> elements, JsonReader(json, "layouts").elements());
  for (const JsonReader &reader : elements) {
    LayoutProposal proposal;
    TUTTI_ASSIGN(proposal.name, reader.get_string("name"));
    TUTTI_ASSIGN(proposal.layout, reader.get_string("layout"));
    TUTTI_ASSIGN(proposal.storage_bytes, reader.get_integer("storage_bytes"));
    TUTTI_ASSIGN(proposal.alignment, reader.get_integer("alignment", 64));
    proposals.push_back(std::move(proposal));
  }
  return proposals;
}

}  // namespace tutti::impl::backend
