// SPDX-License-Identifier: Apache-2.0
#include "data/graph/graph_plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/name_suggestions.h"
#include "graph/batch.h"
#include "graph/op_registry.h"
#include "graph/replicate.h"

namespace tutti::impl::data {

using base::Result;
using base::Status;
using graph::Dim;
using graph::Dims;
using graph::ValueInfo;

namespace {

bool mentions_batch(const Dims &dims) {
  return std::any_of(dims.begin(), dims.end(), [](const Dim &dim) { return dim.mentions(graph::kBatchSymbol); });
}

Dims without_first(const Dims &dims) { return {dims.begin() + 1, dims.end()}; }

// May elements of dims `given` go into an input of dims `declared`? Symbols are bound when the element is there.
bool accepts(const Dims &declared, const Dims &given) {
  if (declared.size() != given.size()) return false;
  for (size_t i = 0; i < declared.size(); ++i) {
    if (declared[i].is_constant() && given[i].is_constant() && !(declared[i] == given[i])) return false;
  }
  return true;
}

std::vector<std::string> names_of(const ElementSpec &spec) {
  std::vector<std::string> names;
  for (const ComponentSpec &component : spec.components)
    names.push_back(component.name);
  return names;
}

Result<GraphPlan::Input> plan_input(const std::string &name, const ValueInfo &info, const ElementSpec &spec) {
  const int32_t index = spec.find(name);
  if (index < 0) {
    return base::invalid_argument("graph input '", name, "' is not a component of the elements ", spec.to_string(),
                                  base::did_you_mean(name, names_of(spec)));
  }
  const ComponentSpec &component = spec.components[static_cast<size_t>(index)];
  const bool rows = graph::begins_with_batch(info.dims) && !spec.is_batched();
  if (info.dtype != component.dtype || !accepts(rows ? without_first(info.dims) : info.dims, component.dims)) {
    return base::invalid_argument("graph input '", name, "' is ", info.dtype, graph::to_string(info.dims),
                                  ", the component of the elements is ", component.to_string());
  }
  for (const Dim &dim : info.dims) {
    if (dim.is_constant() || dim.symbols().size() == 1) continue;
    return base::invalid_argument("graph input '", name, "' has the dimension ", dim.to_string(),
                                  "; expected constants and symbols");
  }
  return GraphPlan::Input{name, index, info.dims};
}

// Binds the symbols that stand for constants of the elements. Contradictions show when a graph is run.
void bind_known(const GraphPlan::Input &input, const Dims &given, graph::SymbolBindings &bindings) {
  const size_t offset = input.dims.size() - given.size();
  for (size_t i = 0; i < given.size(); ++i) {
    const Dim &dim = input.dims[i + offset];
    if (!given[i].is_constant() || dim.is_constant() || dim.mentions(graph::kBatchSymbol)) continue;
    const std::string symbol = dim.symbols()[0];
    const std::optional<int64_t> factor = dim.factor_of(symbol);
    if (factor && given[i].constant() % *factor == 0) bindings.emplace(symbol, given[i].constant() / *factor);
  }
}

Status plan_inputs(GraphPlan &plan, const ElementSpec &spec) {
  int64_t with_rows = 0;
  for (const auto &[name, value] : plan.graph->inputs()) {
    TUTTI_ASSIGN(GraphPlan::Input input, plan_input(name, plan.graph->value(value), spec));
    if (graph::begins_with_batch(input.dims)) {
      ++with_rows;
    } else if (mentions_batch(input.dims)) {
      return base::invalid_argument("graph input '", name,
                                    "' has rows on an axis other than 0: ", graph::to_string(input.dims));
    }
    plan.inputs.push_back(std::move(input));
  }
  if (with_rows != 0 && with_rows != static_cast<int64_t>(plan.inputs.size())) {
    return base::invalid_argument(
        "some inputs of the graph begin with the batch and some do not; expected all of them or none");
  }
  plan.has_rows_form = with_rows > 0;
  for (const GraphPlan::Input &input : plan.inputs) {
    bind_known(input, spec.components[static_cast<size_t>(input.component)].dims, plan.bindings);
  }
  if (plan.is_batched && !plan.has_rows_form && !plan.inputs.empty()) {
    return base::invalid_argument("the elements are batches; expected graph inputs that begin with the batch");
  }
  return Status();
}

// Dims of a result as a component: without the rows of a single example, what only a run can tell made unknown.
Result<Dims> component_dims(const GraphPlan &plan, const std::string &name, const Dims &dims) {
  if (plan.has_rows_form && !graph::begins_with_batch(dims)) {
    return base::invalid_argument("graph result '", name, "' ", graph::to_string(dims),
                                  " does not carry the rows on axis 0");
  }
  Dims result = plan.has_rows_form && !plan.is_batched ? without_first(dims) : dims;
  std::map<std::string, Dim, std::less<>> known;
  for (const auto &[symbol, value] : plan.bindings)
    known.emplace(symbol, Dim(value));
  result = graph::substitute(result, known);
  for (size_t i = 0; i < result.size(); ++i) {
    const bool is_rows = i == 0 && plan.is_batched;
    if (!is_rows && !result[i].is_constant()) result[i] = unknown_dim();
  }
  return result;
}

Role role_of(const std::string &name, Role otherwise, const std::vector<std::string> &labels,
             const std::vector<std::string> &weights) {
  if (std::find(labels.begin(), labels.end(), name) != labels.end()) return Role::label;
  if (std::find(weights.begin(), weights.end(), name) != weights.end()) return Role::weight;
  return otherwise;
}

// Components keep their place; a result of the same name takes it. Results with new names follow.
Status plan_outputs(GraphPlan &plan, const ElementSpec &input, const std::vector<std::string> &labels,
                    const std::vector<std::string> &weights) {
  const auto result_of = [&](const std::string &name) {
    const auto found = std::find(plan.results.begin(), plan.results.end(), name);
    return found == plan.results.end() ? -1 : static_cast<int32_t>(found - plan.results.begin());
  };
  const auto add_result = [&](int32_t result, Role role) -> Status {
    const std::string &name = plan.results[static_cast<size_t>(result)];
    const ValueInfo &info = plan.graph->value(plan.graph->result(name));
    TUTTI_ASSIGN(Dims dims, component_dims(plan, name, info.dims));
    plan.spec.components.push_back({name, role_of(name, role, labels, weights), info.dtype, std::move(dims)});
    plan.sources.push_back({-1, result});
    return Status();
  };
  for (size_t i = 0; i < input.components.size(); ++i) {
    const ComponentSpec &component = input.components[i];
    const int32_t result = result_of(component.name);
    const bool taken = std::any_of(plan.inputs.begin(), plan.inputs.end(),
                                   [&](const auto &one) { return one.component == static_cast<int32_t>(i); });
    if (result >= 0) {
      TUTTI_TRY(add_result(result, component.role));
    } else if (!taken) {
      plan.spec.components.push_back(component);
      plan.sources.push_back({static_cast<int32_t>(i), -1});
    }
  }
  for (size_t i = 0; i < plan.results.size(); ++i) {
    if (input.find(plan.results[i]) < 0) TUTTI_TRY(add_result(static_cast<int32_t>(i), Role::feature));
  }
  for (const std::vector<std::string> *names : {&labels, &weights}) {
    for (const std::string &name : *names) {
      if (result_of(name) < 0) {
        return base::invalid_argument("graph has no result '", name, "'", base::but_there_are(name, plan.results));
      }
    }
  }
  plan.spec.batch_size = input.batch_size;
  plan.spec.exact_batches = input.exact_batches;
  return check(plan.spec);
}

// What belongs to training: variables, state and collectives.
bool belongs_to_training(const graph::Node &node, const graph::OpDefinition &definition) {
  return node.op == "variable" || node.op == "state_read" || node.op == "state_write" ||
         definition.effect == graph::Effect::collective;
}

/// Is each element its place among the rows?
bool numbers_rows(const graph::Graph &graph, const graph::Node &node) {
  if (node.op != "iota") return false;
  const graph::Dims &dims = graph.value(node.outputs[0]).dims;
  const auto given = node.attributes.find("axis");
  const int64_t axis = given == node.attributes.end() ? 0 : std::get<int64_t>(given->second);
  const auto rank = static_cast<int64_t>(dims.size());
  return rank > 0 && mentions_batch({dims[static_cast<size_t>(axis < 0 ? axis + rank : axis)]});
}

bool any_carries_batch(const graph::Graph &graph, const std::vector<graph::ValueId> &values) {
  return std::any_of(values.begin(), values.end(), [&](graph::ValueId value) {
    return value != graph::kNoValue && mentions_batch(graph.value(value).dims);
  });
}

}  // namespace

bool depends_on_rows(const graph::Graph &graph, const graph::Node &node, const graph::OpDefinition &definition) {
  if (definition.effect == graph::Effect::region || node.op == "run_scalar" || numbers_rows(graph, node)) return true;
  if (!any_carries_batch(graph, node.inputs)) return false;
  const bool may_be_cut =
      definition.batch == graph::BatchBehaviour::rowwise || definition.batch == graph::BatchBehaviour::reduces;
  return !may_be_cut || !graph::gives_rows(graph, node);
}

namespace {

Status classify_nodes(GraphPlan &plan) {
  bool rowwise = plan.has_rows_form;
  for (const graph::Node &node : plan.graph->nodes()) {
    TUTTI_ASSIGN(const graph::OpDefinition *definition, graph::require_op(node.op, node.revision));
    plan.is_random = plan.is_random || definition->effect == graph::Effect::random;
    if (belongs_to_training(node, *definition)) {
      return base::invalid_argument("node '", node.scope_name, "' (", node.op, ") cannot be used in a dataset");
    }
    rowwise = rowwise && !depends_on_rows(*plan.graph, node, *definition);
  }
  plan.may_cut_rows = rowwise;
  plan.is_rowwise = rowwise && !plan.is_random;
  return Status();
}

}  // namespace

int32_t GraphPlan::passed_to(int32_t index) const {
  for (size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].component == index) return static_cast<int32_t>(i);
  }
  return -1;
}

Result<GraphPlan> plan_graph(graph::SealedGraph graph, const ElementSpec &input, const std::vector<std::string> &labels,
                             const std::vector<std::string> &weights) {
  GraphPlan plan;
  plan.graph = std::move(graph);
  plan.is_batched = input.is_batched();
  for (const auto &[name, value] : plan.graph->results())
    plan.results.push_back(name);
  if (plan.results.empty()) return base::invalid_argument("the graph has no results");
  TUTTI_TRY(plan_inputs(plan, input));
  TUTTI_TRY(classify_nodes(plan));
  TUTTI_TRY(plan_outputs(plan, input, labels, weights));
  if (needs_routine(*plan.graph)) {
    TUTTI_ASSIGN(plan.routine, RoutinePlan::create(plan.graph));
  }
  return plan;
}

}  // namespace tutti::impl::data
