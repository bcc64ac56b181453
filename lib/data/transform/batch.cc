// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <utility>

#include "data/stage.h"
#include "data/transform_parameters.h"
#include "tensor/buffer.h"
#include "tensor/bytes_tensor.h"

namespace tutti::impl::data {

using base::JsonReader;
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

// Gathers rows and joins them. What is gathered when an interrupt comes stays, and the next call goes on with it.
class BatchStage : public Stage {
 public:
  BatchStage(std::unique_ptr<Stage> input, const BatchParameters &parameters, int64_t epoch)
      : input_(std::move(input)), parameters_(parameters), epoch_(epoch) {}

  Result<bool> next(Element &batch) final {
    batch.lineage = {epoch_, position_};
    if (!gathering_) {
      if (view(batch)) return is_wanted(rows_);
      before_.clear();
      input_->save(before_);
      gathering_ = true;
      rows_ = 0;
      error_ = Status();
    }
    TUTTI_TRY(gather());
    gathering_ = false;
    position_ += rows_;
    // A failing row takes its batch along; the next batch begins where it would have begun anyway.
    if (error_.ok() && is_wanted(rows_)) error_ = join(batch);
    forget();
    TUTTI_TRY(error_);
    return is_wanted(rows_);
  }
  void save(State &state) const override {
    state.open("batch");
    state.number("position", position_);
    state.key("input");
    if (gathering_) {
      state.append(before_);
    } else {
      input_->save(state);
    }
    state.close();
  }
  Status restore(const JsonReader &state) override {
    TUTTI_TRY(expect_kind(state, "batch"));
    TUTTI_ASSIGN(position_, saved_count(state, "position"));
    TUTTI_ASSIGN(const JsonReader input, state.get("input"));
    return input_->restore(input);
  }

 protected:
  // Gives the rows as they lie in memory, if they lie together.
  virtual bool view_rows(Element &) { return false; }
  // Takes elements until there are batch_size of them or no more come; counts them in rows_, failing ones too. Errors
  // go to error_; what comes back is an interrupt.
  virtual Status gather() = 0;
  // Makes a batch of at least one row.
  virtual Status join(Element &batch) = 0;
  // Lets go of what was gathered.
  virtual void forget() = 0;

  std::unique_ptr<Stage> input_;
  const BatchParameters parameters_;
  int64_t rows_ = 0;  // of the batch in the making
  Status error_;

 private:
  bool is_wanted(int64_t rows) const {
    return rows == parameters_.batch_size || (rows > 0 && !parameters_.drop_remainder);
  }
  bool view(Element &batch) {
    if (!view_rows(batch)) return false;
    rows_ = batch.rows();
    position_ += rows_;
    return true;
  }

  int64_t epoch_;
  int64_t position_ = 0;  // rows given out
  bool gathering_ = false;
  State before_;  // of the input, before the batch in the making
};

// Rows of static shape go straight into the batch's buffers, or are views when they already lie together.
class RowBatchStage : public BatchStage {
 public:
  RowBatchStage(std::unique_ptr<Stage> input, const BatchParameters &parameters, int64_t epoch,
                const BatchLayout &layout, base::Ref<base::CancelToken> cancel)
      : BatchStage(std::move(input), parameters, epoch), layout_(layout), cancel_(std::move(cancel)) {
    targets_.resize(layout.row_bytes.size());
    buffers_.resize(layout.row_bytes.size());
  }

