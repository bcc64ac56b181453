// SPDX-License-Identifier: Apache-2.0
//
// Maps by graph. Several ways, chosen by what the specs say, never by threads:
//   rows      single examples of static shape: whole chunks of rows go through the graph, so that a batch behind is
//             filled directly (a graph that is not rowwise, or random, goes row by row);
//   batches   batches whose rows have static shape, by a rowwise graph: the same chunks;
//   routine   graphs that no Program can run (map_routine.h);
//   elements  everything else: one run per element. With parallelism above 1 several elements are under way at once,
//             where results have no static shape; their order is kept.
#include <algorithm>
#include <mutex>
#include <utility>

#include "data/call/graph_calls.h"
#include "data/call/ordered_calls.h"
#include "data/dataset/walk_report.h"
#include "data/graph/graph_plan.h"
#include "data/thread/worker_threads.h"
#include "data/transform/map_routine.h"
#include "data/transform/row_flow.h"
#include "data/transform_parameters.h"

namespace tutti::impl::data {

using base::JsonReader;
using base::Result;
using base::Status;
using tensor::Shape;
using tensor::Tensor;

namespace {

// Rows of a chunk that an interrupt has cut: kept until the rest comes, so that chunks are the same with and without.
class HeldRows {
 public:
  void keep(std::span<const RowTarget> rows, int64_t count) {
    count_ = count;
    bytes_.resize(rows.size());
    for (size_t i = 0; i < rows.size(); ++i)
      bytes_[i].assign(rows[i].data, rows[i].from_row(count).data);
  }
  // Copies them back; their number.
  int64_t put_back(std::span<const RowTarget> rows) {
    if (count_ == 0) return 0;
    for (size_t i = 0; i < rows.size(); ++i)
      std::copy(bytes_[i].begin(), bytes_[i].end(), rows[i].data);
    return std::exchange(count_, 0);
  }
  bool empty() const { return count_ == 0; }

 private:
  std::vector<std::vector<std::byte>> bytes_;
  int64_t count_ = 0;
};

class MapAccess : public RandomAccess {
 public:
  MapAccess(std::unique_ptr<RandomAccess> input, const GraphTarget &target, const ElementSpec &spec,
            const LoopThreads &threads, int64_t epoch)
      : input_(std::move(input)), plan_(*target.plan), epoch_(epoch), calls_(target) {
    if (!spec.is_static()) return;
    rows_ = std::make_unique<RowCalls>(target, spec, threads);
    flow_ = std::make_unique<RowFlow>(plan_, spec);
    components_ = spec.components.size();
  }

  int64_t size() const override { return input_->size(); }
  int64_t lineage(int64_t position) const override { return input_->lineage(position); }
  FileName file(int64_t position) const override { return input_->file(position); }
  Status element(int64_t position, Element &element) override {
    source_.lineage = input_->lineage_in(epoch_, position);
    TUTTI_TRY(input_->element(position, source_));
    return calls_.map(source_, element);
  }
  Status gather(std::span<int64_t> positions, std::span<const RowTarget> targets) override {
    Status worst;
    const auto count = static_cast<int64_t>(positions.size());
    if (flow_ == nullptr) return gather_elements(positions, targets);
    if (rows_->looks_up() && input_->lies_in_memory()) {
      located_.resize(positions.size() * components_);
      input_->locate(positions, located_);
      return rows_->run_located(count, located_, targets);
    }
    const int64_t step = std::min(count, rows_at_once());
    TUTTI_TRY(flow_->reserve(step));
    for (int64_t first = 0; first < count; first += step) {
      const int64_t rows = std::min(step, count - first);
      keep_worst(worst, gather_chunk(positions.subspan(static_cast<size_t>(first), static_cast<size_t>(rows)), targets,
                                     first));
    }
    return worst;
  }
  int64_t rows_at_once() const override {
    if (flow_ == nullptr || !plan_.is_rowwise) return 1;
    if (rows_->looks_up() && input_->lies_in_memory()) return INT64_MAX;
    return rows_->is_parallel() ? kParallelChunks * rows_->chunk_rows() : rows_->chunk_rows();
  }

