// SPDX-License-Identifier: Apache-2.0
#include "distribute/weights/loaded_weights.h"

#include <algorithm>

#include "distribute/weights/initial_values.h"
#include "distribute/weights/weight_store.h"
#include "graph/variable_use.h"

namespace tutti::impl::distribute {

using backend::StateEntry;
using base::Result;
using base::Status;
using tensor::Tensor;

namespace {

constexpr std::string_view kWeightEntry = "weight/", kHostEntry = "host/";

Status write_entry(const StateEntry &entry, const Tensor &value, const backend::Backend &backend,
                   backend::Buffer &arena) {
  TUTTI_ASSIGN(const std::vector<std::byte> storage, pack_entry(backend, entry, value));
  return arena.write(entry.offset, storage.data(), entry.storage_bytes);
}

Status write_all(const StatePlan &plan, const graph::Model &model, const checkpoint::WeightVersion &version,
                 LoadedWeights &loaded) {
  const backend::Backend &backend = loaded.device->backend();
  for (const StateEntry &entry : plan.entries()) {
    if (entry.name.rfind(kWeightEntry, 0) == 0) {
      const int64_t found = version.find(checkpoint::StateRole::weight, entry.name.substr(kWeightEntry.size()));
      TUTTI_ASSIGN(const Tensor value, version.read(static_cast<size_t>(found)));
      TUTTI_TRY(write_entry(entry, value, backend, loaded.buffers->weights));
    }
    if (entry.name.rfind(kHostEntry, 0) == 0) {
      for (const graph::HostScalarSpec &scalar : model.host_scalars) {
        if (scalar.name != entry.name.substr(kHostEntry.size())) continue;
        TUTTI_ASSIGN(const Tensor value, filled(entry.dtype, entry.dims, scalar.initial));
        TUTTI_TRY(write_entry(entry, value, backend, loaded.buffers->host));
      }
    }
  }
  return Status();
}

/// What a lane has for itself.
Status make_programs(LoadedWeights &loaded, ExecutableCache &executables, size_t cache_capacity) {
  TUTTI_ASSIGN(loaded.stream, loaded.device->create_stream());
  loaded.workspace = std::make_unique<Workspace>(loaded.device, loaded.stream);
  loaded.programs = std::make_unique<ProgramCache>(executables, loaded.device, *loaded.workspace, cache_capacity);
  loaded.programs->set_arenas(loaded.arenas);
  loaded.finish_programs = std::make_unique<ProgramCache>(executables, loaded.device, *loaded.workspace, 1);
  loaded.finish_programs->set_arenas(loaded.arenas);
  loaded.io = std::make_unique<StagedIo>(loaded.device);
  return Status();
}

}  // namespace

LoadedWeights::~LoadedWeights() {
  if (stream.handle() != nullptr) (void)stream.synchronize();
}

Status check_weights(const StatePlan &plan, const graph::Model &model, const checkpoint::WeightVersion &version) {
  for (const StateEntry &entry : plan.entries()) {
    if (entry.name.rfind(kWeightEntry, 0) != 0) continue;
    const std::string variable = entry.name.substr(kWeightEntry.size());
    const int64_t found = version.find(checkpoint::StateRole::weight, variable);
    if (found < 0) return base::not_found("the weights lack variable '", variable, "', which the model reads");
    const checkpoint::StateEntry &given = version.entries()[static_cast<size_t>(found)];
    if (given.dtype == entry.dtype && std::ranges::equal(given.shape.extents(), entry.dims)) continue;
    const graph::VariableSpec *const spec = model.find_variable(variable);
    return base::invalid_argument("variable '", variable, "' is ", tensor::name(entry.dtype), " ", entry.dims,
                                  " in the model and ", tensor::name(given.dtype), " ", given.shape, " in the weights",
                                  spec == nullptr ? std::string() : graph::describe_use(model, *spec));
  }
  return Status();
}

Result<std::shared_ptr<LoadedWeights>> load_weights(const StatePlan &plan, const graph::Model &model,
                                                    const checkpoint::WeightVersion &version,
                                                    const backend::DeviceRef &device, ExecutableCache &executables,
                                                    size_t cache_capacity) {
  auto loaded = std::make_shared<LoadedWeights>();
  loaded->device = device;
  auto buffers = std::make_shared<WeightBuffers>();
  TUTTI_ASSIGN(buffers->weights, allocate_zeros(*device, plan.arena_bytes(Arena::weights)));
  TUTTI_ASSIGN(buffers->partials, allocate_zeros(*device, plan.arena_bytes(Arena::partials)));
  TUTTI_ASSIGN(buffers->report, allocate_zeros(*device, plan.arena_bytes(Arena::report)));
  TUTTI_ASSIGN(buffers->host, allocate_zeros(*device, plan.arena_bytes(Arena::host)));
  ArenaPointers &arenas = loaded->arenas;
  arenas[static_cast<size_t>(Arena::weights)] = buffers->weights.device_pointer();
  arenas[static_cast<size_t>(Arena::partials)] = buffers->partials.device_pointer();
  arenas[static_cast<size_t>(Arena::report)] = buffers->report.device_pointer();
  arenas[static_cast<size_t>(Arena::host)] = buffers->host.device_pointer();
  loaded->buffers = std::move(buffers);
  TUTTI_TRY(write_all(plan, model, version, *loaded));
  TUTTI_TRY(make_programs(*loaded, executables, cache_capacity));
  return loaded;
}

Result<std::shared_ptr<LoadedWeights>> make_lane(const LoadedWeights &first, ExecutableCache &executables,
                                                 size_t cache_capacity) {
  auto lane = std::make_shared<LoadedWeights>();
  lane->device = first.device;
  lane->buffers = first.buffers;
  lane->arenas = first.arenas;
  TUTTI_TRY(make_programs(*lane, executables, cache_capacity));
  return lane;
}

void follow_trace(LoadedWeights &loaded, base::Tracer *tracer, std::string_view work, int32_t lane) {
  const bool is_traced = tracer != nullptr && tracer->enabled();
  if (is_traced == loaded.is_traced) return;
  loaded.is_traced = is_traced;
  loaded.programs->set_traced(is_traced);
  if (is_traced) tracer->name_row(base::concat(work, " ", lane, " on ", loaded.device->name()));
}

Status compute_derived(const GraphSource &prepare, ExecutableCache &executables, LoadedWeights &loaded) {
  ProgramCache programs(executables, loaded.device, *loaded.workspace, 1);
  programs.set_arenas(loaded.arenas);
  const GraphSource *source = &prepare;
  BoundProgram *program = nullptr;
  TUTTI_TRY(programs.prepare({&source, 1}, {}, [] { return graph::SymbolBindings{}; }, {&program, 1}));
  const backend::RunScalars scalars;
  if (loaded.device->description().only_compiles) return Status();
  return loaded.stream.finish(program->program.run(0, {nullptr, nullptr, scalars.data()}, loaded.stream));
}

}  // namespace tutti::impl::distribute
