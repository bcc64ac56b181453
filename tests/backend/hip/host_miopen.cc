// SPDX-License-Identifier: Apache-2.0
#include "backend/hip/host_miopen.h"

#include <miopen/version.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <new>

#include "backend/hip/host_hip.h"
#include "tensor/half.h"

using namespace tutti::impl;
using tutti::testing::host_hip;
using tutti::testing::host_miopen;
using tutti::testing::HostMiopen;
using tutti::testing::HostSolution;

HostMiopen &tutti::testing::host_miopen() {
  static HostMiopen host;
  return host;
}

namespace {

struct HostHandle {
  bool has_stream = false;
};

/// Dims are images (or filters), channels, height, width.
struct HostTensor {
  miopenDataType_t type = miopenFloat;
  std::array<int64_t, 4> dims{}, strides{};

  int64_t at(int64_t n, int64_t c, int64_t h, int64_t w) const {
    return n * strides[0] + c * strides[1] + h * strides[2] + w * strides[3];
  }
  int64_t elements() const { return dims[0] * dims[1] * dims[2] * dims[3]; }
};

struct HostWindow {
  std::array<int64_t, 2> pads{}, stride{}, dilation{};
  int64_t groups = 1;
  bool must_repeat = false;
};

// The header's structures are empty: a handle of it stands for one of these.
HostHandle &of(miopenHandle_t handle) { return *reinterpret_cast<HostHandle *>(handle); }
HostTensor &of(miopenTensorDescriptor_t tensor) { return *reinterpret_cast<HostTensor *>(tensor); }
HostWindow &of(miopenConvolutionDescriptor_t window) { return *reinterpret_cast<HostWindow *>(window); }

miopenStatus_t misuse(const char *text) {
  if (host_miopen().misuse.empty()) host_miopen().misuse = text;
  return miopenStatusBadParm;
}

double load(const HostTensor &tensor, const void *memory, int64_t index) {
  if (tensor.type == miopenFloat) return static_cast<double>(static_cast<const float *>(memory)[index]);
  const uint16_t bits = static_cast<const uint16_t *>(memory)[index];
  return static_cast<double>(tensor.type == miopenHalf ? tensor::half_bits_to_float(bits)
                                                       : tensor::bfloat16_bits_to_float(bits));
}

void store_all(const HostTensor &tensor, void *memory, const std::vector<double> &values) {
  for (size_t i = 0; i < values.size(); ++i) {
    const auto value = static_cast<float>(values[i]);
    if (tensor.type == miopenFloat) {
      static_cast<float *>(memory)[i] = value;
    } else {
      static_cast<uint16_t *>(memory)[i] =
          tensor.type == miopenHalf ? tensor::float_to_half_bits(value) : tensor::float_to_bfloat16_bits(value);
    }
  }
}

// ---- a convolution ----

/// x, kernel, y, whatever is made of the others.
struct HostConvolution {
  const HostTensor &x, &kernel, &y;
  const HostWindow &window;

  /// Null, or what is wrong with it.
  const char *problem() const {
    for (const HostTensor *one : {&x, &kernel, &y}) {
      const auto &[n, c, h, w] = one->dims;
      if (one->type != x.type) return "tensors of several types";
      if (n < 1 || c < 1 || h < 1 || w < 1) return "a tensor without elements";
      const std::array<int64_t, 4> packed = {h * w * c, 1, w * c, c};
      if (one->strides != packed) return "a tensor that is not NHWC";
    }
    if (x.dims[0] != y.dims[0] || kernel.dims[0] != y.dims[1]) return "images or filters do not agree";
    if (kernel.dims[1] * window.groups != x.dims[1] || kernel.dims[0] % window.groups != 0)
      return "channels do not agree with groups";
    for (size_t axis = 0; axis < 2; ++axis) {
      const int64_t reach = (kernel.dims[2 + axis] - 1) * window.dilation[axis] + 1;
      const int64_t size = (x.dims[2 + axis] + 2 * window.pads[axis] - reach) / window.stride[axis] + 1;
      if (size != y.dims[2 + axis]) return "y is not of the size that the padding gives";
      if (window.groups > 1 && window.dilation[axis] != 1) return "groups are dilated";
    }
    return nullptr;
  }

