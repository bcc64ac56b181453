// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/host_cudnn_graph.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>

#include "tensor/half.h"

namespace tutti::testing {

namespace {

using Descriptor = CudnnGraphDescriptor;

/// A tensor [images or filters, channels, height, width], dense.
struct Array {
  std::array<int64_t, 4> dims{};
  std::vector<float> values;

  explicit Array(const Descriptor &tensor) {
    for (size_t i = 0; i < 4; ++i)
      dims[i] = tensor.get<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS, i);
    values.assign(static_cast<size_t>(dims[0] * dims[1] * dims[2] * dims[3]), 0.0f);
  }
  /// Repeated along axes of one element.
  float &at(int64_t n, int64_t c, int64_t h, int64_t w) {
    const std::array<int64_t, 4> place = {n, c, h, w};
    int64_t index = 0;
    for (size_t i = 0; i < 4; ++i)
      index = index * dims[i] + (dims[i] == 1 ? 0 : place[i]);
    return values[static_cast<size_t>(index)];
  }
  template <typename Function>
  void for_all(Function function) const {
    for (int64_t n = 0; n < dims[0]; ++n)
      for (int64_t c = 0; c < dims[1]; ++c)
        for (int64_t h = 0; h < dims[2]; ++h)
          for (int64_t w = 0; w < dims[3]; ++w)
            function(n, c, h, w);
  }
};

float load(cudnnDataType_t type, const void *memory, int64_t index) {
  if (type == CUDNN_DATA_FLOAT) return static_cast<const float *>(memory)[index];
  if (type == CUDNN_DATA_INT32) return static_cast<float>(static_cast<const int32_t *>(memory)[index]);
  const uint16_t bits = static_cast<const uint16_t *>(memory)[index];
  return type == CUDNN_DATA_HALF ? impl::tensor::half_bits_to_float(bits) : impl::tensor::bfloat16_bits_to_float(bits);
}

bool has_16_bits(cudnnDataType_t type) { return type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16; }

void store(cudnnDataType_t type, void *memory, int64_t index, float value) {
  if (type == CUDNN_DATA_FLOAT) {
    static_cast<float *>(memory)[index] = value;
  } else {
    static_cast<uint16_t *>(memory)[index] =
        type == CUDNN_DATA_HALF ? impl::tensor::float_to_half_bits(value) : impl::tensor::float_to_bfloat16_bits(value);
  }
}

struct Window {
  int64_t stride[2], dilation[2], before[2], after[2];

  explicit Window(const Descriptor &descriptor) {
    for (size_t i = 0; i < 2; ++i) {
      stride[i] = descriptor.get<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, i);
      dilation[i] = descriptor.get<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS, i);
      before[i] = descriptor.get<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, i);
      after[i] = descriptor.get<int64_t>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, i);
    }
  }
  /// Is it one that every engine computes right, and y as large as it says?
  bool is_right(const Array &x, const Array &kernel, const Array &y) const {
    for (size_t i = 0; i < 2; ++i) {
      const int64_t reach = (kernel.dims[2 + i] - 1) * dilation[i] + 1;
      if (before[i] != after[i] || (stride[i] > 1 && dilation[i] > 1)) return false;
      if ((x.dims[2 + i] + before[i] + after[i] - reach) / stride[i] + 1 != y.dims[2 + i]) return false;
    }
    return true;
  }
};

/// Calls function(x, kernel, y), references to elements, for every product of the convolution.
template <typename Function>
void for_products(Array &x, Array &kernel, Array &y, const Window &window, Function function) {
  const int64_t groups = x.dims[1] / kernel.dims[1], group_filters = kernel.dims[0] / groups;
  y.for_all([&](int64_t n, int64_t f, int64_t p, int64_t q) {
    kernel.for_all([&](int64_t filter, int64_t c, int64_t i, int64_t j) {
      const int64_t h = p * window.stride[0] + i * window.dilation[0] - window.before[0];
      const int64_t w = q * window.stride[1] + j * window.dilation[1] - window.before[1];
      if (filter != f || h < 0 || h >= x.dims[2] || w < 0 || w >= x.dims[3]) return;
      function(x.at(n, f / group_filters * kernel.dims[1] + c, h, w), kernel.at(f, c, i, j), y.at(n, f, p, q));
    });
  });
}

