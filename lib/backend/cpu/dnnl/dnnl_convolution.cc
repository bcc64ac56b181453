// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/dnnl/dnnl_convolution.h"

#include <optional>
#include <utility>

#include "backend/cpu/dnnl/dnnl_primitive.h"

namespace tutti::impl::backend::cpu {

using base::Result;
using base::Status;
using dnnl::memory;
using Tag = memory::format_tag;

namespace {

// ---- layouts of kernels --------------------------------------------------------------------------------------------

struct KernelLayout {
  int64_t groups = 1;
  bool grouped = false;
  Tag tag = Tag::undef;
};

std::string layout_name(int64_t groups, bool grouped, Tag tag) {
  const char *name = dnnl_fmt_tag2str(static_cast<dnnl_format_tag_t>(tag));
  return grouped ? base::concat("conv", groups, "/", name) : base::concat("conv/", name);
}

std::optional<Tag> tag_of_name(std::string_view name) {
  for (int tag = 1; tag < static_cast<int>(dnnl_format_tag_last); ++tag) {
    if (name == dnnl_fmt_tag2str(static_cast<dnnl_format_tag_t>(tag))) return static_cast<Tag>(tag);
  }
  return std::nullopt;
}

Result<KernelLayout> parse_layout(std::string_view layout) {
  const Status wrong = base::invalid_argument("'", layout, "' is not a kernel layout of ", dnnl_version_text());
  const size_t slash = layout.find('/');
  if (!layout.starts_with("conv") || slash == std::string_view::npos) return wrong;
  KernelLayout parsed;
  for (char digit : layout.substr(4, slash - 4)) {
    if (digit < '0' || digit > '9') return wrong;
    parsed.groups = (parsed.grouped ? parsed.groups * 10 : 0) + (digit - '0');
    parsed.grouped = true;
    if (parsed.groups > 1'000'000) return wrong;
  }
  const std::optional<Tag> tag = tag_of_name(layout.substr(slash + 1));
  if (!tag) return wrong;
  parsed.tag = *tag;
  return parsed;
}

/// Dims as oneDNN wants them from [height, width, channels / groups, filters].
memory::dims kernel_dims(const std::vector<int64_t> &d, int64_t groups, bool grouped) {
  if (grouped) return {groups, d[3] / groups, d[2], d[0], d[1]};
  return {d[3], d[2], d[0], d[1]};
}

memory::desc row_major_kernel(const std::vector<int64_t> &d, int64_t groups, bool grouped) {
  const int64_t channel = d[3];
  const int64_t column = d[2] * channel;
  const int64_t row = d[1] * column;
  if (grouped) return {kernel_dims(d, groups, true), kFloat, memory::dims{d[3] / groups, 1, channel, row, column}};
  return {kernel_dims(d, 1, false), kFloat, memory::dims{1, channel, row, column}};
}

Result<memory::desc> kernel_desc(std::string_view layout, const std::vector<int64_t> &dims, int64_t groups,
                                 bool grouped) {
  if (dims.size() != 4) return base::invalid_argument("layout '", layout, "' is for four axes, not ", dims.size());
  if (layout.empty()) return row_major_kernel(dims, groups, grouped);
  TUTTI_ASSIGN(const KernelLayout parsed, parse_layout(layout));
  if (parsed.groups < 1 || dims[3] % parsed.groups != 0) {
    return base::invalid_argument("layout '", layout, "' does not fit ", dims[3], " filters");
  }
  return without_exceptions([&]() -> Result<memory::desc> {
    return memory::desc(kernel_dims(dims, parsed.groups, parsed.grouped), kFloat, parsed.tag);
  });
}

/// The tag that describes a kernel's memory, if there is one.
std::optional<Tag> find_tag(const memory::desc &desc, const memory::dims &dims) {
  for (int tag = static_cast<int>(dnnl_format_tag_any) + 1; tag < static_cast<int>(dnnl_format_tag_last); ++tag) {
    const memory::desc candidate(dims, kFloat, static_cast<Tag>(tag), true);
    if (candidate && candidate == desc) return static_cast<Tag>(tag);
  }
  return std::nullopt;
}

dnnl::primitive_attr make_attributes(const ConvolutionRequest &request) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (request.repeatable) set_repeatable(attributes);
  dnnl::post_ops operations;
  if (request.epilogue.sum) operations.append_sum(1.0f);
  if (request.epilogue.relu) append_relu(operations);
  attributes.set_post_ops(operations);
  return attributes;
}

// ---- convolutions ----

struct ConvolutionDescs {
  memory::desc input, kernel, bias, output;
  memory::dims stride, dilation, low, high;
  memory::dims kernel_dims;
  bool grouped = false;
};

/// What the primitive gets and gives.
struct OperandTypes {
  memory::data_type input = kFloat, kernel = kFloat, output = kFloat;

