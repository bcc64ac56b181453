// SPDX-License-Identifier: Apache-2.0
//
// Elements of other components: some of the input's, in another order, with other names and roles. Tensors are handed
// on as they are. An access that can give a part of its components does so itself; rows of others go straight to their
// place, and what is not wanted of them into memory that nobody reads.
#include <algorithm>
#include <cstring>
#include <unordered_set>
#include <utility>

#include "base/memory.h"
#include "base/text.h"
#include "data/dataset/stage.h"
#include "data/element/name_index.h"
#include "data/transform_parameters.h"

namespace tutti::impl::data {

using base::JsonReader;
using base::Result;
using base::Status;

namespace {

// components[i] is component chosen[i] of the input.
using Chosen = std::vector<size_t>;

// Moves the chosen components of one element to another; whoever is wanted twice is shared.
void hand_on(const Chosen &chosen, Element &from, Element &to) {
  to.components.resize(chosen.size());
  for (size_t i = 0; i < chosen.size(); ++i)
    to.components[i] = from.components[chosen[i]];
  to.lineage = from.lineage;
  from.components.clear();  // lets go of buffers that a pool waits for
}

class ChosenRows {
 public:
  ChosenRows(const Chosen &chosen, const ElementSpec &input)
      : chosen_(chosen), input_row_bytes_(row_bytes(input)), place_(input_row_bytes_.size(), chosen.size()) {
    for (size_t i = chosen.size(); i-- > 0;)
      place_[chosen[i]] = i;
    for (size_t i = 0; i < place_.size(); ++i) {
      if (place_[i] == chosen.size()) unwanted_row_bytes_ += input_row_bytes_[i];
    }
    into_.resize(place_.size());
    unwanted_.resize(place_.size());
  }

  // Rows to read at once, so that those that nobody wants need little memory.
  int64_t most_rows() const {
    constexpr int64_t kMostBytes = 4 << 20, kFewestRows = 64;
    return unwanted_row_bytes_ == 0 ? INT64_MAX : std::max(kFewestRows, kMostBytes / unwanted_row_bytes_);
  }
  // Where `rows` rows of the input go that are to end up at row `first` of the targets.
  Result<std::span<const RowTarget>> into(std::span<const RowTarget> targets, int64_t first, int64_t rows) {
    TUTTI_TRY(reserve(rows));
    for (size_t i = 0; i < into_.size(); ++i) {
      const bool is_wanted = place_[i] < targets.size();
      into_[i] = is_wanted ? targets[place_[i]].from_row(first)
                           : RowTarget{static_cast<std::byte *>(unwanted_[i].get()), input_row_bytes_[i]};
    }
    return std::span<const RowTarget>(into_);
  }
  // Fills the other places of components that are wanted more than once.
  void copy_shared(std::span<const RowTarget> targets, int64_t first, int64_t rows) const {
    for (size_t i = 0; i < chosen_.size(); ++i) {
      const RowTarget from = targets[place_[chosen_[i]]].from_row(first);
      const auto bytes = static_cast<size_t>(rows * from.row_bytes);
      if (place_[chosen_[i]] != i && bytes > 0) std::memcpy(targets[i].from_row(first).data, from.data, bytes);
    }
  }

 private:
  Status reserve(int64_t rows) {
    if (rows <= reserved_rows_) return Status();
    for (size_t i = 0; i < unwanted_.size(); ++i) {
      if (place_[i] < chosen_.size()) continue;
      TUTTI_ASSIGN(unwanted_[i], base::allocate_aligned(static_cast<size_t>(rows * input_row_bytes_[i])));
    }
    reserved_rows_ = rows;
    return Status();
  }

