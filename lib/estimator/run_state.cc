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
  if (loss_scale.scale != 0) {
    object.emplace_back("loss_scale", JsonObject{{"scale", loss_scale.scale},
                                                 {"good_steps", loss_scale.good_steps},
                                                 {"skipped_steps", loss_scale.skipped_steps}});
  }
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
    TUTTI_ASSIGN(state.loss_scale.scale, scale.get_integer("scale"));
    TUTTI_ASSIGN(state.loss_scale.good_steps, scale.get_integer("good_steps"));
    TUTTI_ASSIGN(state.loss_scale.skipped_steps, scale.get_integer("skipped_steps"));
    if (state.loss_scale.scale < 1 || !std::has_single_bit(static_cast<uint64_t>(state.loss_scale.scale)))
      return base::invalid_argument("run/loss_scale/scale is ", state.loss_scale.scale, ", expected a power of two");
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
