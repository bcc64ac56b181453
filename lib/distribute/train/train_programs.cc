// SPDX-License-Identifier: Apache-2.0
#include "distribute/train/train_programs.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "distribute/train/central_storage.h"
#include "distribute/train/step_reports.h"
#include "graph/serialize.h"

namespace tutti::impl::distribute {

using base::Result;
using base::Status;

namespace {

/// How many contributors each replica runs.
Result<int32_t> parts_per_replica(const Strategy &strategy, const TrainerOptions &options) {
  if (options.level != backend::Level::invariant) return 1;
  const int32_t logical = options.logical_replicas, replicas = strategy.replicas_in_all();
  if (logical < 1 || logical % replicas != 0) {
    return base::invalid_argument("level invariant runs ", logical, " logical replicas, which ", replicas,
                                  " devices do not share evenly: set the run option logical_replicas to ", replicas,
                                  " or a multiple of it");
  }
  return logical / replicas;
}

/// Do the updates add up the gradients of all contributors, whose partials each of them can read? Not when a total is
/// asked for afterwards.
bool sums_in_finish(const TrainerOptions &options, int32_t slices) {
  return slices > 1 && slices <= seen_partials && !options.keep_gradients;
}

/// In the order of contributors, whose rows of the batch differ, nothing is added up twice: any number of them gives
/// other bits.
FactorRule factor_rule(const TrainerOptions &options, bool sums_in_finish) {
  const bool may_share = sums_in_finish && options.level != backend::Level::invariant && options.accumulation == 1 &&
                         !options.copies_input;
  return {may_share ? options.typical_rows : 0, options.shared_factor_elements};
}

Result<StatePlan> plan_state(TrainSetup &setup, const TrainerOptions &options, int32_t slices,
                             const WeightShare *share) {
  std::vector<backend::LayoutProposal> layouts;
  if (share != nullptr) {
    layouts = share->layouts;
    setup.graphs.state = with_shared_weights(std::move(setup.graphs.state), *share);
  }
  // Row-major for a storage of another backend, which knows no other layout of the devices'.
  const bool is_of_one_backend =
      setup.storage == nullptr || &setup.storage->backend() == &setup.devices.front()->backend();
  if (share == nullptr && is_of_one_backend) {
    TUTTI_ASSIGN(layouts,
                 propose_layouts(*setup.devices.front(), *setup.graphs.accumulate_write, setup.graphs.state,
                                 options.typical_rows, options.level, options.threads_per_replica, options.precision));
  }
  PlanOptions plan_options;
  plan_options.slices = slices;
  plan_options.bucket_bytes = options.bucket_bytes;
  plan_options.first_bucket_bytes = std::min(plan_options.first_bucket_bytes, options.bucket_bytes);
  plan_options.last_bucket_bytes = std::min(plan_options.last_bucket_bytes, options.bucket_bytes);
  return StatePlan::make(setup.graphs.state, layouts, plan_options);
}

/// Lengths of the flat values of one slice.
void bind_slice(const StatePlan &plan, const backend::StateTable &table, graph::SymbolBindings &bindings,
                ShapeKey &key) {
  for (const backend::StateEntry &entry : table.entries()) {
    if (entry.name.rfind("weight/", 0) != 0) continue;
    const auto [begin, end] = plan.slice_of(entry.name.substr(7), 0);
    const int64_t length = end < begin ? entry.storage_elements() : entry.flat_length();
    bindings["slice." + entry.name.substr(7)] = length;
    key.push_back(length);
  }
}

/// Of a slice that is cut between rows, and of matrices; of variables that one slice has, whether it is this one.
void bind_rows(const TrainSetup &setup, int32_t slice, graph::SymbolBindings &bindings) {
  for (const std::string &variable : setup.graphs.matrices) {
    const backend::StateEntry &weight = *setup.plan.find("weight/" + variable);
    const auto [begin, end] = setup.plan.slice_of(variable, slice);
    const int64_t elements = end < begin ? weight.storage_elements() : end - begin;
    bindings[rows_symbol(variable)] = elements / std::max<int64_t>(weight.dims.back(), 1);
  }
  for (const std::string &variable : setup.graphs.undivided) {
    const auto [begin, end] = setup.plan.slice_of(variable, slice);
    bindings[rows_symbol(variable)] = begin == end ? 0 : 1;
  }
  for (const std::string &variable : setup.graphs.factored) {
    const std::vector<int64_t> &dims = setup.plan.find("weight/" + variable)->dims;
    const int64_t columns = std::accumulate(dims.begin() + 1, dims.end(), int64_t{1}, std::multiplies<>());
    const auto [begin, end] = setup.plan.slice_of(variable, slice);
    bindings[first_row_symbol(variable)] = begin / columns;
    bindings[rows_symbol(variable)] = (end - begin) / columns;
  }
}

bool has_collectives(const graph::SealedGraph &graph) {
  return std::ranges::any_of(graph->nodes(), [](const graph::Node &node) { return node.op == "all_reduce"; });
}

Status fill_programs(TrainSetup &setup, const TrainerOptions &options, int32_t contributors, int32_t slices) {
  TrainProgramSet &programs = setup.programs;
  programs.sums_in_finish = sums_in_finish(options, slices);
  const auto source = [&](const graph::Graph &graph, int32_t slice) {
    const int32_t seen = programs.sums_in_finish && slice >= 0 ? contributors : 0;
    return GraphSource{graph::to_json_text(graph), setup.plan.table(slice, seen), options.level,
                       options.threads_per_replica, options.precision};
  };
  const auto marked = [&](const graph::SealedGraph &graph) -> Result<graph::SealedGraph> {
    if (contributors == 1 || programs.sums_in_finish) return graph;
    return mark_buckets(graph, setup.plan);
  };
  // Buckets are complete in the last micro-batch of a step.
  const TrainGraphs &graphs = setup.graphs;
  programs.rounds_at_last = graphs.accumulate_last != nullptr;
  const std::vector<graph::SealedGraph> accumulate = graphs.passes(options.accumulation);
  programs.parts_alternate = std::ranges::any_of(accumulate, has_collectives) ||
                             std::ranges::any_of(graphs.showing, has_collectives) ||
                             (slices > 1 && has_collectives(graphs.finish));
  const auto fill = [&](const std::vector<graph::SealedGraph> &passes, std::vector<GraphSource> &sources) -> Status {
    for (const graph::SealedGraph &graph : passes) {
      const bool may_be_last = !programs.rounds_at_last || graph == passes.back();
      TUTTI_ASSIGN(const graph::SealedGraph complete, may_be_last ? marked(graph) : graph);
      sources.push_back(source(*complete, -1));
    }
    return Status();
  };
  TUTTI_TRY(fill(accumulate, programs.accumulate));
  TUTTI_TRY(fill(graphs.showing, programs.showing));
  for (int32_t slice = 0; setup.graphs.finish && slice < slices; ++slice) {
    programs.finish.push_back(source(*setup.graphs.finish, slices > 1 ? slice : -1));
    programs.finish_bindings.emplace_back();
    programs.finish_keys.push_back({slice});
    bind_slice(setup.plan, programs.finish.back().state, programs.finish_bindings.back(), programs.finish_keys.back());
    bind_rows(setup, slice, programs.finish_bindings.back());
  }
  if (graphs.spmd != nullptr) {
    programs.spmd = source(*graphs.spmd, -1);
    programs.spmd->devices = setup.devices;
  }
  programs.factors = graphs.factors;
  programs.gathers_factors = !graphs.factors.empty() && contributors > 1 && !programs.sums_in_finish;
  if (programs.is_central) programs.updated = updated_ranges(*graphs.finish, setup.plan);
  programs.piece_bytes = std::max<int64_t>(options.bucket_bytes / 64 * 64, 64);
  // While the storage updates, no replica computes.
  if (setup.storage != nullptr && setup.storage->backend().has_host_memory())
    programs.finish.front().threads *= static_cast<int32_t>(setup.devices.size());
  programs.accumulation = options.accumulation;
  programs.loss_scale = options.loss_scale;
  programs.tracer = options.tracer;
  programs.contributors = contributors;
  programs.every_contributor_finishes = slices > 1;
  return Status();
}

Status check_gradient_dtype(const TrainerOptions &options) {
  if (options.gradient_dtype == tensor::DType::f32) return Status();
  if (options.gradient_dtype != tensor::DType::bf16) {
    return base::invalid_argument("gradient_dtype is ", options.gradient_dtype, ", expected f32 or bf16");
  }
  if (options.level != backend::Level::fast) {
    return base::invalid_argument(
        "gradient_dtype is bf16, which needs determinism fast: the effect of rounding depends on ",
        "the devices and on the order of their additions");
  }
  return Status();
}

/// Rounded where they are sent from device to device, and nowhere else.
tensor::DType gradient_dtype(const TrainerOptions &options, int32_t contributors, int32_t slices) {
  return contributors > 1 && slices == 1 ? options.gradient_dtype : tensor::DType::f32;
}

}  // namespace

Status check(const TrainerOptions &options) {
  TUTTI_TRY(backend::check_precision(options.precision, options.level));
  TUTTI_TRY(check_gradient_dtype(options));
  TUTTI_TRY(check_all_reduce(options.all_reduce, options.level));
  if (options.lowering == Lowering::shared && options.all_reduce != AllReduceChoice::automatic) {
    return base::invalid_argument("all_reduce is ", name(options.all_reduce),
                                  ", which needs weights for each device: lowering shared has one copy of all");
  }
  if (options.accumulation < 1) {
    return base::invalid_argument("accumulation must be at least 1, got ", options.accumulation);
  }
  if (options.device_prefetch < 1 || options.device_prefetch > kMostDevicePrefetch) {
    return base::invalid_argument("device_prefetch must be 1 to ", kMostDevicePrefetch, " steps, got ",
                                  options.device_prefetch);
  }
  if (options.bucket_bytes < 1) {
    return base::invalid_argument("bucket_bytes must be at least 1, got ", options.bucket_bytes);
  }
  return Status();
}

std::string how_variables_are_kept(const Strategy &strategy, const TrainSetup &setup) {
  const int32_t devices = strategy.replica_count();
  if (setup.shared_weights) return "one copy in the host's memory";
  if (!setup.programs.is_central) return devices == 1 ? "on the device" : "a copy on each device";
  const bool is_apart = setup.storage != nullptr;
  const std::string &name = (is_apart ? setup.storage : setup.devices.front())->name();
  const int32_t others = is_apart ? devices : devices - 1;
  return base::concat("on ", name, ", which updates them and gives ", others, " other ",
                      others == 1 ? "device" : "devices", " the new weights in each step");
}

std::string how_gradients_are_added_up(const TrainProgramSet &programs, const std::string &group) {
  if (programs.contributors == 1) return "there is one replica";
  if (programs.sums_in_finish) return "in the updates, which read those of all replicas in one memory";
  if (!programs.spmd.has_value()) return group;
  return base::concat("by one program of all devices; of batches that these do not share evenly, by ", group);
}

base::Json bucket_bytes(const StatePlan &plan) {
  std::map<std::string, int64_t> bytes_of;
  for (const Bucket &bucket : plan.buckets())
    bytes_of[std::string(tensor::name(bucket.dtype))] +=
        bucket.elements * static_cast<int64_t>(tensor::size_bytes(bucket.dtype));
  return base::JsonObject(bytes_of.begin(), bytes_of.end());
}

std::vector<NamedNumber> memory_of(const std::vector<backend::DeviceRef> &devices) {
  std::vector<NamedNumber> used;
  for (const backend::DeviceRef &device : devices) {
    const int64_t all = device->description().memory_bytes;
    if (device->backend().has_host_memory() || all <= 0) continue;
    const Result<int64_t> available = device->available_bytes();
    if (available.ok() && *available <= all) used.push_back({device->name(), static_cast<double>(all - *available)});
  }
  return used;
}

Result<std::vector<backend::DeviceRef>> open_devices(const Strategy &strategy) {
  std::vector<backend::DeviceRef> devices;
  for (const DeviceChoice &choice : strategy.devices()) {
    TUTTI_ASSIGN(backend::DeviceRef device, choice.backend->open_device(choice.index));
    devices.push_back(std::move(device));
  }
  return devices;
}

Result<std::vector<backend::LayoutProposal>> propose_layouts(backend::Device &device, const graph::Graph &graph,
                                                             const std::vector<StateSpec> &state, int64_t rows,
                                                             backend::Level level, int32_t threads,
                                                             backend::Precision precision) {
  if (!device.backend().proposes_layouts()) return std::vector<backend::LayoutProposal>{};
  TUTTI_ASSIGN(const StatePlan dense, StatePlan::make(state, {}, {}));
  const std::string text = graph::to_json_text(graph);
  const backend::StateTable table = dense.table();
  backend::CompileRequest request;
  request.graph_text = &text;
  request.state = &table;
  request.level = level;
  request.threads = threads;
  request.precision = precision;
  for (const std::string &symbol : graph::symbols_of(graph))
    request.bindings[symbol] = rows;
  return backend::plan_layouts(device, request);
}

/// Steps that may be issued on devices and not judged yet. Where these have memory of their own the next one begins
/// while the host looks at what a step reports; not where that decides how the next one runs, or hands out weights.
static int32_t steps_in_flight(const Strategy &strategy, const TrainerOptions &options, const Keeping &keeping) {
  const bool waits = strategy.backend()->has_host_memory() || options.loss_scale.is_on || keeping.central;
  return waits ? 1 : StepReports::kMostInFlight;
}

/// Can the devices run a whole step together? Nothing is kept for anybody in between, and nobody else takes part.
static bool runs_as_spmd(const Strategy &strategy, const TrainSetup &setup, const TrainerOptions &options) {
  const bool keeps = options.keep_gradients || options.keep_outputs || options.loss_scale.is_on;
  return strategy.backend()->lowers_collectives() && strategy.replica_count() > 1 && strategy.workers().count == 1 &&
         setup.parts == 1 && !setup.shared_weights && !setup.programs.is_central && options.accumulation == 1 && !keeps;
}

/// With f16 where the devices compute in it and the loss can be scaled, and then with a scale.
static TrainerOptions settle_precision(const graph::Model &model, const Strategy &strategy, TrainerOptions options) {
  const bool is_half = options.precision == backend::Precision::f16_where_faster;
  if (is_half && !strategy.backend()->has_host_memory()) options.loss_scale.is_on = true;
  if (!model.train || model.train->gradients.empty()) return options;
  options.loss_scale.is_on = false;
  if (is_half) options.precision = backend::Precision::tf32_where_faster;
  return options;
}

Result<std::unique_ptr<TrainSetup>> set_up_training(const graph::Model &model, const Strategy &strategy,
                                                    const TrainerOptions &asked, const WeightShare *share) {
  TUTTI_TRY(check_trains(strategy.devices()));
  const TrainerOptions options = settle_precision(model, strategy, asked);
  auto setup = std::make_unique<TrainSetup>();
  StepGraphOptions graph_options;
  TUTTI_ASSIGN(setup->parts, parts_per_replica(strategy, options));
  const int32_t contributors = setup->parts * strategy.replicas_in_all();
  TUTTI_TRY(check(options));
  const Keeping keeping = keeping_of(strategy, options, contributors);
  if (keeping.central) TUTTI_TRY(check_central(options));
  setup->shared_weights = keeping.shared;
  setup->programs.is_central = keeping.central;
  setup->programs.updates_apart = graph_options.updates_apart = keeping.apart;
  const int32_t slices = setup->shared_weights ? contributors : 1;
  graph_options.contributors = contributors;
  graph_options.slices = slices;
  graph_options.accumulation = options.accumulation;
  graph_options.clip_norm = options.clip_norm;
  graph_options.keep_gradients = options.keep_gradients;
  graph_options.keep_outputs = setup->programs.keeps_outputs = options.keep_outputs;
  graph_options.shows_rows = options.shows_rows;
  graph_options.scales_loss = options.loss_scale.is_on;
  setup->programs.steps_in_flight = steps_in_flight(strategy, options, keeping);
  graph_options.ok_lasts = setup->programs.steps_in_flight > 1;
  graph_options.is_guarded = !strategy.backend()->has_host_memory() && !keeping.central;
  graph_options.gradient_dtype = gradient_dtype(options, contributors, slices);
  graph_options.sums_in_finish = sums_in_finish(options, slices);
  graph_options.lengths_differ = options.accumulation > 1 || strategy.workers().count > 1;
  graph_options.factors = factor_rule(options, graph_options.sums_in_finish);
  graph_options.spmd = runs_as_spmd(strategy, *setup, options);
  TUTTI_ASSIGN(setup->graphs, make_train_graphs(model, graph_options));
  TUTTI_ASSIGN(setup->devices, open_devices(strategy));
  if (keeping.apart) {
    TUTTI_ASSIGN(setup->storage, strategy.storage()->backend->open_device(strategy.storage()->index));
  }
  TUTTI_ASSIGN(setup->plan, plan_state(*setup, options, slices, share));
  TUTTI_TRY(fill_programs(*setup, options, contributors, slices));
  setup->programs.workers = strategy.workers();
  setup->programs.divides_input = strategy.input_pipeline().count > 1;
  return setup;
}

}  // namespace tutti::impl::distribute