  static OperandTypes of(const ConvolutionRequest &request) {
    OperandTypes types;
    if (!request.bf16) return types;
    if (request.pass != ConvolutionPass::input_gradient) types.input = kBf16;
    if (request.pass != ConvolutionPass::kernel_gradient) types.kernel = kBf16;
    if (request.pass != ConvolutionPass::forward) types.output = kBf16;
    return types;
  }
};

Result<ConvolutionDescs> make_descs(const ConvolutionRequest &request, const OperandTypes &types) {
  const ConvolutionShape &s = request.shape;
  ConvolutionDescs d;
  d.grouped = s.groups > 1;
  d.input = memory::desc({s.rows, s.in_channels, s.in_height, s.in_width}, types.input,
                         request.blocked_input ? Tag::nChw16c : Tag::nhwc);
  d.output = memory::desc({s.rows, s.out_channels, s.out_height, s.out_width}, types.output,
                          request.blocked_output ? Tag::nChw16c : Tag::nhwc);
  const std::vector<int64_t> dims = {s.kernel_height, s.kernel_width, s.in_channels / s.groups, s.out_channels};
  d.kernel_dims = kernel_dims(dims, s.groups, d.grouped);
  if (request.kernel_layout == "any" || types.kernel != kFloat) {
    d.kernel = memory::desc(d.kernel_dims, types.kernel, Tag::any);
  } else {
    TUTTI_ASSIGN(d.kernel, kernel_desc(request.kernel_layout, dims, s.groups, d.grouped));
  }
  if (request.epilogue.bias) d.bias = memory::desc({s.out_channels}, kFloat, Tag::a);
  d.stride = {s.stride[0], s.stride[1]};
  d.dilation = {s.dilation[0] - 1, s.dilation[1] - 1};
  d.low = {s.pad_low[0], s.pad_low[1]};
  d.high = {s.pad_high[0], s.pad_high[1]};
  return d;
}

/// Of the forward pass that a gradient belongs to, with any layout of the kernel.
Result<ConvolutionDescs> forward_descs(const ConvolutionRequest &request) {
  ConvolutionRequest forward = request;
  forward.kernel_layout = "any";
  const memory::data_type type = request.bf16 ? kBf16 : kFloat;
  return make_descs(forward, {type, type, type});
}

using Forward = dnnl::convolution_forward;
using InputGradient = dnnl::convolution_backward_data;
using DnnlKernelGradient = dnnl::convolution_backward_weights;

Described<Forward> describe_request(const ConvolutionRequest &request, const ConvolutionDescs &d,
                                    const dnnl::primitive_attr &attributes) {
  const auto kind = dnnl::prop_kind::forward_training;
  const auto algorithm = request.winograd ? dnnl::algorithm::convolution_winograd : dnnl::algorithm::convolution_direct;
  if (request.pass == ConvolutionPass::forward && request.epilogue.bias) {
    return describe_forward<Forward>(dnnl_engine(), attributes, kind, algorithm, d.input, d.kernel, d.bias, d.output,
                                     d.stride, d.dilation, d.low, d.high);
  }
  return describe_forward<Forward>(dnnl_engine(), attributes, kind, algorithm, d.input, d.kernel, d.output, d.stride,
                                   d.dilation, d.low, d.high);
}

/// The kernel gradient of oneDNN 2.6 for AVX2 and kernels of 1x1 gathers the positions that a stride leaves, eight
/// channels at a time, in scratch for as many channels as there are.
bool overruns_its_scratch(const ConvolutionShape &s, const std::string &implementation) {
  constexpr int64_t kGathered = 8;
  return implementation == "jit_1x1:avx2" && s.in_channels / s.groups < kGathered &&
         (s.stride[0] > 1 || s.stride[1] > 1);
}

/// Does some window lie in the padding altogether?
bool has_empty_windows(const ConvolutionShape &s) {
  const int64_t kernel[2] = {s.kernel_height, s.kernel_width}, in[2] = {s.in_height, s.in_width},
                out[2] = {s.out_height, s.out_width};
  for (size_t axis = 0; axis < 2; ++axis) {
    const int64_t last = (out[axis] - 1) * s.stride[axis] - s.pad_low[axis];
    if (s.pad_low[axis] > (kernel[axis] - 1) * s.dilation[axis] || last >= in[axis]) return true;
  }
  return false;
}

/// Of windows without a pixel oneDNN's "brgconv" leaves out the bias, where it also adds what the output holds before.
bool forgets_empty_windows(const ConvolutionRequest &request, const std::string &implementation) {
  return request.pass == ConvolutionPass::forward && implementation.starts_with("brgconv") &&
         has_empty_windows(request.shape);
}

/// "x64:gemm:jit" and the like unfold images in scratch before they multiply: a last resort, before plain loops.
bool unfolds_images(const std::string &implementation) {
  return base::concat(":", implementation).find(":gemm") != std::string::npos;
}

template <typename Description>
Status choose_convolution(Description &description, const ConvolutionRequest &request) {
  return choose_implementation(description, request.accept_plain, [&](const std::string &implementation) {
    if (!request.accept_plain && unfolds_images(implementation)) return true;
    if (forgets_empty_windows(request, implementation)) return true;
    return request.pass == ConvolutionPass::kernel_gradient && overruns_its_scratch(request.shape, implementation);
  });
}

class DnnlConvolutionPlan final : public ConvolutionPlan, public std::enable_shared_from_this<DnnlConvolutionPlan> {
 public:
  const std::string &implementation() const override { return implementation_; }
  const std::string &kernel_layout() const override { return kernel_layout_; }
  int64_t scratch_bytes() const override { return scratch_bytes_; }

