// SPDX-License-Identifier: Apache-2.0
#include "data/graph/routine.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>

#include "base/memory.h"
#include "base/text.h"
#include "graph/op_registry.h"

namespace tutti::impl::data {

using base::Ref;
using base::Result;
using base::Status;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;
using tensor::Buffer;
using tensor::BufferPool;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

namespace {

constexpr size_t kMostForms = 16;
constexpr int64_t kSmallestClass = 256;

int64_t bytes_of(const RoutineValue &value) {
  return value.shape.elements() * static_cast<int64_t>(tensor::size_bytes(value.dtype));
}

// Bytes of dtype bytes: offsets, then texts.
int64_t packed_bytes(std::span<const std::string_view> texts) {
  int64_t bytes = static_cast<int64_t>((texts.size() + 1) * sizeof(int64_t));
  for (const std::string_view text : texts)
    bytes += static_cast<int64_t>(text.size());
  return bytes;
}

void pack(std::span<const std::string_view> texts, void *memory) {
  auto *const offsets = static_cast<int64_t *>(memory);
  auto *const base = static_cast<char *>(memory);
  int64_t end = static_cast<int64_t>((texts.size() + 1) * sizeof(int64_t));
  for (size_t i = 0; i < texts.size(); ++i) {
    offsets[i] = end;
    if (!texts[i].empty()) std::memcpy(base + end, texts[i].data(), texts[i].size());
    end += static_cast<int64_t>(texts[i].size());
  }
  offsets[texts.size()] = end;
}

// The least of the classes 2^k · {4, 5, 6, 7} / 4 that holds so many bytes.
int64_t size_class(int64_t bytes) {
  bytes = std::max(bytes, kSmallestClass);
  const int64_t quarter = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(bytes))) / 4;
  return (bytes + quarter - 1) / quarter * quarter;
}

template <typename Value>
Status grow(Value &block, int64_t bytes) {
  if (block.bytes >= bytes && block.memory != nullptr) return Status();
  const int64_t wanted = size_class(bytes);
  block.memory.reset();
  block.bytes = 0;
  TUTTI_ASSIGN(block.memory, base::allocate_aligned(static_cast<size_t>(wanted)));
  block.bytes = wanted;
  return Status();
}

}  // namespace

Result<Ref<Buffer>> ResultPools::acquire(int64_t bytes) {
  const int64_t wanted = size_class(bytes);
  Ref<BufferPool> pool;
  {
    std::lock_guard lock(mutex_);
    const auto found =
        std::find_if(pools_.begin(), pools_.end(), [&](const auto &one) { return one->block_bytes() == wanted; });
    if (found != pools_.end()) {
      std::rotate(pools_.begin(), found, found + 1);
    } else {
      TUTTI_ASSIGN(Ref<BufferPool> made, BufferPool::create(wanted));
      pools_.insert(pools_.begin(), std::move(made));
      if (pools_.size() > kMostPools) pools_.pop_back();
    }
    pool = pools_.front();
  }
  return pool->acquire();
}

// What a kernel sees of the step that runs.
class Routine::Frame final : public RoutineFrame {
 public:
  Frame(Routine &routine, size_t step)
      : routine_(routine), step_(routine.plan_->steps[step]), state_(routine.states_[step]) {}

  bool has_input(size_t index) const override { return index < step_.inputs.size() && step_.inputs[index] != kNoValue; }
  const RoutineValue &input(size_t index) const override { return value(step_.inputs[index]); }

  Result<void *> output(size_t index, const Shape &shape) override {
    const ValueId id = step_.outputs[index];
    RoutineValue &output = value(id);
    const int64_t bytes = shape.elements() * static_cast<int64_t>(tensor::size_bytes(output.dtype));
    TUTTI_TRY(routine_.check_shape(id, shape));
    TUTTI_ASSIGN(void *const memory, routine_.place(id, bytes, false));
    output.shape = shape;
    output.data = memory;
    return memory;
  }

