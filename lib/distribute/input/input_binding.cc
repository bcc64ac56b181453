// SPDX-License-Identifier: Apache-2.0
#include "distribute/input/input_binding.h"

#include <algorithm>
#include <atomic>

namespace tutti::impl::distribute {

using base::Result;
using base::Status;

RowRange share_of_rows(int64_t rows, int32_t index, int32_t count) {
  const int64_t base = rows / count, larger = rows % count;
  const int64_t begin = base * index + std::min<int64_t>(index, larger);
  return {begin, begin + base + (index < larger ? 1 : 0)};
}

Result<InputBinding> InputBinding::make(const std::vector<graph::InputSpec> &inputs, const data::ElementSpec &spec) {
  static std::atomic<int64_t> numbers{0};
  InputBinding binding;
  binding.number_ = numbers.fetch_add(1, std::memory_order_relaxed);
  for (const graph::InputSpec &input : inputs) {
    const int32_t component = spec.find(input.name);
    if (component < 0) {
      return base::invalid_argument("the model's input '", input.name,
                                    "' is not among the components of the data: ", spec.to_string());
    }
    const data::ComponentSpec &found = spec.components[static_cast<size_t>(component)];
    if (found.dtype != input.dtype || found.dims.size() != input.dims.size()) {
      return base::invalid_argument("the model's input '", input.name, "' is ", tensor::name(input.dtype),
                                    graph::to_string(input.dims), ", the data has ", found.to_string());
    }
    binding.inputs_.push_back({input.name, component, input.dims, std::vector<int32_t>(input.dims.size(), -1)});
    for (size_t axis = 0; axis < input.dims.size(); ++axis) {
      const std::vector<std::string> mentioned = input.dims[axis].symbols();
      if (mentioned.size() != 1 || !(input.dims[axis] == graph::Dim::symbol(mentioned[0]))) continue;
      const auto known = std::ranges::find(binding.symbols_, mentioned[0]);
      binding.inputs_.back().symbols[axis] = static_cast<int32_t>(known - binding.symbols_.begin());
      if (known != binding.symbols_.end()) continue;
      binding.symbols_.push_back(mentioned[0]);
      binding.places_.push_back({component, static_cast<int32_t>(axis)});
    }
    if (std::ranges::find(binding.components_, component) == binding.components_.end()) {
      binding.components_.push_back(component);
    }
  }
  return binding;
}

Status InputBinding::misfit(const Input &input, int64_t rows, const tensor::Tensor &tensor) const {
  return base::invalid_argument("the model's input '", input.name, "' has dims ", graph::to_string(input.dims),
                                "; a batch of ", rows, " rows has ", tensor.describe());
}

/// Its dimensions are numbers, symbols, whose values other inputs may have told, or made of these.
Result<bool> InputBinding::fits(const Input &input, const data::Element &element, int64_t rows) const {
  const tensor::Tensor &tensor = element.components[static_cast<size_t>(input.component)];
  if (tensor.rank() != static_cast<int32_t>(input.dims.size()) || tensor.rows() != rows) return false;
  for (size_t axis = 0; axis < input.dims.size(); ++axis) {
    const graph::Dim &dim = input.dims[axis];
    int64_t expected = dim.constant();
    if (input.symbols[axis] == 0) {
      expected = rows;
    } else if (input.symbols[axis] > 0) {
      const SymbolPlace &place = places_[static_cast<size_t>(input.symbols[axis])];
      expected = element.components[static_cast<size_t>(place.component)].shape()[place.axis];
    } else if (!dim.is_constant()) {
      std::vector<int64_t> key;
      fill_key(element, rows, key);
      TUTTI_ASSIGN(expected, dim.evaluate(bindings(key)));
    }
    if (expected != tensor.shape()[static_cast<int32_t>(axis)]) return false;
  }
  return true;
}

Result<int64_t> InputBinding::check(const data::Element &element) const {
  const int64_t rows = inputs_.empty() ? 0 : element.components[static_cast<size_t>(inputs_[0].component)].rows();
  for (const Input &input : inputs_) {
    TUTTI_ASSIGN(const bool is_fit, fits(input, element, rows));
    if (!is_fit) return misfit(input, rows, element.components[static_cast<size_t>(input.component)]);
  }
  return rows;
}

void InputBinding::fill_key(const data::Element &element, int64_t rows, std::vector<int64_t> &key) const {
  key.clear();
  key.push_back(rows);
  for (size_t i = 1; i < places_.size(); ++i) {
    key.push_back(element.components[static_cast<size_t>(places_[i].component)].shape()[places_[i].axis]);
  }
}

graph::SymbolBindings InputBinding::bindings(const std::vector<int64_t> &key) const {
  graph::SymbolBindings bindings;
  for (size_t i = 0; i < symbols_.size(); ++i)
    bindings[symbols_[i]] = key[i];
  return bindings;
}

int32_t InputBinding::component_of(std::string_view input) const {
  const auto found = std::ranges::find(inputs_, input, &Input::name);
  return found == inputs_.end() ? -1 : found->component;
}

Result<std::vector<int32_t>> InputBinding::components_of(const backend::ExecutableDescription &description) const {
  std::vector<int32_t> components;
  for (const backend::PortDescription &port : description.inputs) {
    components.push_back(component_of(port.name));
    if (components.back() >= 0) continue;
    return base::internal_error("the program wants input '", port.name, "', which the model does not list");
  }
  return components;
}

const void *InputBinding::row_pointer(const data::Element &element, int32_t component, int64_t row) {
  const tensor::Tensor &tensor = element.components[static_cast<size_t>(component)];
  const int64_t row_bytes = tensor.rows() == 0 ? 0 : tensor.size_bytes() / tensor.rows();
  return static_cast<const std::byte *>(tensor.data()) + row * row_bytes;
}

}  // namespace tutti::impl::distribute
