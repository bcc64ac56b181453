// SPDX-License-Identifier: Apache-2.0
//
// Compiled graphs. An Executable is a graph compiled for one set of shapes and one kind of device: immutable, shared,
// without memory. A Program is an executable bound to the arenas and the workspace of one device slot; it runs segment
// by segment, the caller doing external node i (a collective) between segments i and i + 1.
//
//   CompileRequest request{.graph = &text, .bindings = {{"batch", 32}}, .state = &table, .level = Level::fast};
//   TUTTI_ASSIGN(ExecutableRef executable, Executable::compile(*device, request));
//   TUTTI_ASSIGN(Buffer workspace, device->allocate(executable->description().workspace_bytes));
//   TUTTI_ASSIGN(Program program, executable->bind(*device, arenas, workspace.device_pointer()));
//   RunScalars scalars; scalars.set(RunScalar::local_rows, 32);
//   TUTTI_TRY(program.run(0, {inputs, outputs, scalars.data()}, stream));
#ifndef TUTTI_BACKEND_EXECUTABLE_H_
#define TUTTI_BACKEND_EXECUTABLE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/state_table.h"
#include "base/status.h"
#include "graph/dim.h"
#include "tensor/dtype.h"

namespace tutti::impl::backend {

class Executable;
using ExecutableRef = std::shared_ptr<const Executable>;

/// How exactly results repeat; the numbers of TUTTI_LEVEL_*.
enum class Level : int32_t { fast = 1, repeatable = 2, invariant = 3 };

/// How exactly convolutions and matrix products of f32 have to be computed.
enum class Precision : int32_t {
  f32 = 0,
  /// Level fast: factors may be rounded to bfloat16 (8 bits of precision) where the backend knows that to be faster;
  /// GPUs also store what lies between products in it. Sums, results of the graph, state, statistics and losses stay
  /// f32. Where the processor has no such arithmetic nothing changes.
  bf16_where_faster = 1,
  /// Level fast: factors may be rounded to TF32 (11 bits of precision) where the device multiplies that faster. Nothing
  /// is stored in fewer bits; where the device has no such arithmetic nothing changes.
  tf32_where_faster = 2,
  /// As bf16_where_faster, with f16 (11 bits of precision, numbers up to 65504) on GPUs that multiply it faster; what
  /// may be larger stays f32. Without effect on processors.
  f16_where_faster = 3,
};

/// "f32", ...: values of the option precision.
std::string_view name(Precision precision);
/// f32 for a name that is none.
Precision precision_of(std::string_view text);

/// INVALID_ARGUMENT for a precision that the level does not have.
base::Status check_precision(Precision precision, Level level);

/// What to compile; everything is borrowed for the call.
struct CompileRequest {
  /// The serialised graph (graph/serialize.h); shared by all shapes of it.
  const std::string *graph_text = nullptr;
  graph::SymbolBindings bindings = {};
  /// Null = the graph touches no state.
  const StateTable *state = nullptr;
  Level level = Level::fast;
  int32_t threads = 1;
  Precision precision = Precision::f32;
  int32_t flags = 0;             ///< TUTTI_COMPILE_*, besides what precision says
  const void *cancel = nullptr;  ///< a base::CancelToken
};

/// The layout a backend proposes for a state entry.
struct LayoutProposal {
  std::string name;
  std::string layout;
  int64_t storage_bytes = 0;
  int64_t alignment = 64;
};

/// An input or output: row-major, fixed dims.
struct PortDescription {
  std::string name;
  tensor::DType dtype = tensor::DType::f32;
  std::vector<int64_t> dims;
  int64_t bytes = 0;
};

/// An external node: a collective on `elements` numbers of `dtype`, in place at `offset` bytes of an arena or of the
/// workspace.
struct ExternalDescription {
  std::string kind;  ///< "all_reduce_sum", "all_reduce_max", "all_reduce_min"
  std::string label;
  int32_t arena = -1;  ///< index into the state table's arenas; -1 = workspace
  int64_t offset = 0;
  int64_t elements = 0;
  tensor::DType dtype = tensor::DType::f32;
};

struct ExecutableDescription {
  std::vector<PortDescription> inputs;
  std::vector<PortDescription> outputs;
  int64_t workspace_bytes = 0;
  int64_t workspace_alignment = 64;
  std::vector<ExternalDescription> externals;
  std::string report_json;  ///< chosen kernels and bytes, for people and tests

