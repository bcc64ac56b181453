// SPDX-License-Identifier: Apache-2.0
#include "estimator/input_passes.h"

#include <algorithm>
#include <utility>

namespace tutti::impl::estimator {

using base::Json;
using base::Result;
using base::Status;

namespace {

// A feed that could go on there, had nothing been pushed: a run must not become another one without a word. Nor because
// of what has nothing to do with the place: memory, threads, a server, a cancel.
bool may_begin_anew(const Status &status, bool from_checkpoint) {
  const bool is_of_the_place = status.code() != base::Code::resource_exhausted &&
                               status.code() != base::Code::unavailable && !base::is_interrupt(status);
  return is_of_the_place && !(from_checkpoint && status.code() == base::Code::failed_precondition);
}

}  // namespace

InputPasses::InputPasses(EstimatorState &state, const TrainRequest &request)
    : state_(state), request_(request), reading_(base::CancelToken::create_child(request.cancel)) {}

void InputPasses::restore(const RunState &run, bool from_checkpoint) {
  epoch_ = run.epoch;
  begun_at_ = run.input;
  signature_ = run.input_signature;
  skips_ended_ = run.finished;
  from_checkpoint_ = from_checkpoint;
}

void InputPasses::save(RunState &run) const {
  run.epoch = epoch_;
  run.input = begun_at_;
  run.input_signature = signature_;
}

Result<std::unique_ptr<data::Iterator>> InputPasses::open(distribute::Trainer &trainer) {
  data::IteratorContext context = state_.iterator_context(reading_, epoch_);
  state_.warn_once(trainer.leave_map(*request_.dataset, context));
  return request_.dataset->make_iterator(std::move(context));
}

void InputPasses::begin_new(std::string_view why) {
  state_.logger().warning("the input begins a new pass: ", why);
  leave();
}

void InputPasses::leave() {
  if (begun_at_.is_null()) return;
  begun_at_ = Json();
  ++epoch_;
}

Status InputPasses::attach(distribute::Trainer &trainer) {
  examples_ = 0;
  const std::string signature = dataset_signature(*request_.dataset);
  if (!begun_at_.is_null()) {
    if (!request_.resume_input) {
      begin_new("resume_input is off");
    } else if (signature_ != signature) {
      begin_new("the dataset is not the one of the checkpoint");
    }
  }
  TUTTI_ASSIGN(auto iterator, open(trainer));
  if (!begun_at_.is_null()) {
    if (const Status status = iterator->restore(begun_at_); !status.ok()) {
      if (!may_begin_anew(status, from_checkpoint_))
        return status.wrap("the input cannot continue at the position of the checkpoint");
      begin_new(status.message());
      TUTTI_ASSIGN(iterator, open(trainer));
    }
  }
  signature_ = signature;
  is_between_ = false;
  // Steps of a pass that was begun before are of the same dataset: whole passes make the rest.
  first_step_ = trainer.step();
  if (!begun_at_.is_null() && steps_of_pass() > 0) first_step_ -= trainer.step() % steps_of_pass();
  return trainer.attach_input(std::move(iterator));
}

Result<bool> InputPasses::end(int64_t step) {
  const bool whole = begun_at_.is_null();
  if (whole && examples_ == 0)
    return base::invalid_argument("the dataset gave no elements in pass ", epoch_ + 1,
                                  ": there are no rows to train on");
  if (whole) whole_steps_ = step - first_step_;
  ++epoch_;
  begun_at_ = Json();
  is_between_ = true;
  const bool was_over = skips_ended_ && !whole && examples_ == 0;
  skips_ended_ = false;
  return !was_over;
}

Result<Json> InputPasses::position(distribute::Trainer &trainer) const {
  if (is_between_) return Json();
  if (examples_ == 0) return begun_at_;
  return trainer.input_state();
}

int64_t InputPasses::steps_of_pass() const {
  const data::Cardinality batches = request_.dataset->cardinality();
  const int64_t accumulation = state_.config.accumulation;
  return batches.is_exact() ? (batches.value() + accumulation - 1) / accumulation : whole_steps_;
}

int64_t InputPasses::step_after(int64_t passes, int64_t step) const {
  const int64_t steps = steps_of_pass();
  if (steps < 0) return -1;
  return std::max(step, (is_between_ ? step : first_step_) + passes * steps);
}

}  // namespace tutti::impl::estimator