 private:
  // With threads: so that each has several of them to do.
  static constexpr int64_t kParallelChunks = 256;

  // Static results of elements that are not.
  Status gather_elements(std::span<const int64_t> positions, std::span<const RowTarget> targets) {
    Status worst;
    for (size_t row = 0; row < positions.size(); ++row) {
      Status status = element(positions[row], mapped_);
      if (status.ok()) status = copy_to_row(mapped_, targets, static_cast<int64_t>(row));
      keep_worst(worst, std::move(status));
    }
    return worst;
  }
  Status gather_chunk(std::span<int64_t> positions, std::span<const RowTarget> targets, int64_t first) {
    const int64_t position = positions[0];
    const auto rows = static_cast<int64_t>(positions.size());
    const Lineage lineage{epoch_, plan_.is_rowwise ? 0 : input_->lineage(position)};
    TUTTI_TRY(input_->gather(positions, flow_->into(targets, first)));
    const std::span<const RowTarget> results = flow_->graph_results(targets, first);
    const Status status = plan_.is_rowwise ? rows_->run(rows, flow_->graph_inputs(), results)
                                           : rows_->run_one(flow_->graph_inputs(), results, lineage);
    if (status.ok()) return status;
    // Which one of several it was is found by who asked for them.
    if (plan_.is_rowwise && rows > 1) return status.wrap(base::concat("map: the graph failed for ", rows, " elements"));
    return graph_failed(status, input_->lineage_in(epoch_, position));
  }

  std::unique_ptr<RandomAccess> input_;
  const GraphPlan &plan_;
  int64_t epoch_;
  GraphCalls calls_;
  std::unique_ptr<RowCalls> rows_;  // static shapes only, like flow_
  std::unique_ptr<RowFlow> flow_;
  size_t components_ = 0;  // of the input
  std::vector<const std::byte *> located_;
  Element source_, mapped_;
};

class MapStage : public Stage {
 public:
  MapStage(std::unique_ptr<Stage> input, const GraphTarget &target) : input_(std::move(input)), calls_(target) {}

  Result<bool> next(Element &element) override {
    TUTTI_ASSIGN(const bool more, input_->next(source_));
    if (!more) return false;
    TUTTI_TRY(map_element(source_, element));
    source_.components.clear();
    return true;
  }
  void save(State &state) const final {
    state.open("map");
    state.key("input");
    save_input(state);
    state.close();
  }
  Status restore(const JsonReader &state) override {
    TUTTI_TRY(expect_kind(state, "map"));
    TUTTI_TRY(expect_in_order(state));
    TUTTI_ASSIGN(const JsonReader input, state.get("input"));
    return input_->restore(input);
  }

 protected:
  virtual Status map_element(const Element &input, Element &output) { return calls_.map(input, output); }
  virtual void save_input(State &state) const { input_->save(state); }

  std::unique_ptr<Stage> input_;

 private:
  GraphCalls calls_;
  Element source_;
};

// The error of rows that were computed together; `last` is where the last of them came from.
Status chunk_failed(const Status &status, int64_t rows, const Lineage &last) {
  if (rows == 1) return graph_failed(status, last);
  return in_element(status.wrap(base::concat("map: the graph failed for one of the ", rows, " elements up to element ",
                                             last.index, " of epoch ", last.epoch)),
                    last)
      .with_detail("elements", base::concat(rows));
}

// Rows in chunks, for single examples of static shape that cannot be indexed.
class MapRowsStage : public MapStage {
 public:
  MapRowsStage(std::unique_ptr<Stage> input, const GraphTarget &target, const ElementSpec &spec,
               const LoopThreads &threads)
      : MapStage(std::move(input), target), rows_(target, spec, threads), flow_(*target.plan, spec) {}

