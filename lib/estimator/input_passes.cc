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

// Where the pass is by the number of its batches: {"divided_by": "file", "workers": 3, "batches": 40}.
constexpr std::string_view kDividedBy = "divided_by";

int64_t number_in(const Json &place, std::string_view key) {
  const Json *number = place.is_object() ? place.find(key) : nullptr;
  return number != nullptr && number->is_integer() ? number->integer() : 0;
}

}  // namespace

InputPasses::InputPasses(EstimatorState &state, const TrainRequest &request)
    : state_(state), request_(request), reading_(base::CancelToken::create_child(request.cancel)) {}

Status InputPasses::find_part() {
  TUTTI_ASSIGN(part_, state_.parts.of(request_.dataset, state_.strategy(), state_.logger()));
  return Status();
}

const data::Dataset &InputPasses::whole() const {
  return part().part() != nullptr ? *part().part()->whole : *request_.dataset;
}

std::vector<std::string> InputPasses::settings() const {
  if (state_.strategy()->worker_input() == distribute::WorkerInput::own) return {};
  std::vector<std::string> all = {base::concat("dataset: ", dataset_signature(whole()))};
  if (part().part() != nullptr) all.push_back(base::concat("division of the dataset: ", name(part().part()->by)));
  return all;
}

bool InputPasses::reads_own_files() const {
  const data::WorkerPart *part = data::find_part(this->part());
  return part != nullptr && part->by == data::DivideBy::files;
}

std::string InputPasses::other_division() const {
  const bool was_by_files = begun_at_.is_object() && begun_at_.find(kDividedBy) != nullptr;
  if (!was_by_files && !reads_own_files()) return "";
  if (!was_by_files) return "the dataset was not divided by files before";
  const int64_t workers = number_in(begun_at_, "workers");
  if (reads_own_files() && workers == state_.strategy()->workers().count) return "";
  const std::string before = base::concat("the dataset was divided by files among ", workers, " workers before");
  return reads_own_files() ? base::concat(before, ", and now among ", state_.strategy()->workers().count) : before;
}

// The batches of this worker, of those of all.
Status InputPasses::skip_batches(data::Iterator &iterator) const {
  data::Element batch;
  for (int64_t left = number_in(begun_at_, "batches"); left > 0;) {
    const Result<bool> more = iterator.next(batch);
    if (base::is_interrupt(more.status())) return more.status();
    if (more.ok() && !*more) return Status();
    // One that fails was one of them.
    if (!more.ok() || batch.rows() > 0) --left;
  }
  return Status();
}

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
  state_.warn_once(trainer.leave_map(part(), context));
  return part().make_iterator(std::move(context));
}

Result<std::unique_ptr<data::Iterator>> InputPasses::open_there(distribute::Trainer &trainer) {
  TUTTI_ASSIGN(auto iterator, open(trainer));
  if (begun_at_.is_null()) return iterator;
  if (reads_own_files()) {
    TUTTI_TRY(skip_batches(*iterator));
    return iterator;
  }
  const Status status = iterator->restore(begun_at_);
  if (status.ok()) return iterator;
  if (!may_begin_anew(status, from_checkpoint_))
    return status.wrap("the input cannot continue at the position of the checkpoint");
  begin_new(status.message());
  return open(trainer);
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
  const std::string signature = dataset_signature(whole());
  if (!begun_at_.is_null()) {
    if (!request_.resume_input) {
      begin_new("resume_input is off");
    } else if (signature_ != signature) {
      begin_new("the dataset is not the one of the checkpoint");
    } else if (const std::string why = other_division(); !why.empty()) {
      begin_new(why);
    }
  }
  TUTTI_ASSIGN(auto iterator, open_there(trainer));
  batches_before_ = reads_own_files() ? number_in(begun_at_, "batches") : 0;
  counter_before_ = trainer.batch_counter();
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
  if (reads_own_files()) {
    return Json(base::JsonObject{{std::string(kDividedBy), std::string(name(data::DivideBy::files))},
                                 {"workers", static_cast<int64_t>(state_.strategy()->workers().count)},
                                 {"batches", batches_before_ + trainer.batch_counter() - counter_before_}});
  }
  return trainer.input_state();
}

int64_t InputPasses::steps_of_pass() const {
  const data::Cardinality batches = whole().cardinality();
  const int64_t accumulation = state_.config.accumulation;
  return batches.is_exact() && !reads_own_files() ? (batches.value() + accumulation - 1) / accumulation : whole_steps_;
}

int64_t InputPasses::step_after(int64_t passes, int64_t step) const {
  const int64_t steps = steps_of_pass();
  if (steps < 0) return -1;
  return std::max(step, (is_between_ ? step : first_step_) + passes * steps);
}

}  // namespace tutti::impl::estimator
