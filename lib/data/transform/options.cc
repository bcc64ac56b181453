// SPDX-License-Identifier: Apache-2.0
//
// Settings for the transforms and sources before this one; elements go through as they are, without a stage between.
#include "data/dataset/stage.h"
#include "data/thread/buffer_budget.h"
#include "data/thread/worker_threads.h"
#include "data/transform_parameters.h"

namespace tutti::impl::data {

using base::Result;

namespace {

class OptionsDataset : public Dataset {
 public:
  OptionsDataset(const DatasetRef &input, const OptionsParameters &parameters)
      : Dataset("options", input->spec(), input->cardinality(), {input}), parameters_(parameters) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    return inputs()[0]->walk(changed(context));
  }
  Result<std::unique_ptr<RandomAccess>> random_access(const IteratorContext &context, Access access) const override {
    return inputs()[0]->random_access(changed(context), access);
  }

 private:
  IteratorContext changed(const IteratorContext &context) const {
    IteratorContext own = context;
    if (parameters_.threads > 0) {
      own.threads = static_cast<int32_t>(parameters_.threads);
      own.workers = {context.workers, &context.workers->of_budget(own.threads)};
    }
    if (parameters_.memory_bytes > 0) own.buffers = std::make_shared<BufferBudget>(parameters_.memory_bytes);
    own.keeps_order = context.keeps_order && (parameters_.deterministic || context.requires_order);
    return own;
  }

  const OptionsParameters parameters_;
};

}  // namespace

Result<DatasetRef> apply_options(const DatasetRef &input, const OptionsParameters &parameters, TransformArguments &) {
  return DatasetRef(base::make_ref<OptionsDataset>(input, parameters));
}

}  // namespace tutti::impl::data