  /// Calls function(x, kernel, y) with the positions of the elements of every product.
  template <typename Function>
  void for_products(Function function) const {
    const int64_t depth = kernel.dims[1], filters = kernel.dims[0] / window.groups;
    for (int64_t n = 0; n < y.dims[0]; ++n)
      for (int64_t f = 0; f < y.dims[1]; ++f)
        for (int64_t p = 0; p < y.dims[2]; ++p)
          for (int64_t q = 0; q < y.dims[3]; ++q)
            for (int64_t i = 0; i < kernel.dims[2]; ++i)
              for (int64_t j = 0; j < kernel.dims[3]; ++j) {
                const int64_t h = p * window.stride[0] + i * window.dilation[0] - window.pads[0];
                const int64_t w = q * window.stride[1] + j * window.dilation[1] - window.pads[1];
                if (h < 0 || h >= x.dims[2] || w < 0 || w >= x.dims[3]) continue;
                for (int64_t c = 0; c < depth; ++c)
                  function(x.at(n, f / filters * depth + c, h, w), kernel.at(f, c, i, j), y.at(n, f, p, q));
              }
  }
};

miopenStatus_t get_solutions(const HostConvolution &convolution, size_t most, size_t *count,
                             miopenConvSolution_t *solutions) {
  if (!host_hip().is_relaxed) ++host_miopen().strict_calls;
  if (const char *const problem = convolution.problem()) return misuse(problem);
  if (host_miopen().asked != miopenStatusSuccess) return host_miopen().asked;
  *count = 0;
  for (const HostSolution &one : host_miopen().solutions) {
    if (convolution.window.must_repeat && !one.repeats) continue;
    if (*count == most) break;
    solutions[(*count)++] = {1, one.workspace, one.id, one.algorithm};
  }
  return miopenStatusSuccess;
}

const HostSolution *find_solution(uint64_t id) {
  const auto found = std::find_if(host_miopen().solutions.begin(), host_miopen().solutions.end(),
                                  [&](const HostSolution &one) { return one.id == id; });
  return found == host_miopen().solutions.end() ? nullptr : &*found;
}

miopenStatus_t compile(miopenHandle_t handle, const HostConvolution &convolution, uint64_t id) {
  if (!host_hip().is_relaxed) ++host_miopen().strict_calls;
  const HostSolution *const solution = find_solution(id);
  if (const char *const problem = convolution.problem()) return misuse(problem);
  if (solution == nullptr) return misuse("a solution that is not one is compiled");
  ++host_miopen().compiled;
  if (solution->compiling == miopenStatusSuccess) host_miopen().ready.insert({handle, id});
  return solution->compiling;
}

/// Function adds up products into `sums`, which become the elements of `made`.
template <typename Function>
miopenStatus_t run(miopenHandle_t handle, const HostConvolution &convolution, const HostTensor &made, void *result,
                   std::pair<void *, size_t> workspace, uint64_t id, Function add) {
  HostMiopen &host = host_miopen();
  ++host.calls;
  if (!host_hip().is_relaxed) ++host.strict_calls;
  const HostSolution *const solution = find_solution(id);
  if (const char *const problem = convolution.problem()) return misuse(problem);
  if (solution == nullptr) return misuse("a solution that is not one is run");
  if (convolution.window.must_repeat && !solution->repeats) return misuse("what does not repeat itself is run");
  if ((workspace.first == nullptr) != (workspace.second == 0)) return misuse("a workspace without address or size");
  if (workspace.second < solution->workspace) return misuse("the workspace is too small");
  if (!of(handle).has_stream) return misuse("no stream was set");
  if (host.ready.count({handle, id}) == 0) ++host.late_compiles;
  host_hip().milliseconds += solution->milliseconds;
  if (solution->running != miopenStatusSuccess) return solution->running;
  if (workspace.first != nullptr) std::memset(workspace.first, 0x55, workspace.second);
  std::vector<double> sums(static_cast<size_t>(made.elements()));
  convolution.for_products([&](int64_t x, int64_t kernel, int64_t y) { add(sums, x, kernel, y); });
  store_all(made, result, sums);
  return miopenStatusSuccess;
}

}  // namespace

// ---- the library ----

