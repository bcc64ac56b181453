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

class ZipAccess : public RandomAccess {
 public:
  ZipAccess(std::vector<std::unique_ptr<RandomAccess>> inputs, std::vector<size_t> widths)
      : inputs_(std::move(inputs)), widths_(std::move(widths)), size_(inputs_[0]->size()) {
    for (const auto &input : inputs_)
      size_ = std::min(size_, input->size());
  }

  int64_t size() const override { return size_; }
  int64_t rows_at_once() const override {
    int64_t rows = INT64_MAX;
    for (const auto &input : inputs_)
      rows = std::min(rows, input->rows_at_once());
    return rows;
  }
  int64_t lineage(int64_t position) const override { return inputs_[0]->lineage(position); }
  FileName file(int64_t position) const override { return inputs_[0]->file(position); }
  Status gather(std::span<int64_t> positions, std::span<const RowTarget> targets) override {
    Status worst;
    size_t from = 0;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      scratch_.assign(positions.begin(), positions.end());
      keep_worst(worst, inputs_[i]->gather(scratch_, targets.subspan(from, widths_[i])));
      from += widths_[i];
    }
    return worst;
  }
  Status element(int64_t position, Element &element) override {
    element.components.clear();
    for (const auto &input : inputs_) {
      TUTTI_TRY(input->element(position, part_));
      std::move(part_.components.begin(), part_.components.end(), std::back_inserter(element.components));
    }
    return Status();
  }
  bool view(int64_t first, int64_t count, Element &batch) override {
    batch.components.clear();
    for (const auto &input : inputs_) {
      if (!input->view(first, count, part_)) return false;
      std::move(part_.components.begin(), part_.components.end(), std::back_inserter(batch.components));
    }
    return true;
  }

 private:
  std::vector<std::unique_ptr<RandomAccess>> inputs_;
  std::vector<size_t> widths_;  // components of each input
  int64_t size_;
  std::vector<int64_t> scratch_;
  Element part_;
};

// All inputs advance together, also when one of them fails. An interrupt may come between them: then the parts of
// those before it are kept.
class ZipStage : public Stage {
 public:
  explicit ZipStage(std::vector<std::unique_ptr<Stage>> inputs)
      : inputs_(std::move(inputs)), before_(inputs_.size() - 1) {}

  Result<bool> next(Element &element) override {
    if (advanced_ == 0) {
      element_.components.clear();
      error_ = Status();
      ended_ = false;
    }
    for (; advanced_ < inputs_.size(); ++advanced_) {
      if (advanced_ < before_.size()) {
        before_[advanced_].clear();
        inputs_[advanced_]->save(before_[advanced_]);
      }
      const Result<bool> more = inputs_[advanced_]->next(part_);
      if (base::is_interrupt(more.status())) return more;
      add_part(more);
    }
    advanced_ = 0;
    if (ended_) return false;
    TUTTI_TRY(error_);
    std::swap(element, element_);
    return true;
  }
  void save(State &state) const override {
    state.open("zip");
    state.key("inputs");
    state.open_list();
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (i < advanced_) {
        state.append(before_[i]);
      } else {
        inputs_[i]->save(state);
      }
    }
    state.close();
    state.close();
  }
  Status restore(const JsonReader &state) override {
    TUTTI_TRY(expect_kind(state, "zip"));
    TUTTI_ASSIGN(const JsonReader list, state.get("inputs"));
    TUTTI_ASSIGN(const std::vector<JsonReader> inputs, list.elements());
    if (inputs.size() != inputs_.size()) {
      return base::invalid_argument(list.path(), ": expected ", inputs_.size(), " inputs, got ", inputs.size());
    }
    for (size_t i = 0; i < inputs.size(); ++i)
      TUTTI_TRY(inputs_[i]->restore(inputs[i]));
    return Status();
  }

 private:
  void add_part(const Result<bool> &more) {
    if (!more.ok()) {
      if (error_.ok()) error_ = more.status();
    } else if (!*more) {
      ended_ = true;
    } else {
      if (advanced_ == 0) element_.lineage = part_.lineage;
      std::move(part_.components.begin(), part_.components.end(), std::back_inserter(element_.components));
    }
  }

  std::vector<std::unique_ptr<Stage>> inputs_;
  // The element in the making: parts of the first `advanced_` inputs, and their states before they gave them. The last
  // input is never ahead.
  Element element_;
  std::vector<State> before_;
  size_t advanced_ = 0;
  bool ended_ = false;
  Status error_;
  Element part_;
};