  Status next_rows(std::span<const RowTarget> targets, int64_t count, int64_t &done) override {
    done = 0;
    const int64_t step = rows_.is_parallel() ? count : rows_.chunk_rows();
    TUTTI_TRY(flow_.reserve(step));
    while (done < count) {
      const int64_t wanted = std::min(step, count - done);
      int64_t rows = 0;
      Status status = read(flow_.into(targets, done), wanted, rows);
      if (base::is_interrupt(status)) return status;
      if (status.ok() && rows > 0) {
        status = rows_.run(rows, flow_.graph_inputs(), flow_.graph_results(targets, done));
        if (!status.ok()) status = chunk_failed(status, rows, input_->last_row());
      }
      done += rows;
      TUTTI_TRY(status);
      if (rows < wanted) break;
    }
    return Status();
  }
  Lineage last_row() const override { return input_->last_row(); }

 protected:
  void save_input(State &state) const override {
    if (held_.empty()) {
      input_->save(state);
    } else {
      state.append(before_);
    }
  }

 private:
  // The rows of one chunk.
  Status read(std::span<const RowTarget> into, int64_t wanted, int64_t &rows) {
    if (held_.empty()) {
      before_.clear();
      input_->save(before_);
    }
    const int64_t held = held_.put_back(into);
    const Status status = input_->next_rows(from_row(into, held, moved_), wanted - held, rows);
    rows += held;
    if (base::is_interrupt(status)) held_.keep(into, rows);
    return status;
  }

  RowCalls rows_;
  RowFlow flow_;
  HeldRows held_;
  State before_;  // of the input, before the chunk
  std::vector<RowTarget> moved_;
};

// Batches in chunks of rows.
class MapBatchesStage : public MapStage {
 public:
  MapBatchesStage(std::unique_ptr<Stage> input, const GraphTarget &target, const ElementSpec &spec,
                  const LoopThreads &threads)
      : MapStage(std::move(input), target), plan_(*target.plan), rows_(target, spec, threads) {}

 protected:
  Status map_element(const Element &input, Element &output) override {
    const int64_t rows = input.rows();
    output.lineage = input.lineage;
    inputs_.clear();
    for (const GraphPlan::Input &one : plan_.inputs) {
      const Tensor &component = input.components[static_cast<size_t>(one.component)];
      const auto address = reinterpret_cast<uintptr_t>(component.data());
      // Batches from elsewhere than a batch stage may lie anywhere.
      if (address % base::kAlignment != 0 || component.rows() != rows) return MapStage::map_element(input, output);
      inputs_.push_back({component.mutable_data_as<std::byte>(), rows == 0 ? 0 : component.size_bytes() / rows});
    }
    TUTTI_TRY(make_outputs(input, rows, output));
    const Status status = rows_.run(rows, inputs_, results_);
    if (status.ok()) return status;
    return in_element(status.wrap(base::concat("map: the graph failed for the batch at row ", input.lineage.index,
                                               " of epoch ", input.lineage.epoch)),
                      input.lineage);
  }

 private:
  Status make_outputs(const Element &input, int64_t rows, Element &output) {
    output.components.resize(plan_.sources.size());
    results_.resize(plan_.results.size());
    pools_.resize(plan_.sources.size());
    for (size_t i = 0; i < plan_.sources.size(); ++i) {
      const GraphPlan::Source &source = plan_.sources[i];
      if (source.component >= 0) {
        output.components[i] = input.components[static_cast<size_t>(source.component)];
        continue;
      }
      const ComponentSpec &component = plan_.spec.components[i];
      std::vector<int64_t> extents{rows};
      for (size_t axis = 1; axis < component.dims.size(); ++axis)
        extents.push_back(component.dims[axis].constant());
      TUTTI_ASSIGN(const Shape shape, Shape::make(extents));
      const auto value_bytes = static_cast<int64_t>(tensor::size_bytes(component.dtype));
      const int64_t bytes = std::max<int64_t>(shape.elements() * value_bytes, 1);
      // The last batch of an epoch may be shorter; blocks of the longest serve it too.
      if (pools_[i] == nullptr || pools_[i]->block_bytes() < bytes) {
        TUTTI_ASSIGN(pools_[i], tensor::BufferPool::create(bytes));
      }
      TUTTI_ASSIGN(base::Ref<tensor::Buffer> buffer, pools_[i]->acquire());
      results_[static_cast<size_t>(source.result)] = {static_cast<std::byte *>(buffer->data()),
                                                      shape.elements_from(1) * value_bytes};
      TUTTI_ASSIGN(output.components[i], Tensor::from_buffer(component.dtype, shape, std::move(buffer)));
    }
    return Status();
  }

