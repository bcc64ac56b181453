// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/dnnl_product.h"

#include <utility>

#include "backend/cpu/dnnl_primitive.h"

namespace tutti::impl::backend::cpu {

using base::Result;
using base::Status;
using dnnl::memory;
using Tag = memory::format_tag;

namespace {

// Measured: below this our own kernel is as fast, and a call costs less.
constexpr int64_t kColumns = 384;
constexpr int64_t kRows = 32;
constexpr int64_t kMultiplications = int64_t{1} << 23;

class Plan final : public ProductPlan {
 public:
  const std::string &implementation() const override { return implementation_; }
  int64_t scratch_bytes() const override { return static_cast<int64_t>(scratch_.get_size()); }

  std::unique_ptr<Kernel> kernel(const ProductBuffers &buffers) const override {
    std::vector<PrimitiveArgument> arguments = {
        {numbers_[0], a_, buffers.a}, {numbers_[1], b_, buffers.b}, {numbers_[2], c_, buffers.c}};
    if (buffers.bias >= 0) arguments.push_back({DNNL_ARG_BIAS, bias_, buffers.bias});
    if (scratch_bytes() > 0) arguments.push_back({DNNL_ARG_SCRATCHPAD, scratch_, buffers.scratch});
    return make_primitive_kernel(primitive_, std::move(arguments));
  }

  Status prepare(const ProductRequest &request) {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    dnnl::post_ops operations;
    if (request.relu) append_relu(operations);
    attributes.set_post_ops(operations);
    return request.turned ? prepare_gradient(request, attributes) : prepare_forward(request, attributes);
  }

 private:
  using Forward = dnnl::inner_product_forward;
  using Gradient = dnnl::inner_product_backward_weights;

  static Described<Forward> describe(const memory::desc &a, const memory::desc &kernel, const memory::desc *bias,
                                     const memory::desc &c, const dnnl::primitive_attr &attributes) {
    const auto kind = dnnl::prop_kind::forward_training;
    if (bias != nullptr) return describe_forward<Forward>(dnnl_engine(), attributes, kind, a, kernel, *bias, c);
    return describe_forward<Forward>(dnnl_engine(), attributes, kind, a, kernel, c);
  }

  template <typename Description>
  void keep(const Description &description, dnnl::primitive primitive) {
    primitive_ = std::move(primitive);
    implementation_ = description.impl_info_str();
    scratch_ = description.scratchpad_desc();
  }

  // Rows of A are examples; B is a kernel [inputs, outputs].
  Status prepare_forward(const ProductRequest &request, const dnnl::primitive_attr &attributes) {
    a_ = memory::desc({request.m, request.k}, kFloat, Tag::nc);
    b_ = memory::desc({request.n, request.k}, kFloat, Tag::io);
    c_ = memory::desc({request.m, request.n}, kFloat, Tag::nc);
    bias_ = memory::desc({request.n}, kFloat, Tag::x);
    Described<Forward> described = describe(a_, b_, request.bias ? &bias_ : nullptr, c_, attributes);
    TUTTI_TRY(choose_implementation(described.description, false));
    keep(described.description, Forward(described.description));
    numbers_[0] = DNNL_ARG_SRC, numbers_[1] = DNNL_ARG_WEIGHTS, numbers_[2] = DNNL_ARG_DST;
    return Status();
  }

  // Rows of A and B are examples; C is the gradient of a kernel [inputs, outputs].
  Status prepare_gradient(const ProductRequest &request, const dnnl::primitive_attr &attributes) {
    a_ = memory::desc({request.k, request.m}, kFloat, Tag::nc);
    b_ = memory::desc({request.k, request.n}, kFloat, Tag::nc);
    c_ = memory::desc({request.n, request.m}, kFloat, Tag::io);
    const Described<Forward> hint = describe(a_, c_, nullptr, b_, attributes);
    Described<Gradient> described =
        describe_backward<Gradient>(dnnl_engine(), attributes, hint.description, a_, c_, b_);
    TUTTI_TRY(choose_implementation(described.description, false));
    keep(described.description, Gradient(described.description));
    numbers_[0] = DNNL_ARG_SRC, numbers_[1] = DNNL_ARG_DIFF_DST, numbers_[2] = DNNL_ARG_DIFF_WEIGHTS;
    return Status();
  }

  dnnl::primitive primitive_;
  std::string implementation_;
  memory::desc a_, b_, c_, bias_, scratch_;
  int numbers_[3] = {};
};

}  // namespace

bool ProductPlan::suits(const ProductRequest &request) {
  const int64_t examples = request.turned ? request.k : request.m;
  return request.n >= kColumns && examples >= kRows && request.m * request.n * request.k >= kMultiplications &&
         !(request.turned && (request.bias || request.relu));
}

Result<std::shared_ptr<const ProductPlan>> ProductPlan::make(const ProductRequest &request) {
  const OneThread one_thread;
  return without_exceptions([&]() -> Result<std::shared_ptr<const ProductPlan>> {
    auto plan = std::make_shared<Plan>();
    TUTTI_TRY(plan->prepare(request));
    return std::shared_ptr<const ProductPlan>(std::move(plan));
  });
}

}  // namespace tutti::impl::backend::cpu