  Status output_texts(size_t index, const Shape &shape, std::span<const std::string_view> texts) override {
    const ValueId id = step_.outputs[index];
    if (static_cast<int64_t>(texts.size()) != shape.elements()) {
      return base::internal_error(texts.size(), " texts for the shape ", shape);
    }
    TUTTI_TRY(routine_.check_shape(id, shape));
    TUTTI_ASSIGN(void *const memory, routine_.place(id, packed_bytes(texts), false));
    pack(texts, memory);
    value(id) = {DType::bytes, shape, memory, static_cast<const char *>(memory)};
    return Status();
  }

  Status output_view(size_t index, const Shape &shape, size_t from) override {
    const ValueId id = step_.outputs[index];
    TUTTI_TRY(routine_.check_shape(id, shape));
    const RoutineValue &source = input(from);
    value(id) = {source.dtype, shape, source.data, source.texts};
    return Status();
  }

  Result<Shape> known_shape(size_t index) const override {
    TUTTI_ASSIGN(const std::vector<int64_t> extents,
                 graph::evaluate(routine_.plan_->graph->value(step_.outputs[index]).dims, routine_.bindings()));
    return Shape::make(extents);
  }

  base::RandomStream random(int64_t key, int64_t row) const override {
    const GraphScalars &scalars = routine_.scalars_;
    const int64_t stream = key != 0 ? key : routine_.plan_->graph->node(step_.node).stable_id;
    const auto element = static_cast<uint64_t>(scalars.row_offset + row);
    return base::RandomStream(base::RandomKey::of(static_cast<uint64_t>(scalars.seed), static_cast<uint64_t>(stream),
                                                  static_cast<uint64_t>(scalars.epoch))
                                  .fold(element, 0));
  }

  PixelWindow window_read(const PixelSize &size, int64_t row) const override {
    if (step_.reader < 0) return {0, 0, size.height, size.width};
    return step_.window_read(Frame(routine_, static_cast<size_t>(step_.reader)), size, row);
  }

 protected:
  std::shared_ptr<void> &state_slot() override { return state_; }

 private:
  RoutineValue &value(ValueId id) const { return routine_.values_[static_cast<size_t>(id)]; }

  Routine &routine_;
  const RoutinePlan::Step &step_;
  std::shared_ptr<void> &state_;
};

Routine::Routine(std::shared_ptr<const RoutinePlan> plan, std::shared_ptr<GraphRunner> runner,
                 std::shared_ptr<ResultPools> pools)
    : plan_(std::move(plan)), runner_(std::move(runner)), pools_(std::move(pools)) {
  const graph::Graph &graph = *plan_->graph;
  values_.resize(graph.values().size());
  blocks_.resize(values_.size());
  copies_.resize(values_.size());
  buffers_.resize(plan_->results.size());
  states_.resize(plan_->steps.size());
  forms_.resize(plan_->steps.size());
  for (size_t i = 0; i < values_.size(); ++i) {
    const graph::ValueInfo &info = graph.values()[i];
    values_[i].dtype = info.dtype;
    if (info.producer == graph::kNoNode || graph.node(info.producer).op != "constant") continue;
    const auto &constant = std::get<Tensor>(graph.node(info.producer).attributes.at("value"));
    values_[i].shape = constant.shape();
    values_[i].data = constant.data();
    if (info.dtype == DType::bytes) values_[i].texts = static_cast<const char *>(constant.buffer()->data());
  }
}

Routine::~Routine() = default;

