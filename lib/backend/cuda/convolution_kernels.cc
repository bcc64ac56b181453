// SPDX-License-Identifier: Apache-2.0
//
// Convolutions by cuDNN. A convolution of one pixel is a matrix product of pixels and filters, and is done as one.
#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/cuda/cudnn_convolution.h"
#include "backend/cuda/device_transpose.h"
#include "backend/cuda/library_kernels.h"
#include "backend/cuda/library_tail.h"
#include "backend/gpu/device_elementwise.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::cuda {

using base::Result;
using base::Status;
using gpu::Frame;
using gpu::Kernel;
using gpu::KernelRequest;
using gpu::status_of;
using tensor::DType;

namespace {

constexpr int64_t kMostScratch = int64_t{256} << 20;

// ---- what the node says ----

template <typename Attributes>
ConvolutionShape shape_of(const Attributes &attributes, const gpu::KernelRequest &request, const LoweredValue &x,
                          const LoweredValue &kernel, const LoweredValue &y) {
  ConvolutionShape shape;
  shape.dtype = request.output(0).dtype;
  std::copy_n(x.dims.begin(), 4, shape.x.begin());
  std::copy_n(kernel.dims.begin(), 4, shape.kernel.begin());
  std::copy_n(y.dims.begin(), 4, shape.y.begin());
  for (size_t axis = 0; axis < 2; ++axis) {
    const int64_t input = shape.x[1 + axis], output = shape.y[1 + axis], window = shape.kernel[axis];
    const int64_t stride = attributes.stride[axis], dilation = attributes.dilation[axis];
    const int64_t covered = (output - 1) * stride + (window - 1) * dilation + 1;
    int64_t before = 0;
    if (attributes.padding == Attributes::Padding::same) before = std::max<int64_t>(covered - input, 0) / 2;
    if (attributes.padding == Attributes::Padding::explicit_) before = attributes.pads[2 * axis];
    shape.stride[axis] = stride;
    shape.dilation[axis] = dilation;
    shape.pad_before[axis] = before;
    shape.pad_after[axis] = padding_behind(input, output, window, stride, dilation, before);
  }
  return shape;
}

bool is_empty(const ConvolutionShape &shape) {
  for (const auto *dims : {&shape.x, &shape.kernel, &shape.y}) {
    for (const int64_t dim : *dims) {
      if (dim == 0) return true;
    }
  }
  return false;
}

/// Each pixel of y is the product of the pixel of x at the same place with the kernel.
bool is_product(const ConvolutionShape &shape) {
  const std::array<int64_t, 2> ones = {1, 1}, zeros = {0, 0};
  return shape.kernel[0] == 1 && shape.kernel[1] == 1 && shape.kernel[2] == shape.x[3] && shape.stride == ones &&
         shape.pad_before == zeros && shape.x[1] == shape.y[1] && shape.x[2] == shape.y[2];
}

// ---- products ----

ProductShape product_shape(const ConvolutionShape &shape, ConvolutionPass pass) {
  const int64_t pixels = shape.x[0] * shape.x[1] * shape.x[2], channels = shape.x[3], filters = shape.filters();
  ProductShape product;
  product.dtype = shape.dtype;
  if (pass == ConvolutionPass::forward) {  // y[pixels, filters] = x[pixels, channels] kernel[channels, filters]
    product.m = pixels;
    product.n = filters;
    product.k = channels;
  } else if (pass == ConvolutionPass::input_gradient) {  // dx[pixels, channels] = dy[pixels, filters] kernel'
    product.m = pixels;
    product.n = channels;
    product.k = filters;
    product.transpose_b = true;
  } else {  // dkernel[channels, filters] = x' dy
    product.m = channels;
    product.n = filters;
    product.k = pixels;
    product.transpose_a = true;
  }
  return product;
}

Result<Kernel> product_kernel(KernelRequest &request, const Handles &handles, const ConvolutionShape &shape,
                              ConvolutionPass pass) {
  ProductShape product_of = product_shape(shape, pass);
  product_of.allows_rounding = request.lowered.allows_bf16();
  LibraryTail tail;
  if (!tail.read(request, product_of)) return Kernel();
  TUTTI_ASSIGN(auto product, make_product(request, handles, product_of));
  if (product == nullptr) return Kernel();
  tail.reserve(request);
  return Kernel([handles, product, tail](const Frame &frame) -> Status {
    TUTTI_ASSIGN(const void *const bias, tail.bias(frame));
    return issue_product(*product, frame, {frame.input(0), frame.input(1), frame.output(0), tail.addend(frame), bias});
  });
}

// ---- cuDNN ----

/// Bytes of x, kernel and y.
std::array<int64_t, 3> tensor_bytes(const ConvolutionShape &shape) {
  const auto bytes = [&](const std::array<int64_t, 4> &dims) {
    return dims[0] * dims[1] * dims[2] * dims[3] * static_cast<int64_t>(tensor::size_bytes(shape.dtype));
  };
  return {bytes(shape.x), bytes(shape.kernel), bytes(shape.y)};
}

/// A convolution with its plan for each GPU that it ran on. The first is made when the node is compiled; GPUs of one
/// kind get equal plans.
class Convolution {
 public:
  Convolution(const ConvolutionShape &shape, ConvolutionPass pass, const CudnnLimits &limits)
      : shape_(shape), pass_(pass), limits_(limits) {}

