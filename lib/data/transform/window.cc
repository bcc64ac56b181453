// SPDX-License-Identifier: Apache-2.0
//
// A window is one element: its components have a new first axis, which counts the window's elements. It is no batch, so
// windows can be shuffled and batched like any other examples: [window, ...] becomes [batch, window, ...].
#include <algorithm>
#include <deque>
#include <utility>

#include "data/dataset/stage.h"
#include "data/dataset/walk_report.h"
#include "data/element/joined_elements.h"
#include "data/transform_parameters.h"
#include "tensor/shape.h"

namespace tutti::impl::data {

using base::JsonReader;
using base::Result;
using base::Status;
using tensor::Shape;
using tensor::Tensor;

namespace {

// Which elements a window has: those at start(w), start(w) + stride, ...
struct WindowPlan {
  int64_t size;
  int64_t shift;
  int64_t stride;
  bool drop_remainder;

  int64_t start(int64_t window) const { return window * shift; }
  // Elements from the first to the last of a window.
  int64_t span() const { return (size - 1) * stride + 1; }
  // Elements of a window of which `available` lie before the end.
  int64_t elements_of(int64_t available) const { return std::min(size, (available + stride - 1) / stride); }
  // Windows over so many elements.
  int64_t windows_of(int64_t elements) const {
    if (!drop_remainder) return elements / shift + (elements % shift != 0 ? 1 : 0);
    return elements < span() ? 0 : (elements - span()) / shift + 1;
  }
  // Has each of the windows over so many elements all of them?
  bool all_full(int64_t elements) const {
    return drop_remainder || elements == 0 || start(windows_of(elements) - 1) + span() <= elements;
  }
};

Status join(std::span<const Element> elements, const ElementSpec &spec, Element &window) {
  return join_elements("window", elements, spec, "", window);
}

class WindowAccess : public RandomAccess {
 public:
  WindowAccess(std::unique_ptr<RandomAccess> input, const WindowPlan &plan, const ElementSpec &spec)
      : input_(std::move(input)), plan_(plan), spec_(spec), size_(plan.windows_of(input_->size())) {}

  int64_t size() const override { return size_; }
  int64_t rows_at_once() const override { return std::max<int64_t>(input_->rows_at_once() / plan_.size, 1); }
  int64_t lineage(int64_t position) const override { return position; }
  Status gather(std::span<int64_t> positions, std::span<const RowTarget> targets) override {
    places_.clear();
    for (const int64_t position : positions) {
      for (int64_t i = 0; i < plan_.size; ++i)
        places_.push_back(plan_.start(position) + i * plan_.stride);
    }
    rows_.assign(targets.begin(), targets.end());
    for (RowTarget &target : rows_)
      target.row_bytes /= plan_.size;
    return input_->gather(places_, rows_);
  }
  Status element(int64_t position, Element &window) override {
    const int64_t start = plan_.start(position);
    const int64_t count = plan_.elements_of(input_->size() - start);
    if (plan_.stride == 1 && input_->view(start, count, window)) return Status();
    if (spec_.is_static()) return gather_one(start, count, window);
    elements_.resize(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i)
      TUTTI_TRY(input_->element(start + i * plan_.stride, elements_[static_cast<size_t>(i)]));
    return join(elements_, spec_, window);
  }
  // Windows that lie side by side.
  bool view(int64_t first, int64_t count, Element &batch) override {
    const int64_t rows = count * plan_.size;
    if (plan_.stride != 1 || plan_.shift != plan_.size || first * plan_.size + rows > input_->size()) return false;
    if (!input_->view(first * plan_.size, rows, batch)) return false;
    for (Tensor &component : batch.components) {
      std::vector<int64_t> extents{count, plan_.size};
      extents.insert(extents.end(), component.shape().begin() + 1, component.shape().end());
      const Result<Shape> shape = Shape::make(extents);
      Result<Tensor> windows = shape.ok() ? component.reshape(*shape) : Result<Tensor>(shape.status());
      if (!windows.ok()) return false;
      component = windows.take();
    }
    return true;
  }

 private:
  Status gather_one(int64_t start, int64_t count, Element &window) {
    window.components.resize(spec_.components.size());
    rows_.resize(spec_.components.size());
    for (size_t i = 0; i < rows_.size(); ++i) {
      TUTTI_ASSIGN(const Shape row, Shape::make(*graph::constant_shape(spec_.components[i].dims)));
      TUTTI_ASSIGN(const Shape shape, row.prepend(count));
      TUTTI_ASSIGN(window.components[i], Tensor::allocate(spec_.components[i].dtype, shape));
      rows_[i] = {window.components[i].mutable_data_as<std::byte>(), window.components[i].size_bytes() / count};
    }
    places_.clear();
    for (int64_t i = 0; i < count; ++i)
      places_.push_back(start + i * plan_.stride);
    return input_->gather(places_, rows_);
  }

  std::unique_ptr<RandomAccess> input_;
  const WindowPlan plan_;
  const ElementSpec &spec_;  // of the input
  const int64_t size_;
  std::vector<int64_t> places_;
  std::vector<RowTarget> rows_;
  std::vector<Element> elements_;
};

// Elements that later windows need stay, with the input's state from before each that begins a window.
class WindowStage : public Stage {
 public:
  WindowStage(std::unique_ptr<Stage> input, const WindowPlan &plan, const ElementSpec &spec,
              const IteratorContext &context)
      : input_(std::move(input)), plan_(plan), spec_(spec), cancel_(context.cancel), epoch_(context.epoch) {}

