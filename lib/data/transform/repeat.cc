// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "data/dataset/stage.h"
#include "data/transform_parameters.h"

namespace tutti::impl::data {

using base::JsonReader;
using base::Result;
using base::Status;

namespace {

// Each pass is a new walk over the input with its own epoch. A pass without elements ends the walk, so that an empty
// input does not spin.
class RepeatStage : public Stage {
 public:
  RepeatStage(const Dataset &input, IteratorContext context, int64_t count)
      : dataset_(input), context_(std::move(context)), count_(count) {
    first_epoch_ = count > 0 ? context_.epoch * count : context_.epoch;
  }

  Result<bool> next(Element &element) override {
    for (;;) {
      TUTTI_ASSIGN(const bool any, open_pass());
      if (!any) return false;
      Result<bool> more = input_->next(element);
      if (base::is_interrupt(more.status())) return more;
      if (!more.ok() || *more) {
        given_ = 1;
        return more;
      }
      end_pass();
    }
  }
  Status next_rows(std::span<const RowTarget> targets, int64_t count, int64_t &done) override {
    for (done = 0; done < count;) {
      TUTTI_ASSIGN(const bool any, open_pass());
      if (!any) break;
      int64_t rows = 0;
      const Status status = input_->next_rows(from_row(targets, done, moved_), count - done, rows);
      if (rows > 0) given_ = 1;
      done += rows;
      TUTTI_TRY(status);
      if (done < count) end_pass();
    }
    return Status();
  }
  Lineage last_row() const override { return input_ == nullptr ? Lineage() : input_->last_row(); }
  void save(State &state) const override {
    state.open("repeat");
    state.number("pass", pass_);
    state.number("given", given_);
    if (input_ != nullptr) {
      state.key("input");
      input_->save(state);
    }
    state.close();
  }
  Status restore(const JsonReader &state) override {
    TUTTI_TRY(expect_kind(state, "repeat"));
    TUTTI_ASSIGN(pass_, saved_count(state, "pass", 0, count_ < 0 ? INT64_MAX : count_));
    TUTTI_ASSIGN(const int64_t given, saved_count(state, "given", 0, 1));
    given_ = given;
    if (!state.has("input")) return Status();
    TUTTI_ASSIGN(const bool any, open_pass());
    given_ = given;
    TUTTI_ASSIGN(const JsonReader input, state.get("input"));
    return any ? input_->restore(input) : input.wrong("no input after the last pass");
  }

 private:
  bool at_end() const { return pass_ == count_ || empty_; }

  Result<bool> open_pass() {
    if (at_end()) return false;
    if (input_ == nullptr) {
      context_.epoch = first_epoch_ + pass_;
      given_ = 0;
      TUTTI_ASSIGN(input_, dataset_.walk(context_));
    }
    return true;
  }
  void end_pass() {
    if (given_ == 0) empty_ = true;
    input_.reset();
    if (!empty_) ++pass_;
  }

  const Dataset &dataset_;
  IteratorContext context_;
  int64_t count_;
  int64_t first_epoch_ = 0;
  std::unique_ptr<Stage> input_;  // of the current pass, once needed
  int64_t pass_ = 0;
  int64_t given_ = 0;  // has the current pass given anything?
  bool empty_ = false;
  std::vector<RowTarget> moved_;
};

class RepeatDataset : public Dataset {
 public:
  RepeatDataset(const DatasetRef &input, Cardinality cardinality, int64_t count)
      : Dataset("repeat", input->spec(), cardinality, {input}), count_(count) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    return std::unique_ptr<Stage>(std::make_unique<RepeatStage>(*inputs()[0], context, count_));
  }

 private:
  int64_t count_;
};

Cardinality times(Cardinality one, int64_t count) {
  if (count == 0 || one == Cardinality::exactly(0)) return Cardinality::exactly(0);
  if (count < 0)
    return one.is_unknown() ? Cardinality::presumed_infinite() : one.is_infinite() ? one : Cardinality::infinite();
  int64_t product = 0;
  if (!one.is_exact()) return one;
  if (__builtin_mul_overflow(one.value(), count, &product)) return Cardinality::unknown();
  return Cardinality::exactly(product);
}

}  // namespace

Result<DatasetRef> apply_repeat(const DatasetRef &input, const RepeatParameters &parameters, TransformArguments &) {
  if (parameters.count == 1) return input;
  const Cardinality cardinality = times(input->cardinality(), parameters.count);
  return DatasetRef(base::make_ref<RepeatDataset>(input, cardinality, parameters.count));
}

}  // namespace tutti::impl::data