  const GraphPlan &plan_;
  RowCalls rows_;
  std::vector<base::Ref<tensor::BufferPool>> pools_;
  std::vector<RowTarget> inputs_, results_;
};

// A map that the consumer of the walk runs: its state, and what goes into it.
class LeftMapStage : public Stage {
 public:
  explicit LeftMapStage(std::unique_ptr<Stage> input) : input_(std::move(input)) {}

  Result<bool> next(Element &element) override { return input_->next(element); }
  void save(State &state) const override {
    state.open("map");
    state.key("input");
    input_->save(state);
    state.close();
  }
  Status restore(const JsonReader &state) override {
    TUTTI_TRY(expect_kind(state, "map"));
    TUTTI_TRY(expect_in_order(state));
    TUTTI_ASSIGN(const JsonReader input, state.get("input"));
    return input_->restore(input);
  }

 private:
  const std::unique_ptr<Stage> input_;
};

// Elements that lie between threads and consumer, for each thread.
constexpr int64_t kSlotsPerThread = 2;

// Are all dims but the first constants, in every component?
bool has_static_rows(const ElementSpec &spec) {
  for (const ComponentSpec &component : spec.components) {
    if (component.dtype == tensor::DType::bytes || component.dims.empty()) return false;
    if (!graph::constant_shape({component.dims.begin() + 1, component.dims.end()})) return false;
  }
  return true;
}

class MapDataset : public Dataset {
 public:
  MapDataset(const DatasetRef &input, GraphPlan plan, const MapParameters &parameters)
      : Dataset("map", plan.spec, input->cardinality(), {input}),
        plan_(std::move(plan)),
        parallelism_(parameters.parallelism),
        asks_for_device_(parameters.on_device) {}

  const GraphPlan *device_plan() const override { return asks_for_device_ ? &plan_ : nullptr; }

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    if (context.left_map == this) {
      TUTTI_ASSIGN(std::unique_ptr<Stage> left, inputs()[0]->walk(context));
      return std::unique_ptr<Stage>(std::make_unique<LeftMapStage>(std::move(left)));
    }
    if (runs_elements()) return open_elements(context);
    TUTTI_ASSIGN(std::unique_ptr<Stage> indexed, open_indexed(*this, context));
    if (indexed != nullptr) return indexed;
    const ElementSpec &from = inputs()[0]->spec();
    TUTTI_ASSIGN(const GraphTarget target, make_target(context));
    TUTTI_ASSIGN(const LoopThreads threads, context.workers->for_loops(parallelism_));
    TUTTI_ASSIGN(std::unique_ptr<Stage> input, inputs()[0]->walk(context));
    if (plan_.routine != nullptr) return routine_stage(std::move(input), target, threads);
    if (maps_batches_by_rows()) {
      return std::unique_ptr<Stage>(std::make_unique<MapBatchesStage>(std::move(input), target, from, threads));
    }
    if (plan_.is_rowwise && !plan_.is_batched && from.is_static() && spec().is_static()) {
      return std::unique_ptr<Stage>(std::make_unique<MapRowsStage>(std::move(input), target, from, threads));
    }
    return std::unique_ptr<Stage>(std::make_unique<MapStage>(std::move(input), target));
  }