  std::unique_ptr<Kernel> kernel(const ConvolutionBuffers &buffers) const override {
    std::vector<PrimitiveArgument> others;
    if (buffers.bias >= 0) others.push_back({bias_number_, bias_, buffers.bias});
    if (scratch_.get_size() > 0) others.push_back({DNNL_ARG_SCRATCHPAD, scratch_, buffers.scratch});
    return make_copying_kernel(primitive_,
                               {{input_, buffers.input}, {kernel_, buffers.kernel}, {output_, buffers.output}},
                               std::move(others), buffers.scratch);
  }

  Status prepare(const ConvolutionRequest &request) {
    TUTTI_ASSIGN(ConvolutionDescs d, make_descs(request, OperandTypes::of(request)));
    const dnnl::primitive_attr attributes = make_attributes(request);
    bias_ = d.bias;
    switch (request.pass) {
      case ConvolutionPass::forward:
        TUTTI_TRY(prepare_forward(request, d, attributes));
        break;
      case ConvolutionPass::input_gradient:
        TUTTI_TRY(prepare_input_gradient(request, d, attributes));
        break;
      case ConvolutionPass::kernel_gradient:
        TUTTI_TRY(prepare_kernel_gradient(request, d, attributes));
        break;
    }
    scratch_bytes_ = static_cast<int64_t>(scratch_.get_size());
    kernel_layout_ = request.kernel_layout;
    if (kernel_layout_ == "any") {
      TUTTI_ASSIGN(kernel_layout_, wanted_kernel_layout(request, d));
    }
    return request.bf16 ? prepare_copies(request) : Status();
  }

 private:
  Result<std::string> wanted_kernel_layout(const ConvolutionRequest &request, const ConvolutionDescs &d) const {
    if (request.bf16 && request.pass != ConvolutionPass::kernel_gradient) {
      // Any will do for a copy: the one that needs none where the same is done in f32.
      ConvolutionRequest exact = request;
      exact.bf16 = false;
      DnnlConvolutionPlan plan;
      return plan.prepare(exact).ok() ? plan.kernel_layout_ : std::string();
    }
    const std::optional<Tag> tag = find_tag(kernel_.desc, d.kernel_dims);
    if (!tag) return base::unimplemented("oneDNN requires a kernel layout that has no name");
    return layout_name(request.shape.groups, d.grouped, *tag);
  }

