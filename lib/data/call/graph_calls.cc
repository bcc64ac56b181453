// SPDX-License-Identifier: Apache-2.0
#include "data/call/graph_calls.h"
#include "base/memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tutti::impl::data {

using base::Result;
using base::Status;
using tensor::Shape;
using tensor::Tensor;

namespace {

constexpr size_t kMostGraphForms = 16;

}  // namespace

Status graph_failed(const Status &status, const Lineage &lineage) {
  return in_element(
      status.wrap(base::concat("map: the graph failed for element ", lineage.index, " of epoch ", lineage.epoch)),
      lineage);
}

Result<graph::SymbolBindings> GraphCalls::bind(const Element &element) const {
  const GraphPlan &plan = *target_.plan;
  const bool adds_rows = plan.has_rows_form && !plan.is_batched;
  graph::SymbolBindings bindings;
  for (const GraphPlan::Input &input : plan.inputs) {
    const Shape &shape = element.components[static_cast<size_t>(input.component)].shape();
    const int32_t offset = adds_rows ? 1 : 0;
    const auto misfit = [&] {
      return base::invalid_argument("map: graph input '", input.name, "' is ", graph::to_string(input.dims),
                                    adds_rows ? " with the batch in front" : "", ", the element has shape ", shape);
    };
    if (static_cast<int32_t>(input.dims.size()) != shape.rank() + offset) return misfit();
    for (int32_t axis = 0; axis < static_cast<int32_t>(input.dims.size()); ++axis) {
      const graph::Dim &dim = input.dims[static_cast<size_t>(axis)];
      const int64_t extent = axis < offset ? 1 : shape[axis - offset];
      if (dim.is_constant()) {
        if (dim.constant() != extent) return misfit();
        continue;
      }
      const std::string symbol = dim.symbols()[0];
      const std::optional<int64_t> factor = dim.factor_of(symbol);
      if (!factor || extent % *factor != 0) return misfit();
      const auto [bound, is_new] = bindings.emplace(symbol, extent / *factor);
      if (!is_new && bound->second != extent / *factor) return misfit();
    }
  }
  return bindings;
}

Result<std::unique_ptr<GraphCalls::Form>> GraphCalls::prepare(const Element &element) const {
  const GraphPlan &plan = *target_.plan;
  auto form = std::make_unique<Form>();
  for (const GraphPlan::Input &input : plan.inputs) {
    form->input_shapes.push_back(element.components[static_cast<size_t>(input.component)].shape());
  }
  TUTTI_ASSIGN(const graph::SymbolBindings bindings, bind(element));
  TUTTI_ASSIGN(form->function, target_.runner->prepare(plan.graph, bindings));
  for (const GraphPort &port : form->function->outputs()) {
    TUTTI_ASSIGN(Shape shape, Shape::make(port.dims));
    if (plan.has_rows_form && !plan.is_batched) shape = shape.row_shape();
    form->result_shapes.push_back(shape);
    TUTTI_ASSIGN(base::Ref<tensor::BufferPool> pool, tensor::BufferPool::create(std::max<int64_t>(port.bytes, 1)));
    form->pools.push_back(std::move(pool));
  }
  return form;
}

Result<GraphCalls::Form *> GraphCalls::find(const Element &element) {
  const std::vector<GraphPlan::Input> &inputs = target_.plan->inputs;
  const auto fits = [&](const std::unique_ptr<Form> &form) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Shape &shape = element.components[static_cast<size_t>(inputs[i].component)].shape();
      if (!(form->input_shapes[i] == shape)) return false;
    }
    return true;
  };
  const auto found = std::find_if(forms_.begin(), forms_.end(), fits);
  if (found != forms_.end()) {
    std::rotate(forms_.begin(), found, found + 1);
    return forms_.front().get();
  }
  TUTTI_ASSIGN(std::unique_ptr<Form> form, prepare(element));
  forms_.insert(forms_.begin(), std::move(form));
  if (forms_.size() > kMostGraphForms) forms_.pop_back();
  return forms_.front().get();
}

Result<const void *> GraphCalls::aligned(const Tensor &tensor, size_t input) {
  if (base::is_aligned(tensor.data())) return tensor.data();
  copies_.resize(target_.plan->inputs.size());
  copy_bytes_.resize(copies_.size());
  if (copy_bytes_[input] < tensor.size_bytes()) {
    TUTTI_ASSIGN(copies_[input], base::allocate_aligned(static_cast<size_t>(tensor.size_bytes())));
    copy_bytes_[input] = tensor.size_bytes();
  }
  std::memcpy(copies_[input].get(), tensor.data(), static_cast<size_t>(tensor.size_bytes()));
  return copies_[input].get();
}

Status GraphCalls::run(const Element &element, std::vector<Tensor> &results) {
  if (routine_ != nullptr) return routine_->run(element, results);
  const GraphPlan &plan = *target_.plan;
  TUTTI_ASSIGN(Form *const form, find(element));
  const size_t count = plan.results.size();
  input_pointers_.resize(plan.inputs.size());
  output_pointers_.resize(count);
  output_buffers_.resize(count);
  results.resize(count);
  for (size_t i = 0; i < count; ++i) {
    TUTTI_ASSIGN(output_buffers_[i], form->pools[i]->acquire());
    output_pointers_[i] = output_buffers_[i]->data();
  }
  const bool by_tables = target_.tables != nullptr && !target_.tables->empty();
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    const Tensor &component = element.components[static_cast<size_t>(plan.inputs[i].component)];
    if (by_tables) {
      input_pointers_[i] = component.data();
    } else {
      TUTTI_ASSIGN(input_pointers_[i], aligned(component, i));
    }
  }
  if (by_tables) {
    for (size_t r = 0; r < count; ++r) {
      const ByteTable &table = (*target_.tables)[r];
      table.apply(static_cast<const std::byte *>(input_pointers_[static_cast<size_t>(table.input)]),
                  form->result_shapes[r].elements(), static_cast<std::byte *>(output_pointers_[r]));
    }
  } else {
    const int64_t rows = plan.is_batched ? element.rows() : 1;
    TUTTI_TRY(form->function->run(input_pointers_, output_pointers_,
                                  {target_.seed, element.lineage.epoch, element.lineage.index, rows}));
  }
  for (size_t i = 0; i < count; ++i) {
    TUTTI_ASSIGN(results[i], Tensor::from_buffer(form->function->outputs()[i].dtype, form->result_shapes[i],
                                                 std::move(output_buffers_[i])));
  }
  return Status();
}

Status GraphCalls::map(const Element &element, Element &output) {
  output.lineage = element.lineage;
  const Status status = run(element, results_);
  if (!status.ok()) return graph_failed(status, element.lineage);
  const std::vector<GraphPlan::Source> &sources = target_.plan->sources;
  output.components.resize(sources.size());
  for (size_t i = 0; i < sources.size(); ++i) {
    output.components[i] = sources[i].result >= 0 ? std::move(results_[static_cast<size_t>(sources[i].result)])
                                                  : element.components[static_cast<size_t>(sources[i].component)];
  }
  return Status();
}

}  // namespace tutti::impl::data
