// SPDX-License-Identifier: Apache-2.0
#include "distribute/train/memory_estimate.h"

#include <algorithm>
#include <map>

#include "base/memory.h"
#include "distribute/input/device_map.h"
#include "distribute/input/input_binding.h"
#include "distribute/program/program_cache.h"
#include "distribute/train/factor_memory.h"
#include "distribute/train/train_programs.h"

namespace tutti::impl::distribute {

using base::Result;
using base::Status;

namespace {

/// A batch as `spec` describes it, without contents.
Result<data::Element> empty_batch(const data::ElementSpec &spec, int64_t rows) {
  const auto nothing = tensor::Buffer::borrow(nullptr, INT64_MAX, nullptr, tensor::Buffer::Access::read_only);
  data::Element batch;
  for (const data::ComponentSpec &component : spec.components) {
    std::vector<int64_t> extents{rows};
    for (size_t axis = 1; axis < component.dims.size(); ++axis) {
      const graph::Dim &dim = component.dims[axis];
      if (!dim.is_constant()) {
        return base::invalid_argument("the memory of batches with ", component.to_string(), " '", component.name,
                                      "' cannot be estimated: dimension ", axis, " is known only from the data");
      }
      extents.push_back(dim.constant());
    }
    TUTTI_ASSIGN(const tensor::Shape shape, tensor::Shape::make(extents));
    if (component.dtype == tensor::DType::bytes) {
      batch.components.emplace_back();  // no input of a model
      continue;
    }
    TUTTI_ASSIGN(tensor::Tensor tensor, tensor::Tensor::from_buffer(component.dtype, shape, nothing));
    batch.components.push_back(std::move(tensor));
  }
  return batch;
}

int64_t allocated(int64_t bytes) {
  return static_cast<int64_t>(base::round_up(static_cast<size_t>(std::max<int64_t>(bytes, 1)), base::kAlignment));
}

class EstimatorOfTraining : public MemoryEstimator {
 public:
  EstimatorOfTraining(data::ElementSpec spec, data::DatasetRef device_map, const TrainerOptions &options)
      : spec_(std::move(spec)), device_map_(std::move(device_map)), options_(options), executables_(kKeptExecutables) {}

  Status open(const graph::Model &model, const Strategy &strategy) {
    TUTTI_ASSIGN(setup_, set_up_training(model, strategy, options_));
    // Batches of data of its own are this worker's alone.
    sharing_ =
        setup_->programs.contributors / (strategy.worker_input() == WorkerInput::own ? strategy.workers().count : 1);
    std::vector<graph::InputSpec> inputs = model.features;
    inputs.insert(inputs.end(), model.labels.begin(), model.labels.end());
    TUTTI_ASSIGN(binding_, InputBinding::make(inputs, spec_));
    return Status();
  }

  Result<MemoryEstimate> estimate(int64_t batch_size) override;
  Result<int64_t> largest_batch(int64_t most) override;

 private:
  static constexpr size_t kKeptExecutables = 8;
  static constexpr int64_t kMostRows = int64_t{1} << 30;

  /// Of one contributor with `rows` of the batch's.
  Result<int64_t> workspace(const data::Element &batch, int64_t batch_rows, int64_t rows);
  Result<backend::ExecutableRef> compile(const GraphSource &source, const ShapeKey &key,
                                         const graph::SymbolBindings &bindings) {
    const bool is_apart = setup_->storage != nullptr && &source == &setup_->programs.finish.front();
    return executables_.get(source, key, bindings, is_apart ? *setup_->storage : *setup_->devices.front(), false);
  }
  /// Adds what the devices' library says of it.
  Status tell(const backend::Executable &executable) {
    TUTTI_ASSIGN(const base::Json report, base::Json::parse(executable.description().report_json));
    const base::Json *const programs = report.find("segments");
    if (programs == nullptr) return Status();
    for (const base::Json &program : programs->array())
      programs_.push_back(program);
    return Status();
  }
  /// Of the update, on the device that makes it.
  ShapeKey key_of(const data::Element &batch, int64_t rows) const {
    ShapeKey key;
    binding_.fill_key(batch, rows, key);
    return key;
  }
  /// Of all workers and micro-batches, where a batch has so many.
  int64_t step_rows(int64_t batch_rows) const {
    return batch_rows * options_.accumulation * (setup_->programs.divides_input ? setup_->programs.workers.count : 1);
  }
  /// `batch_key`: of all rows of a step.
  Result<int64_t> finish_workspace(const ShapeKey &batch_key);
  /// Of a storage apart from all replicas.
  Result<DeviceMemory> storage_memory();
  Result<DeviceMemory> replica_memory(size_t replica, int64_t step_rows, const graph::SymbolBindings &bindings) const;
  /// Of what one contributor keeps (kept_outputs.h).
  Result<int64_t> output_bytes(const data::Element &batch, int64_t rows);
  /// Of all batches that a device has at once.
  int64_t input_bytes(const data::Element &batch, int64_t rows) const;
  /// Of the map on each device, beside the batches that it gives: what goes into it, and what is between.
  int64_t map_bytes(int64_t rows) const;
  bool copies_input() const { return options_.copies_input || !setup_->devices.front()->backend().has_host_memory(); }