 protected:
  bool view_rows(Element &batch) override {
    batch.components.clear();
    return input_->next_view(parameters_.batch_size, batch);
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

Result<Tensor> join_bytes(std::span<const Element> elements, size_t component, const Shape &shape) {
  std::vector<std::string_view> texts;
  for (const Element &element : elements) {
    TUTTI_ASSIGN(const std::vector<std::string_view> row, tensor::bytes_values(element.components[component]));
    texts.insert(texts.end(), row.begin(), row.end());
  }
  return tensor::make_bytes_tensor(shape, std::span<const std::string_view>(texts));
}

Result<Tensor> join_rows(std::span<const Element> elements, size_t component, const Shape &shape) {
  const DType dtype = elements[0].components[component].dtype();
  TUTTI_ASSIGN(Tensor joined, Tensor::allocate(dtype, shape));
  auto *target = joined.mutable_data_as<std::byte>();
  for (const Element &element : elements) {
    const Tensor &row = element.components[component];
    if (row.size_bytes() > 0) std::memcpy(target, row.data(), static_cast<size_t>(row.size_bytes()));
    target += row.size_bytes();
  }
  return joined;
}

// Elements whose shapes are known only when they are there.
class ElementBatchStage : public BatchStage {
 public:
  ElementBatchStage(std::unique_ptr<Stage> input, const BatchParameters &parameters, int64_t epoch,
                    const ElementSpec &row_spec)
      : BatchStage(std::move(input), parameters, epoch), row_spec_(row_spec) {}

 protected:
  Status gather() override {
    for (bool over = false; rows_ < parameters_.batch_size && !over;) {
      Element element;
      const Result<bool> more = input_->next(element);
      if (base::is_interrupt(more.status())) return more.status();
      if (more.ok() && !*more) break;
      ++rows_;
      over = is_final(more.status());
      keep_worst(error_, more.status());
      if (error_.ok()) elements_.push_back(std::move(element));
    }
    return Status();
  }

  Status join(Element &batch) override {
    batch.components.resize(row_spec_.components.size());
    for (size_t i = 0; i < batch.components.size(); ++i) {
      const Tensor &first = elements_[0].components[i];
      for (size_t row = 1; row < elements_.size(); ++row) {
        if (elements_[row].components[i].shape() == first.shape()) continue;
        return base::invalid_argument("batch: component '", row_spec_.components[i].name, "' has shape ", first.shape(),
                                      " in row 0 and ", elements_[row].components[i].shape(), " in row ", row,
                                      "; expected equal shapes");
      }
      TUTTI_ASSIGN(const Shape shape, first.shape().prepend(static_cast<int64_t>(elements_.size())));
      Result<Tensor> joined =
          first.dtype() == DType::bytes ? join_bytes(elements_, i, shape) : join_rows(elements_, i, shape);
      TUTTI_TRY(joined);
      batch.components[i] = joined.take();
    }
    return Status();
  }

  void forget() override { elements_.clear(); }

 private:
  const ElementSpec &row_spec_;
  std::vector<Element> elements_;
};

class BatchDataset : public Dataset {
 public:
  BatchDataset(const DatasetRef &input, ElementSpec spec, Cardinality cardinality, const BatchParameters &parameters)
      : Dataset("batch", std::move(spec), cardinality, {input}), parameters_(parameters) {}

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
    TUTTI_ASSIGN(std::unique_ptr<Stage> input, inputs()[0]->open(context));
    if (layout_.pools.empty()) {
      return std::unique_ptr<Stage>(
          std::make_unique<ElementBatchStage>(std::move(input), parameters_, context.epoch, inputs()[0]->spec()));
    }
    return std::unique_ptr<Stage>(
        std::make_unique<RowBatchStage>(std::move(input), parameters_, context.epoch, layout_, context.cancel));
  }

 private:
  BatchParameters parameters_;
  BatchLayout layout_;
};

Cardinality batches(Cardinality rows, const BatchParameters &parameters) {
  if (!rows.is_exact()) return rows;
  const int64_t whole = rows.value() / parameters.batch_size;
  const bool remainder = rows.value() % parameters.batch_size != 0;
  return Cardinality::exactly(whole + (remainder && !parameters.drop_remainder ? 1 : 0));
}

}  // namespace

Result<DatasetRef> apply_batch(const DatasetRef &input, const BatchParameters &parameters, TransformArguments &) {
  ElementSpec spec = input->spec();
  for (ComponentSpec &component : spec.components) {
    if (component.dims.size() >= static_cast<size_t>(Shape::kMaxRank)) {
      return base::invalid_argument("component '", component.name, "' already has the highest rank ", Shape::kMaxRank);
    }
    // The rows of a batch of batches are no longer the batch.
    for (graph::Dim &dim : component.dims) {
      if (!dim.mentions(graph::kBatchSymbol)) continue;
      dim = input->spec().exact_batches ? graph::Dim(input->spec().batch_size) : unknown_dim();
    }
    component.dims.insert(component.dims.begin(), graph::Dim::symbol(graph::kBatchSymbol));
  }
  spec.batch_size = parameters.batch_size;
  spec.exact_batches = parameters.drop_remainder;
  const Cardinality cardinality = batches(input->cardinality(), parameters);
  if (cardinality.is_exact() && input->cardinality().value() % parameters.batch_size == 0) spec.exact_batches = true;
  auto dataset = base::make_ref<BatchDataset>(input, std::move(spec), cardinality, parameters);
  TUTTI_TRY(dataset->prepare());
  return DatasetRef(std::move(dataset));
}

}  // namespace tutti::impl::data