  const Chosen &chosen_;
  const std::vector<int64_t> input_row_bytes_;
  std::vector<size_t> place_;  // of each component of the input: the first component that it becomes, or their number
  int64_t unwanted_row_bytes_ = 0;
  std::vector<base::AlignedMemory> unwanted_;
  int64_t reserved_rows_ = 0;
  std::vector<RowTarget> into_;
};

class SelectAccess : public RandomAccess {
 public:
  SelectAccess(std::unique_ptr<RandomAccess> input, const Chosen &chosen, const ElementSpec &spec)
      : input_(std::move(input)), chosen_(chosen) {
    if (spec.is_static()) rows_ = std::make_unique<ChosenRows>(chosen, spec);
  }

  int64_t size() const override { return input_->size(); }
  int64_t rows_at_once() const override { return input_->rows_at_once(); }
  int64_t lineage(int64_t position) const override { return input_->lineage(position); }
  FileName file(int64_t position) const override { return input_->file(position); }
  Status element(int64_t position, Element &element) override {
    source_.lineage = element.lineage;
    TUTTI_TRY(input_->element(position, source_));
    hand_on(chosen_, source_, element);
    return Status();
  }
  bool view(int64_t first, int64_t count, Element &batch) override {
    if (!input_->view(first, count, source_)) return false;
    source_.lineage = batch.lineage;
    hand_on(chosen_, source_, batch);
    return true;
  }
  Status gather(std::span<int64_t> positions, std::span<const RowTarget> targets) override {
    if (rows_ == nullptr) return gather_elements(positions, targets);
    Status worst;
    const auto count = static_cast<int64_t>(positions.size());
    for (int64_t first = 0, rows = 0; first < count; first += rows) {
      rows = std::min(rows_->most_rows(), count - first);
      TUTTI_ASSIGN(const std::span<const RowTarget> into, rows_->into(targets, first, rows));
      const auto some = positions.subspan(static_cast<size_t>(first), static_cast<size_t>(rows));
      keep_worst(worst, input_->gather(some, into));
      rows_->copy_shared(targets, first, rows);
    }
    return worst;
  }

 private:
  // The chosen components have static shapes, others do not.
  Status gather_elements(std::span<const int64_t> positions, std::span<const RowTarget> targets) {
    Status worst;
    for (size_t row = 0; row < positions.size(); ++row) {
      Status status = element(positions[row], selected_);
      if (status.ok()) status = copy_to_row(selected_, targets, static_cast<int64_t>(row));
      keep_worst(worst, std::move(status));
    }
    return worst;
  }

  std::unique_ptr<RandomAccess> input_;
  const Chosen &chosen_;              // the dataset's
  std::unique_ptr<ChosenRows> rows_;  // null: the input's elements have no static shape
  Element source_, selected_;
};

// Without progress of its own: its state is that of the input.
class SelectStage : public Stage {
 public:
  SelectStage(std::unique_ptr<Stage> input, const Chosen &chosen, const ElementSpec &spec)
      : input_(std::move(input)), chosen_(chosen), is_only_component_(spec.components.size() == 1) {
    if (spec.is_static()) rows_ = std::make_unique<ChosenRows>(chosen, spec);
  }

  Result<bool> next(Element &element) override {
    TUTTI_ASSIGN(const bool more, input_->next(source_));
    if (more) hand_on(chosen_, source_, element);
    return more;
  }
  Status next_rows(std::span<const RowTarget> targets, int64_t count, int64_t &done) override {
    if (rows_ == nullptr) return Stage::next_rows(targets, count, done);
    for (done = 0; done < count;) {
      const int64_t wanted = std::min(rows_->most_rows(), count - done);
      TUTTI_ASSIGN(const std::span<const RowTarget> into, rows_->into(targets, done, wanted));
      int64_t rows = 0;
      const Status status = input_->next_rows(into, wanted, rows);
      rows_->copy_shared(targets, done, rows);
      done += rows;
      TUTTI_TRY(status);
      if (rows < wanted) break;
    }
    return Status();
  }
  bool next_view(int64_t count, Element &batch) override {
    if (!input_->next_view(count, source_)) return false;
    source_.lineage = batch.lineage;
    hand_on(chosen_, source_, batch);
    return true;
  }
  bool gives_texts() const override { return is_only_component_ && chosen_.size() == 1 && input_->gives_texts(); }
  Status next_texts(BytesRows &rows, int64_t count, int64_t &done) override {
    return input_->next_texts(rows, count, done);
  }
  void save(State &state) const override { input_->save(state); }
  Status restore(const JsonReader &state) override { return input_->restore(state); }