  Result<bool> next(Element &window) override {
    const int64_t start = plan_.start(window_);
    while (!ended_ && read_ < start + plan_.span())
      TUTTI_TRY(pull(start));
    const int64_t available = read_ - start;
    if (available <= 0 || (plan_.drop_remainder && available < plan_.span())) return false;
    const Status status = join_held(plan_.elements_of(available), window);
    window.lineage = {epoch_, window_++, std::move(file_)};
    for (int64_t i = std::min(plan_.shift, available); i > 0; --i)
      held_.pop_front();
    TUTTI_TRY(status);
    return true;
  }
  void save(State &state) const override {
    const int64_t start = plan_.start(window_);
    state.open("window");
    state.number("window", window_);
    state.number("skip", std::max<int64_t>(start - read_, 0));
    state.key("input");
    if (held_.empty()) {
      input_->save(state);
    } else {
      state.append(held_.front().before);
    }
    state.close();
  }
  Status restore(const JsonReader &state) override {
    TUTTI_TRY(expect_kind(state, "window"));
    TUTTI_ASSIGN(window_, saved_count(state, "window", 0, INT64_MAX / plan_.shift - plan_.span()));
    TUTTI_ASSIGN(const int64_t skip, saved_count(state, "skip", 0, plan_.start(window_)));
    read_ = plan_.start(window_) - skip;
    TUTTI_ASSIGN(const JsonReader input, state.get("input"));
    return input_->restore(input);
  }

 private:
  // An element of the input, or its error; and the input's state before it, if it begins a window.
  struct Held {
    Element element;
    Status status;
    State before;
  };

  // Takes one element; those before `start` are of no use.
  Status pull(int64_t start) {
    Held held;
    if (read_ % plan_.shift == 0) input_->save(held.before);
    const Result<bool> more = input_->next(held.element);
    if (is_final(more.status())) return more.status();
    if (more.ok() && !*more) {
      ended_ = true;
      return Status();
    }
    held.status = more.status();
    if (read_++ < start) return base::check(cancel_.get());
    held_.push_back(std::move(held));
    return Status();
  }
  Status join_held(int64_t count, Element &window) {
    elements_.clear();
    for (int64_t i = 0; i < count; ++i) {
      const Held &held = held_[static_cast<size_t>(i * plan_.stride)];
      TUTTI_TRY(held.status);
      elements_.push_back(held.element);
    }
    const Status status = join(elements_, spec_, window);
    file_ = file_of(elements_);
    elements_.clear();
    return status;
  }

  std::unique_ptr<Stage> input_;
  const WindowPlan plan_;
  const ElementSpec &spec_;  // of the input
  const base::Ref<base::CancelToken> cancel_;
  const int64_t epoch_;
  std::deque<Held> held_;  // elements window_ * shift .. read_ - 1
  std::vector<Element> elements_;
  FileName file_;       // of the window just joined
  int64_t read_ = 0;    // elements of the input
  int64_t window_ = 0;  // the next one
  bool ended_ = false;
};

class WindowDataset : public Dataset {
 public:
  WindowDataset(const DatasetRef &input, ElementSpec spec, Cardinality cardinality, const WindowPlan &plan)
      : Dataset("window", std::move(spec), cardinality, {input}), plan_(plan) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    TUTTI_ASSIGN(std::unique_ptr<Stage> indexed, open_indexed(*this, context));
    if (indexed != nullptr) return indexed;
    TUTTI_ASSIGN(std::unique_ptr<Stage> input, inputs()[0]->walk(context));
    return std::unique_ptr<Stage>(std::make_unique<WindowStage>(std::move(input), plan_, inputs()[0]->spec(), context));
  }
  Result<std::unique_ptr<RandomAccess>> random_access(const IteratorContext &context, Access access) const override {
    TUTTI_ASSIGN(std::unique_ptr<RandomAccess> input, inputs()[0]->random_access(context, access));
    if (input == nullptr) return input;
    return named(context, *this, std::make_unique<WindowAccess>(std::move(input), plan_, inputs()[0]->spec()));
  }

 private:
  const WindowPlan plan_;
};

}  // namespace

Result<DatasetRef> apply_window(const DatasetRef &input, const WindowParameters &parameters, TransformArguments &) {
  ElementSpec spec = input->spec();
  if (spec.is_batched()) {
    return base::invalid_argument("elements are batches of ", spec.batch_size, " rows; put it before the batch");
  }
  const WindowPlan plan{parameters.size, parameters.shift > 0 ? parameters.shift : parameters.size, parameters.stride,
                        parameters.drop_remainder};
  const Cardinality all = input->cardinality();
  const bool are_full =
      plan.drop_remainder || all == Cardinality::infinite() || (all.is_exact() && plan.all_full(all.value()));
  for (ComponentSpec &component : spec.components) {
    if (component.dims.size() >= static_cast<size_t>(Shape::kMaxRank)) {
      return base::invalid_argument("component '", component.name, "' already has the highest rank ", Shape::kMaxRank);
    }
    component.dims.insert(component.dims.begin(), are_full ? graph::Dim(plan.size) : unknown_dim());
  }
  const Cardinality cardinality = all.is_exact() ? Cardinality::exactly(plan.windows_of(all.value())) : all;
  return DatasetRef(base::make_ref<WindowDataset>(input, std::move(spec), cardinality, plan));
}

}  // namespace tutti::impl::data
