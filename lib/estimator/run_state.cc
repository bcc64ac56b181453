// SPDX-License-Identifier: Apache-2.0
#include "estimator/run_state.h"

#include <bit>

#include "base/hash/checksum.h"

namespace tutti::impl::estimator {

using base::Json;
using base::JsonObject;
using base::JsonReader;
using base::Result;

namespace {

uint64_t hash_of(const data::Dataset &dataset, uint64_t hash) {
  hash = base::fnv1a64(
      base::concat(dataset.kind(), "|", dataset.spec(), "|", dataset.cardinality(), "|", dataset.inputs().size(), ";"),
      hash);
  for (const data::DatasetRef &input : dataset.inputs())
    hash = hash_of(*input, hash);
  return hash;
}

Json to_json(const distribute::LossScaleState &state) {
  return JsonObject{{"scale", state.scale}, {"good_steps", state.good_steps}, {"skipped_steps", state.skipped_steps}};
}

Result<distribute::LossScaleState> loss_scale_from_json(const JsonReader &reader, std::string_view where) {
  distribute::LossScaleState state;
  TUTTI_ASSIGN(state.scale, reader.get_integer("scale"));
  TUTTI_ASSIGN(state.good_steps, reader.get_integer("good_steps"));
  TUTTI_ASSIGN(state.skipped_steps, reader.get_integer("skipped_steps"));
  if (state.scale < 1 || !std::has_single_bit(static_cast<uint64_t>(state.scale)))
    return base::invalid_argument(where, "/scale is ", state.scale, ", expected a power of two");
  return state;
}

Json to_json(const distribute::StepFunctionStates &states) {
  JsonObject object;
  for (const auto &[name, state] : states) {
    JsonObject one{{"steps", state.steps}};
    if (state.loss_scale.scale != 0) one.emplace_back("loss_scale", to_json(state.loss_scale));
    object.emplace_back(name, std::move(one));
  }
  return object;
}

Result<distribute::StepFunctionStates> step_functions_from_json(const JsonReader &reader) {
  distribute::StepFunctionStates states;
  TUTTI_ASSIGN(const auto members, reader.members());
  for (const auto &[name, one] : members) {
    distribute::StepFunctionState &state = states[name];
    TUTTI_ASSIGN(state.steps, one.get_integer("steps"));
    if (!one.has("loss_scale")) continue;
    TUTTI_ASSIGN(const JsonReader scale, one.get("loss_scale"));
    TUTTI_ASSIGN(state.loss_scale,
                 loss_scale_from_json(scale, base::concat("run/step_functions/", name, "/loss_scale")));
  }
  return states;
}

}  // namespace

std::string dataset_signature(const data::Dataset &dataset) {
  char text[20];
  snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash_of(dataset, base::kFnvStart)));
  return text;
}

Json RunState::run_json() const {
  JsonObject object{{"seed", seed},
                    {"epoch", epoch},
                    {"examples", examples},
                    {"batch_counter", batch_counter},
                    {"input_signature", input_signature},
                    {"finished", finished}};
  if (loss_scale.scale != 0) object.emplace_back("loss_scale", to_json(loss_scale));
  if (!step_functions.empty()) object.emplace_back("step_functions", to_json(step_functions));
  if (requested_epochs > 0) {
    object.emplace_back("requested_epochs", requested_epochs);
    object.emplace_back("goal_epoch", goal_epoch);
  }
  if (!host_scalars.empty()) {
    JsonObject scalars;
    for (const auto &[scalar, value] : host_scalars)
      scalars.emplace_back(scalar, value);
    object.emplace_back("host_scalars", std::move(scalars));
  }
  if (!hooks.is_null()) object.emplace_back("hooks", hooks);
  return object;
}

Result<RunState> RunState::from_json(const Json &run, const Json &input, const Json &metrics) {
  const JsonReader reader(run, "run");
  RunState state;
  TUTTI_ASSIGN(state.seed, reader.get_integer("seed", 0));
  TUTTI_ASSIGN(state.epoch, reader.get_integer("epoch", 0));
  TUTTI_ASSIGN(state.examples, reader.get_integer("examples", 0));
  TUTTI_ASSIGN(state.batch_counter, reader.get_integer("batch_counter", 0));
  TUTTI_ASSIGN(state.input_signature, reader.get_string("input_signature", ""));
  TUTTI_ASSIGN(state.requested_epochs, reader.get_integer("requested_epochs", 0));
  TUTTI_ASSIGN(state.goal_epoch, reader.get_integer("goal_epoch", 0));
  TUTTI_ASSIGN(state.finished, reader.get_boolean("finished", false));
  if (reader.has("loss_scale")) {
    TUTTI_ASSIGN(const JsonReader scale, reader.get("loss_scale"));
    TUTTI_ASSIGN(state.loss_scale, loss_scale_from_json(scale, "run/loss_scale"));
  }
  if (reader.has("step_functions")) {
    TUTTI_ASSIGN(const JsonReader functions, reader.get("step_functions"));
    TUTTI_ASSIGN(state.step_functions, step_functions_from_json(functions));
  }
  if (reader.has("host_scalars")) {
    TUTTI_ASSIGN(const JsonReader scalars, reader.get("host_scalars"));
    TUTTI_ASSIGN(const auto members, scalars.members());
    for (const auto &[scalar, value] : members) {
      TUTTI_ASSIGN(state.host_scalars[scalar], value.as_double());
    }
  }
  if (const Json *hooks = run.find("hooks")) state.hooks = *hooks;
  state.input = input;
  state.metrics = metrics;
  return state;
}

}  // namespace tutti::impl::estimator
