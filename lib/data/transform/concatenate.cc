// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "data/dataset/dataset_list.h"
#include "data/dataset/stage.h"
#include "data/transform_parameters.h"

namespace tutti::impl::data {

using base::JsonReader;
using base::Result;
using base::Status;

namespace {

class ConcatenateAccess : public RandomAccess {
 public:
  explicit ConcatenateAccess(std::vector<std::unique_ptr<RandomAccess>> inputs) : inputs_(std::move(inputs)) {
    for (const auto &input : inputs_)
      ends_.push_back(size() + input->size());
  }

  int64_t size() const override { return ends_.empty() ? 0 : ends_.back(); }
  int64_t rows_at_once() const override {
    int64_t rows = INT64_MAX;
    for (const auto &input : inputs_)
      rows = std::min(rows, input->rows_at_once());
    return rows;
  }
  int64_t lineage(int64_t position) const override { return position; }
  FileName file(int64_t position) const override {
    const size_t input = input_of(position);
    return inputs_[input]->file(position - start_of(input));
  }

  // Runs of neighbours that lie in the same input go to it together.
  Status gather(std::span<int64_t> positions, std::span<const RowTarget> targets) override {
    Status worst;
    for (size_t begin = 0; begin < positions.size();) {
      const size_t input = input_of(positions[begin]);
      const int64_t from = start_of(input);
      size_t end = begin;
      while (end < positions.size() && positions[end] >= from && positions[end] < ends_[input]) {
        positions[end++] -= from;
      }
      keep_worst(worst, inputs_[input]->gather(positions.subspan(begin, end - begin),
                                               from_row(targets, static_cast<int64_t>(begin), moved_)));
      begin = end;
    }
    return worst;
  }
  Status element(int64_t position, Element &element) override {
    const size_t input = input_of(position);
    return inputs_[input]->element(position - start_of(input), element);
  }
  bool view(int64_t first, int64_t count, Element &batch) override {
    const size_t input = input_of(first);
    return first + count <= ends_[input] && inputs_[input]->view(first - start_of(input), count, batch);
  }

 private:
  size_t input_of(int64_t position) const {
    return static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), position) - ends_.begin());
  }
  int64_t start_of(size_t input) const { return input == 0 ? 0 : ends_[input - 1]; }

  std::vector<std::unique_ptr<RandomAccess>> inputs_;
  std::vector<int64_t> ends_;  // position behind the last element of each input
  std::vector<RowTarget> moved_;
};

class ConcatenateStage : public Stage {
 public:
  ConcatenateStage(const std::vector<DatasetRef> &inputs, IteratorContext context)
      : inputs_(inputs), context_(std::move(context)) {}

  Result<bool> next(Element &element) override {
    for (;;) {
      TUTTI_ASSIGN(const bool any, open_current());
      if (!any) return false;
      Result<bool> more = input_->next(element);
      if (base::is_interrupt(more.status())) return more;
      if (more.ok() && !*more) {
        advance();
        continue;
      }
      element.lineage.renumber(context_.epoch, position_++);
      return more;
    }
  }
  Status next_rows(std::span<const RowTarget> targets, int64_t count, int64_t &done) override {
    for (done = 0; done < count;) {
      TUTTI_ASSIGN(const bool any, open_current());
      if (!any) break;
      int64_t rows = 0;
      const Status status = input_->next_rows(from_row(targets, done, moved_), count - done, rows);
      done += rows;
      position_ += rows;
      TUTTI_TRY(status);
      if (done < count) advance();
    }
    return Status();
  }
  Lineage last_row() const override {
    return {context_.epoch, position_ - 1, input_ == nullptr ? nullptr : input_->last_row().file};
  }
  void save(State &state) const override {
    state.open("concatenate");
    state.number("current", static_cast<int64_t>(current_));
    state.number("position", position_);
    if (input_ != nullptr) {
      state.key("input");
      input_->save(state);
    }
    state.close();
  }
  Status restore(const JsonReader &state) override {
    TUTTI_TRY(expect_kind(state, "concatenate"));
    TUTTI_ASSIGN(const int64_t current, saved_count(state, "current", 0, static_cast<int64_t>(inputs_.size())));
    current_ = static_cast<size_t>(current);
    TUTTI_ASSIGN(position_, saved_count(state, "position"));
    if (!state.has("input")) return Status();
    TUTTI_ASSIGN(const bool any, open_current());
    TUTTI_ASSIGN(const JsonReader input, state.get("input"));
    return any ? input_->restore(input) : input.wrong("no input after the last dataset");
  }

 private:
  Result<bool> open_current() {
    if (current_ == inputs_.size()) return false;
    if (input_ == nullptr) {
      TUTTI_ASSIGN(input_, inputs_[current_]->walk(context_));
    }
    return true;
  }
  void advance() {
    input_.reset();
    ++current_;
  }

  const std::vector<DatasetRef> &inputs_;
  IteratorContext context_;
  std::unique_ptr<Stage> input_;  // of the current dataset, once needed
  size_t current_ = 0;
  int64_t position_ = 0;
  std::vector<RowTarget> moved_;
};

class ConcatenateDataset : public Dataset {
 public:
  ConcatenateDataset(ElementSpec spec, Cardinality cardinality, std::vector<DatasetRef> inputs)
      : Dataset("concatenate", std::move(spec), cardinality, std::move(inputs)) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    TUTTI_ASSIGN(std::unique_ptr<Stage> indexed, open_indexed(*this, context));
    if (indexed != nullptr) return indexed;
    return std::unique_ptr<Stage>(std::make_unique<ConcatenateStage>(inputs(), context));
  }

  Result<std::unique_ptr<RandomAccess>> random_access(const IteratorContext &context, Access access) const override {
    std::vector<std::unique_ptr<RandomAccess>> parts;
    for (const DatasetRef &input : inputs()) {
      TUTTI_ASSIGN(std::unique_ptr<RandomAccess> part, input->random_access(context, access));
      if (part == nullptr) return part;
      parts.push_back(std::move(part));
    }
    return std::unique_ptr<RandomAccess>(std::make_unique<ConcatenateAccess>(std::move(parts)));
  }
};

}  // namespace

Result<DatasetRef> apply_concatenate(const DatasetRef &input, const ConcatenateParameters &,
                                     TransformArguments &arguments) {
  TUTTI_ASSIGN(DatasetList list, list_datasets(input, arguments.others));
  return DatasetRef(
      base::make_ref<ConcatenateDataset>(std::move(list.spec), list.cardinality, std::move(list.datasets)));
}

}  // namespace tutti::impl::data