  const ConvolutionShape &shape() const { return shape_; }
  /// The plan for a GPU, or null; later ones are of the engine and within the memory of the first. With `trials` that
  /// is the fastest, else cuDNN's first choice.
  Result<const CudnnPlan *> plan_for(const Handles &handles, const DeviceHandles::Use &use,
                                     gpu::AlgorithmTrials *trials = nullptr) {
    const std::lock_guard guard(mutex_);
    const auto found = plans_.find(handles->ordinal());
    if (found != plans_.end()) return &found->second.plan;
    const Cudnn *const cudnn = handles->cudnn(use);
    if (cudnn == nullptr) return static_cast<const CudnnPlan *>(nullptr);
    CudnnDevice device;
    device.handle = handles->cudnn_handle();
    TUTTI_ASSIGN(std::vector<CudnnPlan> plans, trials == nullptr ? find_plans(*cudnn, device, {1, engine_name_})
                                                                 : find_fastest(*cudnn, device, *trials));
    if (plans.empty()) return static_cast<const CudnnPlan *>(nullptr);
    CudnnPlan &plan = plans.front();
    limits_.most_scratch = std::min(limits_.most_scratch, plan.scratch_bytes());
    engine_name_ = plan.name();
    return &plans_.emplace(handles->ordinal(), PlanOnDevice{handles, std::move(plan)}).first->second.plan;
  }

  /// Puts the convolution on the frame's stream.
  Status issue(const Frame &frame, const std::array<void *, 3> &tensors, void *scratch) {
    TUTTI_ASSIGN(const Handles handles, DeviceHandles::of_current_device());
    const DeviceHandles::Use use(*handles);
    TUTTI_ASSIGN(const CudnnPlan *const plan, plan_for(handles, use));
    if (plan == nullptr) return base::internal_error("cuDNN has no plan for a convolution on this device");
    const Cudnn &cudnn = *handles->cudnn(use);
    TUTTI_TRY(status_of(cudnn, cudnn.cudnnSetStream(handles->cudnn_handle(), frame.stream()), "choosing a stream"));
    return plan->execute(handles->cudnn_handle(), kConvolutionUids, tensors, scratch);
  }

 private:
  struct PlanOnDevice {
    Handles handles;  // outlive the plan
    CudnnPlan plan;
  };

  /// The plan of that name, or where there is none the best that cuDNN has.
  Result<std::vector<CudnnPlan>> find_plans(const Cudnn &cudnn, const CudnnDevice &device, const CudnnWish &wish) {
    TUTTI_ASSIGN(std::vector<CudnnPlan> plans, plan_convolution(cudnn, device, shape_, pass_, limits_, wish));
    if (!plans.empty() || wish.name.empty()) return plans;
    return plan_convolution(cudnn, device, shape_, pass_, limits_, {wish.most, ""});
  }

