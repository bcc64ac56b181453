// SPDX-License-Identifier: Apache-2.0
#include "backend/hip/hip_library.h"

#include <string_view>
#include <utility>

#include "backend/gpu/library_product.h"
#include "backend/gpu/product_tails.h"
#include "backend/hip/device_handle.h"
#include "backend/hip/rocblas_product.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::hip {

using base::Result;
using base::Status;
using gpu::Frame;
using gpu::Kernel;
using gpu::KernelRequest;
using gpu::ProductPlan;
using gpu::ProductShape;

namespace {

constexpr int64_t kMostScratch = int64_t{256} << 20;

// ---- what follows a product ----

/// Reads what the graph has behind a product: casts, of which the last says what is stored, and one addend that lies as
/// the results do, whose input of the frame is `addend` then. False where there is more.
bool read_tail(const KernelRequest &request, ProductShape &shape, int32_t &addend) {
  if (request.tail == nullptr) return true;
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
Result<Kernel> product_kernel(KernelRequest &request, const Device &device, ProductPlan plan) {
  int32_t addend = -1;
  if (request.sum != nullptr || !read_tail(request, plan.shape, addend)) return Kernel();
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
  std::optional<ProductPlan> plan = gpu::plan_product(y.dtype, request.input(0).dims, request.input(1).dims, y.dims,
                                                      attributes.transpose_a, attributes.transpose_b);
  return plan ? product_kernel(request, device, std::move(*plan)) : Kernel();
}

// ---- convolutions of one pixel ----

/// Each pixel of y is the product of the pixel of x at the same place with the kernel [1, 1, channels, filters].
template <typename Attributes>
bool is_product(const Attributes &attributes, const LoweredValue &x, const LoweredValue &kernel,
                const LoweredValue &y) {
  return kernel.dims[0] == 1 && kernel.dims[1] == 1 && attributes.groups == 1 && attributes.stride[0] == 1 &&
         attributes.stride[1] == 1 && x.dims[1] == y.dims[1] && x.dims[2] == y.dims[2] && x.elements > 0 &&
         y.elements > 0;
}

int64_t pixels_of(const LoweredValue &image) { return image.elements / image.dims[3]; }

ProductPlan one_product(const ProductShape &shape) { return {shape, {{0, 0, 0}}}; }

/// y[pixels, filters] = x[pixels, channels] kernel[channels, filters]
Result<Kernel> make_conv2d(KernelRequest &request, const Device &device) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::Conv2dAttributes::from(request.node));
  const LoweredValue &x = request.input(0), &y = request.output(0);
  if (request.has_input(2) || !is_product(attributes, x, request.input(1), y)) return Kernel();
  ProductShape shape;
  shape.dtype = y.dtype;
  shape.m = pixels_of(x);
  shape.n = y.dims[3];
  shape.k = x.dims[3];
  return product_kernel(request, device, one_product(shape));
}

/// dx[pixels, channels] = dy[pixels, filters] kernel'
Result<Kernel> make_conv2d_input_gradient(KernelRequest &request, const Device &device) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::Conv2dInputGradientAttributes::from(request.node));
  const LoweredValue &dy = request.input(0), &dx = request.output(0);
  if (!is_product(attributes, dx, request.input(1), dy)) return Kernel();
  ProductShape shape;
  shape.dtype = dx.dtype;
  shape.m = pixels_of(dx);
  shape.n = dx.dims[3];
  shape.k = dy.dims[3];
  shape.transpose_b = true;
  return product_kernel(request, device, one_product(shape));
}

/// dkernel[channels, filters] = x' dy
Result<Kernel> make_conv2d_kernel_gradient(KernelRequest &request, const Device &device) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::Conv2dKernelGradientAttributes::from(request.node));
  const LoweredValue &x = request.input(0), &dy = request.input(1);
  if (!is_product(attributes, x, request.output(0), dy)) return Kernel();
  ProductShape shape;
  shape.dtype = request.output(0).dtype;
  shape.m = x.dims[3];
  shape.n = dy.dims[3];
  shape.k = pixels_of(x);
  shape.transpose_a = true;
  return product_kernel(request, device, one_product(shape));
}

class HipLibrary final : public gpu::Library {
 public:
  explicit HipLibrary(Device device) : device_(std::move(device)) {}

  Result<Kernel> find(KernelRequest &request) override {
    const std::string_view op = request.node.op;
    if (op == "matmul") return make_matmul(request, device_);
    if (op == "conv2d") return make_conv2d(request, device_);
    if (op == "conv2d_input_gradient") return make_conv2d_input_gradient(request, device_);
    if (op == "conv2d_kernel_gradient") return make_conv2d_kernel_gradient(request, device_);
    return Kernel();
  }

  std::string describe() const override { return device_->describe(); }

 private:
  const Device device_;
};

}  // namespace

Result<std::unique_ptr<gpu::Library>> open_library(int32_t ordinal) {
  return std::unique_ptr<gpu::Library>(std::make_unique<HipLibrary>(DeviceHandle::of(ordinal)));
}

}  // namespace tutti::impl::backend::hip