  /// Both factors of a convolution in bfloat16 are copies of what the caller has in f32.
  Status prepare_copies(const ConvolutionRequest &request) {
    ConvolutionRequest own = request;
    own.kernel_layout = kernel_layout_;
    TUTTI_ASSIGN(const ConvolutionDescs from, make_descs(own, OperandTypes()));
    const OperandTypes types = OperandTypes::of(request);
    if (types.input != kFloat) TUTTI_TRY(input_.copy_from(from.input, scratch_bytes_));
    if (types.kernel != kFloat) TUTTI_TRY(kernel_.copy_from(from.kernel, scratch_bytes_));
    if (types.output != kFloat) TUTTI_TRY(output_.copy_from(from.output, scratch_bytes_));
    return Status();
  }

  Status prepare_forward(const ConvolutionRequest &request, const ConvolutionDescs &d,
                         const dnnl::primitive_attr &attributes) {
    Described<Forward> described = describe_request(request, d, attributes);
    Forward::primitive_desc &description = described.description;
    TUTTI_TRY(choose_convolution(description, request));
    keep(description, Forward(description));
    input_ = {description.src_desc(), DNNL_ARG_SRC};
    kernel_ = {description.weights_desc(), DNNL_ARG_WEIGHTS};
    output_ = {description.dst_desc(), DNNL_ARG_DST};
    bias_number_ = DNNL_ARG_BIAS;
    return Status();
  }

  Status prepare_input_gradient(const ConvolutionRequest &request, const ConvolutionDescs &d,
                                const dnnl::primitive_attr &attributes) {
    TUTTI_ASSIGN(const ConvolutionDescs free, forward_descs(request));
    const auto algorithm =
        request.winograd ? dnnl::algorithm::convolution_winograd : dnnl::algorithm::convolution_direct;
    const Described<Forward> hint = describe_request(request, free, attributes);
    Described<InputGradient> described =
        describe_backward<InputGradient>(dnnl_engine(), attributes, hint.description, algorithm, d.input, d.kernel,
                                         d.output, d.stride, d.dilation, d.low, d.high);
    InputGradient::primitive_desc &description = described.description;
    TUTTI_TRY(choose_convolution(description, request));
    keep(description, InputGradient(description));
    input_ = {description.diff_src_desc(), DNNL_ARG_DIFF_SRC};
    kernel_ = {description.weights_desc(), DNNL_ARG_WEIGHTS};
    output_ = {description.diff_dst_desc(), DNNL_ARG_DIFF_DST};
    return Status();
  }

  Status prepare_kernel_gradient(const ConvolutionRequest &request, const ConvolutionDescs &d,
                                 const dnnl::primitive_attr &attributes) {
    TUTTI_ASSIGN(const ConvolutionDescs free, forward_descs(request));
    const auto algorithm =
        request.winograd ? dnnl::algorithm::convolution_winograd : dnnl::algorithm::convolution_direct;
    const Described<Forward> hint = describe_request(request, free, attributes);
    const Forward::primitive_desc &forward = hint.description;
    Described<DnnlKernelGradient> described =
        request.epilogue.bias
            ? describe_backward<DnnlKernelGradient>(dnnl_engine(), attributes, forward, algorithm, d.input, d.kernel,
                                                    d.bias, d.output, d.stride, d.dilation, d.low, d.high)
            : describe_backward<DnnlKernelGradient>(dnnl_engine(), attributes, forward, algorithm, d.input, d.kernel,
                                                    d.output, d.stride, d.dilation, d.low, d.high);
    DnnlKernelGradient::primitive_desc &description = described.description;
    TUTTI_TRY(choose_convolution(description, request));
    keep(description, DnnlKernelGradient(description));
    input_ = {description.src_desc(), DNNL_ARG_SRC};
    kernel_ = {description.diff_weights_desc(), DNNL_ARG_DIFF_WEIGHTS};
    output_ = {description.diff_dst_desc(), DNNL_ARG_DIFF_DST};
    bias_number_ = DNNL_ARG_DIFF_BIAS;
    return Status();
  }

  template <typename Description>
  void keep(const Description &description, dnnl::primitive primitive) {
    primitive_ = std::move(primitive);
    implementation_ = description.impl_info_str();
    scratch_ = description.scratchpad_desc();
  }

