// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <utility>

#include "data/dataset/batch_stage.h"
#include "data/dataset/stage.h"
#include "data/element/joined_elements.h"
#include "data/transform_parameters.h"
#include "tensor/buffer.h"

namespace tutti::impl::data {

using base::Ref;
using base::Result;
using base::Status;
using tensor::BufferPool;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

namespace {

// What all walks over one batch dataset share: where rows of static shape go. A block comes back when its consumer lets
// go of the batch.
struct BatchLayout {
  std::vector<DType> dtypes;
  std::vector<Shape> row_shapes;
  std::vector<int64_t> row_bytes;
  std::vector<Ref<BufferPool>> pools;
  int64_t most_rows = 0;  // that a block holds
};

// Rows of static shape go straight into the batch's buffers, or are views when they already lie together.
class RowBatchStage : public BatchStage {
 public:
  RowBatchStage(std::unique_ptr<Stage> input, const BatchParameters &parameters, int64_t epoch,
                const BatchLayout &layout, base::Ref<base::CancelToken> cancel)
      : BatchStage("batch", std::move(input), parameters.batch_size, parameters.drop_remainder, epoch),
        layout_(layout),
        cancel_(std::move(cancel)) {
    targets_.resize(layout.row_bytes.size());
    buffers_.resize(layout.row_bytes.size());
  }

 protected:
  bool view_rows(Element &batch) override {
    batch.components.clear();
    return input_->next_view(batch_size_, batch);
  }

  Status gather() override {
    const Status status = acquire();
    if (base::is_interrupt(status)) return status;
    error_ = error_.ok() ? status : error_;
    while (status.ok() && rows_ < layout_.most_rows) {
      const int64_t wanted = layout_.most_rows - rows_;
      int64_t rows = 0;
      const Status read = input_->next_rows(from_row(targets_, rows_, moved_), wanted, rows);
      rows_ += rows;
      if (base::is_interrupt(read)) return read;
      keep_worst(error_, read);
      const bool goes_on = read.ok() ? rows == wanted : rows > 0 && !is_final(read);
      if (!goes_on) break;
    }
    return Status();
  }

  Status join(Element &batch) override {
    batch.components.resize(targets_.size());
    for (size_t i = 0; i < targets_.size(); ++i) {
      TUTTI_ASSIGN(const Shape shape, layout_.row_shapes[i].prepend(rows_));
      TUTTI_ASSIGN(batch.components[i], Tensor::from_buffer(layout_.dtypes[i], shape, std::move(buffers_[i])));
    }
    return Status();
  }

  void forget() override {
    for (Ref<tensor::Buffer> &buffer : buffers_)
      buffer.reset();
  }

 private:
  Status acquire() {
    for (size_t i = 0; i < targets_.size(); ++i) {
      if (buffers_[i] != nullptr) continue;
      TUTTI_ASSIGN(buffers_[i], layout_.pools[i]->acquire(cancel_.get()));
      targets_[i] = {static_cast<std::byte *>(buffers_[i]->data()), layout_.row_bytes[i]};
    }
    return Status();
  }

  const BatchLayout &layout_;  // the dataset's
  base::Ref<base::CancelToken> cancel_;
  std::vector<RowTarget> targets_, moved_;
  std::vector<Ref<tensor::Buffer>> buffers_;
};

class BatchDataset : public Dataset {
 public:
  BatchDataset(const DatasetRef &input, ElementSpec spec, Cardinality cardinality, const BatchParameters &parameters,
               const std::optional<BlockShare> &share)
      : Dataset("batch", std::move(spec), cardinality, {input}), parameters_(parameters), share_(share) {}

  // Prepares the pools when rows have a fixed size.
  Status prepare() {
    const ElementSpec &rows = inputs()[0]->spec();
    if (!rows.is_static()) return Status();
    const Cardinality all = inputs()[0]->cardinality();
    const int64_t most =
        all.is_exact() ? std::clamp<int64_t>(all.value(), 1, parameters_.batch_size) : parameters_.batch_size;
    layout_.most_rows = most;
    layout_.row_bytes = row_bytes(rows);
    for (size_t i = 0; i < rows.components.size(); ++i) {
      const ComponentSpec &component = rows.components[i];
      TUTTI_ASSIGN(const Shape shape, Shape::make(*graph::constant_shape(component.dims)));
      TUTTI_ASSIGN(const int64_t bytes,
                   tensor::checked_product(most, std::max<int64_t>(layout_.row_bytes[i], 1),
                                           base::concat("a batch of component '", component.name, "'")));
      TUTTI_ASSIGN(Ref<BufferPool> pool, BufferPool::create(bytes));
      layout_.dtypes.push_back(component.dtype);
      layout_.row_shapes.push_back(shape);
      layout_.pools.push_back(std::move(pool));
    }
    return Status();
  }

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    TUTTI_ASSIGN(std::unique_ptr<Stage> input, inputs()[0]->walk(context));
    std::unique_ptr<BatchStage> stage = open_over(std::move(input), context);
    if (share_) stage->number_rows(share_->first, share_->block);
    return std::unique_ptr<Stage>(std::move(stage));
  }

 private:
  std::unique_ptr<BatchStage> open_over(std::unique_ptr<Stage> input, const IteratorContext &context) const {
    if (input->gives_texts() && parameters_.batch_size <= BytesRows::kMostRows) {
      return std::make_unique<TextBatchStage>("batch", std::move(input), parameters_.batch_size,
                                              parameters_.drop_remainder, context.epoch);
    }
    if (layout_.pools.empty()) {
      const ElementSpec &rows = inputs()[0]->spec();
      JoinElements join = [&rows](std::span<const Element> elements, Element &batch) {
        return join_elements("batch", elements, rows, "; use padded_batch for shapes that differ", batch);
      };
      return std::make_unique<ElementBatchStage>("batch", std::move(input), parameters_.batch_size,
                                                 parameters_.drop_remainder, context.epoch, std::move(join));
    }
    return std::make_unique<RowBatchStage>(std::move(input), parameters_, context.epoch, layout_, context.cancel);
  }

  const BatchParameters parameters_;
  const std::optional<BlockShare> share_;
  BatchLayout layout_;
};

}  // namespace

Result<DatasetRef> apply_batch(const DatasetRef &input, const BatchParameters &parameters,
                               TransformArguments &arguments) {
  TUTTI_ASSIGN(ElementSpec spec, batch_spec(input->spec(), parameters.batch_size));
  spec.exact_batches = parameters.drop_remainder;
  const Cardinality cardinality = batches_of(input->cardinality(), parameters.batch_size, parameters.drop_remainder);
  if (cardinality.is_exact() && input->cardinality().value() % parameters.batch_size == 0) spec.exact_batches = true;
  auto dataset = base::make_ref<BatchDataset>(input, std::move(spec), cardinality, parameters, arguments.share);
  TUTTI_TRY(dataset->prepare());
  return DatasetRef(std::move(dataset));
}

}  // namespace tutti::impl::data
