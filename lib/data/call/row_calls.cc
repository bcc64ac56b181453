// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <utility>

#include "base/memory.h"
#include "data/call/graph_calls.h"
#include "data/call/row_prefetch.h"

namespace tutti::impl::data {

using base::Result;
using base::Status;

namespace {

// A chunk's inputs and results stay in the cache between two stages. Chunks of 64 rows keep every chunk aligned.
constexpr int64_t kChunkBytes = int64_t{256} << 10;
constexpr int64_t kChunkRowGranule = 64;
constexpr size_t kMostFunctions = 8;

// Elements of a row, from its dims with or without the batch in front; 0 when they are not known.
int64_t row_elements(const graph::Dims &dims, bool has_batch, const graph::SymbolBindings &bindings) {
  const graph::Dims row = has_batch ? graph::Dims(dims.begin() + 1, dims.end()) : dims;
  return graph::element_count(row).evaluate(bindings).value_or(0);
}

}  // namespace

RowCalls::RowCalls(GraphTarget target, const ElementSpec &input, const LoopThreads &threads)
    : target_(std::move(target)), loops_(threads) {
  const GraphPlan &plan = *target_.plan;
  int64_t bytes = 1;
  for (const GraphPlan::Input &one : plan.inputs) {
    const ComponentSpec &component = input.components[static_cast<size_t>(one.component)];
    input_row_bytes_.push_back(row_elements(component.dims, plan.is_batched, plan.bindings) *
                               static_cast<int64_t>(tensor::size_bytes(component.dtype)));
    bytes += input_row_bytes_.back();
  }
  for (const std::string &name : plan.results) {
    const graph::ValueInfo &info = plan.graph->value(plan.graph->result(name));
    result_row_bytes_.push_back(row_elements(info.dims, plan.has_rows_form, plan.bindings) *
                                static_cast<int64_t>(tensor::size_bytes(info.dtype)));
    bytes += result_row_bytes_.back();
  }
  chunk_rows_ = std::max<int64_t>(kChunkBytes / bytes / kChunkRowGranule, 1) * kChunkRowGranule;
}

std::unique_ptr<RowCalls::Lane> RowCalls::take_lane() {
  std::lock_guard lock(mutex_);
  if (lanes_.empty()) return std::make_unique<Lane>();
  std::unique_ptr<Lane> lane = std::move(lanes_.back());
  lanes_.pop_back();
  return lane;
}

void RowCalls::give_back(std::unique_ptr<Lane> lane) {
  std::lock_guard lock(mutex_);
  lanes_.push_back(std::move(lane));
}

Result<GraphFunction *> RowCalls::function_for(Lane &lane, int64_t rows) const {
  for (const auto &[known_rows, function] : lane.functions) {
    if (known_rows == rows) return function.get();
  }
  graph::SymbolBindings bindings = target_.plan->bindings;
  if (target_.plan->has_rows_form) bindings.emplace(graph::kBatchSymbol, rows);
  TUTTI_ASSIGN(std::unique_ptr<GraphFunction> function, target_.runner->prepare(target_.plan->graph, bindings));
  if (lane.functions.size() >= kMostFunctions) lane.functions.erase(lane.functions.begin());
  lane.functions.emplace_back(rows, std::move(function));
  return lane.functions.back().second.get();
}

void RowCalls::look_up(int64_t rows, std::span<const RowTarget> inputs, std::span<const RowTarget> results,
                       int64_t first) const {
  for (size_t r = 0; r < results.size(); ++r) {
    const ByteTable &table = (*target_.tables)[r];
    const RowTarget &input = inputs[static_cast<size_t>(table.input)];
    table.apply(input.from_row(first).data, rows * input.row_bytes, results[r].from_row(first).data);
  }
}

Status RowCalls::run_chunk(Lane &lane, int64_t rows, std::span<const RowTarget> inputs,
                           std::span<const RowTarget> results, int64_t first, const GraphScalars &scalars) {
  TUTTI_ASSIGN(GraphFunction *const function, function_for(lane, rows));
  lane.input_pointers.resize(inputs.size());
  lane.output_pointers.resize(results.size());
  lane.copies.resize(results.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    lane.input_pointers[i] = inputs[i].from_row(first).data;
  for (size_t r = 0; r < results.size(); ++r) {
    lane.output_pointers[r] = results[r].from_row(first).data;
    if (base::is_aligned(lane.output_pointers[r])) continue;
    if (lane.copies[r] == nullptr) {
      TUTTI_ASSIGN(lane.copies[r], base::allocate_aligned(
                                       static_cast<size_t>(chunk_rows_ * std::max<int64_t>(result_row_bytes_[r], 1))));
    }
    lane.output_pointers[r] = lane.copies[r].get();
  }
  TUTTI_TRY(function->run(lane.input_pointers, lane.output_pointers, scalars));
  for (size_t r = 0; r < results.size(); ++r) {
    std::byte *target = results[r].from_row(first).data;
    if (lane.output_pointers[r] == target) continue;
    std::memcpy(target, lane.output_pointers[r], static_cast<size_t>(rows * results[r].row_bytes));
  }
  return Status();
}

Status RowCalls::run(int64_t rows, std::span<const RowTarget> inputs, std::span<const RowTarget> results) {
  const auto one_range = [&](int64_t begin, int64_t end) -> Status {
    if (looks_up()) {
      look_up(end - begin, inputs, results, begin);
      return Status();
    }
    std::unique_ptr<Lane> lane = take_lane();
    Status status = run_chunk(*lane, end - begin, inputs, results, begin, {target_.seed, 0, 0, end - begin});
    give_back(std::move(lane));
    return status;
  };
  return loops_.run(0, rows, chunk_rows_, one_range);
}

Status RowCalls::run_located(int64_t count, std::span<const std::byte *const> rows,
                             std::span<const RowTarget> targets) {
  const GraphPlan &plan = *target_.plan;
  const size_t components = rows.size() / static_cast<size_t>(std::max<int64_t>(count, 1));
  const auto one_range = [&](int64_t begin, int64_t end) -> Status {
    for (int64_t row = begin; row < end; ++row) {
      const auto element = rows.subspan(static_cast<size_t>(row) * components, components);
      for (size_t i = 0; i < targets.size(); ++i) {
        const GraphPlan::Source &source = plan.sources[i];
        std::byte *const target = targets[i].from_row(row).data;
        if (source.result < 0) {
          const auto passed = static_cast<size_t>(source.component);
          if (row + 1 < count) prefetch_row(element.data()[components + passed], targets[i].row_bytes);
          if (targets[i].row_bytes > 0) {
            std::memcpy(target, element[passed], static_cast<size_t>(targets[i].row_bytes));
          }
          continue;
        }
        const ByteTable &table = (*target_.tables)[static_cast<size_t>(source.result)];
        const auto input = static_cast<size_t>(table.input);
        const auto component = static_cast<size_t>(plan.inputs[input].component);
        if (row + 1 < count) prefetch_row(element.data()[components + component], input_row_bytes_[input]);
        table.apply(element[component], input_row_bytes_[input], target);
      }
    }
    return Status();
  };
  return loops_.run(0, count, chunk_rows_, one_range);
}

Status RowCalls::run_one(std::span<const RowTarget> inputs, std::span<const RowTarget> results, Lineage lineage) {
  std::unique_ptr<Lane> lane = take_lane();
  const Status status = run_chunk(*lane, 1, inputs, results, 0, {target_.seed, lineage.epoch, lineage.index, 1});
  give_back(std::move(lane));
  return status;
}

}  // namespace tutti::impl::data
