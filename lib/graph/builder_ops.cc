// SPDX-License-Identifier: Apache-2.0
//
// GraphBuilder: leaves and frequent ops.
#include <algorithm>
#include <limits>

#include "base/text.h"
#include "graph/batch.h"
#include "graph/builder.h"

namespace tutti::impl::graph {

// ---- leaves ----

ValueId GraphBuilder::input(std::string_view name, tensor::DType dtype, Dims dims) {
  const bool taken = std::ranges::any_of(frames_[0].region.nodes, [&](NodeId id) {
    const Node &node = graph_.node(id);
    return node.op == "input" && std::get<std::string>(node.attributes.at("name")) == name;
  });
  if (!ok() || !check_free("input", name, taken)) return kNoValue;
  Node node;
  node.op = "input";
  node.attributes = {{"name", std::string(name)}, {"dtype", dtype}, {"dims", std::move(dims)}};
  const ValueId value = insert(std::move(node), 1, 0)[0];
  set_value_name(value, std::string(name));
  return value;
}

ValueId GraphBuilder::constant(tensor::Tensor value) { return op("constant", {}, {{"value", std::move(value)}}); }

ValueId GraphBuilder::constant(double value, tensor::DType dtype) {
  if (!ok()) return kNoValue;
  base::Result<tensor::Tensor> scalar =
      base::invalid_argument("a constant cannot have dtype ", tensor::name(dtype)).with_detail("scope", scope());
  tensor::visit_dtype(dtype, [&]<typename T>(T) {
    if constexpr (std::is_same_v<T, bool>) {
      scalar = tensor::Tensor::scalar<T>(value != 0);
    } else if constexpr (std::is_arithmetic_v<T>) {
      // Beyond the range of an integer the conversion is undefined.
      const double low = static_cast<double>(std::numeric_limits<T>::lowest());
      const double high = static_cast<double>(std::numeric_limits<T>::max());
      if (std::is_floating_point_v<T> || (value >= low && value <= high && value < 0x1p63)) {
        scalar = tensor::Tensor::scalar<T>(static_cast<T>(value));
      } else {
        scalar = base::out_of_range("constant ", value, " does not fit ", tensor::name(dtype));
      }
    } else {
      scalar = tensor::Tensor::scalar<T>(T(static_cast<float>(value)));
    }
  });
  return scalar.ok() ? constant(std::move(scalar).value()) : fail(scalar.status());
}

ValueId GraphBuilder::run_scalar(std::string_view kind, tensor::DType dtype) {
  return op("run_scalar", {}, {{"kind", std::string(kind)}, {"dtype", dtype}});
}

ValueId GraphBuilder::state_read(std::string_view entry, tensor::DType dtype, Dims dims) {
  return op("state_read", {}, {{"entry", std::string(entry)}, {"dtype", dtype}, {"dims", std::move(dims)}});
}

void GraphBuilder::state_write(ValueId value, std::string_view entry, std::string_view mode) {
  op_n("state_write", {value}, {{"entry", std::string(entry)}, {"mode", std::string(mode)}});
}

// ---- elementwise ----

ValueId GraphBuilder::scale(ValueId x, double factor) { return mul(x, constant(factor, dtype(x))); }

ValueId GraphBuilder::add_scalar(ValueId x, double summand) { return add(x, constant(summand, dtype(x))); }

ValueId GraphBuilder::cast(ValueId x, tensor::DType dtype) {
  if (graph_.contains(x) && graph_.value(x).dtype == dtype) return x;
  return op("cast", {x}, {{"dtype", dtype}});
}

ValueId GraphBuilder::matmul(ValueId a, ValueId b, bool transpose_a, bool transpose_b) {
  Attributes attributes;
  if (transpose_a) attributes["transpose_a"] = true;
  if (transpose_b) attributes["transpose_b"] = true;
  return op("matmul", {a, b}, std::move(attributes));
}

// ---- reductions ----

ValueId GraphBuilder::reduce(std::string_view op_name, ValueId x, std::vector<int64_t> axes, bool keep_dims) {
  Attributes attributes;
  if (!axes.empty()) attributes["axes"] = std::move(axes);
  if (keep_dims) attributes["keep_dims"] = true;
  return op(op_name, {x}, std::move(attributes));
}

ValueId GraphBuilder::reduce_sum(ValueId x, std::vector<int64_t> axes, bool keep_dims) {
  return reduce("reduce_sum", x, std::move(axes), keep_dims);
}

ValueId GraphBuilder::reduce_mean(ValueId x, std::vector<int64_t> axes, bool keep_dims) {
  return reduce("reduce_mean", x, std::move(axes), keep_dims);
}

// The mean over an axis of rows is sum / rows of the whole step, since no replica sees all rows. kNoValue when no
// reduced axis carries the batch, or after an error.
ValueId GraphBuilder::expand_batch_mean(ValueId x, const Attributes &attributes) {
  if (!graph_.contains(x)) return kNoValue;
  const BatchAxis batch = batch_axis(dims(x));
  if (batch.kind != BatchAxis::Kind::carried) return kNoValue;
  Node probe;
  probe.op = "reduce_mean";
  probe.inputs = {x};
  probe.attributes = attributes;
  if (!infer_outputs(graph_, probe).ok()) return kNoValue;  // the usual path reports it, with a name
  std::vector<int64_t> axes = std::get<std::vector<int64_t>>(probe.attributes.at("axes"));
  const auto rows = std::find(axes.begin(), axes.end(), batch.axis);
  if (rows == axes.end()) return kNoValue;
  axes.erase(rows);
  const auto keep = attributes.find("keep_dims");
  const bool keep_dims = keep != attributes.end() && std::get<bool>(keep->second);

  const Dims result_dims = [&] {
    Dims kept;
    for (size_t i = 0; i < rank(x); ++i) {
      const bool reduced =
          static_cast<int64_t>(i) == batch.axis || std::count(axes.begin(), axes.end(), static_cast<int64_t>(i)) != 0;
      if (!reduced) kept.push_back(dims(x)[i]);
      if (reduced && keep_dims) kept.push_back(1);
    }
    return kept;
  }();
  push_scope(unique_name("reduce_mean").substr(scope().empty() ? 0 : scope().size() + 1));
  const tensor::DType own = dtype(x);
  const tensor::DType wide = own == tensor::DType::f64 ? own : tensor::DType::f32;
  ValueId mean = cast(x, wide);
  if (!axes.empty()) mean = reduce_mean(mean, axes, true);
  // What only a batch tells must be in its sum: batches of a step may differ in it.
  const bool is_known = batch.factor.is_constant();
  if (!is_known) mean = div(mean, positions_of(*this, constant(1, wide), batch.factor));
  mean = reduce_sum(mean, {batch.axis}, true);
  mean = div(mean, positions_of(*this, run_scalar("step_rows", wide), is_known ? batch.factor : Dim(1)));
  mean = cast(reshape(mean, result_dims), own);
  pop_scope();
  return mean;
}

// ---- shapes ----

ValueId GraphBuilder::reshape(ValueId x, Dims dims) {
  if (graph_.contains(x) && graph_.value(x).dims == dims) return x;
  return op("reshape", {x}, {{"dims", std::move(dims)}});
}

ValueId GraphBuilder::transpose(ValueId x, std::vector<int64_t> permutation) {
  return op("transpose", {x}, {{"permutation", std::move(permutation)}});
}

ValueId GraphBuilder::broadcast_to(ValueId x, Dims dims) {
  if (graph_.contains(x) && graph_.value(x).dims == dims) return x;
  return op("broadcast_to", {x}, {{"dims", std::move(dims)}});
}

ValueId GraphBuilder::concat(const Values &inputs, int64_t axis) { return op("concat", inputs, {{"axis", axis}}); }

ValueId GraphBuilder::slice(ValueId x, Dims begin, Dims size, std::vector<int64_t> strides) {
  Attributes attributes{{"begin", std::move(begin)}, {"size", std::move(size)}};
  if (!strides.empty()) attributes["strides"] = std::move(strides);
  return op("slice", {x}, std::move(attributes));
}

GraphBuilder::Values GraphBuilder::split(ValueId x, int64_t parts, int64_t axis) {
  const Values nothing(static_cast<size_t>(std::max<int64_t>(parts, 0)), kNoValue);
  if (!ok() || !graph_.contains(x)) return nothing;
  const Dims whole = dims(x);
  const int64_t positive = axis < 0 ? axis + static_cast<int64_t>(whole.size()) : axis;
  if (positive < 0 || positive >= static_cast<int64_t>(whole.size()) || parts < 1) {
    fail(base::invalid_argument("split in scope '", scope(), "': ", parts, " parts along axis ", axis, " of input ",
                                to_string(whole)));
    return nothing;
  }
  const size_t at = static_cast<size_t>(positive);
  const std::optional<Dim> part = whole[at].divide_exactly(parts);
  if (!part) {
    fail(base::invalid_argument("split in scope '", scope(), "': axis ", axis, " of input ", to_string(whole),
                                " has no ", parts, " equal parts"));
    return nothing;
  }
  Values made;
  Dims begin(whole.size(), 0), size = whole;
  size[at] = *part;
  for (int64_t i = 0; i < parts; ++i) {
    made.push_back(slice(x, begin, size));
    begin[at] = begin[at] + *part;
  }
  return made;
}

ValueId GraphBuilder::sum_to(ValueId x, const Dims &target) {
  if (!graph_.contains(x) || dims(x) == target) return x;
  const Dims own = dims(x);
  if (own.size() < target.size()) {
    return fail(base::internal_error("sum_to ", to_string(target), " of ", to_string(own)));
  }
  const size_t lead = own.size() - target.size();
  std::vector<int64_t> axes;
  for (size_t i = 0; i < own.size(); ++i) {
    if (i < lead || (target[i - lead] == 1 && !(own[i] == 1))) axes.push_back(static_cast<int64_t>(i));
  }
  const Dims shape = target;
  return reshape(axes.empty() ? x : reduce_sum(x, axes), shape);
}

}  // namespace tutti::impl::graph
