// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "data/stage.h"
#include "data/transform_parameters.h"

namespace tutti::impl::data {

using base::JsonReader;
using base::Result;
using base::Status;

namespace {

class FilterCallbackStage : public Stage {
 public:
  FilterCallbackStage(std::unique_ptr<Stage> input, const FilterFunction &function)
      : input_(std::move(input)), function_(function) {}

  Result<bool> next(Element &element) override {
    for (;;) {
      TUTTI_ASSIGN(const bool more, input_->next(element));
      if (!more) return false;
      bool keep = false;
      const Status status = function_(element, keep);
      if (!status.ok()) {
        return status.wrap(base::concat("filter: the function failed for element ", element.lineage.index, " of epoch ",
                                        element.lineage.epoch));
      }
      if (keep) return true;
    }
  }
  void save(State &state) const override {
    state.open("filter");
    state.key("input");
    input_->save(state);
    state.close();
  }
  Status restore(const JsonReader &state) override {
    TUTTI_TRY(expect_kind(state, "filter"));
    TUTTI_ASSIGN(const JsonReader input, state.get("input"));
    return input_->restore(input);
  }

 private:
  std::unique_ptr<Stage> input_;
  const FilterFunction &function_;
};

class FilterCallbackDataset : public Dataset {
 public:
  FilterCallbackDataset(const DatasetRef &input, Cardinality cardinality, FilterFunction function)
      : Dataset("filter_callback", input->spec(), cardinality, {input}), function_(std::move(function)) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    TUTTI_ASSIGN(std::unique_ptr<Stage> input, inputs()[0]->open(context));
    return std::unique_ptr<Stage>(std::make_unique<FilterCallbackStage>(std::move(input), function_));
  }

 private:
  FilterFunction function_;
};

}  // namespace

Result<DatasetRef> apply_filter_callback(const DatasetRef &input, const FilterCallbackParameters &,
                                         TransformArguments &arguments) {
  // How many are kept is known only for none.
  const Cardinality all = input->cardinality();
  const Cardinality kept = all == Cardinality::exactly(0) ? all : Cardinality::unknown();
  return DatasetRef(base::make_ref<FilterCallbackDataset>(input, kept, std::move(arguments.filter)));
}

}  // namespace tutti::impl::data
