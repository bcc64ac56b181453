// SPDX-License-Identifier: Apache-2.0
//
// interleave over given datasets, and interleave and flat_map over those that a function makes of elements.
#include <algorithm>
#include <utility>

#include "data/call/function_input.h"
#include "data/call/interleaving.h"
#include "data/dataset/dataset_list.h"
#include "data/dataset/walk_report.h"
#include "data/transform_parameters.h"

namespace tutti::impl::data {

using base::JsonReader;
using base::Result;
using base::Status;

namespace {

class ListedDatasets : public DatasetSequence {
 public:
  ListedDatasets(const std::vector<DatasetRef> &datasets, const IteratorContext &context)
      : datasets_(datasets), context_(context) {}

  Result<DatasetRef> get(int64_t number) override {
    return number < static_cast<int64_t>(datasets_.size()) ? datasets_[static_cast<size_t>(number)] : DatasetRef();
  }
  IteratorContext context_of(int64_t number) const override { return context_of_part(context_, number); }
  void save(int64_t, State &state) const override {
    state.open("list");
    state.close();
  }
  void forget(int64_t) override {}
  bool is_immediate() const override { return true; }
  Status restore(const JsonReader &state, int64_t) override { return expect_kind(state, "list"); }

 private:
  const std::vector<DatasetRef> &datasets_;
  const IteratorContext context_;
};

// The datasets that a function makes of the elements of an input. The input's states from before the elements that are
// still needed are kept, so that a restored walk reads those again.
class ExpandedDatasets : public DatasetSequence {
 public:
  ExpandedDatasets(const char *kind, std::unique_ptr<Stage> input, const ExpandFunction &expand, const Dataset &owner,
                   const IteratorContext &context)
      : kind_(kind), input_(std::move(input)), expand_(expand), owner_(owner), context_(context), functions_(context) {}

  Result<DatasetRef> get(int64_t number) override {
    if (!is_held_) {
      TUTTI_ASSIGN(const bool more, draw(number));
      if (!more) return DatasetRef();
    }
    Result<DatasetRef> dataset = functions_.call([&] { return expand_(element_); });
    is_held_ = base::is_interrupt(dataset.status());
    if (is_held_) return dataset;
    element_.components.clear();
    Status status = dataset.status();
    if (status.ok() && *dataset == nullptr) status = base::invalid_argument("it returned no dataset");
    if (status.ok()) status = check_equal(owner_.spec(), (*dataset)->spec());
    if (status.ok()) return made_ = dataset.take();
    return in_element(status.wrap(base::concat(kind_, ": the function failed for element ", lineage_, " of epoch ",
                                               element_.lineage.epoch)),
                      element_.lineage);
  }
  IteratorContext context_of(int64_t) const override {
    IteratorContext context = context_of_part(context_, lineage_ + 1);
    if (context.report != nullptr) context.report = context.report->of_made(owner_, made_);
    return context;
  }
  void save(int64_t oldest, State &state) const override {
    for (const auto &[number, before] : before_) {
      if (number == oldest) return state.append(before);
    }
    input_->save(state);
  }
  void forget(int64_t oldest) override {
    const auto is_needed = [oldest](const auto &entry) { return entry.first >= oldest; };
    before_.erase(before_.begin(), std::find_if(before_.begin(), before_.end(), is_needed));
  }
  bool is_immediate() const override { return false; }
  Status restore(const JsonReader &state, int64_t) override { return input_->restore(state); }

 private:
  // The element of dataset `number`; false at the end.
  Result<bool> draw(int64_t number) {
    State before;
    input_->save(before);
    const Result<bool> more = input_->next(element_);
    if (is_final(more.status()) || (more.ok() && !*more)) return more;
    before_.emplace_back(number, std::move(before));
    TUTTI_TRY(more);
    lineage_ = element_.lineage.index;
    return true;
  }

  const char *const kind_;
  std::unique_ptr<Stage> input_;
  const ExpandFunction &expand_;
  const Dataset &owner_;
  const IteratorContext context_;
  const WalkFunctions functions_;
  DatasetRef made_;  // last
  Element element_;
  bool is_held_ = false;                           // an interrupt has left it
  int64_t lineage_ = 0;                            // of the element taken last
  std::vector<std::pair<int64_t, State>> before_;  // the input's state before element number `first`
};

class InterleaveDataset : public Dataset {
 public:
  InterleaveDataset(DatasetList list, const InterleavingParameters &parameters)
      : Dataset("interleave", std::move(list.spec), list.cardinality, std::move(list.datasets)),
        parameters_(parameters) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    return open_turns(parameters_, std::make_unique<ListedDatasets>(inputs(), context), context, *this);
  }

 private:
  const InterleavingParameters parameters_;
};

class ExpandDataset : public Dataset {
 public:
  ExpandDataset(const DatasetRef &input, ElementSpec spec, Cardinality cardinality,
                const InterleavingParameters &parameters, ExpandFunction expand)
      : Dataset(parameters.kind, std::move(spec), cardinality, {input}),
        parameters_(parameters),
        expand_(std::move(expand)) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    TUTTI_ASSIGN(std::unique_ptr<Stage> input, inputs()[0]->walk(context));
    return open_turns(parameters_,
                      std::make_unique<ExpandedDatasets>(parameters_.kind, std::move(input), expand_, *this, context),
                      context, *this);
  }

 private:
  const InterleavingParameters parameters_;
  const ExpandFunction expand_;
};

InterleavingParameters turns(const char *kind, int64_t cycle_length, int64_t block_length, int64_t parallelism) {
  const int64_t read_ahead = parallelism == 0 ? cycle_length : parallelism == 1 ? 0 : parallelism;
  return {kind, cycle_length, block_length, std::min(read_ahead, cycle_length)};
}

Result<DatasetRef> expand(const DatasetRef &input, const InterleavingParameters &parameters,
                          TransformArguments &arguments) {
  ElementSpec spec = arguments.output_spec.value_or(input->spec());
  spec.exact_batches = false;
  TUTTI_TRY(check(spec));
  return DatasetRef(base::make_ref<ExpandDataset>(input, std::move(spec), input->cardinality().of_kept(), parameters,
                                                  std::move(arguments.expand)));
}

}  // namespace

Result<DatasetRef> apply_interleave(const DatasetRef &input, const InterleaveParameters &parameters,
                                    TransformArguments &arguments) {
  TUTTI_ASSIGN(DatasetList list, list_datasets(input, arguments.others));
  const auto count = static_cast<int64_t>(list.datasets.size());
  const int64_t cycle = parameters.cycle_length > 0 ? std::min(parameters.cycle_length, count) : count;
  return DatasetRef(base::make_ref<InterleaveDataset>(
      std::move(list), turns("interleave", cycle, parameters.block_length, parameters.parallelism)));
}

Result<DatasetRef> apply_interleave_callback(const DatasetRef &input, const InterleaveCallbackParameters &parameters,
                                             TransformArguments &arguments) {
  return expand(input,
                turns("interleave_callback", parameters.cycle_length, parameters.block_length, parameters.parallelism),
                arguments);
}

Result<DatasetRef> apply_flat_map(const DatasetRef &input, const FlatMapParameters &parameters,
                                  TransformArguments &arguments) {
  constexpr int64_t kWithoutEnd = int64_t{1} << 40;
  return expand(input, turns("flat_map", 1, kWithoutEnd, parameters.read_ahead ? 0 : 1), arguments);
}

}  // namespace tutti::impl::data
