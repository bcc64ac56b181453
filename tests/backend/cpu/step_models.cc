// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/step_models.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <utility>

#include "base/random/philox.h"
#include "graph/serialize.h"

namespace tutti::testing {

using impl::backend::Buffer;
using impl::backend::LayoutProposal;
using impl::backend::StateEntry;
using impl::base::Result;
using impl::base::Status;
using impl::tensor::DType;
namespace base = impl::base;
namespace graph = impl::graph;
namespace backend = impl::backend;

namespace {

enum Arena : int32_t { kWeights, kSlots, kPartials, kReport, kArenaCount };

/// Numbers of the run, the same for every backend: variables, images, labels.
enum class Stream : uint64_t { variables, images, labels };

base::RandomStream random_stream(Stream which) {
  return base::RandomStream(base::RandomKey::of(7, 1, static_cast<uint64_t>(which)));
}

/// In [-1, 1).
float draw(base::RandomStream &random) { return 2 * base::uniform_float(random.next()) - 1; }

Status fill_images(Buffer &buffer) {
  base::RandomStream random = random_stream(Stream::images);
  std::vector<float> images(static_cast<size_t>(buffer.size_bytes()) / 4);
  std::generate(images.begin(), images.end(), [&] { return draw(random); });
  return buffer.write(0, images.data(), buffer.size_bytes());
}

Status fill_labels(Buffer &buffer, int64_t classes) {
  base::RandomStream random = random_stream(Stream::labels);
  std::vector<int64_t> labels(static_cast<size_t>(buffer.size_bytes()) / 8);
  std::generate(labels.begin(), labels.end(), [&] { return static_cast<int64_t>(random.below(classes)); });
  return buffer.write(0, labels.data(), buffer.size_bytes());
}

/// Whoever reads what nobody wrote shall notice. A piece at a time, as benchmarks report how much memory was in use.
Result<Buffer> allocate_poisoned(backend::Device &device, int64_t bytes) {
  TUTTI_ASSIGN(Buffer buffer, device.allocate(bytes));
  const std::vector<char> poison(size_t{1} << 20, '\xff');
  const auto piece = static_cast<int64_t>(poison.size());
  for (int64_t at = 0; at < bytes; at += piece)
    TUTTI_TRY(buffer.write(at, poison.data(), std::min(piece, bytes - at)));
  return buffer;
}

/// What was computed so far.
template <typename T>
std::vector<T> copy_of(const Buffer &buffer, backend::Stream &stream) {
  std::vector<T> values(static_cast<size_t>(buffer.size_bytes()) / sizeof(T));
  if (!stream.synchronize().ok() || !buffer.read(0, values.data(), buffer.size_bytes()).ok()) values.clear();
  return values;
}

/// Adds the processor time of its life to a sum.
class Stopwatch {
 public:
  explicit Stopwatch(double &sum) : sum_(sum), start_(now()) {}
  ~Stopwatch() { sum_ += now() - start_; }

 private:
  static double now() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  }

  double &sum_;
  double start_;
};

backend::CompileRequest request_of(const StepState::Setup &setup, const std::string &text,
                                   const backend::StateTable &table) {
  backend::CompileRequest request{&text, setup.bindings, &table, setup.level};
  request.threads = setup.threads;
  request.flags = setup.flags;
  return request;
}

Result<backend::ExecutableRef> compile_program(StepState::Setup &setup, const std::string &text,
                                               const backend::StateTable &table) {
  const Stopwatch watch(setup.build_seconds);
  return backend::Executable::compile(*setup.device, request_of(setup, text, table));
}

Result<backend::Program> bind_program(StepState::Setup &setup, const backend::Executable &executable,
                                      const StepState &state, const Buffer &workspace) {
  const Stopwatch watch(setup.build_seconds);
  return executable.bind(*setup.device, state.pointers(), workspace.device_pointer());
}

int32_t colour_of(const std::string &entry) {
  if (entry.rfind("slot/", 0) != 0) return 0;
  return entry.back() == 'm' ? 1 : 2;
}

}  // namespace

