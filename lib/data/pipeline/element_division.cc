// SPDX-License-Identifier: Apache-2.0
#include "data/pipeline/element_division.h"

#include <utility>

#include "data/pipeline/block_share.h"
#include "data/pipeline/remade.h"

namespace tutti::impl::data {

using base::Result;

namespace {

std::string name_of(const Dataset &dataset) {
  return dataset.recipe() != nullptr ? dataset.recipe()->name : dataset.kind();
}

class ElementDivider {
 public:
  ElementDivider(int32_t worker, int32_t workers) : worker_(worker), workers_(workers) {}

  // Of batches, with the share before what makes them; null where that is not found, or where rows are not computed one
  // by one behind it.
  Result<DatasetRef> batches(const DatasetRef &dataset) {
    const Recipe *recipe = dataset->recipe().get();
    if (recipe == nullptr || recipe->is_source) return DatasetRef();
    if (is_one_of(*recipe, {"batch", "rebatch"})) return batch(*recipe);
    TUTTI_ASSIGN(const bool passes, passes_share(*recipe));
    if (!passes) return DatasetRef();
    TUTTI_ASSIGN(DatasetRef input, batches(recipe->inputs.front()));
    if (input == nullptr) return input;
    return remake(*recipe, {{std::move(input)}});
  }

  const std::string &behind() const { return behind_; }

 private:
  Result<bool> passes_share(const Recipe &recipe) const {
    const ElementSpec &input = recipe.inputs.front()->spec();
    if (is_one_of(recipe, {"prefetch", "options", "select", "class_weights"})) return true;
    if (is_one_of(recipe, {"map"})) return may_cut_rows(recipe);
    // All workers count the same batches where each of them has rows in every one.
    return is_one_of(recipe, {"repeat", "take", "skip"}) && input.exact_batches && input.batch_size >= workers_;
  }

  Result<DatasetRef> batch(const Recipe &recipe) {
    DatasetRef input = recipe.inputs.front();
    if (recipe.name == "rebatch") {
      TUTTI_ASSIGN(input, Pipeline(std::move(input)).apply("unbatch").build());
    }
    const int64_t block = std::get<int64_t>(recipe.attributes.at("batch_size"));
    const auto drops = recipe.attributes.find("drop_remainder");
    const bool whole = drops != recipe.attributes.end() && std::get<bool>(drops->second);
    const BlockShare share = BlockShare::of(block, worker_, workers_, whole);
    TUTTI_ASSIGN(input, elements(input, share));
    Recipe batch = recipe;
    batch.name = "batch";
    return remake(batch, {{std::move(input)}, {{"batch_size", std::max<int64_t>(share.rows, 1)}}, share});
  }

  // Before what gives one element for each of its input.
  Result<DatasetRef> elements(const DatasetRef &dataset, const BlockShare &share) {
    const Recipe *recipe = dataset->recipe().get();
    const bool is_one_to_one =
        recipe != nullptr && is_one_of(*recipe, {"map", "map_callback", "map_process", "select", "class_weights",
                                                 "parse_example", "parse_sequence_example", "prefetch", "options"});
    if (!is_one_to_one) {
      behind_ = name_of(*dataset);
      return keep_elements(dataset, share);
    }
    TUTTI_ASSIGN(DatasetRef input, elements(recipe->inputs.front(), share));
    return remake(*recipe, {{std::move(input)}});
  }

  const int32_t worker_, workers_;
  std::string behind_;
};

}  // namespace

Result<ElementDivision> divide_elements(const DatasetRef &dataset, int32_t worker, int32_t workers) {
  ElementDivider divider(worker, workers);
  TUTTI_ASSIGN(DatasetRef made, divider.batches(dataset));
  if (made != nullptr) return ElementDivision{std::move(made), divider.behind()};
  // Last of all, so that nothing but the consumer is given parts without rows.
  return ElementDivision{keep_rows(dataset, worker, workers), name_of(*dataset)};
}

}  // namespace tutti::impl::data