  dnnl::primitive primitive_;
  std::string implementation_, kernel_layout_;
  Operand input_, kernel_, output_;
  memory::desc bias_, scratch_;
  int bias_number_ = DNNL_ARG_BIAS;
  int64_t scratch_bytes_ = 0;
};

/// Does oneDNN use these instructions here? Levels are bits, each one with those below it.
bool has_instructions(dnnl::cpu_isa level) {
  const auto wanted = static_cast<unsigned>(level);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & wanted) == wanted;
}

Result<std::pair<memory::desc, memory::desc>> reorder_descs(std::string_view from_layout, std::string_view to_layout,
                                                            const std::vector<int64_t> &dims) {
  KernelLayout parsed;
  for (std::string_view layout : {from_layout, to_layout}) {
    if (!layout.empty()) {
      TUTTI_ASSIGN(parsed, parse_layout(layout));
    }
  }
  TUTTI_ASSIGN(memory::desc from, kernel_desc(from_layout, dims, parsed.groups, parsed.grouped));
  TUTTI_ASSIGN(memory::desc to, kernel_desc(to_layout, dims, parsed.groups, parsed.grouped));
  return std::pair(from, to);
}

}  // namespace

Result<std::shared_ptr<const ConvolutionPlan>> ConvolutionPlan::make(const ConvolutionRequest &request) {
  if (request.bf16 && !has_bf16()) return base::unimplemented("this processor does not multiply in bfloat16");
  const OneThread one_thread;
  return without_exceptions([&]() -> Result<std::shared_ptr<const ConvolutionPlan>> {
    auto plan = std::make_shared<DnnlConvolutionPlan>();
    TUTTI_TRY(plan->prepare(request));
    return std::shared_ptr<const ConvolutionPlan>(std::move(plan));
  });
}

Result<int64_t> kernel_storage_bytes(std::string_view layout, const std::vector<int64_t> &dims) {
  TUTTI_ASSIGN(const memory::desc desc, kernel_desc(layout, dims, 1, false));
  return static_cast<int64_t>(desc.get_size());
}

Result<std::unique_ptr<Kernel>> make_kernel_reorder(std::string_view from_layout, std::string_view to_layout,
                                                    const std::vector<int64_t> &dims, BufferId from, BufferId to) {
  TUTTI_ASSIGN(const auto descs, reorder_descs(from_layout, to_layout, dims));
  const OneThread one_thread;
  return without_exceptions([&]() -> Result<std::unique_ptr<Kernel>> {
    TUTTI_ASSIGN(dnnl::primitive reorder, make_reorder(descs.first, descs.second));
    std::vector<PrimitiveArgument> arguments = {{DNNL_ARG_FROM, descs.first, from}, {DNNL_ARG_TO, descs.second, to}};
    return make_primitive_kernel(std::move(reorder), std::move(arguments));
  });
}

Status reorder_kernel(std::string_view from_layout, std::string_view to_layout, const std::vector<int64_t> &dims,
                      const void *from, void *to) {
  TUTTI_ASSIGN(const std::unique_ptr<Kernel> kernel, make_kernel_reorder(from_layout, to_layout, dims, 0, 1));
  TUTTI_ASSIGN(const std::unique_ptr<KernelState> state, kernel->make_state());
  void *const buffers[] = {const_cast<void *>(from), to};
  RunContext context;
  context.buffers = buffers;
  return kernel->run(context, state.get()) == 0 ? Status() : base::internal_error("oneDNN failed to reorder");
}

bool has_bf16() {
  static const bool has = has_instructions(dnnl::cpu_isa::avx512_core_bf16);
  return has;
}

bool can_share_images(int64_t in_channels, int64_t out_channels) {
  static const bool has_masks = has_instructions(dnnl::cpu_isa::avx512_core);
  constexpr int64_t kWidestVector = 8;
  return has_masks || (in_channels % kWidestVector == 0 && out_channels % kWidestVector == 0);
}

std::string dnnl_version_text() {
  const dnnl_version_t *version = dnnl_version();
  return base::concat("oneDNN ", version->major, ".", version->minor, ".", version->patch);
}

std::string dnnl_instruction_set() {
  return base::concat("instruction set ", static_cast<int64_t>(dnnl_get_effective_cpu_isa()));
}

}  // namespace tutti::impl::backend::cpu
