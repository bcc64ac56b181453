// SPDX-License-Identifier: Apache-2.0
#include "distribute/predict/worker_predict_stream.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "base/exceptions.h"
#include "base/memory.h"
#include "distribute/predict/device_pool.h"

namespace tutti::impl::distribute {
namespace {

using base::Result;
using base::Status;
using tensor::Tensor;

// What a worker tells of a round, in front of the dims of its outputs.
enum RoundWord : size_t { word_has_batch = 0, word_fails, word_rows, word_batches_before, word_rows_before, word_dims };

/// One round: what this worker brings, and what comes of it.
struct Round {
  bool has_batch = false;
  Status failure;  // what this worker has instead
  PredictBatch own;
  RoundRead before;  // what was read for the round before this one
  std::vector<PredictBatch> results;
  bool is_end = false;
  JobGroup job;
};

/// A row of each in turn, as long as it has any.
Result<Tensor> take_turns(std::span<const PredictBatch> parts, size_t output, const std::string &name) {
  const auto has_rows = [](const PredictBatch &part) { return part.rows > 0; };
  const Tensor &first = std::ranges::find_if(parts, has_rows)->outputs[output];
  int64_t rows = 0, longest = 0;
  for (const PredictBatch &part : parts) {
    rows += part.rows;
    longest = std::max(longest, part.rows);
    if (part.rows == 0 || part.outputs[output].shape().row_shape() == first.shape().row_shape()) continue;
    return base::invalid_argument("output '", name, "' is ", first.describe(), " on one worker and ",
                                  part.outputs[output].describe(),
                                  " on another: workers with their own input must have rows of the same shape");
  }
  TUTTI_ASSIGN(Tensor all, Tensor::allocate(first.dtype(), first.shape().with_rows(rows)));
  const auto row_bytes = static_cast<size_t>(first.size_bytes() / first.rows());
  auto *to = all.mutable_data_as<std::byte>();
  for (int64_t row = 0; row < longest; ++row) {
    for (const PredictBatch &part : parts) {
      if (part.rows <= row) continue;
      std::memcpy(to, part.outputs[output].data_as<std::byte>() + static_cast<size_t>(row) * row_bytes, row_bytes);
      to += row_bytes;
    }
  }
  return all;
}

class WorkerStream : public PredictStream {
 public:
  WorkerStream(std::unique_ptr<WorkerRounds> rounds, std::unique_ptr<DevicePool> pool, WorkerRows rows, int64_t step,
               std::vector<OutputSpec> outputs, OwnStream own)
      : rounds_(std::move(rounds)),
        rows_(rows),
        step_(step),
        outputs_(std::move(outputs)),
        own_(std::move(own)),
        pool_(std::move(pool)) {}
  ~WorkerStream() override {
    if (ended_) return;
    Status why = base::out_of_memory();
    (void)base::without_exceptions([&] {
      why = base::cancelled("worker ", workers().index, " has closed its predictions before their end");
      return Status();
    });
    rounds_->leave(why);
  }

  Result<bool> next(PredictBatch &batch) override {
    while (ready_.empty()) {
      TUTTI_TRY(failure_);
      if (ended_) return false;
      const Status status = advance();
      if (base::is_interrupt(status)) return status;
      failure_ = status;
      if (!status.ok()) rounds_->leave(status);
    }
    batch = std::move(ready_.front());
    ready_.pop_front();
    return true;
  }

 private:
  const Workers &workers() const { return rounds_->workers(); }
  bool divides_input() const { return own_.turns == nullptr; }
  const int64_t *words_of(int32_t worker) const { return told_.data() + static_cast<size_t>(worker) * words_.size(); }

  Status advance();
  // On the stream's thread:
  Status exchange(Round &round);
  void describe(const Round &round);
  /// Of the workers of the round, the first whose input has an error; how many they are if none has.
  int32_t first_failing() const;
  Status check_same_input() const;
  void keep_own(Round &round);
  Status share(Round &round);
  Result<std::vector<tensor::Shape>> shapes_of(int32_t worker) const;
  Status merge(Round &round) const;