// ---- state ----

Status StepState::add_entry(Setup &setup, std::string name, int32_t arena, const StepVariable &variable,
                            const LayoutProposal *layout) {
  StateEntry entry;
  entry.name = std::move(name);
  entry.arena = arena;
  int64_t &end = sizes_[static_cast<size_t>(arena)];
  entry.dims = variable.dims;
  entry.storage_bytes = elements_of(variable.dims) * 4;
  if (layout != nullptr) {
    entry.layout = layout->layout;
    entry.storage_bytes = layout->storage_bytes;
  }
  setup.bindings["slice." + variable.name] = entry.storage_bytes / 4;
  entry.offset = backend::place_entry(end, entry.storage_bytes, colour_of(entry.name));
  end = entry.offset + entry.storage_bytes;
  return table_.add(entry);
}

Status StepState::plan(Setup &setup, const StepModel &model, const std::vector<LayoutProposal> &layouts) {
  table_ = backend::StateTable();
  for (const char *name : {"weights", "slots", "partials", "report"})
    table_.add_arena(name);
  sizes_.assign(kArenaCount, 0);
  for (const StepVariable &variable : model.variables) {
    const auto found = std::find_if(layouts.begin(), layouts.end(), [&](const LayoutProposal &proposal) {
      return proposal.name == "weight/" + variable.name;
    });
    const LayoutProposal *layout = found == layouts.end() ? nullptr : &*found;
    TUTTI_TRY(add_entry(setup, "weight/" + variable.name, kWeights, variable, layout));
    if (setup.form == Form::prediction || !variable.trained) continue;
    TUTTI_TRY(add_entry(setup, "slot/" + variable.name + "/m", kSlots, variable, layout));
    TUTTI_TRY(add_entry(setup, "slot/" + variable.name + "/v", kSlots, variable, layout));
    if (setup.keep_gradients) TUTTI_TRY(add_entry(setup, "gradient/0/" + variable.name, kPartials, variable, layout));
  }
  for (const auto &derived : setup.derived) {
    const auto found = std::find_if(layouts.begin(), layouts.end(),
                                    [&](const LayoutProposal &proposal) { return proposal.name == derived.name; });
    StepVariable variable;
    variable.name = derived.name;
    variable.dims = derived.dims;
    TUTTI_TRY(add_entry(setup, derived.name, kWeights, variable, found == layouts.end() ? nullptr : &*found));
  }
  sizes_[kReport] = 64;
  return table_.add({.name = "report/loss", .arena = kReport, .storage_bytes = 4});
}

Status StepState::create(Setup &setup, const StepModel &model) {
  TUTTI_TRY(plan(setup, model, {}));
  if (setup.backend->proposes_layouts()) {
    const Stopwatch watch(setup.build_seconds);
    TUTTI_ASSIGN(const auto layouts,
                 backend::plan_layouts(*setup.device, request_of(setup, *setup.graph_text, table_)));
    TUTTI_TRY(plan(setup, model, layouts));
  }
  for (int64_t bytes : sizes_) {
    TUTTI_ASSIGN(Buffer buffer, setup.device->allocate(bytes));
    TUTTI_TRY(buffer.fill_zero(0, bytes));
    arenas_.push_back(std::move(buffer));
  }
  return fill(*setup.backend, model);
}

Status StepState::fill(const backend::Backend &backend, const StepModel &model) {
  base::RandomStream random = random_stream(Stream::variables);
  for (const StepVariable &variable : model.variables) {
    std::vector<float> values(static_cast<size_t>(elements_of(variable.dims)));
    for (float &value : values)
      value = static_cast<float>(static_cast<double>(draw(random)) * variable.scale + variable.offset);
    const StateEntry &entry = *table_.find("weight/" + variable.name);
    std::vector<char> storage(static_cast<size_t>(entry.storage_bytes));
    TUTTI_TRY(
        backend.pack(entry.layout, DType::f32, variable.dims, values.data(), storage.data(), entry.storage_bytes));
    TUTTI_TRY(arenas_[kWeights].write(entry.offset, storage.data(), entry.storage_bytes));
  }
  return Status();
}