  /// The fastest plan in front.
  Result<std::vector<CudnnPlan>> find_fastest(const Cudnn &cudnn, const CudnnDevice &device,
                                              gpu::AlgorithmTrials &trials) {
    const std::string what = base::concat("cudnn ", cudnn.cudnnGetVersion(), " ", describe(shape_, pass_, limits_));
    const std::optional<std::string> known = trials.known(what);
    if (known) return find_plans(cudnn, device, {1, *known});
    const auto start = std::chrono::steady_clock::now();
    const size_t most = trials.may_measure() ? gpu::AlgorithmTrials::kMostCandidates : 1;
    TUTTI_ASSIGN(std::vector<CudnnPlan> plans, find_plans(cudnn, device, {most, ""}));
    trials.spend(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    if (plans.empty()) return plans;
    std::vector<std::string> names;
    int64_t scratch = 0;
    for (const CudnnPlan &plan : plans) {
      names.push_back(plan.name());
      scratch = std::max(scratch, plan.scratch_bytes());
    }
    const std::array<int64_t, 4> at = gpu::trial_offsets(tensor_bytes(shape_));
    const size_t best =
        trials.fastest(what, names, at[3] + scratch, [&](size_t i, char *memory, cudaStream_t stream) -> Status {
          TUTTI_TRY(status_of(cudnn, cudnn.cudnnSetStream(device.handle, stream), "choosing a stream"));
          return plans[i].execute(device.handle, kConvolutionUids, {memory + at[0], memory + at[1], memory + at[2]},
                                  memory + at[3]);
        });
    if (best > 0) std::swap(plans[0], plans[best]);
    return plans;
  }

  const ConvolutionShape shape_;
  const ConvolutionPass pass_;
  std::mutex mutex_;
  CudnnLimits limits_;
  std::string engine_name_;  // of the first; "" = none yet
  std::map<int32_t, PlanOnDevice> plans_;
};

/// The kernel in cuDNN's order lies at the beginning of the scratch memory, cuDNN's own memory behind it.
struct ConvolutionScratch {
  int64_t kernel = 0, own = 0;
};

struct PreparedConvolution {
  std::shared_ptr<Convolution> convolution;  // null: cuDNN has nothing
  ConvolutionScratch scratch;
};

Result<PreparedConvolution> prepare(KernelRequest &request, const Handles &handles, const ConvolutionShape &shape,
                                    ConvolutionPass pass) {
  CudnnLimits limits;
  limits.most_scratch = kMostScratch;
  limits.allows_tensor_cores = shape.dtype != DType::f32 || request.lowered.allows_bf16();
  limits.must_repeat = request.lowered.level() != TUTTI_LEVEL_FAST;
  auto convolution = std::make_shared<Convolution>(shape, pass, limits);
  const DeviceHandles::Use use(*handles);
  TUTTI_ASSIGN(const CudnnPlan *const plan, convolution->plan_for(handles, use, request.trials));
  if (plan == nullptr) return PreparedConvolution();
  PreparedConvolution prepared{std::move(convolution), {}};
  const auto element = static_cast<int64_t>(tensor::size_bytes(shape.dtype));
  prepared.scratch.kernel = request.reserve_scratch(shape.filters() * shape.filter_size() * element);
  prepared.scratch.own = request.reserve_scratch(plan->scratch_bytes());
  request.kernel_name = base::concat("cudnn_", plan->engine());
  return prepared;
}

/// [height, width, channels, filters] to [filters, height, width, channels].
Status to_filters_first(const ConvolutionShape &shape, void *to, const void *from, gpuStream_t stream) {
  const auto element = static_cast<int64_t>(tensor::size_bytes(shape.dtype));
  return status_of(launch_transpose(to, from, shape.filter_size(), shape.filters(), element, stream),
                   "launching a transposition");
}

Status to_filters_last(const ConvolutionShape &shape, void *to, const void *from, gpuStream_t stream) {
  const auto element = static_cast<int64_t>(tensor::size_bytes(shape.dtype));
  return status_of(launch_transpose(to, from, shape.filters(), shape.filter_size(), element, stream),
                   "launching a transposition");
}

Result<Kernel> cudnn_kernel(KernelRequest &request, const Handles &handles, const ConvolutionShape &shape,
                            ConvolutionPass pass) {
  if (request.tail != nullptr) return Kernel();
  TUTTI_ASSIGN(const PreparedConvolution prepared, prepare(request, handles, shape, pass));
  if (prepared.convolution == nullptr) return Kernel();
  return Kernel([pass, prepared](const Frame &frame) -> Status {
    Convolution &convolution = *prepared.convolution;
    const ConvolutionShape &shape = convolution.shape();
    void *const kernel = frame.scratch_as<char>(prepared.scratch.kernel);
    void *const own = frame.scratch_as<char>(prepared.scratch.own);
    void *const first = const_cast<void *>(frame.input(0)), *const second = const_cast<void *>(frame.input(1));
    if (pass == ConvolutionPass::kernel_gradient) {
      TUTTI_TRY(convolution.issue(frame, {first, kernel, second}, own));
      return to_filters_last(shape, frame.output(0), kernel, frame.stream());
    }
    TUTTI_TRY(to_filters_first(shape, kernel, second, frame.stream()));
    if (pass == ConvolutionPass::forward) return convolution.issue(frame, {first, kernel, frame.output(0)}, own);
    return convolution.issue(frame, {frame.output(0), kernel, first}, own);
  });
}

// ---- bias ----

/// y += bias, for rows of `filters` elements.
gpu::ElementProgram bias_program(const LoweredValue &y) {
  using gpu::ElementAccess;
  using gpu::ElementOp;
  gpu::ElementProgram program{};
  const int64_t filters = y.dims[3];
  program.elements = y.elements;
  program.arithmetic = y.dtype == DType::f64 ? gpu::Arithmetic::f64 : gpu::Arithmetic::f32;
  program.rank = 2;
  program.dims[0] = y.elements / filters;
  program.dims[1] = filters;
  program.input_count = 2;
  program.instruction_count = 1;
  program.inputs[0] = {y.dtype, ElementAccess::dense, {filters, 1}};
  program.inputs[1] = {y.dtype, ElementAccess::strided, {0, 1}};
  program.output = {y.dtype, ElementAccess::dense, {filters, 1}};
  program.instructions[0] = {ElementOp::add, 0, 1, 0, 0};
  return program;
}

Kernel with_bias(Kernel convolution, gpu::ElementProgram program) {
  return [convolution = std::move(convolution), program](const Frame &frame) -> Status {
    TUTTI_TRY(convolution(frame));
    gpu::ElementPlaces places = gpu::make_places(program.elements);
    gpu::place_input(places, 0, frame.output(0));
    gpu::place_input(places, 1, frame.input(2));
    gpu::place_output(places, frame.output(0));
    return status_of(gpu::launch_elements(program, places, frame.stream()), "launching elementwise work");
  };
}

Result<Kernel> make_kernel(KernelRequest &request, const Handles &handles, const ConvolutionShape &shape,
                           ConvolutionPass pass) {
  if (is_empty(shape)) return Kernel();
  return is_product(shape) ? product_kernel(request, handles, shape, pass)
                           : cudnn_kernel(request, handles, shape, pass);
}

}  // namespace

Result<Kernel> make_conv2d(KernelRequest &request, const Handles &handles) {
  // A bias of the node's own is added behind all else.
  if (request.tail != nullptr && request.has_input(2)) return Kernel();
  TUTTI_ASSIGN(const auto attributes, graph::ops::Conv2dAttributes::from(request.node));
  const LoweredValue &y = request.output(0);
  const ConvolutionShape shape = shape_of(attributes, request, request.input(0), request.input(1), y);
  TUTTI_ASSIGN(Kernel kernel, make_kernel(request, handles, shape, ConvolutionPass::forward));
  if (!kernel || !request.has_input(2)) return kernel;
  return with_bias(std::move(kernel), bias_program(y));
}

Result<Kernel> make_conv2d_input_gradient(KernelRequest &request, const Handles &handles) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::Conv2dInputGradientAttributes::from(request.node));
  const ConvolutionShape shape = shape_of(attributes, request, request.output(0), request.input(1), request.input(0));
  return make_kernel(request, handles, shape, ConvolutionPass::input_gradient);
}

Result<Kernel> make_conv2d_kernel_gradient(KernelRequest &request, const Handles &handles) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::Conv2dKernelGradientAttributes::from(request.node));
  const ConvolutionShape shape = shape_of(attributes, request, request.input(0), request.output(0), request.input(1));
  return make_kernel(request, handles, shape, ConvolutionPass::kernel_gradient);
}

}  // namespace tutti::impl::backend::cuda