double gelu(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }
double gelu_tanh(double x) { return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))); }
double host_gelu_slope(double x) {
  return 0.5 * (1 + std::erf(x / std::sqrt(2.0))) + x * std::exp(-0.5 * x * x) * 0.3989422804014327;
}
double gelu_tanh_slope(double x) {
  const double t = std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * 0.7978845608028654 * (1 + 3 * 0.044715 * x * x);
}

/// Of x alone, with no regard for NaNs.
double activation(cudnnPointwiseMode_t mode, double x) {
  if (std::isnan(x)) return 0;
  switch (mode) {
    case CUDNN_POINTWISE_EXP:
      return std::exp(x);
    case CUDNN_POINTWISE_LOG:
      return std::log(x);
    case CUDNN_POINTWISE_RELU_FWD:
      return std::fmax(x, 0.0);
    case CUDNN_POINTWISE_TANH_FWD:
      return std::tanh(x);
    case CUDNN_POINTWISE_SIGMOID_FWD:
      return 1 / (1 + std::exp(-x));
    case CUDNN_POINTWISE_GELU_FWD:
      return gelu(x);
    default:
      return gelu_tanh(x);
  }
}

bool compare(cudnnPointwiseMode_t mode, float x, float b) {
  switch (mode) {
    case CUDNN_POINTWISE_CMP_EQ:
      return x == b;
    case CUDNN_POINTWISE_CMP_NEQ:
      return x != b;
    case CUDNN_POINTWISE_CMP_GT:
      return x > b;
    case CUDNN_POINTWISE_CMP_GE:
      return x >= b;
    case CUDNN_POINTWISE_CMP_LT:
      return x < b;
    default:
      return x <= b;
  }
}

bool is_activation(cudnnPointwiseMode_t mode) {
  return mode == CUDNN_POINTWISE_EXP || mode == CUDNN_POINTWISE_LOG ||
         (mode >= CUDNN_POINTWISE_RELU_FWD && mode < CUDNN_POINTWISE_RELU_BWD);
}

/// Of modes for gradients `x` is dy, and `b` what the activation was of.
float compute(cudnnPointwiseMode_t mode, float x, float b, float t) {
  if (mode >= CUDNN_POINTWISE_CMP_EQ && mode <= CUDNN_POINTWISE_CMP_LE) return compare(mode, x, b) ? 1.0f : 0.0f;
  if (is_activation(mode)) return static_cast<float>(activation(mode, static_cast<double>(x)));
  switch (mode) {
    case CUDNN_POINTWISE_ADD:
      return x + b;
    case CUDNN_POINTWISE_SUB:
      return x - b;
    case CUDNN_POINTWISE_MUL:
      return x * b;
    case CUDNN_POINTWISE_DIV:
      return x / b;
    case CUDNN_POINTWISE_MAX:
      return std::isnan(x + b) ? 0 : std::fmax(x, b);
    case CUDNN_POINTWISE_MIN:
      return std::isnan(x + b) ? 0 : std::fmin(x, b);
    case CUDNN_POINTWISE_NEG:
      return -x;
    case CUDNN_POINTWISE_ABS:
      return std::fabs(x);
    case CUDNN_POINTWISE_BINARY_SELECT:
      return t != 0 ? x : b;
    case CUDNN_POINTWISE_GELU_BWD:
      return std::isnan(b) ? 0 : x * static_cast<float>(host_gelu_slope(static_cast<double>(b)));
    case CUDNN_POINTWISE_GELU_APPROX_TANH_BWD:
      return std::isnan(b) ? 0 : x * static_cast<float>(gelu_tanh_slope(static_cast<double>(b)));
    default:
      return x;
  }
}