  const data::ElementSpec spec_;
  const data::DatasetRef device_map_;
  const TrainerOptions options_;
  ExecutableCache executables_;
  int32_t sharing_ = 1;  // contributors that share a batch
  std::unique_ptr<TrainSetup> setup_;
  InputBinding binding_;
  base::JsonArray programs_;  // of the estimate under way
};

Result<int64_t> EstimatorOfTraining::workspace(const data::Element &batch, int64_t batch_rows, int64_t rows) {
  const TrainProgramSet &programs = setup_->programs;
  const ShapeKey key = key_of(batch, rows);
  const graph::SymbolBindings bindings = binding_.bindings(key);
  if (programs.spmd.has_value() && batch_rows % programs.contributors == 0) {
    TUTTI_ASSIGN(const backend::ExecutableRef program, compile(*programs.spmd, key, bindings));
    TUTTI_TRY(tell(*program));
    return allocated(program->description().workspace_bytes);
  }
  int64_t bytes = 0;
  for (const GraphSource &accumulate : programs.accumulate) {
    TUTTI_ASSIGN(const backend::ExecutableRef program, compile(accumulate, key, bindings));
    bytes = std::max(bytes, program->description().workspace_bytes);
    TUTTI_TRY(tell(*program));
  }
  for (const GraphSource &showing : programs.showing) {
    TUTTI_ASSIGN(const backend::ExecutableRef program, compile(showing, key, bindings));
    bytes = std::max(bytes, program->description().workspace_bytes);
  }
  if (programs.finish.empty() || programs.updates_apart) return allocated(bytes);
  TUTTI_ASSIGN(const int64_t of_finish, finish_workspace(key_of(batch, step_rows(batch_rows))));
  return allocated(std::max(bytes, of_finish));
}

Result<int64_t> EstimatorOfTraining::finish_workspace(const ShapeKey &batch_key) {
  const TrainProgramSet &programs = setup_->programs;
  // Of equal slices the first is the largest.
  ShapeKey finish_key = programs.finish_keys.front();
  graph::SymbolBindings finish_bindings = programs.finish_bindings.front();
  if (!programs.factors.empty()) {
    finish_key.push_back(batch_key.front());
    finish_key.insert(finish_key.end(), batch_key.begin(), batch_key.end());
    finish_bindings.merge(binding_.bindings(batch_key));
    finish_bindings.insert_or_assign(std::string(kLookingUpSymbol), batch_key.front());
  }
  TUTTI_ASSIGN(const backend::ExecutableRef finish, compile(programs.finish.front(), finish_key, finish_bindings));
  TUTTI_TRY(tell(*finish));
  return finish->description().workspace_bytes;
}

Result<int64_t> EstimatorOfTraining::output_bytes(const data::Element &batch, int64_t rows) {
  const TrainProgramSet &programs = setup_->programs;
  if (!programs.keeps_outputs && programs.showing.empty()) return 0;
  const std::vector<GraphSource> &sources = programs.showing.empty() ? programs.accumulate : programs.showing;
  ShapeKey key;
  binding_.fill_key(batch, rows, key);
  const graph::SymbolBindings bindings = binding_.bindings(key);
  int64_t bytes = 0;
  for (int32_t m = 0; m < programs.accumulation; ++m) {
    const size_t position = programs.accumulate_position(m, programs.accumulation);
    TUTTI_ASSIGN(const backend::ExecutableRef program, compile(sources[position], key, bindings));
    for (const backend::PortDescription &output : program->description().outputs)
      bytes += allocated(output.bytes);
  }
  return bytes;
}

int64_t EstimatorOfTraining::input_bytes(const data::Element &batch, int64_t rows) const {
  int64_t bytes = 0;
  for (const int32_t component : binding_.components()) {
    const tensor::Tensor &tensor = batch.components[static_cast<size_t>(component)];
    bytes += allocated(rows * (tensor.size_bytes() / std::max<int64_t>(tensor.rows(), 1)));
  }
  return bytes * options_.accumulation * (setup_->programs.steps_in_flight + options_.device_prefetch);
}

int64_t EstimatorOfTraining::map_bytes(int64_t rows) const {
  if (device_map_ == nullptr || !copies_input()) return 0;
  const auto map = DeviceMap::create(device_map_, binding_, rows, *setup_->devices.front(), options_.level);
  if (!map.ok()) return 0;  // the host does it
  const backend::ExecutableDescription &description = (*map)->executable()->description();
  int64_t bytes = allocated(description.workspace_bytes);
  for (const backend::PortDescription &input : description.inputs)
    bytes += allocated(input.bytes);
  return bytes;
}

Result<MemoryEstimate> EstimatorOfTraining::estimate(int64_t batch_size) {
  if (batch_size < 1) return base::invalid_argument("a batch of ", batch_size, " rows, expected at least 1");
  TUTTI_ASSIGN(const data::Element batch, empty_batch(spec_, batch_size));
  TUTTI_TRY(binding_.check(batch));
  // The first contributor has most rows.
  const TrainProgramSet &programs = setup_->programs;
  const int64_t rows = share_of_rows(batch_size, 0, sharing_).rows();
  programs_.clear();
  TUTTI_ASSIGN(const int64_t workspace_bytes, workspace(batch, batch_size, rows));
  TUTTI_ASSIGN(const int64_t kept_bytes, output_bytes(batch, rows));
  const int64_t of_map = map_bytes(rows);
  MemoryEstimate result;
  result.batch_size = batch_size;
  if (const backend::MemoryBudget *budget = setup_->devices.front()->backend().memory_budget(); budget != nullptr)
    result.budget = budget->limit() - budget->in_use();
  const graph::SymbolBindings bindings = binding_.bindings(key_of(batch, batch_size));
  for (size_t r = 0; r < setup_->devices.size(); ++r) {
    TUTTI_ASSIGN(DeviceMemory memory, replica_memory(r, step_rows(batch_size), bindings));
    memory.workspace = (programs.parts_alternate ? setup_->parts : 1) * workspace_bytes;
    if (copies_input()) memory.input = setup_->parts * input_bytes(batch, rows) + of_map;
    memory.outputs = setup_->parts * kept_bytes;
    TUTTI_ASSIGN(memory.available, setup_->devices[r]->available_bytes());
    result.devices.push_back(std::move(memory));
  }
  if (setup_->storage != nullptr) {
    TUTTI_ASSIGN(DeviceMemory memory, storage_memory());
    result.devices.push_back(std::move(memory));
  }
  result.programs = programs_;
  return result;
}

Result<DeviceMemory> EstimatorOfTraining::replica_memory(size_t replica, int64_t step_rows,
                                                         const graph::SymbolBindings &bindings) const {
  const StatePlan &plan = setup_->plan;
  const bool owns_weights = !setup_->shared_weights || replica == 0;
  const bool owns_slots = owns_weights && (!setup_->programs.is_central || setup_->copy_of(replica) == 0);
  DeviceMemory memory;
  memory.device = setup_->devices[replica]->name();
  memory.memory = setup_->devices[replica]->description().memory;
  if (owns_weights)
    memory.weights = allocated(plan.arena_bytes(Arena::weights)) + allocated(plan.arena_bytes(Arena::host));
  if (owns_slots) memory.slots = allocated(plan.arena_bytes(Arena::slots));
  memory.gradients =
      setup_->parts * (allocated(plan.arena_bytes(Arena::partials)) + allocated(plan.arena_bytes(Arena::report)));
  if (const int64_t accumulated = plan.arena_bytes(Arena::accumulated); accumulated > 0)
    memory.gradients += setup_->parts * allocated(accumulated);
  // Replicas in one memory share it.
  const FactorMemory factors(setup_->programs.factors, setup_->programs.contributors);
  TUTTI_ASSIGN(const int64_t bytes, factors.bytes(step_rows, bindings));
  if (bytes > 0 && owns_weights) memory.gradients += allocated(bytes);
  return memory;
}

Result<DeviceMemory> EstimatorOfTraining::storage_memory() {
  const StatePlan &plan = setup_->plan;
  DeviceMemory memory;
  memory.device = setup_->storage->name();
  memory.memory = setup_->storage->description().memory;
  memory.weights = allocated(plan.arena_bytes(Arena::weights)) + allocated(plan.arena_bytes(Arena::host));
  memory.slots = allocated(plan.arena_bytes(Arena::slots));
  memory.gradients = allocated(plan.arena_bytes(Arena::partials)) + allocated(plan.arena_bytes(Arena::report));
  TUTTI_ASSIGN(const int64_t workspace_bytes, finish_workspace({}));
  memory.workspace = allocated(workspace_bytes);
  TUTTI_ASSIGN(memory.available, setup_->storage->available_bytes());
  return memory;
}

Result<int64_t> EstimatorOfTraining::largest_batch(int64_t most) {
  if (most < 1 || most > kMostRows)
    return base::invalid_argument("a batch of at most ", most, " rows, expected 1 to ", kMostRows);
  struct Tried {
    int64_t rows, left;
  };
  Tried fits{0, 0}, fails{most + 1, 0};
  bool is_bounded = false;  // by a batch that was tried
  while (fails.rows - fits.rows > (is_bounded ? std::max<int64_t>(1, fits.rows / 32) : 1)) {
    const int64_t gap = fails.rows - fits.rows;
    int64_t rows = std::min(most, std::max<int64_t>(1, fits.rows * 4));
    if (is_bounded && fits.rows > 0) {
      // Memory grows about evenly with the rows.
      const double share = static_cast<double>(fits.left) / static_cast<double>(fits.left - fails.left);
      rows = fits.rows + std::clamp<int64_t>(static_cast<int64_t>(share * static_cast<double>(gap)), gap / 8 + 1,
                                             std::max<int64_t>(gap - gap / 8 - 1, 1));
    }
    TUTTI_ASSIGN(const MemoryEstimate tried, estimate(rows));
    const MemoryEstimate::Room room = tried.room();
    is_bounded |= room.bytes < 0;
    (room.bytes < 0 ? fails : fits) = {rows, room.bytes};
    if (fails.rows == 1) {
      return base::resource_exhausted("training with batches of 1 row needs ", tried.total(), " bytes, ", -room.bytes,
                                      " more than ", room.memory, " has");
    }
  }
  return fits.rows;
}

}  // namespace

int64_t MemoryEstimate::total() const {
  int64_t sum = 0;
  for (const DeviceMemory &device : devices)
    sum += device.total();
  return sum;
}

MemoryEstimate::Room MemoryEstimate::room() const {
  Room least{budget - total(), "the memory budget"};
  std::map<std::string, int64_t> needed;
  for (const DeviceMemory &device : devices)
    needed[device.memory] += device.total();
  for (const DeviceMemory &device : devices) {
    const int64_t left = device.available - needed[device.memory];
    if (left < least.bytes) least = {left, base::concat("memory '", device.memory, "'")};
  }
  return least;
}

base::Json MemoryEstimate::to_json() const {
  base::JsonArray list;
  for (const DeviceMemory &device : devices) {
    list.push_back(base::JsonObject{{"device", device.device},
                                    {"weights", device.weights},
                                    {"slots", device.slots},
                                    {"gradients", device.gradients},
                                    {"workspace", device.workspace},
                                    {"input", device.input},
                                    {"outputs", device.outputs},
                                    {"total", device.total()},
                                    {"memory", device.memory},
                                    {"available", device.available}});
  }
  base::Json json = base::JsonObject{
      {"batch_size", batch_size}, {"devices", std::move(list)}, {"total", total()}, {"fits", room().bytes >= 0}};
  if (!programs.empty()) json.set("programs", programs);
  return json;
}

Result<std::unique_ptr<MemoryEstimator>> MemoryEstimator::open(const graph::Model &train_model,
                                                               const StrategyRef &strategy,
                                                               const TrainerOptions &options,
                                                               const data::ElementSpec &spec,
                                                               const data::Dataset *device_map) {
  if (!spec.is_batched())
    return base::invalid_argument("the dataset gives single elements ", spec.to_string(), ", expected batches");
  auto made = std::make_unique<EstimatorOfTraining>(
      spec, data::DatasetRef::share(const_cast<data::Dataset *>(device_map)), options);
  TUTTI_TRY(made->open(train_model, *strategy));
  return std::unique_ptr<MemoryEstimator>(std::move(made));
}

}  // namespace tutti::impl::distribute
