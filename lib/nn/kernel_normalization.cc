// SPDX-License-Identifier: Apache-2.0
#include "nn/kernel_normalization.h"

#include <string>
#include <vector>

#include "base/text.h"
#include "graph/initializer.h"

namespace tutti::impl::nn {
namespace {

using graph::Dim;

class KernelNormalization {
 public:
  KernelNormalization(Expansion &e, std::string_view name, ValueId kernel)
      : e_(e), b_(e.builder()), name_(name), kernel_(kernel), units_(b_.dims(kernel).back().constant()) {
    for (const Dim &dim : b_.dims(kernel))
      inputs_ *= dim.constant();
    inputs_ = units_ == 0 ? 0 : inputs_ / units_;
  }

  /// Salimans and Kingma (2016).
  ValueId by_weights() {
    std::vector<int64_t> axes;
    for (size_t axis = 0; axis + 1 < b_.rank(kernel_); ++axis)
      axes.push_back(static_cast<int64_t>(axis));
    const ValueId scale = b_.variable(name_ + "_scale", b_.dtype(kernel_), {units_}, derived(graph::kColumnNorms),
                                      {.automatic_name = true});
    const ValueId norm = b_.unary("sqrt", b_.reduce_sum(b_.unary("square", kernel_), axes));
    return b_.mul(kernel_, b_.div(scale, norm));
  }

  /// Miyato et al. (2018).
  ValueId by_spectrum() {
    ValueId left = kept("_left", units_, graph::kLeftVector), right = kept("_right", inputs_, graph::kRightVector);
    const ValueId matrix = b_.reshape(kernel_, {Dim(inputs_), Dim(units_)});
    if (e_.training()) {
      const ValueId fixed = b_.unary("stop_gradient", matrix);
      left = direction(b_.matmul(right, fixed));
      right = direction(b_.matmul(left, fixed, false, true));
      b_.assign(full_name("_left"), b_.reshape(left, {Dim(units_)}));
      b_.assign(full_name("_right"), b_.reshape(right, {Dim(inputs_)}));
    }
    const ValueId largest = b_.reduce_sum(b_.mul(left, b_.matmul(right, matrix)));
    return b_.div(kernel_, largest);
  }

 private:
  std::string full_name(std::string_view end) const { return base::concat(b_.scope(), "/", name_, end); }

  graph::InitializerSpec derived(std::string_view initializer) const {
    return {std::string(initializer), {{std::string(graph::kOfVariable), full_name("")}}};
  }

  /// [1, count] of a variable that is not trained.
  ValueId kept(std::string_view end, int64_t count, std::string_view initializer) {
    const graph::VariableOptions options{
        .trainable = false, .aggregation = graph::Aggregation::aggregated, .automatic_name = true};
    const ValueId value =
        b_.variable(base::concat(name_, end), b_.dtype(kernel_), {count}, derived(initializer), options);
    return b_.reshape(value, {Dim(1), Dim(count)});
  }

  /// x / max(|x|, 1e-12), as in PyTorch.
  ValueId direction(ValueId x) {
    const ValueId norm = b_.unary("sqrt", b_.reduce_sum(b_.unary("square", x)));
    return b_.div(x, b_.op("maximum", {norm, b_.constant(1e-12, b_.dtype(x))}));
  }

  Expansion &e_;
  GraphBuilder &b_;
  const std::string name_;
  const ValueId kernel_;
  const int64_t units_;
  int64_t inputs_ = 1;
};

}  // namespace

ValueId normalized_kernel(Expansion &e, std::string_view name, ValueId kernel) {
  const std::string &kind = e.text("kernel_normalization");
  if (kind == "none" || kernel == kNoValue || !e.builder().ok()) return kernel;
  KernelNormalization normalization(e, name, kernel);
  return kind == "weight_norm" ? normalization.by_weights() : normalization.by_spectrum();
}

}  // namespace tutti::impl::nn