class GraphRun {
 public:
  explicit GraphRun(const Descriptor &pack) {
    const size_t count = pack.attributes.at(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS).size() / sizeof(int64_t);
    is_right_ = count == pack.attributes.at(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS).size() / sizeof(void *);
    for (size_t i = 0; is_right_ && i < count; ++i)
      pointers_[pack.get<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, i)] =
          pack.get<void *>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, i);
    is_right_ = is_right_ && pointers_.size() == count;
  }

  void add(const Descriptor &operation) {
    switch (operation.type) {
      case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
        return compute_elements(operation);
      case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
        return multiply(operation);
      case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
        return reduce(operation);
      case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
        return reshape(operation);
      case CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR:
        return add_up_channels(operation);
      default:
        return convolve(operation);
    }
  }
  /// Was all of it right, and every tensor of the pack met?
  bool is_right() const { return is_right_ && met_.size() == pointers_.size(); }

 private:
  static bool has_flag(const Descriptor &tensor, int name) { return tensor.has(name) && tensor.get<bool>(name); }
  static cudnnDataType_t type_of(const Descriptor &tensor) {
    return tensor.get<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE);
  }

  static bool is_aligned(const Descriptor &tensor, const void *memory) {
    return has_flag(tensor, CUDNN_ATTR_TENSOR_IS_BY_VALUE) ||
           reinterpret_cast<uintptr_t>(memory) % tensor.get<uint64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT) == 0;
  }

  void *memory_of(const Descriptor &tensor) {
    const auto uid = tensor.get<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
    met_.insert(uid);
    const auto found = pointers_.find(uid);
    if (found == pointers_.end() || found->second == nullptr || !is_aligned(tensor, found->second)) is_right_ = false;
    return is_right_ ? found->second : nullptr;
  }

  static int64_t position(const Descriptor &tensor, int64_t n, int64_t c, int64_t h, int64_t w) {
    const std::array<int64_t, 4> place = {n, c, h, w};
    int64_t at = 0;
    for (size_t i = 0; i < 4; ++i)
      at += place[i] * tensor.get<int64_t>(CUDNN_ATTR_TENSOR_STRIDES, i);
    return at;
  }

  Array read(const Descriptor &tensor) {
    const auto made = made_.find(&tensor);
    if (made != made_.end()) return made->second;
    Array array(tensor);
    // What lies nowhere has to be made before it is read.
    if (has_flag(tensor, CUDNN_ATTR_TENSOR_IS_VIRTUAL)) is_right_ = false;
    const void *const memory = is_right_ ? memory_of(tensor) : nullptr;
    if (memory == nullptr) return array;
    array.for_all([&](int64_t n, int64_t c, int64_t h, int64_t w) {
      array.at(n, c, h, w) = load(type_of(tensor), memory, position(tensor, n, c, h, w));
    });
    return array;
  }

  void write(const Descriptor &tensor, Array array, cudnnDataType_t between) {
    if (has_flag(tensor, CUDNN_ATTR_TENSOR_IS_VIRTUAL)) {
      // Digits are not lost on the way, but for factors of products.
      if (type_of(tensor) != between && !has_16_bits(type_of(tensor))) is_right_ = false;
      if (has_16_bits(type_of(tensor))) round(type_of(tensor), array);
      made_.insert_or_assign(&tensor, std::move(array));
      return;
    }
    void *const memory = memory_of(tensor);
    if (memory == nullptr) return;
    // It may be read further on, unrounded only where it is f32.
    if (has_16_bits(type_of(tensor))) round(type_of(tensor), array);
    made_.insert_or_assign(&tensor, array);
    array.for_all([&](int64_t n, int64_t c, int64_t h, int64_t w) {
      store(type_of(tensor), memory, position(tensor, n, c, h, w), array.at(n, c, h, w));
    });
  }

  static void round(cudnnDataType_t type, Array &array) {
    for (float &value : array.values) {
      uint16_t bits = 0;
      store(type, &bits, 0, value);
      value = load(type, &bits, 0);
    }
  }

  /// c = a b of the last two dims; heads of b that are fewer are shared by as many of a, one after the other.
  void multiply(const Descriptor &operation) {
    Array a = read(operation.part(CUDNN_ATTR_OPERATION_MATMUL_ADESC));
    Array b = read(operation.part(CUDNN_ATTR_OPERATION_MATMUL_BDESC));
    const Descriptor &result = operation.part(CUDNN_ATTR_OPERATION_MATMUL_CDESC);
    Array c(result);
    const int64_t inner = a.dims[3];
    if (b.dims[2] != inner || c.dims[2] != a.dims[2] || c.dims[3] != b.dims[3] || c.dims[1] != a.dims[1] ||
        b.dims[1] == 0 || a.dims[1] % b.dims[1] != 0) {
      is_right_ = false;
      return;
    }
    const int64_t shared = a.dims[1] / b.dims[1];
    c.for_all([&](int64_t n, int64_t head, int64_t i, int64_t j) {
      double sum = 0;
      for (int64_t k = 0; k < inner; ++k)
        sum += static_cast<double>(a.at(n, head, i, k)) * static_cast<double>(b.at(n, head / shared, k, j));
      c.at(n, head, i, j) = static_cast<float>(sum);
    });
    write(result, std::move(c), CUDNN_DATA_FLOAT);
  }

  /// Sums or extremes of the elements that share a place in the result; heads that are fewer, one after the other.
  void reduce(const Descriptor &operation) {
    const auto mode =
        operation.part(CUDNN_ATTR_OPERATION_REDUCTION_DESC).get<cudnnReduceTensorOp_t>(CUDNN_ATTR_REDUCTION_OPERATOR);
    if (mode != CUDNN_REDUCE_TENSOR_ADD && mode != CUDNN_REDUCE_TENSOR_MAX) is_right_ = false;
    Array x = read(operation.part(CUDNN_ATTR_OPERATION_REDUCTION_XDESC));
    const Descriptor &result = operation.part(CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
    Array y(result);
    if (mode == CUDNN_REDUCE_TENSOR_MAX) y.values.assign(y.values.size(), -std::numeric_limits<float>::infinity());
    const int64_t shared = x.dims[1] / y.dims[1];
    x.for_all([&](int64_t n, int64_t c, int64_t h, int64_t w) {
      float &into = y.at(n, c / shared, h, w);
      const float value = x.at(n, c, h, w);
      into = mode == CUDNN_REDUCE_TENSOR_ADD ? into + value : std::fmax(into, value);
    });
    write(result, std::move(y), CUDNN_DATA_FLOAT);
  }

  void add_up_channels(const Descriptor &operation) {
    if (operation.get<cudnnDataType_t>(CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC) != CUDNN_DATA_FLOAT) is_right_ = false;
    Array x = read(operation.part(CUDNN_ATTR_OPERATION_GENSTATS_XDESC));
    const Descriptor &first = operation.part(CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC);
    const Descriptor &second = operation.part(CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC);
    Array sums(first), squares(second);
    x.for_all([&](int64_t n, int64_t c, int64_t h, int64_t w) {
      sums.at(0, c, 0, 0) += x.at(n, c, h, w);
      squares.at(0, c, 0, 0) += x.at(n, c, h, w) * x.at(n, c, h, w);
    });
    write(first, std::move(sums), CUDNN_DATA_FLOAT);
    write(second, std::move(squares), CUDNN_DATA_FLOAT);
  }

  /// The last two dims are exchanged; nothing moves.
  void reshape(const Descriptor &operation) {
    const Descriptor &source = operation.part(CUDNN_ATTR_OPERATION_RESHAPE_XDESC);
    const Descriptor &result = operation.part(CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
    Array x = read(source), y(result);
    if (x.dims[2] != y.dims[3] || x.dims[3] != y.dims[2] ||
        source.get<int64_t>(CUDNN_ATTR_TENSOR_STRIDES, 2) != result.get<int64_t>(CUDNN_ATTR_TENSOR_STRIDES, 3) ||
        source.get<int64_t>(CUDNN_ATTR_TENSOR_STRIDES, 3) != result.get<int64_t>(CUDNN_ATTR_TENSOR_STRIDES, 2)) {
      is_right_ = false;
      return;
    }
    y.for_all([&](int64_t n, int64_t c, int64_t h, int64_t w) { y.at(n, c, h, w) = x.at(n, c, w, h); });
    write(result, std::move(y), CUDNN_DATA_FLOAT);
  }

  void convolve(const Descriptor &operation) {
    const auto run = [&](int x_name, int kernel_name, int y_name, int window_name, int result, auto function) {
      const Descriptor *const tensors[] = {&operation.part(x_name), &operation.part(kernel_name),
                                           &operation.part(y_name)};
      Array arrays[] = {Array(*tensors[0]), Array(*tensors[1]), Array(*tensors[2])};
      for (int i = 0; i < 3; ++i) {
        if (i != result) arrays[i] = read(*tensors[i]);
      }
      const Window window(operation.part(window_name));
      if (!window.is_right(arrays[0], arrays[1], arrays[2])) is_right_ = false;
      for_products(arrays[0], arrays[1], arrays[2], window, function);
      write(*tensors[result], arrays[result], CUDNN_DATA_FLOAT);
    };
    if (operation.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR)
      return run(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                 CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, 2,
                 [](float x, float kernel, float &y) { y += x * kernel; });
    if (operation.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR)
      return run(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, 0,
                 [](float &x, float kernel, float y) { x += y * kernel; });
    run(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, 1,
        [](float x, float &kernel, float y) { kernel += x * y; });
  }

  void compute_elements(const Descriptor &operation) {
    const Descriptor &work = operation.part(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    const auto mode = work.get<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
    const bool is_comparison = mode >= CUDNN_POINTWISE_CMP_EQ && mode <= CUDNN_POINTWISE_CMP_LE;
    const auto computed_in = work.get<cudnnDataType_t>(CUDNN_ATTR_POINTWISE_MATH_PREC);
    const bool has_gradients = operation.has(CUDNN_ATTR_OPERATION_POINTWISE_DYDESC);
    if (has_gradients != (mode >= CUDNN_POINTWISE_RELU_BWD && mode < CUDNN_POINTWISE_CMP_EQ)) is_right_ = false;
    const Descriptor &result =
        operation.part(has_gradients ? CUDNN_ATTR_OPERATION_POINTWISE_DXDESC : CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
    const int names[] = {has_gradients ? CUDNN_ATTR_OPERATION_POINTWISE_DYDESC : CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
                         has_gradients ? CUDNN_ATTR_OPERATION_POINTWISE_XDESC : CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                         CUDNN_ATTR_OPERATION_POINTWISE_TDESC};
    std::vector<Array> operands;
    for (const int name : names)
      operands.push_back(operation.has(name) ? read(operation.part(name)) : Array(result));
    Array made(result);
    const bool is_of_places = mode == CUDNN_POINTWISE_GEN_INDEX || computed_in == CUDNN_DATA_INT32;
    if (computed_in != CUDNN_DATA_FLOAT && !is_of_places && !is_comparison) is_right_ = false;
    const int64_t axis = mode == CUDNN_POINTWISE_GEN_INDEX ? work.get<int64_t>(CUDNN_ATTR_POINTWISE_AXIS) : int64_t{0};
    made.for_all([&](int64_t n, int64_t c, int64_t h, int64_t w) {
      const float places[] = {static_cast<float>(n), static_cast<float>(c), static_cast<float>(h),
                              static_cast<float>(w)};
      made.at(n, c, h, w) =
          mode == CUDNN_POINTWISE_GEN_INDEX
              ? places[axis]
              : compute(mode, operands[0].at(n, c, h, w), operands[1].at(n, c, h, w), operands[2].at(n, c, h, w));
    });
    write(result, std::move(made),
          is_comparison  ? CUDNN_DATA_BOOLEAN
          : is_of_places ? CUDNN_DATA_INT32
                         : CUDNN_DATA_FLOAT);
  }

  bool is_right_ = true;
  std::map<int64_t, void *> pointers_;
  std::set<int64_t> met_;
  std::map<const Descriptor *, Array> made_;
};

}  // namespace

cudnnStatus_t run_cudnn_graph(const CudnnGraphDescriptor &graph, const CudnnGraphDescriptor &variant_pack) {
  GraphRun run(variant_pack);
  const size_t count = graph.attributes.at(CUDNN_ATTR_OPERATIONGRAPH_OPS).size() / sizeof(void *);
  for (size_t i = 0; i < count; ++i)
    run.add(*graph.get<const Descriptor *>(CUDNN_ATTR_OPERATIONGRAPH_OPS, i));
  return run.is_right() ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

}  // namespace tutti::testing
