// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/fusion/region_products.h"

#include <algorithm>
#include <optional>

#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::gpu {

using graph::kNoNode;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;
using tensor::DType;

namespace {

/// Beyond these a library's product is faster than a launch is long: a tile reads eight columns for eight rows.
constexpr int64_t kMostRows = 64, kMostInner = 4096, kMostMultiplications = int64_t{1} << 25;

bool is_float(DType dtype) { return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16; }

class ProductFinder {
 public:
  ProductFinder(const LoweredGraph &lowered, const graph::Region &region, const LoopPlaces &places,
                const RegionPlan &plan)
      : lowered_(lowered), region_(region), places_(places), plan_(plan) {}

  std::vector<RegionProduct> find() {
    for (size_t step = 0; step < plan_.steps.size(); ++step) {
      std::optional<RegionProduct> found = of_step(step);
      const bool is_new = found.has_value() && std::none_of(found_.begin(), found_.end(), [&](const auto &other) {
                            return other.reader == found->reader;
                          });
      if (is_new) found_.push_back(*found);
    }
    return std::move(found_);
  }

 private:
  const Node *node_of(size_t step) const {
    const graph::NodeId id = plan_.steps[step].node;
    return id == kNoNode ? nullptr : &lowered_.graph().node(id);
  }

  std::optional<RegionProduct> of_step(size_t step) const {
    const Node *const node = node_of(step);
    if (node == nullptr || node->op != "matmul") return std::nullopt;
    std::optional<FusedProduct> product = product_of(*node);
    if (!product.has_value()) return std::nullopt;
    const ValueId value = node->outputs[0];
    const auto results = std::count(region_.results.begin(), region_.results.end(), value);
    std::optional<size_t> reader = only_reader(value);
    ValueId read = value;
    const bool is_before = results == 1 && !is_read(value);
    if (is_before) {
      read = state_of(*node);
      reader = read == kNoValue ? std::nullopt : only_reader(read);
    } else if (results != 0) {
      return std::nullopt;
    }
    if (!reader.has_value() || !add_parts(*reader, read, *product)) return std::nullopt;
    return RegionProduct{step, *reader, is_before, *product};
  }

  std::optional<FusedProduct> product_of(const Node &node) const {
    const auto attributes = graph::ops::MatmulAttributes::from(node);
    const LoweredValue &a = lowered_.value(node.inputs[0]), &b = lowered_.value(node.inputs[1]);
    const LoweredValue &y = lowered_.value(node.outputs[0]);
    if (!attributes.ok() || attributes.value().transpose_a || a.dims.size() != 2 || b.dims.size() != 2)
      return std::nullopt;
    if (!is_float(a.dtype) || !is_float(b.dtype) || !is_float(y.dtype)) return std::nullopt;
    FusedProduct product{};
    product.a = a.dtype;
    product.b = b.dtype;
    product.result = y.dtype;
    product.inner = a.dims[1];
    product.columns = y.dims[1];
    product.is_transposed = attributes.value().transpose_b;
    const int64_t rows = a.dims[0];
    if (rows == 0 || rows > kMostRows || product.inner == 0 || product.inner > kMostInner ||
        product.columns > kMostMultiplications / (rows * product.inner))
      return std::nullopt;
    return product;
  }

  bool reads(size_t step, ValueId value) const {
    const Node *const node = node_of(step);
    const std::vector<ValueId> &inputs =
        node != nullptr ? node->inputs : plan_.groups[static_cast<size_t>(plan_.steps[step].group)].inputs;
    return std::find(inputs.begin(), inputs.end(), value) != inputs.end();
  }

  bool is_read(ValueId value) const {
    for (size_t step = 0; step < plan_.steps.size(); ++step) {
      if (reads(step, value)) return true;
    }
    return false;
  }

  /// The step that reads the value, if that is one group.
  std::optional<size_t> only_reader(ValueId value) const {
    std::optional<size_t> found;
    for (size_t step = 0; step < plan_.steps.size(); ++step) {
      if (!reads(step, value)) continue;
      if (found.has_value() || plan_.steps[step].group < 0) return std::nullopt;
      found = step;
    }
    return found;
  }

  /// The state that the product is of, as a parameter, if what it multiplies is still there in the next iteration.
  ValueId state_of(const Node &node) const {
    const auto result = std::find(region_.results.begin(), region_.results.end(), node.outputs[0]);
    const auto index = static_cast<size_t>(result - region_.results.begin());
    if (index >= places_.states) return kNoValue;
    for (const ValueId input : node.inputs) {
      const auto parameter = std::find(region_.parameters.begin(), region_.parameters.end(), input);
      const auto at = static_cast<size_t>(parameter - region_.parameters.begin());
      if (at < places_.states + places_.sequences) return kNoValue;
    }
    const ValueId state = region_.parameters[index];
    const bool is_result = std::find(region_.results.begin(), region_.results.end(), state) != region_.results.end();
    return is_result ? kNoValue : state;
  }

  /// Which inputs of the group's program are columns of the product.
  bool add_parts(size_t reader, ValueId value, FusedProduct &product) const {
    const FusedGroup &group = plan_.groups[static_cast<size_t>(plan_.steps[reader].group)];
    const FusedProgram &program = group.program;
    const LoweredValue &read = lowered_.value(value);
    if (program.input_count + 2 > FusedProgram::kInputs || read.dims.size() != 2 || read.dims[0] != program.rows)
      return false;
    for (int32_t i = 0; i < program.input_count; ++i) {
      if (group.inputs[static_cast<size_t>(i)] != value) continue;
      const FusedOperand &operand = program.inputs[i];
      const bool is_repeated = program.columns != 1 && operand.column_stride != 1;
      if (is_repeated || product.part_count == FusedProduct::kParts) return false;
      product.parts[product.part_count++] = i;
    }
    return product.part_count > 0;
  }

  const LoweredGraph &lowered_;
  const graph::Region &region_;
  const LoopPlaces &places_;
  const RegionPlan &plan_;
  std::vector<RegionProduct> found_;
};

}  // namespace

std::vector<RegionProduct> find_region_products(const LoweredGraph &lowered, const graph::Region &region,
                                                const LoopPlaces &places, const RegionPlan &plan) {
  // How many rows there are decides.
  if (lowered.is_row_invariant()) return {};
  return ProductFinder(lowered, region, places, plan).find();
}

}  // namespace tutti::impl::backend::gpu