// Is this the shape that the graph says? A symbol met for the first time gets its value here.
Result<bool> Routine::fits(ValueId value, const Shape &shape) {
  const std::vector<RoutinePlan::Axis> &axes = plan_->axes[static_cast<size_t>(value)];
  if (static_cast<int32_t>(axes.size()) != shape.rank()) return false;
  for (int32_t i = 0; i < shape.rank(); ++i) {
    const RoutinePlan::Axis &axis = axes[static_cast<size_t>(i)];
    int64_t expected = axis.constant;
    if (axis.symbol >= 0) {
      int64_t &known = symbols_[static_cast<size_t>(axis.symbol)];
      if (known < 0 && shape[i] % axis.factor == 0) known = shape[i] / axis.factor;
      expected = known * axis.factor;
    } else if (axis.constant < 0) {
      TUTTI_ASSIGN(expected, plan_->graph->value(value).dims[static_cast<size_t>(i)].evaluate(bindings()));
    }
    if (expected != shape[i]) return false;
  }
  return true;
}

Status Routine::check_shape(ValueId value, const Shape &shape) {
  TUTTI_ASSIGN(const bool is_right, fits(value, shape));
  if (is_right) return Status();
  return base::internal_error("the shape is ", shape, ", expected ", graph::to_string(plan_->graph->value(value).dims));
}

graph::SymbolBindings Routine::bindings() const {
  graph::SymbolBindings known;
  for (size_t i = 0; i < symbols_.size(); ++i) {
    if (symbols_[i] >= 0) known.emplace(plan_->symbols[i], symbols_[i]);
  }
  return known;
}

// Where a value of so many bytes goes: to its target, into a pooled buffer, or into a block of the routine's own.
Result<void *> Routine::place(ValueId value, int64_t bytes, bool wants_alignment) {
  const int32_t result = plan_->result_of_value[static_cast<size_t>(value)];
  if (result >= 0) {
    void *const target = targets_[static_cast<size_t>(result)];
    if (target != nullptr && (!wants_alignment || base::is_aligned(target))) return target;
    if (target == nullptr) {
      TUTTI_ASSIGN(Ref<Buffer> buffer, pools_->acquire(bytes));
      buffers_[static_cast<size_t>(result)] = std::move(buffer);
      return buffers_[static_cast<size_t>(result)]->data();
    }
  }
  Block &block = blocks_[static_cast<size_t>(value)];
  TUTTI_TRY(grow(block, bytes));
  return block.memory.get();
}

Result<const void *> Routine::aligned(ValueId value) {
  const RoutineValue &from = values_[static_cast<size_t>(value)];
  if (base::is_aligned(from.data)) return from.data;
  Block &copy = copies_[static_cast<size_t>(value)];
  TUTTI_TRY(grow(copy, bytes_of(from)));
  std::memcpy(copy.memory.get(), from.data, static_cast<size_t>(bytes_of(from)));
  return const_cast<const void *>(copy.memory.get());
}

Result<Routine::Form *> Routine::find_form(size_t index) {
  const RoutinePlan::Step &step = plan_->steps[index];
  std::vector<Form> &forms = forms_[index];
  const auto is_for_these = [&](const Form &form) {
    for (size_t i = 0; i < step.symbols.size(); ++i) {
      if (symbols_[static_cast<size_t>(step.symbols[i])] != form.symbols[i]) return false;
    }
    return true;
  };
  const auto found = std::find_if(forms.begin(), forms.end(), is_for_these);
  if (found != forms.end()) {
    std::rotate(forms.begin(), found, found + 1);
    return &forms.front();
  }
  if (runner_ == nullptr) return base::failed_precondition("this context cannot run graphs");
  Form form;
  graph::SymbolBindings own;
  for (const int32_t symbol : step.symbols) {
    const int64_t value = symbols_[static_cast<size_t>(symbol)];
    const std::string &name = plan_->symbols[static_cast<size_t>(symbol)];
    if (value < 0) return base::internal_error("symbol '", name, "' has no value");
    own.emplace(name, value);
    form.symbols.push_back(value);
  }
  TUTTI_ASSIGN(form.function, runner_->prepare(step.program, own));
  for (const GraphPort &port : form.function->outputs()) {
    TUTTI_ASSIGN(const Shape shape, Shape::make(port.dims));
    form.shapes.push_back(shape);
  }
  forms.insert(forms.begin(), std::move(form));
  if (forms.size() > kMostForms) forms.pop_back();
  return &forms.front();
}