  Result<std::unique_ptr<RandomAccess>> random_access(const IteratorContext &context, Access access) const override {
    if (plan_.is_batched) return std::unique_ptr<RandomAccess>();
    TUTTI_ASSIGN(std::unique_ptr<RandomAccess> input, inputs()[0]->random_access(context, access));
    if (input == nullptr) return input;
    TUTTI_ASSIGN(const GraphTarget target, make_target(context));
    TUTTI_ASSIGN(const LoopThreads threads, context.workers->for_loops(parallelism_));
    const ElementSpec &from = inputs()[0]->spec();
    if (plan_.routine != nullptr) {
      return named(context, *this, routine_access(std::move(input), target, from, threads, context.epoch));
    }
    return named(context, *this, std::make_unique<MapAccess>(std::move(input), target, from, threads, context.epoch));
  }

 private:
  bool maps_batches_by_rows() const {
    return plan_.is_rowwise && plan_.is_batched && plan_.routine == nullptr && has_static_rows(inputs()[0]->spec()) &&
           has_static_rows(spec());
  }
  // Are results made one by one, each in memory of its own? Decided by specs alone, so that a saved state fits walks
  // with any number of threads.
  bool runs_elements() const { return !spec().is_static() && !maps_batches_by_rows(); }

  Result<std::unique_ptr<Stage>> open_elements(const IteratorContext &context) const {
    TUTTI_ASSIGN(const GraphTarget target, make_target(context));
    const int32_t parallelism = context.workers->resolve(parallelism_);
    IteratorContext own = context;
    const bool is_plain = parallelism == 1 && context.keeps_order;
    if (!is_plain) own.cancel = base::CancelToken::create_worker(context.cancel);
    TUTTI_ASSIGN(std::unique_ptr<Stage> input, inputs()[0]->walk(own));
    if (is_plain) return std::unique_ptr<Stage>(std::make_unique<MapStage>(std::move(input), target));
    StageCounters *const counters = counters_in(context, *this);
    std::vector<OrderedCallsStage::Call> calls;
    for (int32_t i = 0; i < parallelism; ++i) {
      calls.emplace_back([graph = std::make_shared<GraphCalls>(target)](Element &from, Element &to) {
        const Status status = graph->map(from, to);
        from.components.clear();  // lets go of buffers that a pool waits for
        return status;
      });
    }
    const OrderedCallsStage::Limits limits{kSlotsPerThread, 0, context.keeps_order};
    return std::unique_ptr<Stage>(std::make_unique<OrderedCallsStage>("map", std::move(input), std::move(calls), limits,
                                                                      context.cancel, std::move(own.cancel), counters));
  }

  Result<GraphTarget> make_target(const IteratorContext &context) const {
    if (context.graphs == nullptr) {
      return base::failed_precondition("map: the iterator's context cannot run graphs");
    }
    // Tables belong to the runner that made them.
    std::lock_guard lock(mutex_);
    if (tables_ == nullptr || tables_runner_.lock() != context.graphs) {
      std::vector<ByteTable> tables;
      if (plan_.routine == nullptr) {
        TUTTI_ASSIGN(tables, make_byte_tables(plan_, *context.graphs));
      }
      tables_ = std::make_shared<const std::vector<ByteTable>>(std::move(tables));
      tables_runner_ = context.graphs;
    }
    return GraphTarget{&plan_, context.graphs, tables_, context.seed};
  }

  GraphPlan plan_;
  const int64_t parallelism_;
  const bool asks_for_device_;
  mutable std::mutex mutex_;
  // Guarded by mutex_:
  mutable std::shared_ptr<const std::vector<ByteTable>> tables_;
  mutable std::weak_ptr<GraphRunner> tables_runner_;
};

}  // namespace

Result<DatasetRef> apply_map(const DatasetRef &input, const MapParameters &parameters, TransformArguments &arguments) {
  TUTTI_ASSIGN(GraphPlan plan,
               plan_graph(std::move(arguments.graph), input->spec(), arguments.labels, arguments.weights));
  return DatasetRef(base::make_ref<MapDataset>(input, std::move(plan), parameters));
}

}  // namespace tutti::impl::data
