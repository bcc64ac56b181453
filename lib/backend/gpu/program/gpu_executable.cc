// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/program/gpu_executable.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "backend/build_id.h"
#include "backend/gpu/device/device_program_io.h"
#include "backend/gpu/fusion/elementwise_trees.h"
#include "backend/gpu/fusion/mixed_graph.h"
#include "backend/gpu/fusion/norm_biases.h"
#include "backend/gpu/fusion/norm_fronts.h"
#include "backend/gpu/fusion/norm_sources.h"
#include "backend/gpu/fusion/product_epilogues.h"
#include "backend/gpu/fusion/product_sums.h"
#include "backend/gpu/fusion/recomputed_norms.h"
#include "backend/gpu/generated/generated_kernels.h"
#include "backend/gpu/kernel/program_maker.h"
#include "backend/gpu/kernels/elementwise.h"
#include "backend/gpu/kernels/reduced_trees.h"
#include "backend/gpu/library/algorithm_probes.h"
#include "backend/gpu/library/algorithm_trials.h"
#include "backend/gpu/library/library.h"
#include "backend/gpu/runtime/runtime.h"

namespace tutti::impl::backend::gpu {

using base::JsonArray;
using base::JsonObject;
using base::Result;
using base::Status;
using graph::Node;

namespace {

/// What every value is aligned to: what runtimes give, and what vector loads and libraries want.
constexpr int64_t kAlignment = 256;

int64_t round_up(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// Nodes that only say where a value lies.
bool is_leaf(const Node &node) { return node.op == "input" || node.op == "constant" || node.op == "state_read"; }

bool is_add(const Node &node) {
  const auto mode = node.attributes.find("mode");
  return mode != node.attributes.end() && std::get<std::string>(mode->second) == "add";
}

Status check_layouts(const LoweredGraph &lowered, const GpuDevice &device) {
  for (const StateEntry &entry : lowered.state().entries()) {
    if (!entry.layout.empty())
      return base::invalid_argument("state entry '", entry.name, "' has layout '", entry.layout, "', device ",
                                    device.name(), " supports only row-major");
  }
  return Status();
}

TrialMemory trial_memory(GpuDevice &device) {
  return {[&device](int64_t bytes) { return device.allocate(bytes); },
          [&device](void *pointer, int64_t bytes) { device.release(pointer, bytes); }};
}

AlgorithmTrials::Log log_of(GpuDevice &device) {
  return [host = device.host()](const std::string &line) { host->log(host->user, kWarning, line.c_str()); };
}

PlanCache cache_of(const GpuDevice &device) {
  return PlanCache(device.backend->cache_folder, {"gpu", device.description, kBuildId});
}

/// Null where there is none, and for rows whose bits do not depend on how many they are: by that, too, it chooses.
Library *library_for(const LoweredGraph &lowered, const GpuDevice &device) {
  return lowered.is_row_invariant() ? nullptr : device.library.get();
}

/// Null where algorithms are not to depend on the time that they take.
std::unique_ptr<AlgorithmTrials> trials_for(const LoweredGraph &lowered, GpuDevice &device) {
  if (library_for(lowered, device) == nullptr || lowered.level() != TUTTI_LEVEL_FAST) return nullptr;
  return std::make_unique<AlgorithmTrials>(cache_of(device), trial_memory(device), log_of(device));
}

Result<graph::Graph> mixed_graph_without_biases(graph::Graph graph, tensor::DType half) {
  TUTTI_ASSIGN(graph, move_norm_biases(std::move(graph), half));
  return mixed_graph(std::move(graph), half);
}

GraphChange change_for(const GpuDevice &device) {
  return device.library != nullptr && device.library->has_channel_sums() ? mixed_graph_without_biases : mixed_graph;
}

/// Nothing else says that what follows is slower. Once in the life of the process for each library.
void tell_missing(const GpuDevice &device) {
  static std::mutex mutex;
  static std::set<std::string> told;
  if (device.library == nullptr) return;
  const std::lock_guard guard(mutex);
  for (const std::string &missing : device.library->missing()) {
    if (!told.insert(missing).second) continue;
    const std::string line = base::concat(device.name(), ": ", missing, "; slower kernels are used instead");
    device.host()->log(device.host()->user, kWarning, line.c_str());
  }
}

}  // namespace

Result<std::unique_ptr<GpuExecutable>> GpuExecutable::compile(const tutti_compile_request &request, GpuDevice &device) {
  TUTTI_TRY(device.make_current());
  const std::optional<tensor::DType> half = permitted_half(request);
  const bool is_faster = half == tensor::DType::f16 ? device.multiplies_f16 : device.multiplies_bf16;
  TUTTI_ASSIGN(LoweredGraph lowered, LoweredGraph::decode(request, is_faster ? change_for(device) : nullptr));
  TUTTI_TRY(recompute_norms(lowered, device.backend->recompute_from_bytes));
  TUTTI_TRY(check_layouts(lowered, device));
  std::unique_ptr<GpuExecutable> executable(new GpuExecutable(std::move(lowered)));
  executable->host_ = device.host();
  executable->has_trace_ = (request.flags & TUTTI_COMPILE_DEBUG_NAMES) != 0;
  KernelBatch batch(*device.generator);
  const std::unique_ptr<AlgorithmTrials> trials = trials_for(executable->lowered_, device);
  AlgorithmProbes probes(cache_of(device), trial_memory(device), log_of(device));
  Library *const library = library_for(executable->lowered_, device);
  const Status status = executable->add_calls({library, trials.get(), &probes, batch});
  tell_missing(device);
  if (!status.ok()) return status.with_detail("device", device.name());
  if (trials != nullptr) trials->remember();
  probes.remember();
  return executable;
}

Status GpuExecutable::add_keeping_tails(const std::vector<ProductEpilogue> &tails, const KernelSources &sources,
                                        StorageWishes &wishes, std::vector<KernelCall> &by_step,
                                        std::set<int32_t> &products) {
  for (const ProductEpilogue &tail : tails) {
    const bool is_elsewhere = wishes.turn[static_cast<size_t>(tail.root())] != tail.root();
    if (products.count(tail.product) != 0 || is_elsewhere) continue;
    int64_t scratch = 0;
    TUTTI_ASSIGN(KernelCall call, make_epilogue_call(lowered_, tail, sources.library, sources.trials, sources.probes,
                                                     faults_, &scratch));
    if (!call.kernel) continue;
    place_tail(tail, std::move(call), scratch, wishes, by_step);
    products.insert(tail.product);
  }
  return Status();
}

Status GpuExecutable::add_tails(const ElementwiseTrees &trees, const KernelSources &sources, StorageWishes &wishes,
                                std::vector<KernelCall> &by_step) {
  std::vector<ProductEpilogue> tails = find_product_epilogues(lowered_, trees);
  std::set<int32_t> taken;
  if (sources.library != nullptr)
    TUTTI_TRY(add_keeping_tails(find_keeping_epilogues(lowered_, trees, tails), sources, wishes, by_step, taken));
  std::map<int32_t, ProductEpilogue> of_norms;
  for (ProductEpilogue &tail : tails) {
    const bool is_elsewhere = wishes.turn[static_cast<size_t>(tail.root())] != tail.root();
    if (taken.count(tail.product) != 0 || is_elsewhere) continue;
    if (tail.is_early) {
      note_early_reads(tail, wishes);
      of_norms.emplace(tail.product, std::move(tail));
      continue;
    }
    int64_t scratch = 0;
    TUTTI_ASSIGN(KernelCall call, make_epilogue_call(lowered_, tail, sources.library, sources.trials, sources.probes,
                                                     faults_, &scratch));
    if (call.kernel) place_tail(tail, std::move(call), scratch, wishes, by_step);
  }
  TUTTI_TRY(add_norm_sources(trees, sources, of_norms, wishes, by_step));
  for (const auto &[norm, tail] : of_norms) {
    int64_t scratch = 0;
    TUTTI_ASSIGN(KernelCall call, make_epilogue_call(lowered_, tail, sources.library, sources.trials, sources.probes,
                                                     faults_, &scratch));
    if (call.kernel) place_tail(tail, std::move(call), scratch, wishes, by_step);
  }
  return Status();
}

void GpuExecutable::place_tail(const ProductEpilogue &tail, KernelCall call, int64_t scratch, StorageWishes &wishes,
                               std::vector<KernelCall> &by_step) {
  const auto turn = static_cast<size_t>(tail.turn());
  wishes.scratch[turn] = scratch;
  by_step[turn] = std::move(call);
  wishes.turn[static_cast<size_t>(tail.product)] = tail.turn();
  tail_roots_.insert(&lowered_.step(tail.root()));
  if (tail.keeps()) tail_roots_.insert(&lowered_.step(tail.kept));
  for (const int32_t step : tail.steps)
    wishes.turn[static_cast<size_t>(step)] = tail.turn();
  if (!tail.is_early) return;
  wishes.bytes[static_cast<size_t>(lowered_.step(tail.product).outputs[0])] = 0;
}

Status GpuExecutable::add_fronts(const std::vector<NormFront> &fronts, bool of_relu, StorageWishes &wishes,
                                 std::vector<KernelCall> &by_step) {
  for (const NormFront &front : fronts) {
    const auto root = static_cast<size_t>(front.root());
    const bool is_taken = wishes.turn[root] != front.root() || by_step[root].kernel != nullptr ||
                          read_early_.count(&lowered_.step(front.root())) != 0;
    if (front.is_of_relu() != of_relu || is_taken) continue;
    int64_t scratch = 0;
    TUTTI_ASSIGN(KernelCall call, make_front_call(lowered_, front, faults_, &scratch));
    place_front(front, std::move(call), scratch, wishes, by_step);
  }
  return Status();
}

void GpuExecutable::place_front(const NormFront &front, KernelCall call, int64_t scratch, StorageWishes &wishes,
                                std::vector<KernelCall> &by_step) {
  const auto turn = static_cast<size_t>(front.turn());
  wishes.scratch[turn] = scratch;
  by_step[turn] = std::move(call);
  for (const int32_t step : front.steps) {
    wishes.turn[static_cast<size_t>(step)] = front.turn();
    if (front.is_of_relu()) wishes.unread[static_cast<size_t>(step)] = front.reads.front();
  }
  wishes.turn[static_cast<size_t>(front.norm)] = front.turn();
}

bool GpuExecutable::stays_alone(int32_t step, const ElementwiseTrees &trees, const StorageWishes &wishes) const {
  return wishes.turn[static_cast<size_t>(step)] == step && trees.tree(step).empty() &&
         read_early_.count(&lowered_.step(step)) == 0 && tail_roots_.count(&lowered_.step(step)) == 0;
}

/// Normalisations that are computed with the convolution before them, where algorithms are tried: of these the tails
/// are no longer among `tails`.
Status GpuExecutable::add_norm_sources(const ElementwiseTrees &trees, const KernelSources &sources,
                                       std::map<int32_t, ProductEpilogue> &tails, StorageWishes &wishes,
                                       std::vector<KernelCall> &by_step) {
  if (sources.library == nullptr || sources.trials == nullptr) return Status();
  const auto is_alone = [&](int32_t step) { return stays_alone(step, trees, wishes); };
  for (const auto &[norm, source] : find_norm_sources(lowered_, is_alone)) {
    const auto tail = tails.find(norm);
    const ProductEpilogue *const followed_by = tail == tails.end() ? nullptr : &tail->second;
    int64_t scratch = 0;
    TUTTI_ASSIGN(KernelCall call, make_norm_call(lowered_, norm, source, followed_by, *sources.library, *sources.trials,
                                                 faults_, &scratch));
    if (!call.kernel) continue;
    wishes.turn[static_cast<size_t>(source)] = norm;
    if (followed_by == nullptr) {
      wishes.scratch[static_cast<size_t>(norm)] = scratch;
      by_step[static_cast<size_t>(norm)] = std::move(call);
    } else {
      place_tail(*followed_by, std::move(call), scratch, wishes, by_step);
      tails.erase(tail);
    }
  }
  return Status();
}

/// Whoever makes what the tail reads must not wait until the turn of its root.
void GpuExecutable::note_early_reads(const ProductEpilogue &tail, const StorageWishes &wishes) {
  for (graph::ValueId value : tail.reads) {
    while (wishes.same_memory[static_cast<size_t>(value)] != graph::kNoValue)
      value = wishes.same_memory[static_cast<size_t>(value)];
    read_early_.insert(&lowered_.graph().node(lowered_.graph().value(value).producer));
  }
}

/// Where algorithms are tried alone: how fast products are with sums differs, and in what order rows are added up is
/// the library's affair.
Status GpuExecutable::add_sums(const ElementwiseTrees &trees, const KernelSources &sources, StorageWishes &wishes,
                               std::vector<KernelCall> &by_step) {
  if (sources.library == nullptr || sources.trials == nullptr) return Status();
  WidenedProducts widened = find_widened_products(lowered_, find_product_epilogues(lowered_, trees));
  std::erase_if(widened, [&](const auto &one) {
    return wishes.turn[static_cast<size_t>(one.first)] != one.second.root() ||
           read_early_.count(&lowered_.step(one.second.root())) != 0 ||
           !by_step[static_cast<size_t>(one.second.root())].other_steps.empty();
  });
  const auto is_alone = [&](int32_t step) { return widened.count(step) != 0 || stays_alone(step, trees, wishes); };
  for (const ProductSum &sum : find_product_sums(lowered_, is_alone, widened)) {
    const auto tail = widened.find(sum.product);
    int64_t scratch = 0;
    TUTTI_ASSIGN(KernelCall call, make_sum_call(lowered_, sum, tail == widened.end() ? nullptr : &tail->second,
                                                *sources.library, *sources.trials, faults_, &scratch));
    if (call.kernel) place_sum(sum, std::move(call), scratch, wishes, by_step);
  }
  return Status();
}

void GpuExecutable::place_sum(const ProductSum &sum, KernelCall call, int64_t scratch, StorageWishes &wishes,
                              std::vector<KernelCall> &by_step) {
  if (sum.cast >= 0) {
    by_step[static_cast<size_t>(sum.cast)] = KernelCall();
    wishes.scratch[static_cast<size_t>(sum.cast)] = 0;
    wishes.bytes[static_cast<size_t>(lowered_.step(sum.product).outputs[0])] = 0;
  }
  for (const int32_t step : {sum.product, sum.result(), sum.sum})
    wishes.turn[static_cast<size_t>(step)] = sum.turn;
  wishes.scratch[static_cast<size_t>(sum.turn)] = scratch;
  by_step[static_cast<size_t>(sum.turn)] = std::move(call);
}

Status GpuExecutable::make_calls(const KernelSources &sources, StorageWishes &wishes,
                                 std::vector<KernelCall> &by_step) {
  KernelBatch &batch = sources.batch;
  const ElementwiseTrees trees = ElementwiseTrees::make(lowered_, batch.reduced_bytes());
  wishes.turn = trees.turns();
  wishes.unread.assign(wishes.turn.size(), graph::kNoValue);
  const std::vector<NormFront> fronts = find_norm_fronts(lowered_, trees);
  TUTTI_TRY(add_fronts(fronts, true, wishes, by_step));
  TUTTI_TRY(add_tails(trees, sources, wishes, by_step));
  TUTTI_TRY(add_fronts(fronts, false, wishes, by_step));
  TUTTI_TRY(add_sums(trees, sources, wishes, by_step));
  for (int32_t step = 0; step < lowered_.step_count(); ++step) {
    const Node &node = lowered_.step(step);
    const int32_t turn = wishes.turn[static_cast<size_t>(step)];
    if (turn != step) {
      // Inside of a tree or a tail nothing is stored.
      const std::vector<int32_t> &stored = by_step[static_cast<size_t>(turn)].other_steps;
      if (std::find(stored.begin(), stored.end(), step) == stored.end())
        wishes.bytes[static_cast<size_t>(node.outputs[0])] = 0;
      continue;
    }
    const bool is_elsewhere = is_leaf(node) || node.op == "state_write" || node.op == "all_reduce";
    if (is_elsewhere || (!node.outputs.empty() && wishes.same_memory[static_cast<size_t>(node.outputs[0])] >= 0))
      continue;
    KernelCall &call = by_step[static_cast<size_t>(step)];
    if (call.kernel) continue;  // with its product
    if (trees.tree(step).empty()) {
      KernelRequest request{lowered_, node, sources.library, faults_, &batch};
      request.trials = sources.trials;
      request.views = &views_;
      TUTTI_ASSIGN(call, make_call(request));
      wishes.scratch[static_cast<size_t>(step)] = request.scratch_bytes;
    } else if (reduces_trees(node.op)) {
      TUTTI_ASSIGN(
          call, make_reduced_tree_call(lowered_, trees.tree(step), batch, &wishes.scratch[static_cast<size_t>(step)]));
    } else {
      TUTTI_ASSIGN(call, make_tree_call(lowered_, trees.tree(step), &batch));
    }
  }
  joined_ = HorizontalFusion::find(lowered_, batch, by_step, wishes);
  return batch.compile();
}

void GpuExecutable::make_report(const KernelSources &sources) {
  JsonArray kernels;
  for (const KernelCall &call : calls_) {
    if (call.step < 0) continue;
    const bool is_generated = call.generated != nullptr && call.generated->kernel != nullptr;
    std::vector<int32_t> steps = call.other_steps;
    steps.push_back(call.step);
    for (const int32_t step : steps) {
      const Node &node = lowered_.step(step);
      kernels.push_back(JsonObject{{"node", node.scope_name},
                                   {"op", node.op},
                                   {"kernel", is_generated ? "generated " + call.kernel_name : call.kernel_name}});
    }
  }
  JsonObject report{{"kernels", std::move(kernels)}};
  if (sources.library != nullptr) report.emplace_back("library", sources.library->describe());
  if (sources.trials != nullptr) report.emplace_back("algorithms_tried_for", sources.trials->measured_count());
  if (!sources.batch.report().is_null()) report.emplace_back("generated_kernels", sources.batch.report());
  report_ = std::move(report);
}

Status GpuExecutable::add_calls(const KernelSources &sources) {
  StorageWishes wishes = StorageWishes::row_major(lowered_);
  wishes.alignment = kAlignment;
  place_views(wishes);
  wishes.may_overwrite = [&, updates = wishes.may_overwrite](const Node &node, int32_t output, int32_t input) {
    // Where a product is computed, too, others may still read what one block has no more use for.
    return updates(node, output, input) || (tail_roots_.count(&node) == 0 && may_overwrite(lowered_, node, input));
  };
  std::vector<KernelCall> by_step(lowered_.steps().size());
  TUTTI_TRY(make_calls(sources, wishes, by_step));
  plan_ = plan_storage(lowered_, wishes);
  place_ports();
  TUTTI_TRY(list_calls(wishes, std::move(by_step)));
  joined_.join(calls_, segment_ends_, [&](int32_t position) { return places_[static_cast<size_t>(position)]; });
  make_report(sources);
  name_calls();
  return Status();
}

/// Slices that attention reads where they were made have the memory of the whole.
void GpuExecutable::place_views(StorageWishes &wishes) {
  constexpr int64_t kWidestLoad = 16;  // bytes; libraries want no less
  views_ = AttentionViews::find(lowered_, kWidestLoad, [](const Node &) { return true; });
  for (int32_t step = 0; step < lowered_.step_count(); ++step) {
    const Node &node = lowered_.step(step);
    const HeadView *const view = node.outputs.empty() ? nullptr : views_.of(node.outputs[0]);
    if (view == nullptr) continue;
    const auto value = static_cast<size_t>(node.outputs[0]);
    if (node.op == "slice") wishes.same_memory[value] = view->source;
    wishes.bytes[value] = wishes.bytes[static_cast<size_t>(view->source)];
  }
}

Status GpuExecutable::list_calls(const StorageWishes &wishes, std::vector<KernelCall> by_step) {
  for (size_t value = 0; value < plan_.locations.size(); ++value)
    places_.push_back({plan_.locations[value], wishes.bytes[value]});
  for (int32_t step = 0; step < lowered_.step_count(); ++step) {
    KernelCall &call = by_step[static_cast<size_t>(step)];
    if (call.kernel) {
      call.step = step;
      call.scratch_offset = plan_.scratch_offset[static_cast<size_t>(step)];
      call.scratch_bytes = wishes.scratch[static_cast<size_t>(step)];
      calls_.push_back(std::move(call));
    }
    add_copies(step, false);
    if (lowered_.step(step).op == "all_reduce") segment_ends_.push_back(static_cast<int32_t>(calls_.size()));
    if (lowered_.step(step).op == "state_write") TUTTI_TRY(add_state_write(step));
    add_copies(step, true);
  }
  segment_ends_.push_back(static_cast<int32_t>(calls_.size()));
  return Status();
}

void GpuExecutable::name_calls() {
  size_t begin = 0;
  for (const int32_t segment_end : segment_ends_) {
    const auto end = static_cast<size_t>(segment_end);
    const std::string calls =
        begin < end ? base::concat(": ", calls_[begin].trace_name, " .. ", calls_[end - 1].trace_name) : "";
    ranges_.push_back(register_range(base::concat("segment ", ranges_.size(), calls)));
    begin = end;
  }
  if (!has_trace_) return;
  JsonArray moved;
  for (KernelCall &call : calls_) {
    if (!call.kernel_name.empty()) call.trace_name += " " + call.kernel_name;
    call.range = register_range(call.trace_name);
    moved.push_back(JsonObject{{"name", call.trace_name}, {"bytes", least_bytes(call)}});
  }
  report_.set("calls", std::move(moved));
}

int64_t GpuExecutable::least_bytes(const KernelCall &call) const {
  int64_t bytes = 0;
  for (const std::vector<int32_t> *const operands : {&call.inputs, &call.outputs}) {
    const std::set<int32_t> each(operands->begin(), operands->end());
    for (const int32_t operand : each)
      bytes += operand < 0 ? 0 : places_[static_cast<size_t>(operand)].bytes;
  }
  return bytes;
}

void GpuExecutable::place_ports() {
  int64_t end = round_up(plan_.workspace_bytes);
  const auto place = [&](const std::vector<LoweredPort> &ports, std::vector<PortPlace> &places) {
    for (const LoweredPort &port : ports) {
      const int64_t bytes = lowered_.value(port.value).bytes;
      places.push_back({end, bytes});
      end += round_up(bytes);
    }
  };
  place(lowered_.inputs(), inputs_);
  place(lowered_.outputs(), outputs_);
  run_block_ = end;
  plan_.workspace_bytes = end + round_up(run_block_bytes());

  for (const Node &node : lowered_.graph().nodes()) {
    if (node.op == "constant") constants_bytes_ += round_up(lowered_.value(node.outputs[0]).bytes);
  }
}

int64_t GpuExecutable::run_block_bytes() const {
  const size_t words = TUTTI_RUN_SCALAR_COUNT + inputs_.size() + outputs_.size();
  return static_cast<int64_t>(words * sizeof(uint64_t));
}

int32_t GpuExecutable::add_place(const PlacedBytes &place) {
  places_.push_back(place);
  return static_cast<int32_t>(places_.size()) - 1;
}

void GpuExecutable::add_copies(int32_t step, bool into_outputs) {
  for (const StorageCopy &copy : plan_.copies) {
    if (copy.step != step || (copy.to.place == Place::output) != into_outputs) continue;
    KernelCall call;
    call.kernel = copy_kernel(lowered_.value(copy.from).bytes);
    call.inputs = {copy.from};
    call.outputs = {add_place({copy.to, lowered_.value(copy.from).bytes})};
    call.trace_name = "copy";
    calls_.push_back(std::move(call));
  }
}

Status GpuExecutable::add_state_write(int32_t step) {
  if (plan_.write_is_done[static_cast<size_t>(step)]) return Status();
  const Node &node = lowered_.step(step);
  const StateAccess &access = lowered_.access(step);
  const LoweredValue &value = lowered_.value(node.inputs[0]);
  KernelCall call;
  call.outputs = {add_place({{Place::arena, access.arena, access.offset}, value.bytes})};
  call.inputs = {node.inputs[0]};
  if (is_add(node)) {
    call.inputs.push_back(call.outputs[0]);
    call.kernel = accumulate_kernel(value.dtype, value.elements);
  } else {
    call.kernel = copy_kernel(value.bytes);
  }
  call.trace_name = node.scope_name;
  calls_.push_back(std::move(call));
  return Status();
}

std::string GpuExecutable::describe() const { return describe_executable(lowered_, plan_, report_); }

}  // namespace tutti::impl::backend::gpu