 private:
  std::unique_ptr<Stage> input_;
  const Chosen &chosen_;  // the dataset's
  const bool is_only_component_;
  std::unique_ptr<ChosenRows> rows_;  // null: the input's elements have no static shape
  Element source_;
};

class SelectDataset : public Dataset {
 public:
  SelectDataset(const DatasetRef &input, ElementSpec spec, Chosen chosen)
      : Dataset("select", std::move(spec), input->cardinality(), {input}), chosen_(std::move(chosen)) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    TUTTI_ASSIGN(std::unique_ptr<Stage> indexed, open_indexed(*this, context));
    if (indexed != nullptr) return indexed;
    TUTTI_ASSIGN(std::unique_ptr<Stage> input, inputs()[0]->walk(context));
    return std::unique_ptr<Stage>(std::make_unique<SelectStage>(std::move(input), chosen_, inputs()[0]->spec()));
  }

  Result<std::unique_ptr<RandomAccess>> random_access(const IteratorContext &context, Access access) const override {
    TUTTI_ASSIGN(std::unique_ptr<RandomAccess> input, inputs()[0]->random_access(context, access));
    if (input == nullptr || input->choose(chosen_)) return input;
    return std::unique_ptr<RandomAccess>(
        std::make_unique<SelectAccess>(std::move(input), chosen_, inputs()[0]->spec()));
  }

 private:
  const Chosen chosen_;
};

// What is known of the elements while it is found out which components are wanted.
struct Selection {
  const ElementSpec &input;
  ElementSpec spec;
  Chosen chosen;
  NameIndex index{input.components, [](const ComponentSpec &component) -> std::string_view { return component.name; }};
  std::unordered_set<std::string> names{};  // of the result

  // "NAME" or "NEW = OLD"; a name of the input that contains '=' is that name.
  Status add(const std::string &text, Role role) {
    std::string_view name = text, old = text;
    const size_t equals = text.find('=');
    if (index.find(text) == nullptr && equals != std::string::npos) {
      name = base::trim(name.substr(0, equals));
      old = base::trim(old.substr(equals + 1));
    }
    const NameIndex::Place *const found = index.find(old);
    if (found == nullptr) return base::status_of(find_component(input, old));
    if (!names.emplace(name).second) {
      return base::invalid_argument("component ", base::quoted(name), " is named twice; expected different names, got ",
                                    spec.to_string(), " and ", base::quoted(text));
    }
    ComponentSpec selected = input.components[found->first];
    selected.name = name;
    selected.role = role;
    spec.components.push_back(std::move(selected));
    chosen.push_back(found->first);
    return Status();
  }
};

}  // namespace

Result<DatasetRef> apply_select(const DatasetRef &input, const SelectParameters &parameters, TransformArguments &) {
  Selection selection{input->spec(), {{}, input->spec().batch_size, input->spec().exact_batches}, {}};
  const std::pair<const std::vector<std::string> &, Role> lists[] = {
      {parameters.features, Role::feature}, {parameters.labels, Role::label}, {parameters.weights, Role::weight}};
  for (const auto &[names, role] : lists) {
    for (const std::string &name : names)
      TUTTI_TRY(selection.add(name, role));
  }
  if (selection.chosen.empty()) {
    return base::invalid_argument("no component is named; expected at least one of ", input->spec().to_string());
  }
  TUTTI_TRY(check(selection.spec));
  if (selection.spec == input->spec()) return input;
  return DatasetRef(base::make_ref<SelectDataset>(input, std::move(selection.spec), std::move(selection.chosen)));
}

}  // namespace tutti::impl::data