  int32_t segment_count() const { return static_cast<int32_t>(externals.size()) + 1; }
  /// Position by name, -1 when there is none.
  int32_t input_index(std::string_view name) const;
  int32_t output_index(std::string_view name) const;
};

/// The run scalars by name; the numbers of TUTTI_RUN_*.
enum class RunScalar : int32_t {
  step = 0,
  batch_counter = 1,
  row_offset = 2,
  local_rows = 3,
  step_rows = 4,
  first_flag = 5,
  seed = 6,
  iteration = 7,
  data_faults = 8,
};

/// The values that change from run to run. Default: zeros, but first_flag and iteration 1.
class RunScalars {
 public:
  RunScalars() { set(RunScalar::first_flag, 1).set(RunScalar::iteration, 1); }
  RunScalars &set(RunScalar which, int64_t value) {
    values_[static_cast<size_t>(which)] = value;
    return *this;
  }
  int64_t get(RunScalar which) const { return values_[static_cast<size_t>(which)]; }
  const int64_t *data() const { return values_.data(); }

 private:
  std::array<int64_t, TUTTI_RUN_SCALAR_COUNT> values_{};
};

/// Arguments of one run; device pointers in the order of the description, aligned to 64.
struct RunArguments {
  const void *const *inputs = nullptr;
  void *const *outputs = nullptr;
  const int64_t *scalars = nullptr;
};

/// An executable bound to memory. Move-only; used by one thread at a time.
class Program {
 public:
  Program() = default;
  Program(Program &&other) noexcept
      : executable_(std::move(other.executable_)),
        table_(other.table_),
        handle_(std::exchange(other.handle_, nullptr)) {}
  Program &operator=(Program &&other) noexcept;
  ~Program();

  const ExecutableRef &executable() const { return executable_; }

  /// Issues one segment. No allocation, lock or look-up unless it fails.
  base::Status run(int32_t segment, const RunArguments &arguments, Stream &stream) {
    const tutti_run_arguments raw{sizeof(raw), arguments.inputs, arguments.outputs, arguments.scalars};
    ErrorSink sink;
    return sink.take(table_->run(handle_, segment, &raw, stream.handle(), sink.handle()));
  }
  /// What runs of it that were recorded find from here on, in pass `pass` of a recording. Needs
  /// Backend::records_streams().
  base::Status set_arguments(int32_t pass, const RunArguments &arguments, Stream &stream) {
    const tutti_run_arguments raw{sizeof(raw), arguments.inputs, arguments.outputs, arguments.scalars};
    ErrorSink sink;
    return sink.take(table_->set_arguments(handle_, pass, &raw, stream.handle(), sink.handle()));
  }

 private:
  friend class Executable;
  Program(ExecutableRef executable, const tutti_program_table *table, tutti_program *handle)
      : executable_(std::move(executable)), table_(table), handle_(handle) {}

  ExecutableRef executable_;
  const tutti_program_table *table_ = nullptr;
  tutti_program *handle_ = nullptr;
};

class Executable : public std::enable_shared_from_this<Executable> {
 public:
  static base::Result<ExecutableRef> compile(Device &device, const CompileRequest &request);
  /// For backends that lower collectives: all devices of the group, in rank order. Its programs do the collectives, and
  /// have two segments; see TUTTI_BACKEND_LOWERS_COLLECTIVES.
  static base::Result<ExecutableRef> compile(std::span<const DeviceRef> devices, const CompileRequest &request);
  ~Executable();

  const ExecutableDescription &description() const { return description_; }
  /// `arenas` in the order of the state table, null where the graph uses nothing of one; `workspace` of at least
  /// workspace_bytes. The memory outlives the program.
  base::Result<Program> bind(Device &device, std::span<void *const> arenas, void *workspace) const;

 private:
  Executable(DeviceRef device, tutti_executable *handle) : device_(std::move(device)), handle_(handle) {}

  DeviceRef device_;
  tutti_executable *handle_;
  ExecutableDescription description_;
};

/// Asks the device for layouts of the entries that the graph reads; empty when everything may stay row-major.
base::Result<std::vector<LayoutProposal>> plan_layouts(Device &device, const CompileRequest &request);

}  // namespace tutti::impl::backend

#endif  // TUTTI_BACKEND_EXECUTABLE_H_
