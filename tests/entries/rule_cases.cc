// SPDX-License-Identifier: Apache-2.0
//
// What trains the small network of a case otherwise: schedules, optimizers and rules for parameters of nn.yaml.
#include "entries/entry_case.h"
#include "nn/registry.h"

namespace tutti::testing::entries {

namespace {

Cases schedule_rules() {
  const Port rate = {.kind = Port::Kind::fixed, .fill = Port::Fill::unit};
  return {
      {.entry = "schedule_constant", .attributes = {{"value", 0.1}}},
      {.entry = "schedule_exponential", .attributes = {{"value", 0.1}, {"decay_rate", 0.5}, {"decay_steps", whole(2)}}},
      {.entry = "schedule_cosine",
       .attributes = {{"value", 0.1}, {"steps", whole(4)}, {"warmup_steps", whole(2)}, {"final_fraction", 0.5}}},
      {.entry = "schedule_piecewise", .attributes = {{"boundaries", Ints{1, 2}}, {"values", Doubles{0.1, 0.2, 0.05}}}},
      {.entry = "schedule_natural_exponential",
       .attributes = {{"value", 0.1}, {"decay_rate", 0.5}, {"decay_steps", whole(2)}}},
      {.entry = "schedule_inverse_time",
       .attributes = {{"value", 0.1}, {"decay_rate", 0.5}, {"decay_steps", whole(2)}}},
      {.entry = "schedule_step", .attributes = {{"value", 0.1}, {"step_size", whole(2)}, {"gamma", 0.5}}},
      {.entry = "schedule_polynomial",
       .attributes = {{"value", 0.1}, {"steps", whole(2)}, {"power", 2.0}, {"cycle", true}}},
      {.entry = "schedule_cosine_restarts",
       .attributes = {{"value", 0.1}, {"steps", whole(2)}, {"period_factor", 2.0}}},
      {.entry = "schedule_one_cycle", .attributes = {{"value", 0.1}, {"steps", whole(4)}}},
      {.entry = "schedule_warmup", .inputs = {rate}, .attributes = {{"steps", whole(2)}, {"start_fraction", 0.5}}},
      {.entry = "schedule_switch", .inputs = {rate, rate}, .attributes = {{"step_of_switch", whole(1)}}},
  };
}

/// With what some optimizers keep besides: averages of weights, and what flags add.
Cases optimizer_rules() {
  Cases cases;
  for (const impl::nn::Definition &definition : impl::nn::all_definitions()) {
    if (!definition.name.starts_with("optimizer_")) continue;
    EntryCase one{.entry = std::string(definition.name)};
    cases.push_back(one);
    one.attributes = {{"average_decay", 0.5}, {"clip_norm", 0.5}};
    for (const char *flag : {"amsgrad", "centered", "nesterov"}) {
      if (definition.find_attribute(flag) != nullptr) one.attributes.insert_or_assign(flag, true);
    }
    const bool has_momentum = definition.find_attribute("momentum") != nullptr;
    if (has_momentum) one.attributes.insert_or_assign("momentum", 0.5);
    cases.push_back(one);
  }
  return cases;
}

Cases parameter_rules() {
  return {
      {.entry = "parameter_group",
       .inputs = {{}},
       .attributes = {{"pattern", text("ker*")}, {"rate_factor", 0.5}, {"weight_decay", 0.1}}},
      {.entry = "parameter_group", .inputs = {{}}, .attributes = {{"pattern", text("bias")}, {"frozen", true}}},
      {.entry = "parameter_constraint",
       .attributes = {{"pattern", text("kernel")}, {"constraint", text("max_norm(0.5)")}}},
  };
}

}  // namespace

Cases rule_cases() {
  Cases cases;
  for (const auto &list : {schedule_rules, optimizer_rules, parameter_rules}) {
    append(cases, list());
  }
  return cases;
}

}  // namespace tutti::testing::entries
