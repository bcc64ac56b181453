// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/dnnl/dnnl_product.h"

#include <algorithm>
#include <utility>

#include "backend/cpu/dnnl/dnnl_convolution.h"
#include "backend/cpu/dnnl/dnnl_primitive.h"
#include "backend/cpu/simd/simd_gemm.h"

namespace tutti::impl::backend::cpu {

using base::Result;
using base::Status;
using dnnl::memory;
using Tag = memory::format_tag;

namespace {

// Measured: below this our own kernel is as fast, and a call costs less.
constexpr int64_t kColumns = 256;
constexpr int64_t kRows = 32;
constexpr int64_t kMultiplications = int64_t{1} << 23;
// Up to so many rows ours is as fast on vectors of eight, and faster with a wide second factor, which oneDNN 2.6 reads
// where it lies (Zen 3: it takes 0.95 to 1.03 times as long with up to 384 columns, 1.3 to 2 times with 512 and more).
constexpr int64_t kOwnRows = 512, kOwnLanes = 8;
// Below this copies and calls weigh as much as the product.
constexpr int64_t kBf16Side = 16, kBf16Multiplications = int64_t{1} << 20;

class DnnlProductPlan final : public ProductPlan {
 public:
  const std::string &implementation() const override { return implementation_; }
  int64_t scratch_bytes() const override { return scratch_bytes_; }

  std::unique_ptr<Kernel> kernel(const ProductBuffers &buffers) const override {
    std::vector<PrimitiveArgument> others;
    if (buffers.bias >= 0) others.push_back({DNNL_ARG_BIAS, bias_, buffers.bias});
    if (scratch_.get_size() > 0) others.push_back({DNNL_ARG_SCRATCHPAD, scratch_, buffers.scratch});
    return make_copying_kernel(primitive_, {{a_, buffers.a}, {b_, buffers.b}, {c_, buffers.c}}, std::move(others),
                               buffers.scratch);
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
    scratch_bytes_ = static_cast<int64_t>(scratch_.get_size());
  }

  // Rows of A are examples; B is a kernel [inputs, outputs], or [outputs, inputs].
  Status prepare_forward(const ProductRequest &request, const dnnl::primitive_attr &attributes) {
    if (request.b_turned && !request.bf16) return base::unimplemented("A·Bᵀ in f32 is not computed by oneDNN");
    const memory::dims a = {request.m, request.k}, b = {request.n, request.k}, c = {request.m, request.n};
    const auto type = request.bf16 ? kBf16 : kFloat;
    bias_ = memory::desc({request.n}, kFloat, Tag::x);
    Described<Forward> described =
        describe(memory::desc(a, type, Tag::nc), memory::desc(b, type, request.bf16 ? Tag::any : Tag::io),
                 request.bias ? &bias_ : nullptr, memory::desc(c, kFloat, Tag::nc), attributes);
    Forward::primitive_desc &description = described.description;
    TUTTI_TRY(choose_implementation(description, false));
    keep(description, Forward(description));
    a_ = {description.src_desc(), DNNL_ARG_SRC};
    b_ = {description.weights_desc(), DNNL_ARG_WEIGHTS};
    c_ = {description.dst_desc(), DNNL_ARG_DST};
    if (!request.bf16) return Status();
    TUTTI_TRY(a_.copy_from(memory::desc(a, kFloat, Tag::nc), scratch_bytes_));
    return b_.copy_from(memory::desc(b, kFloat, request.b_turned ? Tag::oi : Tag::io), scratch_bytes_);
  }

  // Rows of A and B are examples; C is the gradient of a kernel [inputs, outputs].
  Status prepare_gradient(const ProductRequest &request, const dnnl::primitive_attr &attributes) {
    const memory::dims a = {request.k, request.m}, b = {request.k, request.n}, c = {request.n, request.m};
    const auto type = request.bf16 ? kBf16 : kFloat;
    const memory::desc examples(a, type, Tag::nc), gradients(b, type, Tag::nc);
    const Described<Forward> hint = describe(examples, memory::desc(c, type, Tag::io), nullptr, gradients, attributes);
    Described<Gradient> described = describe_backward<Gradient>(dnnl_engine(), attributes, hint.description, examples,
                                                                memory::desc(c, kFloat, Tag::io), gradients);
    Gradient::primitive_desc &description = described.description;
    TUTTI_TRY(choose_implementation(description, false));
    keep(description, Gradient(description));
    a_ = {description.src_desc(), DNNL_ARG_SRC};
    b_ = {description.diff_dst_desc(), DNNL_ARG_DIFF_DST};
    c_ = {description.diff_weights_desc(), DNNL_ARG_DIFF_WEIGHTS};
    if (!request.bf16) return Status();
    TUTTI_TRY(a_.copy_from(memory::desc(a, kFloat, Tag::nc), scratch_bytes_));
    return b_.copy_from(memory::desc(b, kFloat, Tag::nc), scratch_bytes_);
  }

  dnnl::primitive primitive_;
  std::string implementation_;
  Operand a_, b_, c_;
  memory::desc bias_, scratch_;
  int64_t scratch_bytes_ = 0;
};

}  // namespace

bool ProductPlan::suits(const ProductRequest &request) {
  if (request.turned && (request.b_turned || request.bias || request.relu)) return false;
  if (request.bf16) {
    return has_bf16() && std::min({request.m, request.n, request.k}) >= kBf16Side &&
           request.m * request.n * request.k >= kBf16Multiplications;
  }
  if (!request.turned && request.m <= kOwnRows && gemm_lanes() <= kOwnLanes) return false;
  return !request.b_turned && request.n >= kColumns && request.rows() >= kRows &&
         request.m * request.n * request.k >= kMultiplications;
}

Result<std::shared_ptr<const ProductPlan>> ProductPlan::make(const ProductRequest &request) {
  if (request.bf16 && !has_bf16()) return base::unimplemented("this processor does not multiply in bfloat16");
  const OneThread one_thread;
  return without_exceptions([&]() -> Result<std::shared_ptr<const ProductPlan>> {
    auto plan = std::make_shared<DnnlProductPlan>();
    TUTTI_TRY(plan->prepare(request));
    return std::shared_ptr<const ProductPlan>(std::move(plan));
  });
}

}  // namespace tutti::impl::backend::cpu
