// SPDX-License-Identifier: Apache-2.0
#include "data/call/routine_calls.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "data/call/graph_calls.h"
#include "data/call/row_prefetch.h"

namespace tutti::impl::data {

using base::Result;
using base::Status;
using tensor::Shape;
using tensor::Tensor;

namespace {

// Ranges that each thread gets of a loop over rows, so that slow rows do not leave the others waiting.
constexpr int64_t kRangesPerThread = 8;

int64_t size_bytes(const RoutineValue &value) {
  return value.shape.elements() * static_cast<int64_t>(tensor::size_bytes(value.dtype));
}

}  // namespace

RoutineCalls::RoutineCalls(const GraphTarget &target, const LoopThreads &threads)
    : target_(target), loops_(threads), adds_rows_(target.plan->has_rows_form && !target.plan->is_batched) {
  // Inputs in rows have constant dims once the elements' spec has bound their symbols.
  for (const GraphPlan::Input &input : target_.plan->inputs) {
    graph::SymbolBindings bindings = target_.plan->bindings;
    bindings.emplace(graph::kBatchSymbol, 1);
    const auto extents = graph::evaluate(input.dims, bindings);
    const auto shape = extents.ok() ? Shape::make(*extents) : Result<Shape>(Shape());
    row_shapes_.push_back(shape.value_or(Shape()));
  }
}

std::unique_ptr<RoutineCalls::Lane> RoutineCalls::take_lane() {
  {
    std::lock_guard lock(mutex_);
    if (!lanes_.empty()) {
      std::unique_ptr<Lane> lane = std::move(lanes_.back());
      lanes_.pop_back();
      return lane;
    }
  }
  return std::unique_ptr<Lane>(new Lane{Routine(target_.plan->routine, target_.runner, pools_), {}, {}});
}

void RoutineCalls::give_back(std::unique_ptr<Lane> lane) {
  std::lock_guard lock(mutex_);
  lanes_.push_back(std::move(lane));
}

Status RoutineCalls::set_inputs(Lane &lane, const Element &element) const {
  lane.inputs.clear();
  for (const GraphPlan::Input &input : target_.plan->inputs) {
    const Tensor &component = element.components[static_cast<size_t>(input.component)];
    RoutineValue value{component.dtype(), component.shape(), component.data(), nullptr};
    if (value.dtype == tensor::DType::bytes) value.texts = static_cast<const char *>(component.buffer()->data());
    if (adds_rows_) {
      TUTTI_ASSIGN(value.shape, value.shape.prepend(1));
    }
    lane.inputs.push_back(value);
  }
  return Status();
}

Status RoutineCalls::run(const Element &element, std::vector<Tensor> &results) {
  const GraphPlan &plan = *target_.plan;
  std::unique_ptr<Lane> lane = take_lane();
  TUTTI_TRY(set_inputs(*lane, element));
  lane->targets.assign(plan.results.size(), nullptr);
  const int64_t rows = plan.is_batched ? element.rows() : 1;
  TUTTI_TRY(
      lane->routine.run(lane->inputs, scalars(element.lineage.epoch, element.lineage.index, rows), lane->targets));
  results.resize(plan.results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    const Shape &shape = lane->routine.result(i).shape;
    TUTTI_ASSIGN(results[i], lane->routine.result_tensor(i, adds_rows_ ? shape.row_shape() : shape));
  }
  give_back(std::move(lane));
  return Status();
}

Status RoutineCalls::run_element(Lane &lane, const Element &element, std::span<const RowTarget> targets,
                                 int64_t row) const {
  const GraphPlan &plan = *target_.plan;
  TUTTI_TRY(set_inputs(lane, element));
  lane.targets.assign(plan.results.size(), nullptr);
  for (size_t i = 0; i < targets.size(); ++i) {
    const GraphPlan::Source &source = plan.sources[i];
    std::byte *const target = targets[i].from_row(row).data;
    if (source.result >= 0) {
      lane.targets[static_cast<size_t>(source.result)] = target;
      continue;
    }
    const Tensor &component = element.components[static_cast<size_t>(source.component)];
    if (component.size_bytes() != targets[i].row_bytes) {
      return base::internal_error("component ", i, " has ", component.size_bytes(), " bytes, a row has ",
                                  targets[i].row_bytes);
    }
    if (targets[i].row_bytes > 0) std::memcpy(target, component.data(), static_cast<size_t>(targets[i].row_bytes));
  }
  return lane.routine.run(lane.inputs, scalars(element.lineage.epoch, element.lineage.index, 1), lane.targets);
}

// Calls run_one(lane, row, next) for every row, on other threads too; `next` is the row that the thread will probably
// work on behind it, at least `rows` when there is none. The error of the first row that has one, which came from where
// origin_of says. Row -1 stands for `meanwhile`.
Status RoutineCalls::for_rows(int64_t rows, base::FunctionRef<Status(Lane &, int64_t, int64_t)> run_one,
                              base::FunctionRef<Lineage(int64_t)> origin_of, base::FunctionRef<void()> meanwhile) {
  std::mutex mutex;
  int64_t first_row = rows;
  Status first_error;
  const auto run_range = [&](int64_t begin, int64_t end) -> Status {
    std::unique_ptr<Lane> lane = take_lane();
    if (begin < 0) meanwhile();
    const int64_t next_range = begin + loops_.distance() * (end - begin);
    for (int64_t row = std::max<int64_t>(begin, 0); row < end; ++row) {
      Status status = run_one(*lane, row, row + 1 < end ? row + 1 : next_range);
      if (status.ok()) continue;
      std::lock_guard lock(mutex);
      if (row >= first_row) continue;
      first_row = row;
      first_error = std::move(status);
    }
    give_back(std::move(lane));
    return Status();
  };
  if (!loops_.is_parallel() || rows <= 1) {
    TUTTI_TRY(run_range(0, rows));
  } else {
    const int64_t ranges = loops_.threads() * kRangesPerThread;
    TUTTI_TRY(loops_.run(-1, rows, std::max<int64_t>(rows / ranges, 1), run_range));
  }
  return first_error.ok() ? first_error : graph_failed(first_error, origin_of(first_row));
}

Status RoutineCalls::run_elements(std::span<const Element> elements, std::span<const RowTarget> targets) {
  const auto run_one = [&](Lane &lane, int64_t row, int64_t) -> Status {
    const Element &element = elements[static_cast<size_t>(row)];
    return element.components.empty() ? Status() : run_element(lane, element, targets, row);
  };
  return for_rows(static_cast<int64_t>(elements.size()), run_one,
                  [&](int64_t row) { return elements[static_cast<size_t>(row)].lineage; });
}

Status RoutineCalls::run_located(std::span<const std::byte *const> rows, std::span<const RowTarget> targets,
                                 const RowOrigins &origins, base::FunctionRef<void()> meanwhile) {
  const GraphPlan &plan = *target_.plan;
  const auto count = static_cast<int64_t>(origins.indices.size());
  const size_t components = rows.size() / std::max<size_t>(origins.indices.size(), 1);
  return for_rows(
      count,
      [&](Lane &lane, int64_t row, int64_t next) -> Status {
        const auto element = rows.subspan(static_cast<size_t>(row) * components, components);
        const auto fetch_next = [&](size_t component, int64_t bytes) {
          if (next < count) prefetch_row(rows[static_cast<size_t>(next) * components + component], bytes);
        };
        lane.inputs.resize(plan.inputs.size());
        lane.targets.assign(plan.results.size(), nullptr);
        for (size_t i = 0; i < plan.inputs.size(); ++i) {
          const auto component = static_cast<size_t>(plan.inputs[i].component);
          lane.inputs[i] = {plan.graph->value(plan.routine->inputs[i]).dtype, row_shapes_[i], element[component],
                            nullptr};
          fetch_next(component, size_bytes(lane.inputs[i]));
        }
        for (size_t i = 0; i < targets.size(); ++i) {
          const GraphPlan::Source &source = plan.sources[i];
          std::byte *const target = targets[i].from_row(row).data;
          if (source.result >= 0) {
            lane.targets[static_cast<size_t>(source.result)] = target;
          } else if (targets[i].row_bytes > 0) {
            const auto component = static_cast<size_t>(source.component);
            fetch_next(component, targets[i].row_bytes);
            std::memcpy(target, element[component], static_cast<size_t>(targets[i].row_bytes));
          }
        }
        const int64_t index = origins.indices[static_cast<size_t>(row)];
        return lane.routine.run(lane.inputs, scalars(origins.epoch, index, 1), lane.targets);
      },
      [&](int64_t row) { return origins.of(row); }, meanwhile);
}

Status RoutineCalls::run_rows(std::span<const RowTarget> inputs, std::span<const RowTarget> results,
                              const RowOrigins &origins) {
  const GraphPlan &plan = *target_.plan;
  const auto run_one = [&](Lane &lane, int64_t row, int64_t) -> Status {
    lane.inputs.resize(inputs.size());
    lane.targets.resize(results.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      const tensor::DType dtype = plan.graph->value(plan.routine->inputs[i]).dtype;
      lane.inputs[i] = {dtype, row_shapes_[i], inputs[i].from_row(row).data, nullptr};
    }
    for (size_t i = 0; i < results.size(); ++i)
      lane.targets[i] = results[i].from_row(row).data;
    const int64_t index = origins.indices[static_cast<size_t>(row)];
    return lane.routine.run(lane.inputs, scalars(origins.epoch, index, 1), lane.targets);
  };
  return for_rows(static_cast<int64_t>(origins.indices.size()), run_one, [&](int64_t row) { return origins.of(row); });
}

}  // namespace tutti::impl::data
