// SPDX-License-Identifier: Apache-2.0
//
// A map with a state that goes from element to element. The state is saved with the walk, value by value, so it has a
// fixed and small size.
#include <algorithm>
#include <cstring>
#include <utility>

#include "data/call/function_input.h"
#include "data/call/graph_calls.h"
#include "data/dataset/stage.h"
#include "data/graph/graph_plan.h"
#include "data/transform_parameters.h"

namespace tutti::impl::data {

using base::JsonReader;
using base::Result;
using base::Status;
using tensor::Tensor;

namespace {

// It is saved beside each element that lies in a buffer.
constexpr int64_t kMostStateBytes = int64_t{64} << 10;

// How one walk gets from element to element.
class ScanStep {
 public:
  virtual ~ScanStep() = default;
  virtual Status run(const Element &state, const Element &input, Element &new_state, Element &output) = 0;
};

class CallbackStep : public ScanStep {
 public:
  CallbackStep(const ScanFunction &function, const ElementSpec &state, const ElementSpec &output)
      : function_(function), state_(state), output_(output) {}

  Status run(const Element &state, const Element &input, Element &new_state, Element &output) override {
    new_state.components.resize(state_.components.size());
    output.components.resize(output_.components.size());
    TUTTI_TRY(function_(state, input, new_state, output));
    TUTTI_TRY(check_element(new_state, state_, "the new state"));
    return check_element(output, output_, "the result of the function");
  }

 private:
  // The dataset's.
  const ScanFunction &function_;
  const ElementSpec &state_;
  const ElementSpec &output_;
};

// Which components of what the graph gives are the new state, and which the element.
struct ScanPlan {
  GraphPlan graph;
  std::vector<size_t> state, output;
};

class GraphStep : public ScanStep {
 public:
  GraphStep(const ScanPlan &plan, GraphTarget target) : plan_(plan), calls_(std::move(target)) {}

  Status run(const Element &state, const Element &input, Element &new_state, Element &output) override {
    together_.lineage = input.lineage;
    together_.components = input.components;
    together_.components.insert(together_.components.end(), state.components.begin(), state.components.end());
    const Status status = calls_.map(together_, given_);
    together_.components.clear();
    TUTTI_TRY(status);
    for (const size_t index : plan_.state)
      new_state.components.push_back(given_.components[index]);
    for (const size_t index : plan_.output)
      output.components.push_back(given_.components[index]);
    given_.components.clear();
    return Status();
  }

 private:
  const ScanPlan &plan_;  // the dataset's
  GraphCalls calls_;
  Element together_, given_;
};

void save_values(const Element &element, State &state) {
  for (const Tensor &component : element.components) {
    const auto *bytes = component.data_as<char>();
    for (int64_t at = 0; at < component.size_bytes(); at += 8) {
      int64_t number = 0;
      std::memcpy(&number, bytes + at, static_cast<size_t>(std::min<int64_t>(component.size_bytes() - at, 8)));
      state.number(number);
    }
  }
}

Result<Element> restore_values(const JsonReader &json, const Element &initial) {
  TUTTI_ASSIGN(const std::vector<int64_t> numbers, json.as_integers());
  Element element;
  size_t next = 0;
  for (const Tensor &like : initial.components) {
    TUTTI_ASSIGN(Tensor component, Tensor::allocate(like.dtype(), like.shape()));
    const auto count = static_cast<size_t>((component.size_bytes() + 7) / 8);
    if (numbers.size() - next < count) break;
    if (count > 0) std::memcpy(component.mutable_data(), &numbers[next], static_cast<size_t>(component.size_bytes()));
    next += count;
    element.components.push_back(std::move(component));
  }
  if (next == numbers.size() && element.components.size() == initial.components.size()) return element;
  return base::invalid_argument(json.path(), ": ", numbers.size(), " numbers are not the values of this state");
}

class ScanStage : public Stage {
 public:
  ScanStage(const char *kind, std::unique_ptr<Stage> input, std::unique_ptr<ScanStep> step, Element initial,
            const IteratorContext &context)
      : kind_(kind), input_(std::move(input), context), step_(std::move(step)), state_(std::move(initial)) {}

  Result<bool> next(Element &element) override {
    TUTTI_ASSIGN(const bool more, input_.next());
    if (!more) return false;
    new_state_.components.clear();
    element.components.clear();
    const Lineage lineage = element.lineage = input_.element().lineage;
    const Status status =
        input_.call([&](const Element &source) { return step_->run(state_, source, new_state_, element); });
    element.lineage = lineage;
    if (base::is_interrupt(status)) return status;
    input_.clear();
    if (!status.ok()) {
      return in_element(
          status.wrap(base::concat("scan: it failed for element ", lineage.index, " of epoch ", lineage.epoch)),
          lineage);
    }
    std::swap(state_, new_state_);
    return true;
  }
  void save(State &state) const override {
    state.open(kind_);
    state.key("state");
    state.open_list();
    save_values(state_, state);
    state.close();
    state.key("input");
    input_.save(state);
    state.close();
  }
  Status restore(const JsonReader &state) override {
    TUTTI_TRY(expect_kind(state, kind_));
    TUTTI_ASSIGN(const JsonReader values, state.get("state"));
    TUTTI_ASSIGN(state_, restore_values(values, state_));
    TUTTI_ASSIGN(const JsonReader input, state.get("input"));
    return input_.restore(input);
  }

