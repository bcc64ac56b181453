// SPDX-License-Identifier: Apache-2.0
//
// Matrix products by rocBLAS, and convolutions of one pixel, which are products.
#include <memory>
#include <string_view>
#include <utility>

#include "backend/gpu/fusion/product_epilogues.h"
#include "backend/gpu/library/library_convolution_steps.h"
#include "backend/gpu/library/library_product.h"
#include "backend/hip/device_handle.h"
#include "backend/hip/hip_library.h"
#include "backend/hip/rocblas_product.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::hip {

using base::Result;
using base::Status;
using gpu::ConvolutionPass;
using gpu::ConvolutionShape;
using gpu::Frame;
using gpu::Kernel;
using gpu::KernelRequest;
using gpu::LibraryCalls;
using gpu::ProductShape;

namespace {

constexpr int64_t kMostScratch = int64_t{256} << 20;

// ---- what follows a product ----

/// Reads what the graph has behind a product: casts, of which the last says what is stored, and one addend that lies as
/// the results do, whose input of the frame is `addend` then. False where there is more.
bool read_epilogue(const KernelRequest &request, ProductShape &shape, int32_t &addend) {
  if (request.tail == nullptr) return true;
  if (request.tail->keeps()) return false;
  const gpu::Epilogue &epilogue = request.tail->epilogue;
  shape.result = epilogue.dtype;
  for (int32_t i = 0; i < epilogue.step_count; ++i) {
    const gpu::EpilogueStep &step = epilogue.steps[i];
    // What is not stored need not be rounded.
    if (step.op == gpu::ElementOp::to_f16 || step.op == gpu::ElementOp::to_bf16) continue;
    if (step.op != gpu::ElementOp::add || step.operand < 0 || shape.has_addend) return false;
    const gpu::EpilogueOperand &operand = epilogue.operands[step.operand];
    if (operand.access != gpu::EpilogueAccess::dense || operand.dtype != epilogue.dtype) return false;
    shape.has_addend = true;
    addend = static_cast<int32_t>(request.input_count()) + step.operand;
  }
  return true;
}

// ---- products ----

using Device = std::shared_ptr<DeviceHandle>;

/// A kernel that does the calls of a plan; empty where rocBLAS does not. It keeps the handle of its device open.
Result<Kernel> product_kernel(KernelRequest &request, const Device &device, LibraryCalls plan) {
  int32_t addend = -1;
  if (request.sum != nullptr || !read_epilogue(request, plan.shape, addend)) return Kernel();
  const DeviceHandle::Use use(*device);
  const Rocblas *const rocblas = device->rocblas(use);
  if (rocblas == nullptr) return Kernel();
  TUTTI_ASSIGN(const auto product, RocblasProduct::make(*rocblas, device->handle(), plan.shape, kMostScratch));
  if (!product) return Kernel();
  (void)request.reserve_scratch(product->scratch_bytes());
  request.kernel_name = "rocblas";
  const auto bytes = static_cast<int64_t>(tensor::size_bytes(plan.shape.dtype));
  const auto result_bytes = static_cast<int64_t>(tensor::size_bytes(plan.shape.result_dtype()));
  return Kernel([device, product = *product, bytes, result_bytes, addend,
                 calls = std::move(plan.calls)](const Frame &frame) -> Status {
    TUTTI_ASSIGN(const auto current, DeviceHandle::of_current_device());
    const DeviceHandle::Use use_now(*current);
    const Rocblas *const library = current->rocblas(use_now);
    if (library == nullptr) return base::internal_error("rocBLAS cannot be used on this device");
    for (const auto &[at_a, at_b, at_y] : calls) {
      const RocblasProduct::Operands operands{
          frame.input_as<char>(0) + at_a * bytes, frame.input_as<char>(1) + at_b * bytes,
          frame.output_as<char>(0) + at_y * result_bytes,
          addend < 0 ? nullptr : frame.input_as<char>(addend) + at_y * result_bytes};
      TUTTI_TRY(product.issue(*library, current->handle(), operands, frame.scratch(), frame.stream()));
    }
    return Status();
  });
}

Result<Kernel> make_matmul(KernelRequest &request, const Device &device) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::MatmulAttributes::from(request.node));
  const LoweredValue &y = request.output(0);
  if (y.elements == 0 || request.input(0).elements == 0) return Kernel();
  std::optional<LibraryCalls> plan = gpu::plan_library_calls(y.dtype, request.input(0).dims, request.input(1).dims,
                                                             y.dims, attributes.transpose_a, attributes.transpose_b);
  return plan ? product_kernel(request, device, std::move(*plan)) : Kernel();
}

// ---- convolutions of one pixel ----

Result<Kernel> convolution_kernel(KernelRequest &request, const Device &device, const ConvolutionShape &shape,
                                  ConvolutionPass pass) {
  if (gpu::is_empty(shape) || !gpu::is_product(shape)) return Kernel();
  return product_kernel(request, device, {gpu::product_of(shape, pass), {{0, 0, 0}}});
}

Result<Kernel> make_conv2d(KernelRequest &request, const Device &device) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::Conv2dAttributes::from(request.node));
  const LoweredValue &y = request.output(0);
  // A tail comes behind the bias.
  if (request.has_input(2) && request.tail != nullptr) return Kernel();
  TUTTI_ASSIGN(Kernel kernel,
               convolution_kernel(request, device,
                                  gpu::convolution_shape(attributes, y.dtype, request.input(0), request.input(1), y),
                                  ConvolutionPass::forward));
  return kernel && request.has_input(2) ? gpu::with_bias(std::move(kernel), y) : kernel;
}

Result<Kernel> make_conv2d_input_gradient(KernelRequest &request, const Device &device) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::Conv2dInputGradientAttributes::from(request.node));
  const LoweredValue &dx = request.output(0);
  return convolution_kernel(request, device,
                            gpu::convolution_shape(attributes, dx.dtype, dx, request.input(1), request.input(0)),
                            ConvolutionPass::input_gradient);
}

Result<Kernel> make_conv2d_kernel_gradient(KernelRequest &request, const Device &device) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::Conv2dKernelGradientAttributes::from(request.node));
  const LoweredValue &x = request.input(0), &dkernel = request.output(0);
  return convolution_kernel(request, device,
                            gpu::convolution_shape(attributes, dkernel.dtype, x, dkernel, request.input(1)),
                            ConvolutionPass::kernel_gradient);
}

class RocblasLibrary final : public gpu::Library {
 public:
  explicit RocblasLibrary(Device device) : device_(std::move(device)) {}

  Result<Kernel> find(KernelRequest &request) override {
    const std::string_view op = request.node.op;
    if (op == "matmul") return make_matmul(request, device_);
    if (op == "conv2d") return make_conv2d(request, device_);
    if (op == "conv2d_input_gradient") return make_conv2d_input_gradient(request, device_);
    if (op == "conv2d_kernel_gradient") return make_conv2d_kernel_gradient(request, device_);
    return Kernel();
  }

  std::string describe() const override { return device_->describe(); }
  std::vector<std::string> missing() const override { return device_->missing(); }

 private:
  const Device device_;
};

}  // namespace

Result<std::unique_ptr<gpu::Library>> open_rocblas_library(int32_t ordinal) {
  TUTTI_ASSIGN(Device device, DeviceHandle::of(ordinal));
  return std::unique_ptr<gpu::Library>(std::make_unique<RocblasLibrary>(std::move(device)));
}

}  // namespace tutti::impl::backend::hip