class ZipDataset : public Dataset {
 public:
  ZipDataset(ElementSpec spec, Cardinality cardinality, std::vector<DatasetRef> inputs)
      : Dataset("zip", std::move(spec), cardinality, std::move(inputs)) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    TUTTI_ASSIGN(std::unique_ptr<Stage> indexed, open_indexed(*this, context));
    if (indexed != nullptr) return indexed;
    std::vector<std::unique_ptr<Stage>> stages;
    for (const DatasetRef &input : inputs()) {
      TUTTI_ASSIGN(std::unique_ptr<Stage> stage, input->walk(context));
      stages.push_back(std::move(stage));
    }
    return std::unique_ptr<Stage>(std::make_unique<ZipStage>(std::move(stages)));
  }

  Result<std::unique_ptr<RandomAccess>> random_access(const IteratorContext &context, Access access) const override {
    // Longer inputs must not be read to their end.
    for (const DatasetRef &input : inputs()) {
      if (!input->cardinality().is_exact() || input->cardinality() != cardinality()) access = Access::in_order;
    }
    std::vector<std::unique_ptr<RandomAccess>> parts;
    for (const DatasetRef &input : inputs()) {
      TUTTI_ASSIGN(std::unique_ptr<RandomAccess> part, input->random_access(context, access));
      if (part == nullptr) return part;
      parts.push_back(std::move(part));
    }
    return std::unique_ptr<RandomAccess>(std::make_unique<ZipAccess>(std::move(parts), widths()));
  }

 private:
  std::vector<size_t> widths() const {
    std::vector<size_t> widths;
    for (const DatasetRef &input : inputs())
      widths.push_back(input->spec().components.size());
    return widths;
  }
};

Cardinality shortest(Cardinality a, Cardinality b) {
  if (a == Cardinality::exactly(0) || b == Cardinality::infinite()) return a;
  if (b == Cardinality::exactly(0) || a == Cardinality::infinite()) return b;
  if (a.is_infinite() && b.is_infinite()) return Cardinality::presumed_infinite();
  if (!a.is_exact() || !b.is_exact()) return Cardinality::unknown();
  return Cardinality::exactly(std::min(a.value(), b.value()));
}

}  // namespace

Result<DatasetRef> apply_zip(const DatasetRef &input, const ZipParameters &, TransformArguments &arguments) {
  ElementSpec spec = input->spec();
  Cardinality cardinality = input->cardinality();
  std::vector<DatasetRef> inputs{input};
  for (const DatasetRef &other : arguments.others) {
    if (other == nullptr) return base::invalid_argument("argument 'others': a dataset is missing");
    if (other->spec().batch_size != spec.batch_size) {
      return base::invalid_argument("elements have ", spec.batch_size, " and ", other->spec().batch_size,
                                    " rows (0 = single examples); expected equal batches");
    }
    spec.exact_batches = spec.exact_batches && other->spec().exact_batches;
    for (const ComponentSpec &component : other->spec().components)
      spec.components.push_back(component);
    cardinality = shortest(cardinality, other->cardinality());
    inputs.push_back(other);
  }
  TUTTI_TRY(check(spec));
  return DatasetRef(base::make_ref<ZipDataset>(std::move(spec), cardinality, std::move(inputs)));
}

}  // namespace tutti::impl::data
