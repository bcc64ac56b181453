// SPDX-License-Identifier: Apache-2.0
#include "distribute/train/step_function_set.h"

#include <algorithm>
#include <utility>

#include "base/hash/checksum.h"
#include "base/name_suggestions.h"
#include "base/text.h"

namespace tutti::impl::distribute {

using base::Ref;
using base::Result;
using base::Status;
using checkpoint::WeightVersion;
using tensor::Tensor;

namespace {

/// The entries of several versions, one behind the other. Immutable.
class JoinedVersion : public WeightVersion {
 public:
  explicit JoinedVersion(std::vector<Ref<WeightVersion>> parts) : parts_(std::move(parts)) {
    for (const Ref<WeightVersion> &part : parts_)
      entries_.insert(entries_.end(), part->entries().begin(), part->entries().end());
  }

  int64_t step() const override { return parts_.front()->step(); }
  const std::vector<checkpoint::StateEntry> &entries() const override { return entries_; }
  Result<Tensor> read(size_t index) const override {
    size_t part = 0;
    for (; index >= parts_[part]->entries().size(); ++part)
      index -= parts_[part]->entries().size();
    return parts_[part]->read(index);
  }

 private:
  const std::vector<Ref<WeightVersion>> parts_;
  std::vector<checkpoint::StateEntry> entries_;
};

}  // namespace

// Random numbers of its own; what is kept is what somebody may ask for.
TrainerOptions StepFunctionSet::options_for(const StepFunction &function) const {
  TrainerOptions options = options_;
  options.seed =
      static_cast<int64_t>(base::fnv1a64(function.name, base::kFnvStart ^ static_cast<uint64_t>(options.seed)));
  options.accumulation = 1;
  options.device_prefetch = 1;
  options.keep_gradients = false;
  options.keep_outputs = !function.model.outputs.empty();
  options.shared_factor_elements = INT64_MAX;  // whose variables the plan would lay out in its own way
  options.completed_steps = nullptr;
  if (function.input.batch_size > 0) options.typical_rows = function.input.batch_size;
  return options;
}

Status StepFunctionSet::add(const StepFunction &function, const WeightShare &share) {
  if (std::ranges::any_of(all_, [&](const auto &entry) { return entry->name == function.name; }))
    return base::invalid_argument("there is a step function '", function.name, "' already");
  auto entry = std::make_unique<Entry>();
  entry->name = function.name;
  entry->trains = function.trains;
  entry->has_loss = function.has_loss;
  Result<std::unique_ptr<Trainer>> opened = Trainer::open(function.model, strategy_, options_for(function), &share);
  if (!opened.ok()) return opened.status().wrap(base::concat("step function '", function.name, "'"));
  entry->trainer = opened.take();
  entry->batches = std::make_unique<GivenBatches>(function.input);
  all_.push_back(std::move(entry));
  return Status();
}

Status StepFunctionSet::initialize() {
  for (const auto &entry : all_)
    TUTTI_TRY(entry->trainer->initialize());
  others_.clear();
  return Status();
}

Status StepFunctionSet::restore(const WeightVersion &version) {
  for (const auto &entry : all_)
    TUTTI_TRY(entry->trainer->restore(version));
  others_.clear();
  return Status();
}

Result<Ref<WeightVersion>> StepFunctionSet::with_slots(Ref<WeightVersion> weights) const {
  if (all_.empty()) return weights;
  std::vector<Ref<WeightVersion>> parts = {std::move(weights)};
  for (const auto &entry : all_) {
    TUTTI_ASSIGN(Ref<WeightVersion> slots, entry->trainer->publish_weights(true));
    parts.push_back(std::move(slots));
  }
  return Ref<WeightVersion>(base::make_ref<JoinedVersion>(std::move(parts)));
}

Result<StepFunctionSet::Entry *> StepFunctionSet::find(std::string_view name) const {
  std::vector<std::string> names;
  for (const auto &entry : all_) {
    if (entry->name == name) return entry.get();
    names.push_back(entry->name);
  }
  return base::not_found("there is no step function '", name, "'", base::but_there_are(name, names));
}

Result<std::vector<NamedNumber>> StepFunctionSet::values_of(const Entry &entry) {
  TUTTI_ASSIGN(std::vector<NamedNumber> values, entry.trainer->report());
  std::erase_if(values, [&](const NamedNumber &value) {
    if (value.name == "loss") return !entry.has_loss;
    return !entry.trains &&
           (value.name == "learning_rate" || value.name == "loss_scale" || value.name == "skipped_steps");
  });
  return values;
}

Result<StepFunctionReport> StepFunctionSet::run(std::string_view name, std::vector<Tensor> batch,
                                                const base::CancelToken *cancel, bool &trained) {
  TUTTI_ASSIGN(Entry *const entry, find(name));
  Trainer &trainer = *entry->trainer;
  if (const Status given = entry->batches->give(std::move(batch)); !given.ok())
    return given.wrap(base::concat("step function '", name, "'"));
  if (!entry->is_attached) {
    TUTTI_ASSIGN(std::unique_ptr<data::Iterator> walk, entry->batches->walk());
    TUTTI_TRY(trainer.attach_input(std::move(walk)));
  }
  // A batch whose step failed does not come again.
  entry->is_attached = entry->has_run = false;
  const Result<RunReport> ran = trainer.run(1, cancel);
  entry->batches->clear();
  if (!ran.ok()) return ran.status().wrap(base::concat("step function '", name, "'"));
  if (ran->steps == 0) {
    if (ran->reason == StopReason::stopped) return base::cancelled("the training was stopped before the step");
    return base::invalid_argument("the batch has no rows");
  }
  entry->is_attached = entry->has_run = true;
  trained = entry->trains;
  StepFunctionReport report;
  report.rows = ran->examples;
  TUTTI_ASSIGN(report.values, values_of(*entry));
  return report;
}

Result<std::vector<std::string>> StepFunctionSet::outputs(std::string_view name) const {
  TUTTI_ASSIGN(const Entry *const entry, find(name));
  std::vector<std::string> names;
  for (const auto &[output, value] : entry->trainer->model().outputs)
    names.push_back(output);
  return names;
}

Result<Tensor> StepFunctionSet::output(std::string_view name, std::string_view output, int32_t replica) const {
  TUTTI_ASSIGN(Entry *const entry, find(name));
  if (!entry->has_run)
    return base::failed_precondition("step function '", name, "' has no outputs: it was not run, or the run failed");
  if (entry->trainer->model().outputs.empty())
    return base::not_found("step function '", name, "' has no output '", output, "': its model sets none");
  return entry->trainer->replica_output(output, replica);
}

Status StepFunctionSet::check_workers(const base::CancelToken *cancel) {
  for (const auto &entry : all_)
    TUTTI_TRY(entry->trainer->check_workers({base::concat("step function ", entry->name)}, cancel));
  return Status();
}

void StepFunctionSet::leave_workers(const Status &cause) {
  for (const auto &entry : all_)
    entry->trainer->leave_workers(cause);
}

StepFunctionStates StepFunctionSet::states() const {
  StepFunctionStates states = others_;
  for (const auto &entry : all_)
    states[entry->name] = {entry->trains ? entry->trainer->step() : 0, entry->trainer->loss_scale()};
  return states;
}

void StepFunctionSet::set_states(const StepFunctionStates &states) {
  others_ = states;
  for (const auto &entry : all_) {
    const auto found = states.find(entry->name);
    if (found == states.end()) continue;
    entry->trainer->set_step(found->second.steps);
    entry->trainer->set_batch_counter(found->second.steps);
    entry->trainer->set_loss_scale(found->second.loss_scale);
    others_.erase(entry->name);
  }
}

int64_t StepFunctionSet::trained_steps() const {
  int64_t steps = 0;
  for (const auto &[name, state] : states())
    steps += state.steps;
  return steps;
}

int64_t StepFunctionSet::programs_built() const {
  int64_t built = 0;
  for (const auto &entry : all_)
    built += entry->trainer->counters().programs_built;
  return built;
}

}  // namespace tutti::impl::distribute