std::vector<void *> StepState::pointers() const {
  std::vector<void *> pointers;
  for (const Buffer &arena : arenas_)
    pointers.push_back(arena.device_pointer());
  return pointers;
}

Result<std::vector<float>> StepState::values(const backend::Backend &backend, const std::string &name) const {
  const StateEntry *entry = table_.find(name);
  if (entry == nullptr) return base::not_found("there is no entry '", name, "'");
  std::vector<float> values(static_cast<size_t>(elements_of(entry->dims)));
  std::vector<char> storage(static_cast<size_t>(entry->storage_bytes));
  TUTTI_TRY(arenas_[static_cast<size_t>(entry->arena)].read(entry->offset, storage.data(), entry->storage_bytes));
  TUTTI_TRY(
      backend.unpack(entry->layout, DType::f32, entry->dims, storage.data(), entry->storage_bytes, values.data()));
  return values;
}

double StepState::loss() const {
  float loss = NAN;
  (void)arenas_[kReport].read(0, &loss, sizeof(loss));
  return static_cast<double>(loss);
}

int64_t StepState::arena_bytes() const {
  int64_t bytes = 0;
  for (int64_t size : sizes_)
    bytes += size;
  return bytes;
}

// ---- training ----

Result<StepTrainer> StepTrainer::create(backend::BackendRef backend, const StepModel &model, int64_t batch,
                                        backend::Level level, int32_t flags, int32_t threads, bool keep_gradients) {
  StepTrainer t;
  if (keep_gradients) {
    t.texts_ = {graph::to_json_text(model.accumulate), graph::to_json_text(model.finish)};
  } else {
    t.texts_ = {graph::to_json_text(model.step)};
  }
  TUTTI_ASSIGN(backend::DeviceRef device, backend->open_device(0));
  t.setup_ = {std::move(backend),
              std::move(device),
              StepState::Form::training,
              &t.texts_.front(),
              {{"batch", batch}},
              level,
              threads,
              flags,
              keep_gradients,
              {}};
  backend::Device &on = *t.setup_.device;
  TUTTI_TRY(t.state_.create(t.setup_, model));
  t.setup_.graph_text = nullptr;
  TUTTI_ASSIGN(t.stream_, on.create_stream());
  TUTTI_ASSIGN(t.images_, on.allocate(batch * elements_of(model.image) * 4));
  TUTTI_ASSIGN(t.labels_, on.allocate(batch * elements_of(model.label) * 8));
  TUTTI_TRY(fill_images(t.images_));
  TUTTI_TRY(fill_labels(t.labels_, model.classes));
  int64_t bytes = 0;
  for (const std::string &text : t.texts_) {
    TUTTI_ASSIGN(backend::ExecutableRef executable, compile_program(t.setup_, text, t.state_.table()));
    bytes = std::max(bytes, executable->description().workspace_bytes);
    t.executables_.push_back(std::move(executable));
  }
  TUTTI_ASSIGN(t.workspace_, allocate_poisoned(on, bytes));
  for (const backend::ExecutableRef &executable : t.executables_) {
    TUTTI_ASSIGN(backend::Program program, bind_program(t.setup_, *executable, t.state_, t.workspace_));
    t.programs_.push_back(std::move(program));
  }
  t.scalars_.set(backend::RunScalar::local_rows, batch).set(backend::RunScalar::step_rows, batch);
  return t;
}