  const std::unique_ptr<WorkerRounds> rounds_;
  const WorkerRows rows_;
  const int64_t step_;  // of the weights
  const std::vector<OutputSpec> outputs_;
  const OwnStream own_;
  std::shared_ptr<Round> under_way_;
  std::deque<PredictBatch> ready_;
  bool ended_ = false;
  Status failure_;
  int64_t round_ = 0;
  // Of the stream's thread:
  std::vector<int64_t> words_, told_;
  int64_t next_row_ = 0;
  std::unique_ptr<DevicePool> pool_;  // last: its job uses the rest
};

Status WorkerStream::advance() {
  if (under_way_ == nullptr) {
    auto round = std::make_shared<Round>();
    const Result<bool> more = own_.stream->next(round->own);
    if (base::is_interrupt(more.status())) return more.status();
    round->has_batch = more.ok() && *more;
    round->failure = more.status();
    if (own_.turns != nullptr && round_ > 0) round->before = own_.turns->of_round(round_ - 1);
    ++round_;
    under_way_ = std::move(round);
    under_way_->job.add(1);
    pool_->submit(0, [this, round = under_way_](int32_t) { round->job.done(exchange(*round)); });
  }
  TUTTI_TRY(under_way_->job.wait(own_.cancel.get()));
  for (PredictBatch &batch : under_way_->results)
    ready_.push_back(std::move(batch));
  ended_ = under_way_->is_end;
  const Status failure = under_way_->failure;
  under_way_ = nullptr;
  return failure;
}

int32_t WorkerStream::first_failing() const {
  int32_t w = 0;
  while (w < workers().count && words_of(w)[word_fails] == 0)
    ++w;
  return w;
}

void WorkerStream::describe(const Round &round) {
  words_.assign(word_dims, 0);
  words_[word_has_batch] = round.has_batch ? 1 : 0;
  words_[word_fails] = round.failure.ok() ? 0 : 1;
  words_[word_rows] = round.own.rows;
  words_[word_batches_before] = round.before.batches;
  words_[word_rows_before] = round.before.rows;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const auto rank = static_cast<int32_t>(outputs_[i].dims.size());
    for (int32_t axis = 0; axis < rank; ++axis)
      words_.push_back(round.has_batch ? round.own.outputs[i].shape()[axis] : 0);
  }
}

Status WorkerStream::check_same_input() const {
  const int64_t *const first = words_of(0);
  for (int32_t w = 1; !divides_input() && w < workers().count; ++w) {
    const int64_t *const other = words_of(w);
    if (std::equal(first + word_batches_before, first + word_dims, other + word_batches_before)) continue;
    return base::failed_precondition("worker ", w, " has read ", other[word_batches_before], " batches with ",
                                     other[word_rows_before], " rows, but worker 0 has read ",
                                     first[word_batches_before], " with ", first[word_rows_before], ", up to row ",
                                     next_row_, ": all workers must read the same data unless worker_input is own")
        .with_detail("worker", std::to_string(w));
  }
  return Status();
}

Status WorkerStream::exchange(Round &round) {
  describe(round);
  TUTTI_TRY(rounds_->tell(words_, told_));
  TUTTI_TRY(check_same_input());
  const bool all_go_on = first_failing() == workers().count;
  round.is_end = all_go_on;
  for (int32_t w = 0; w < workers().count; ++w)
    round.is_end = round.is_end && words_of(w)[word_has_batch] == 0;
  if (round.is_end) return Status();
  if (rows_ == WorkerRows::all) {
    TUTTI_TRY(share(round));
  } else {
    keep_own(round);
  }
  // Who fails leaves, which may end what others are at: so all meet once more, and what they have then counts.
  if (!all_go_on) (void)rounds_->tell(words_, told_);
  return Status();
}

/// The own batch at its place among all rows, or among the own ones where others have other input.
void WorkerStream::keep_own(Round &round) {
  round.own.first_row = next_row_;
  for (int32_t w = 0; w < workers().count; ++w) {
    const int64_t rows = words_of(w)[word_rows];
    if (divides_input() && w != workers().index) continue;
    if (w < workers().index && !divides_input()) round.own.first_row += rows;
    next_row_ += rows;
  }
  if (round.has_batch && (divides_input() || workers().index < first_failing()))
    round.results.push_back(std::move(round.own));
}

Result<std::vector<tensor::Shape>> WorkerStream::shapes_of(int32_t worker) const {
  std::vector<tensor::Shape> shapes;
  const int64_t *dims = words_of(worker) + word_dims;
  for (const OutputSpec &output : outputs_) {
    TUTTI_ASSIGN(tensor::Shape shape, tensor::Shape::make({dims, output.dims.size()}));
    dims += output.dims.size();
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

/// All batches of the round, in one piece of memory.
Status WorkerStream::share(Round &round) {
  struct Place {
    size_t output;
    tensor::Shape shape;
    int64_t offset;
  };
  std::vector<std::vector<Place>> places(static_cast<size_t>(workers().count));
  std::vector<int64_t> bounds{0};
  for (int32_t w = 0; w < workers().count; ++w) {
    int64_t end = bounds.back();
    TUTTI_ASSIGN(const std::vector<tensor::Shape> shapes, shapes_of(w));
    for (size_t i = 0; words_of(w)[word_has_batch] != 0 && i < shapes.size(); ++i) {
      places[static_cast<size_t>(w)].push_back({i, shapes[i], end});
      const auto element = static_cast<int64_t>(tensor::size_bytes(outputs_[i].dtype));
      end += base::round_up_aligned(shapes[i].elements() * element);
    }
    bounds.push_back(end);
  }
  TUTTI_ASSIGN(const auto memory, tensor::Buffer::allocate_zeroed(bounds.back()));
  auto *const bytes = static_cast<std::byte *>(memory->data());
  for (const Place &place : places[static_cast<size_t>(workers().index)]) {
    const Tensor &output = round.own.outputs[place.output];
    if (output.size_bytes() > 0)
      std::memcpy(bytes + place.offset, output.data(), static_cast<size_t>(output.size_bytes()));
  }
  if (bounds.back() > 0) TUTTI_TRY(rounds_->gather(bytes, bounds));
  // Of rows in turn it is not known which are in front of one that fails.
  const int32_t failing = first_failing();
  if (failing < workers().count && divides_input()) return Status();
  for (int32_t w = 0; w < failing; ++w) {
    if (words_of(w)[word_has_batch] == 0) continue;
    PredictBatch batch;
    batch.rows = words_of(w)[word_rows];
    batch.step = step_;
    batch.first_row = next_row_;
    next_row_ += batch.rows;
    for (const Place &place : places[static_cast<size_t>(w)]) {
      TUTTI_ASSIGN(Tensor output, Tensor::from_buffer(outputs_[place.output].dtype, place.shape, memory, place.offset));
      batch.outputs.push_back(std::move(output));
    }
    round.results.push_back(std::move(batch));
  }
  return divides_input() ? merge(round) : Status();
}

Status WorkerStream::merge(Round &round) const {
  std::vector<PredictBatch> parts;
  parts.swap(round.results);
  PredictBatch merged;
  merged.first_row = parts.front().first_row;
  merged.step = step_;
  for (const PredictBatch &part : parts)
    merged.rows += part.rows;
  if (merged.rows == 0) return Status();
  for (size_t i = 0; i < outputs_.size(); ++i) {
    TUTTI_ASSIGN(Tensor output, take_turns(parts, i, outputs_[i].name));
    merged.outputs.push_back(std::move(output));
  }
  round.results.push_back(std::move(merged));
  return Status();
}

}  // namespace

bool InputTurns::take(const data::Element &element) {
  const int64_t round = elements_ / turn_.period, position = elements_ % turn_.period;
  ++elements_;
  while (first_round_ + static_cast<int64_t>(rounds_.size()) <= round)
    rounds_.emplace_back();
  RoundRead &read = rounds_[static_cast<size_t>(round - first_round_)];
  ++read.batches;
  read.rows += element.components.empty() ? 0 : element.components.front().rows();
  return position == turn_.position;
}

RoundRead InputTurns::of_round(int64_t round) {
  for (; first_round_ < round && !rounds_.empty(); ++first_round_)
    rounds_.pop_front();
  return first_round_ == round && !rounds_.empty() ? rounds_.front() : RoundRead();
}

std::shared_ptr<InputTurns> input_turns(const Strategy &strategy) {
  // Datasets are not divided for predictions: rows come in the order of the dataset.
  const BatchTurn turn = batch_turn(strategy, strategy.worker_input() == WorkerInput::own);
  return turn.period > 1 ? std::make_shared<InputTurns>(turn) : nullptr;
}

Result<std::unique_ptr<PredictStream>> join_workers(const Strategy &strategy, const PredictOptions &options,
                                                    WorkerState state, const std::vector<OutputSpec> &outputs,
                                                    OwnStream own) {
  for (Fact &fact : facts_of_call(strategy, options.level, options.precision))
    state.facts.push_back(std::move(fact));
  state.facts.push_back(Fact::of(options.worker_rows == WorkerRows::all ? "worker_rows: all" : "worker_rows: own"));
  for (const OutputSpec &output : outputs)
    state.facts.push_back(
        Fact::of(base::concat("output '", output.name, "' ", output.dtype, " ", graph::to_string(output.dims))));
  TUTTI_ASSIGN(auto rounds, WorkerRounds::begin(strategy, state, options.collective_timeout_ms, own.cancel.get()));
  rounds->set_cancel(nullptr);  // the calls' tokens interrupt them, no more
  TUTTI_ASSIGN(auto pool, DevicePool::create({1}));
  return std::unique_ptr<PredictStream>(std::make_unique<WorkerStream>(
      std::move(rounds), std::move(pool), options.worker_rows, state.step, outputs, std::move(own)));
}

}  // namespace tutti::impl::distribute
