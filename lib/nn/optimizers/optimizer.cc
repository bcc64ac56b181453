// SPDX-License-Identifier: Apache-2.0
#include "nn/optimizers/optimizer.h"

#include <optional>
#include <variant>

#include "base/text.h"
#include "graph/update_rule.h"

namespace tutti::impl::nn {
namespace {

/// The number that a scalar is, where it is a constant.
std::optional<double> constant_number(const graph::Graph &graph, ValueId value) {
  const graph::NodeId producer = graph.value(value).producer;
  if (producer == graph::kNoNode || graph.node(producer).op != "constant") return std::nullopt;
  const auto *const tensor = std::get_if<tensor::Tensor>(&graph.node(producer).attributes.at("value"));
  if (tensor == nullptr || tensor->dtype() != tensor::DType::f32) return std::nullopt;
  return static_cast<double>(tensor->data_as<float>()[0]);
}

void write_rule(Expansion &e, const RuleSettings &settings, tensor::DType dtype, const std::string &view,
                const RuleFunction &function) {
  GraphBuilder &b = e.builder();
  graph::Attributes attributes{{"slots", settings.slots},
                               {"slots_per", settings.slots_per},
                               {"weight_decay", settings.weight_decay},
                               {"dtype", dtype},
                               {"view", view},
                               {"lazy", e.has("lazy") && e.flag("lazy")},
                               {"keeps_unreached", settings.keeps_unreached},
                               {"clip_value", e.f64("clip_value")},
                               {"clip_norm", e.f64("clip_norm")},
                               {"average_decay", e.f64("average_decay")},
                               {"average_ramp", e.flag("average_ramp")},
                               {"average_start", e.i64("average_start")}};
  if (!settings.initial.empty()) attributes.insert_or_assign("initial", settings.initial);
  b.begin_op(graph::kUpdateRule, {e.input(0)}, std::move(attributes));
  const GraphBuilder::Values parameters = b.begin_region();
  GraphBuilder::Values results;
  if (b.ok()) {
    for (const Term term : function(Rule(b, parameters)))
      results.push_back(term.value());
  }
  b.end_region(results);
  b.end_op();
}

}  // namespace

Term Rule::correction(double beta) const {
  const Term exponent = count();
  return narrowed(1 - exponent.number(beta).with("pow", exponent));
}

Term Rule::length(size_t axis) const {
  const graph::Dim dim = builder_.dims(parameters_[0])[axis];
  return Term(builder_, builder_.broadcast_to(weight().number(1).value(), {dim})).sum();
}

bool check_learning_rate(Expansion &e) {
  GraphBuilder &b = e.builder();
  if (e.input(0) == kNoValue) return false;
  if (b.rank(e.input(0)) != 0) {
    e.fail("expected a scalar learning rate");
    return false;
  }
  const std::optional<double> rate = constant_number(b.graph(), e.input(0));
  if (rate && !(*rate >= 0)) e.fail(base::concat("the learning rate is ", *rate, ", expected 0 or more"));
  const std::optional<graph::TrainSpec> &present = b.model().train;
  if (present && !present->optimizer.op.empty()) e.fail("the model already has an optimizer");
  return b.ok();
}

ValueId set_rule(Expansion &e, const RuleSettings &settings, const RuleFunction &function) {
  if (!check_learning_rate(e)) return kNoValue;
  for (const tensor::DType dtype : {tensor::DType::f32, tensor::DType::f64})
    write_rule(e, settings, dtype, "vector", function);
  return kNoValue;
}

ValueId set_rules(Expansion &e, double weight_decay, const std::vector<ViewedRule> &rules) {
  if (!check_learning_rate(e)) return kNoValue;
  for (const tensor::DType dtype : {tensor::DType::f32, tensor::DType::f64}) {
    for (const ViewedRule &rule : rules)
      write_rule(e, {.slots = rule.slots, .weight_decay = weight_decay, .slots_per = rule.slots_per}, dtype, rule.view,
                 rule.function);
  }
  return kNoValue;
}

}  // namespace tutti::impl::nn