Status Routine::run_program(size_t index) {
  const RoutinePlan::Step &step = plan_->steps[index];
  TUTTI_ASSIGN(Form *const form, find_form(index));
  input_pointers_.resize(step.inputs.size());
  output_pointers_.resize(step.outputs.size());
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    TUTTI_ASSIGN(input_pointers_[i], aligned(step.inputs[i]));
  }
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    RoutineValue &output = values_[static_cast<size_t>(step.outputs[i])];
    output.shape = form->shapes[i];
    TUTTI_ASSIGN(output_pointers_[i],
                 place(step.outputs[i], std::max<int64_t>(form->function->outputs()[i].bytes, 1), true));
    output.data = output_pointers_[i];
  }
  return form->function->run(input_pointers_, output_pointers_, scalars_);
}

Status Routine::run_kernel(size_t index) {
  const RoutinePlan::Step &step = plan_->steps[index];
  Frame frame(*this, index);
  const Status status = step.kernel(frame);
  if (status.ok()) return status;
  const Node &node = plan_->graph->node(step.node);
  return status.wrap(base::concat("node '", node.scope_name, "' (", node.op, ") failed"));
}

Status Routine::run_step(size_t index) {
  return plan_->steps[index].program != nullptr ? run_program(index) : run_kernel(index);
}

// A result that lies elsewhere than it belongs is copied: an input or constant given out, a view, two names for one
// value.
Status Routine::deliver(size_t index) {
  const RoutineValue &value = result(index);
  void *target = targets_[index];
  if (target != nullptr) {
    if (target != value.data) std::memcpy(target, value.data, static_cast<size_t>(bytes_of(value)));
    return Status();
  }
  if (buffers_[index] != nullptr && buffers_[index]->data() == value.data) return Status();
  if (value.dtype == DType::bytes) {
    std::vector<std::string_view> texts;
    for (int64_t i = 0; i < value.shape.elements(); ++i)
      texts.push_back(value.text(i));
    TUTTI_ASSIGN(buffers_[index], pools_->acquire(packed_bytes(texts)));
    pack(texts, buffers_[index]->data());
    return Status();
  }
  TUTTI_ASSIGN(buffers_[index], pools_->acquire(bytes_of(value)));
  if (bytes_of(value) > 0) std::memcpy(buffers_[index]->data(), value.data, static_cast<size_t>(bytes_of(value)));
  return Status();
}

Status Routine::run(std::span<const RoutineValue> inputs, const GraphScalars &scalars, std::span<void *const> targets) {
  symbols_.assign(plan_->symbols.size(), -1);
  scalars_ = scalars;
  targets_ = targets;
  for (Ref<Buffer> &buffer : buffers_)
    buffer.reset();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ValueId id = plan_->inputs[i];
    TUTTI_ASSIGN(const bool is_right, fits(id, inputs[i].shape));
    if (!is_right) {
      const graph::ValueInfo &info = plan_->graph->value(id);
      return base::invalid_argument("graph input '", info.name, "' is ", graph::to_string(info.dims),
                                    ", the element has shape ", inputs[i].shape);
    }
    values_[static_cast<size_t>(id)] = inputs[i];
  }
  for (size_t step = 0; step < plan_->steps.size(); ++step)
    TUTTI_TRY(run_step(step));
  for (size_t i = 0; i < plan_->results.size(); ++i)
    TUTTI_TRY(deliver(i));
  return Status();
}

const RoutineValue &Routine::result(size_t index) const { return values_[static_cast<size_t>(plan_->results[index])]; }

Result<Tensor> Routine::result_tensor(size_t index, const Shape &shape) {
  return Tensor::from_buffer(result(index).dtype, shape, buffers_[index]);
}

}  // namespace tutti::impl::data
