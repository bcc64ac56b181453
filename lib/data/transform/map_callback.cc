// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include "data/call/function_input.h"
#include "data/call/ordered_calls.h"
#include "data/dataset/walk_report.h"
#include "data/thread/worker_threads.h"
#include "data/transform_parameters.h"

namespace tutti::impl::data {

using base::CancelToken;
using base::JsonReader;
using base::Ref;
using base::Result;
using base::Status;

namespace {

// One call: the user's error becomes the cause of one that says which element it was.
Status call(const MapFunction &function, const ElementSpec &spec, const Element &input, Element &output) {
  output.components.clear();
  output.lineage = input.lineage;
  const Status status = function(input, output);
  output.lineage = input.lineage;
  if (base::is_interrupt(status)) return status;
  if (!status.ok()) {
    return in_element(status.wrap(base::concat("map: the function failed for element ", input.lineage.index,
                                               " of epoch ", input.lineage.epoch)),
                      input.lineage);
  }
  return in_element(check_element(output, spec, "map: the result of the function"), input.lineage);
}

class MapCallbackStage : public Stage {
 public:
  MapCallbackStage(std::unique_ptr<Stage> input, const MapFunction &function, const ElementSpec &spec,
                   const IteratorContext &context)
      : input_(std::move(input), context), function_(function), spec_(spec) {}

  Result<bool> next(Element &element) override {
    TUTTI_ASSIGN(const bool more, input_.next());
    if (!more) return false;
    TUTTI_TRY(input_.call([&](const Element &source) { return call(function_, spec_, source, element); }));
    return true;
  }
  void save(State &state) const override {
    state.open("map_callback");
    state.key("input");
    input_.save(state);
    state.close();
  }
  Status restore(const JsonReader &state) override {
    TUTTI_TRY(expect_kind(state, "map_callback"));
    TUTTI_TRY(expect_in_order(state));
    TUTTI_ASSIGN(const JsonReader input, state.get("input"));
    return input_.restore(input);
  }

 private:
  FunctionInput input_;
  const MapFunction &function_;
  const ElementSpec &spec_;
};

// Elements that lie in the ring for each call under way.
constexpr int64_t kSlotsPerCall = 4;
// What automatic parallelism may come to where functions wait: calls for each thread of the budget, and in all.
constexpr int32_t kCallsPerThread = 16, kMostCalls = 64;

class MapCallbackDataset : public Dataset {
 public:
  MapCallbackDataset(const DatasetRef &input, ElementSpec spec, MapFunction function, int64_t parallelism)
      : Dataset("map_callback", std::move(spec), input->cardinality(), {input}),
        function_(std::move(function)),
        parallelism_(parallelism) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    const bool is_automatic = parallelism_ == 0;
    const int32_t first = context.workers->resolve(parallelism_);
    const int32_t parallelism = is_automatic ? std::max(first, std::min(kMostCalls, first * kCallsPerThread)) : first;
    IteratorContext own = context;
    const bool is_plain = parallelism == 1 && context.keeps_order;
    if (!is_plain) own.cancel = CancelToken::create_worker(context.cancel);
    TUTTI_ASSIGN(std::unique_ptr<Stage> input, inputs()[0]->walk(own));
    if (is_plain) {
      return std::unique_ptr<Stage>(std::make_unique<MapCallbackStage>(std::move(input), function_, spec(), context));
    }
    StageCounters *const counters = counters_in(context, *this);
    const auto one = [this, cancel = own.cancel](Element &source, Element &result) {
      const base::FunctionToken scope(cancel);
      return call(function_, spec(), source, result);
    };
    std::vector<OrderedCallsStage::Call> calls(static_cast<size_t>(parallelism), one);
    const OrderedCallsStage::Limits limits{kSlotsPerCall, static_cast<size_t>(first), context.keeps_order,
                                           is_automatic ? context.buffers : nullptr};
    return std::unique_ptr<Stage>(std::make_unique<OrderedCallsStage>(
        "map_callback", std::move(input), std::move(calls), limits, context.cancel, std::move(own.cancel), counters));
  }

 private:
  MapFunction function_;
  int64_t parallelism_;
};

}  // namespace

Result<DatasetRef> apply_map_callback(const DatasetRef &input, const MapCallbackParameters &parameters,
                                      TransformArguments &arguments) {
  ElementSpec spec = arguments.output_spec.value_or(input->spec());
  TUTTI_TRY(check(spec));
  return DatasetRef(
      base::make_ref<MapCallbackDataset>(input, std::move(spec), std::move(arguments.map), parameters.parallelism));
}

}  // namespace tutti::impl::data