Status StepTrainer::step() {
  const auto &description = executables_.front()->description();
  const void *inputs[2] = {nullptr, nullptr};
  inputs[description.input_index("image")] = images_.device_pointer();
  inputs[description.input_index("label")] = labels_.device_pointer();
  for (backend::Program &program : programs_)
    TUTTI_TRY(program.run(0, {inputs, nullptr, scalars_.data()}, stream_));
  scalars_.set(backend::RunScalar::iteration, scalars_.get(backend::RunScalar::iteration) + 1);
  return Status();
}

std::vector<std::string> StepTrainer::reports() const {
  std::vector<std::string> reports;
  for (const backend::ExecutableRef &executable : executables_)
    reports.push_back(executable->description().report_json);
  return reports;
}

std::vector<float> StepTrainer::images() const { return copy_of<float>(images_, stream_); }
std::vector<int64_t> StepTrainer::labels() const { return copy_of<int64_t>(labels_, stream_); }

// ---- prediction ----

Result<StepPredictor> StepPredictor::create(backend::BackendRef backend, const StepModel &model, int64_t batch,
                                            backend::Level level, int32_t flags, int32_t threads, bool folded) {
  StepPredictor p;
  graph::rewrite::PrecomputedGraph parts;
  parts.forward = model.predict;
  if (folded) {
    TUTTI_ASSIGN(const graph::Graph linear, graph::rewrite::fold_batch_norm(model.predict));
    TUTTI_ASSIGN(parts, graph::rewrite::precompute_state(linear));
  }
  p.text_ = graph::to_json_text(parts.forward);
  TUTTI_ASSIGN(backend::DeviceRef device, backend->open_device(0));
  p.setup_ = {std::move(backend),
              std::move(device),
              StepState::Form::prediction,
              &p.text_,
              {{"batch", batch}},
              level,
              threads,
              flags,
              false,
              std::move(parts.entries)};
  backend::Device &on = *p.setup_.device;
  TUTTI_TRY(p.state_.create(p.setup_, model));
  p.setup_.graph_text = nullptr;
  TUTTI_ASSIGN(p.stream_, on.create_stream());
  if (!p.setup_.derived.empty()) TUTTI_TRY(p.prepare(parts.prepare));
  TUTTI_ASSIGN(p.images_, on.allocate(batch * elements_of(model.image) * 4));
  TUTTI_TRY(fill_images(p.images_));
  TUTTI_ASSIGN(p.executable_, compile_program(p.setup_, p.text_, p.state_.table()));
  TUTTI_ASSIGN(p.logits_, allocate_poisoned(on, batch * elements_of(model.label) * model.classes * 4));
  TUTTI_ASSIGN(p.workspace_, allocate_poisoned(on, p.executable_->description().workspace_bytes));
  TUTTI_ASSIGN(p.program_, bind_program(p.setup_, *p.executable_, p.state_, p.workspace_));
  p.scalars_.set(backend::RunScalar::local_rows, batch).set(backend::RunScalar::step_rows, batch);
  return p;
}

Status StepPredictor::prepare(const graph::Graph &graph) {
  const std::string text = graph::to_json_text(graph);
  backend::Device &on = *setup_.device;
  TUTTI_ASSIGN(const auto executable, backend::Executable::compile(on, request_of(setup_, text, state_.table())));
  TUTTI_ASSIGN(const Buffer workspace, allocate_poisoned(on, executable->description().workspace_bytes));
  TUTTI_ASSIGN(backend::Program program, executable->bind(on, state_.pointers(), workspace.device_pointer()));
  TUTTI_TRY(program.run(0, {nullptr, nullptr, scalars_.data()}, stream_));
  return stream_.synchronize();
}

Status StepPredictor::predict() {
  const void *inputs[1] = {images_.device_pointer()};
  void *outputs[1] = {logits_.device_pointer()};
  return program_.run(0, {inputs, outputs, scalars_.data()}, stream_);
}

std::vector<float> StepPredictor::logits() const { return copy_of<float>(logits_, stream_); }

}  // namespace tutti::testing
