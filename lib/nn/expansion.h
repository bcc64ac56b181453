// SPDX-License-Identifier: Apache-2.0
//
// What an expansion works with: the builder, the inputs, and the attributes with their defaults filled in. Inputs and
// attributes have been checked against the entry before, so accessors by name do not fail.
#ifndef TUTTI_NN_EXPANSION_H_
#define TUTTI_NN_EXPANSION_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nn/registry.h"

namespace tutti::impl::nn {

using graph::GraphBuilder;
using graph::kNoValue;
using graph::ValueId;

class Expansion {
 public:
  Expansion(GraphBuilder &builder, const Definition &definition, const std::vector<ValueId> &inputs,
            const graph::Attributes &attributes, ExpansionMode mode)
      : builder_(builder), definition_(definition), inputs_(inputs), attributes_(attributes), mode_(mode) {}

  GraphBuilder &builder() { return builder_; }
  bool training() const { return mode_.training; }

  /// An input by position; kNoValue for an optional one that was left out.
  ValueId input(size_t index) const { return index < inputs_.size() ? inputs_[index] : kNoValue; }
  bool has_input(size_t index) const { return input(index) != kNoValue; }
  const std::vector<ValueId> &inputs() const { return inputs_; }
  std::string_view input_name(size_t index) const { return definition_.inputs[index].name; }

  /// Whether the entry has such an attribute.
  bool has(std::string_view name) const { return definition_.find_attribute(name) != nullptr; }
  int64_t i64(std::string_view name) const { return get<int64_t>(name); }
  double f64(std::string_view name) const { return get<double>(name); }
  bool flag(std::string_view name) const { return get<bool>(name); }
  const std::string &text(std::string_view name) const { return get<std::string>(name); }
  const std::vector<int64_t> &ints(std::string_view name) const { return get<std::vector<int64_t>>(name); }
  const std::vector<double> &doubles(std::string_view name) const { return get<std::vector<double>>(name); }

  /// Leaves INVALID_ARGUMENT "<scope>: <entry>: <text>" in the builder and gives kNoValue. The scope of a function ends
  /// with its name.
  ValueId fail(std::string_view text);

  /// The last dimension of an input as a constant; 0 and an error in the builder when it is not known.
  int64_t last_dimension(ValueId value);
  /// A further output, behind the value that the expansion returns.
  void give(ValueId value) { further_.push_back(value); }
  const std::vector<ValueId> &further() const { return further_; }
  /// relu, sigmoid, ... or nothing, as the attribute `activation` says.
  ValueId activate(ValueId value);
  /// A trained variable in the present scope, of the dtype of `like`.
  ValueId weight(std::string_view name, ValueId like, std::vector<int64_t> dims, std::string_view initializer);
  /// One with the attributes kernel_initializer, kernel_l1 and kernel_l2, and kernel_constraint and
  /// kernel_normalization where the entry has them: what the layer multiplies by.
  ValueId kernel(std::string_view name, ValueId like, std::vector<int64_t> dims);

 private:
  template <typename T>
  const T &get(std::string_view name) const {
    const auto found = attributes_.find(name);
    return std::get<T>(found != attributes_.end() ? found->second : definition_.find_attribute(name)->default_value);
  }

  GraphBuilder &builder_;
  const Definition &definition_;
  const std::vector<ValueId> &inputs_;
  const graph::Attributes &attributes_;
  const ExpansionMode mode_;
  std::vector<ValueId> further_;
};

/// Opens a scope named after a layer for as long as it lives.
class LayerScope {
 public:
  LayerScope(GraphBuilder &builder, std::string_view name) : builder_(builder) { builder.push_scope(name, true); }
  ~LayerScope() { builder_.pop_scope(); }
  LayerScope(const LayerScope &) = delete;
  LayerScope &operator=(const LayerScope &) = delete;

 private:
  GraphBuilder &builder_;
};

}  // namespace tutti::impl::nn

#endif  // TUTTI_NN_EXPANSION_H_