 private:
  const char *const kind_;
  FunctionInput input_;
  const std::unique_ptr<ScanStep> step_;
  Element state_, new_state_;
};

class ScanCallbackDataset : public Dataset {
 public:
  ScanCallbackDataset(const DatasetRef &input, ElementSpec spec, ElementSpec state, Element initial,
                      ScanFunction function)
      : Dataset("scan_callback", std::move(spec), input->cardinality(), {input}),
        state_(std::move(state)),
        initial_(std::move(initial)),
        function_(std::move(function)) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    TUTTI_ASSIGN(std::unique_ptr<Stage> input, inputs()[0]->walk(context));
    return std::unique_ptr<Stage>(std::make_unique<ScanStage>("scan_callback", std::move(input),
                                                              std::make_unique<CallbackStep>(function_, state_, spec()),
                                                              initial_, context));
  }

 private:
  const ElementSpec state_;
  const Element initial_;
  const ScanFunction function_;
};

class ScanDataset : public Dataset {
 public:
  ScanDataset(const DatasetRef &input, ElementSpec spec, ScanPlan plan, Element initial)
      : Dataset("scan", std::move(spec), input->cardinality(), {input}),
        plan_(std::move(plan)),
        initial_(std::move(initial)) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    if (context.graphs == nullptr) {
      return base::failed_precondition("scan: the iterator's context cannot run graphs");
    }
    TUTTI_ASSIGN(std::unique_ptr<Stage> input, inputs()[0]->walk(context));
    GraphTarget target{&plan_.graph, context.graphs, nullptr, context.seed};
    return std::unique_ptr<Stage>(std::make_unique<ScanStage>(
        "scan", std::move(input), std::make_unique<GraphStep>(plan_, std::move(target)), initial_, context));
  }

 private:
  const ScanPlan plan_;
  const Element initial_;
};

Result<ElementSpec> describe_state(const std::vector<ScanState> &state, Element &initial) {
  ElementSpec spec;
  int64_t bytes = 0;
  for (const ScanState &one : state) {
    if (one.initial.empty()) return base::invalid_argument("state '", one.name, "' has no initial value");
    if (one.initial.dtype() == tensor::DType::bytes)
      return base::invalid_argument("state '", one.name, "': expected numbers, got bytes, whose size may change");
    const tensor::Shape &shape = one.initial.shape();
    spec.components.push_back({one.name, Role::feature, one.initial.dtype(), graph::Dims(shape.begin(), shape.end())});
    initial.components.push_back(one.initial);
    bytes += one.initial.size_bytes();
  }
  if (bytes > kMostStateBytes) {
    return base::invalid_argument("the state has ", bytes, " bytes, expected at most ", kMostStateBytes,
                                  ": it is saved with every position of the walk");
  }
  TUTTI_TRY(check(spec));
  return spec;
}

// The graph sees the state as further components; those it gives back become the next state.
Result<ScanPlan> plan_scan(const ElementSpec &input, const ElementSpec &state, TransformArguments &arguments,
                           ElementSpec &output) {
  ElementSpec together = input;
  together.components.insert(together.components.end(), state.components.begin(), state.components.end());
  const Status distinct = check(together);
  if (!distinct.ok()) return distinct.wrap("the components of element and state must have different names");
  ScanPlan plan;
  TUTTI_ASSIGN(plan.graph, plan_graph(std::move(arguments.graph), together, arguments.labels, arguments.weights));
  const ElementSpec &given = plan.graph.spec;
  output = given;
  output.components.clear();
  for (const ComponentSpec &component : state.components) {
    const int32_t index = given.find(component.name);
    if (index < 0) return base::invalid_argument("the graph has no new value for state '", component.name, "'");
    const ComponentSpec &next = given.components[static_cast<size_t>(index)];
    if (next.dtype != component.dtype || next.dims != component.dims) {
      return base::invalid_argument("state '", component.name, "': expected ", component.to_string(),
                                    " as at the beginning, the graph gives ", next.to_string());
    }
    plan.state.push_back(static_cast<size_t>(index));
  }
  for (size_t i = 0; i < given.components.size(); ++i) {
    if (state.find(given.components[i].name) >= 0) continue;
    plan.output.push_back(i);
    output.components.push_back(given.components[i]);
  }
  if (output.components.empty()) return base::invalid_argument("the graph has no results other than the state");
  return plan;
}

}  // namespace

Result<DatasetRef> apply_scan(const DatasetRef &input, const ScanParameters &, TransformArguments &arguments) {
  if (input->spec().is_batched()) {
    return base::invalid_argument("elements are batches of ", input->spec().batch_size,
                                  " rows, and the state cannot go from row to row; put scan before batch");
  }
  Element initial;
  TUTTI_ASSIGN(const ElementSpec state, describe_state(arguments.state, initial));
  ElementSpec output;
  TUTTI_ASSIGN(ScanPlan plan, plan_scan(input->spec(), state, arguments, output));
  return DatasetRef(base::make_ref<ScanDataset>(input, std::move(output), std::move(plan), std::move(initial)));
}

Result<DatasetRef> apply_scan_callback(const DatasetRef &input, const ScanCallbackParameters &,
                                       TransformArguments &arguments) {
  Element initial;
  TUTTI_ASSIGN(ElementSpec state, describe_state(arguments.state, initial));
  ElementSpec spec = arguments.output_spec.value_or(input->spec());
  TUTTI_TRY(check(spec));
  return DatasetRef(base::make_ref<ScanCallbackDataset>(input, std::move(spec), std::move(state), std::move(initial),
                                                        std::move(arguments.scan)));
}

}  // namespace tutti::impl::data
