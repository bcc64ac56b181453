// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "data/dataset/batch_stage.h"
#include "data/element/joined_elements.h"
#include "data/transform_parameters.h"

namespace tutti::impl::data {

using base::Result;
using base::Status;

namespace {

class PaddedBatchDataset : public Dataset {
 public:
  PaddedBatchDataset(const DatasetRef &input, ElementSpec spec, Cardinality cardinality,
                     PaddedBatchParameters parameters, Padding padding)
      : Dataset("padded_batch", std::move(spec), cardinality, {input}),
        parameters_(std::move(parameters)),
        padding_(std::move(padding)) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    TUTTI_ASSIGN(std::unique_ptr<Stage> input, inputs()[0]->walk(context));
    JoinElements join = [this](std::span<const Element> elements, Element &batch) {
      return padding_.join("padded_batch", elements, batch);
    };
    return std::unique_ptr<Stage>(
        std::make_unique<ElementBatchStage>("padded_batch", std::move(input), parameters_.batch_size,
                                            parameters_.drop_remainder, context.epoch, std::move(join)));
  }

 private:
  const PaddedBatchParameters parameters_;
  const Padding padding_;
};

}  // namespace

Result<DatasetRef> apply_padded_batch(const DatasetRef &input, const PaddedBatchParameters &parameters,
                                      TransformArguments &arguments) {
  if (input->spec().is_batched()) {
    return base::invalid_argument("elements are batches of ", input->spec().batch_size,
                                  " rows already; expected single examples");
  }
  TUTTI_ASSIGN(Padding padding, Padding::make(input->spec(), parameters.padding, parameters.lengths));
  if (input->spec().is_static()) {
    return apply_batch(input, {parameters.batch_size, parameters.drop_remainder}, arguments);
  }
  TUTTI_ASSIGN(ElementSpec spec, batch_spec(padding.row_spec(), parameters.batch_size));
  const Cardinality rows = input->cardinality();
  const bool is_whole = rows.is_exact() && rows.value() % parameters.batch_size == 0;
  spec.exact_batches = parameters.drop_remainder || is_whole;
  return DatasetRef(base::make_ref<PaddedBatchDataset>(
      input, std::move(spec), batches_of(rows, parameters.batch_size, parameters.drop_remainder), parameters,
      std::move(padding)));
}

}  // namespace tutti::impl::data