extern "C" {

const char *miopenGetErrorString(miopenStatus_t status) {
  return status == miopenStatusNotImplemented ? "not this one" : "no";
}
/// The major version may be set from outside.
miopenStatus_t miopenGetVersion(size_t *major, size_t *minor, size_t *patch) {
  const char *const other = std::getenv("TUTTI_HOST_MIOPEN");
  *major = other == nullptr ? MIOPEN_VERSION_MAJOR : static_cast<size_t>(std::atoi(other));
  *minor = 7;
  *patch = 5;
  return miopenStatusSuccess;
}
miopenStatus_t miopenCreate(miopenHandle_t *handle) {
  ++host_miopen().handles;
  *handle = reinterpret_cast<miopenHandle_t>(new HostHandle);
  return miopenStatusSuccess;
}
miopenStatus_t miopenDestroy(miopenHandle_t handle) {
  --host_miopen().handles;
  std::erase_if(host_miopen().ready, [&](const auto &one) { return one.first == handle; });
  delete &of(handle);
  return miopenStatusSuccess;
}
miopenStatus_t miopenSetStream(miopenHandle_t handle, miopenAcceleratorQueue_t) {
  ++host_miopen().streams_set;
  of(handle).has_stream = true;
  return miopenStatusSuccess;
}
miopenStatus_t miopenCreateTensorDescriptor(miopenTensorDescriptor_t *tensor) {
  ++host_miopen().descriptors;
  *tensor = reinterpret_cast<miopenTensorDescriptor_t>(new HostTensor);
  return miopenStatusSuccess;
}
miopenStatus_t miopenSet4dTensorDescriptorEx(miopenTensorDescriptor_t tensor, miopenDataType_t type, int n, int c,
                                             int h, int w, int n_stride, int c_stride, int h_stride, int w_stride) {
  of(tensor) = {type, {n, c, h, w}, {n_stride, c_stride, h_stride, w_stride}};
  return type == miopenFloat || type == miopenHalf || type == miopenBFloat16 ? miopenStatusSuccess
                                                                             : misuse("a type that is not convolved");
}
miopenStatus_t miopenDestroyTensorDescriptor(miopenTensorDescriptor_t tensor) {
  --host_miopen().descriptors;
  delete &of(tensor);
  return miopenStatusSuccess;
}
miopenStatus_t miopenCreateConvolutionDescriptor(miopenConvolutionDescriptor_t *window) {
  ++host_miopen().descriptors;
  *window = reinterpret_cast<miopenConvolutionDescriptor_t>(new HostWindow);
  return miopenStatusSuccess;
}
miopenStatus_t miopenInitConvolutionDescriptor(miopenConvolutionDescriptor_t window, miopenConvolutionMode_t mode,
                                               int pad_h, int pad_w, int stride_h, int stride_w, int dilation_h,
                                               int dilation_w) {
  if (mode != miopenConvolution || pad_h < 0 || pad_w < 0 || stride_h < 1 || stride_w < 1 || dilation_h < 1 ||
      dilation_w < 1)
    return misuse("a window that is none");
  of(window) = {{pad_h, pad_w}, {stride_h, stride_w}, {dilation_h, dilation_w}};
  return miopenStatusSuccess;
}
miopenStatus_t miopenSetConvolutionGroupCount(miopenConvolutionDescriptor_t window, int groups) {
  of(window).groups = groups;
  return miopenStatusSuccess;
}
miopenStatus_t miopenSetConvolutionAttribute(miopenConvolutionDescriptor_t window, miopenConvolutionAttrib_t name,
                                             int value) {
  if (name != MIOPEN_CONVOLUTION_ATTRIB_DETERMINISTIC) return misuse("an attribute that is not asked for");
  of(window).must_repeat = value == 1;
  return miopenStatusSuccess;
}
miopenStatus_t miopenDestroyConvolutionDescriptor(miopenConvolutionDescriptor_t window) {
  --host_miopen().descriptors;
  delete &of(window);
  return miopenStatusSuccess;
}

// Each pass names the tensors in an order of its own: w x y, dy w dx, dy x dw.

miopenStatus_t miopenConvolutionForwardGetSolution(miopenHandle_t, miopenTensorDescriptor_t w,
                                                   miopenTensorDescriptor_t x, miopenConvolutionDescriptor_t window,
                                                   miopenTensorDescriptor_t y, size_t most, size_t *count,
                                                   miopenConvSolution_t *solutions) {
  return get_solutions({of(x), of(w), of(y), of(window)}, most, count, solutions);
}
miopenStatus_t miopenConvolutionForwardCompileSolution(miopenHandle_t handle, miopenTensorDescriptor_t w,
                                                       miopenTensorDescriptor_t x, miopenConvolutionDescriptor_t window,
                                                       miopenTensorDescriptor_t y, uint64_t id) {
  return compile(handle, {of(x), of(w), of(y), of(window)}, id);
}
miopenStatus_t miopenConvolutionForwardImmediate(miopenHandle_t handle, miopenTensorDescriptor_t w, const void *at_w,
                                                 miopenTensorDescriptor_t x, const void *at_x,
                                                 miopenConvolutionDescriptor_t window, miopenTensorDescriptor_t y,
                                                 void *at_y, void *workspace, size_t workspace_bytes, uint64_t id) {
  return run(handle, {of(x), of(w), of(y), of(window)}, of(y), at_y, {workspace, workspace_bytes}, id,
             [&](std::vector<double> &sums, int64_t in_x, int64_t in_w, int64_t in_y) {
               sums[static_cast<size_t>(in_y)] += load(of(x), at_x, in_x) * load(of(w), at_w, in_w);
             });
}

miopenStatus_t miopenConvolutionBackwardDataGetSolution(miopenHandle_t, miopenTensorDescriptor_t dy,
                                                        miopenTensorDescriptor_t w,
                                                        miopenConvolutionDescriptor_t window,
                                                        miopenTensorDescriptor_t dx, size_t most, size_t *count,
                                                        miopenConvSolution_t *solutions) {
  return get_solutions({of(dx), of(w), of(dy), of(window)}, most, count, solutions);
}
miopenStatus_t miopenConvolutionBackwardDataCompileSolution(miopenHandle_t handle, miopenTensorDescriptor_t dy,
                                                            miopenTensorDescriptor_t w,
                                                            miopenConvolutionDescriptor_t window,
                                                            miopenTensorDescriptor_t dx, uint64_t id) {
  return compile(handle, {of(dx), of(w), of(dy), of(window)}, id);
}
miopenStatus_t miopenConvolutionBackwardDataImmediate(miopenHandle_t handle, miopenTensorDescriptor_t dy,
                                                      const void *at_dy, miopenTensorDescriptor_t w, const void *at_w,
                                                      miopenConvolutionDescriptor_t window, miopenTensorDescriptor_t dx,
                                                      void *at_dx, void *workspace, size_t workspace_bytes,
                                                      uint64_t id) {
  return run(handle, {of(dx), of(w), of(dy), of(window)}, of(dx), at_dx, {workspace, workspace_bytes}, id,
             [&](std::vector<double> &sums, int64_t in_x, int64_t in_w, int64_t in_y) {
               sums[static_cast<size_t>(in_x)] += load(of(dy), at_dy, in_y) * load(of(w), at_w, in_w);
             });
}

miopenStatus_t miopenConvolutionBackwardWeightsGetSolution(miopenHandle_t, miopenTensorDescriptor_t dy,
                                                           miopenTensorDescriptor_t x,
                                                           miopenConvolutionDescriptor_t window,
                                                           miopenTensorDescriptor_t dw, size_t most, size_t *count,
                                                           miopenConvSolution_t *solutions) {
  return get_solutions({of(x), of(dw), of(dy), of(window)}, most, count, solutions);
}
miopenStatus_t miopenConvolutionBackwardWeightsCompileSolution(miopenHandle_t handle, miopenTensorDescriptor_t dy,
                                                               miopenTensorDescriptor_t x,
                                                               miopenConvolutionDescriptor_t window,
                                                               miopenTensorDescriptor_t dw, uint64_t id) {
  return compile(handle, {of(x), of(dw), of(dy), of(window)}, id);
}
miopenStatus_t miopenConvolutionBackwardWeightsImmediate(miopenHandle_t handle, miopenTensorDescriptor_t dy,
                                                         const void *at_dy, miopenTensorDescriptor_t x,
                                                         const void *at_x, miopenConvolutionDescriptor_t window,
                                                         miopenTensorDescriptor_t dw, void *at_dw, void *workspace,
                                                         size_t workspace_bytes, uint64_t id) {
  return run(handle, {of(x), of(dw), of(dy), of(window)}, of(dw), at_dw, {workspace, workspace_bytes}, id,
             [&](std::vector<double> &sums, int64_t in_x, int64_t in_w, int64_t in_y) {
               sums[static_cast<size_t>(in_w)] += load(of(dy), at_dy, in_y) * load(of(x), at_x, in_x);
             });
}

}  // extern "C"
