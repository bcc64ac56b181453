// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/host_cudnn.h"

#include <cstring>
#include <map>
#include <vector>

namespace tutti::testing {

namespace {

HostCudnn record;

/// A descriptor: the bytes of its attributes.
struct Descriptor {
  cudnnBackendDescriptorType_t type;
  std::map<int, std::vector<char>> attributes;
  bool is_final = false;

  template <typename T>
  T get(int name, size_t index = 0) const {
    T value{};
    std::memcpy(&value, attributes.at(name).data() + index * sizeof(T), sizeof(T));
    return value;
  }
  const Descriptor &part(int name) const { return *get<const Descriptor *>(name); }
};

Descriptor &descriptor_of(cudnnBackendDescriptor_t pointer) { return *static_cast<Descriptor *>(pointer); }

size_t size_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    default:
      return 4;
  }
}

cudnnStatus_t create_descriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *descriptor) {
  ++record.descriptors;
  *descriptor = new Descriptor{type, {}, false};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t destroy_descriptor(cudnnBackendDescriptor_t descriptor) {
  --record.descriptors;
  delete &descriptor_of(descriptor);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t set(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                  cudnnBackendAttributeType_t type, int64_t count, const void *values) {
  Descriptor &self = descriptor_of(descriptor);
  if (self.is_final) return CUDNN_STATUS_BAD_PARAM;
  const char *const bytes = static_cast<const char *>(values);
  const size_t size = static_cast<size_t>(count) * size_of(type);
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    for (int64_t i = 0; i < count; ++i) {
      if (!static_cast<Descriptor *const *>(values)[i]->is_final) return CUDNN_STATUS_BAD_PARAM;
    }
  }
  self.attributes[name].assign(bytes, bytes + size);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t finalize(cudnnBackendDescriptor_t descriptor) {
  Descriptor &self = descriptor_of(descriptor);
  if (!record.supports && self.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) return CUDNN_STATUS_NOT_SUPPORTED;
  self.is_final = true;
  return CUDNN_STATUS_SUCCESS;
}

constexpr int64_t kEngines[] = {7, 8, 9};

/// The descriptors that the caller brought become the proposals.
void give_proposals(const Descriptor &heuristics, Descriptor *const *configurations) {
  for (size_t i = 0; i < std::size(kEngines); ++i) {
    Descriptor &configuration = *configurations[i];
    configuration.is_final = true;
    configuration.attributes[CUDNN_ATTR_ENGINE_OPERATION_GRAPH] =
        heuristics.attributes.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    const char *const number = reinterpret_cast<const char *>(&kEngines[i]);
    configuration.attributes[CUDNN_ATTR_ENGINE_GLOBAL_INDEX].assign(number, number + 8);
  }
}

cudnnStatus_t get(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t,
                  int64_t most, int64_t *count, void *values) {
  Descriptor &self = descriptor_of(descriptor);
  *count = 1;
  if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS) {
    *count = std::size(kEngines);
    if (most == *count) give_proposals(self, static_cast<Descriptor *const *>(values));
  } else if (name == CUDNN_ATTR_ENGINECFG_ENGINE) {
    (*static_cast<Descriptor **>(values))->attributes = self.attributes;
  } else if (name == CUDNN_ATTR_ENGINE_GLOBAL_INDEX) {
    *static_cast<int64_t *>(values) = self.get<int64_t>(name);
  } else if (name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE) {
    const int64_t engine = self.get<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
    *count = engine == 9 ? 0 : 1;
    *static_cast<cudnnBackendNumericalNote_t *>(values) =
        engine == 7 ? CUDNN_NUMERICAL_NOTE_TENSOR_CORE : CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
  } else if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) {
    *static_cast<int64_t *>(values) = 512;
  } else {
    return CUDNN_STATUS_BAD_PARAM;
  }
  return CUDNN_STATUS_SUCCESS;
}

// ---- the convolution ----

/// A tensor [images or filters, channels, height, width] anywhere in memory.
struct Tensor {
  int64_t dims[4], strides[4];
  float *data;

  Tensor(const Descriptor &descriptor, const Descriptor &pack) {
    for (size_t i = 0; i < 4; ++i) {
      dims[i] = descriptor.get<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS, i);
      strides[i] = descriptor.get<int64_t>(CUDNN_ATTR_TENSOR_STRIDES, i);
    }
    for (size_t i = 0; i < 3; ++i) {
      if (pack.get<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, i) ==
          descriptor.get<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID))
        data = pack.get<float *>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, i);
    }
  }
  float &at(int64_t n, int64_t c, int64_t h, int64_t w) const {
    return data[n * strides[0] + c * strides[1] + h * strides[2] + w * strides[3]];
  }
  void clear() const {
    for (int64_t i = 0; i < dims[0] * dims[1] * dims[2] * dims[3]; ++i)
      data[i] = 0;
  }
};

struct Window {
  int64_t stride[2], dilation[2], before[2];

  explicit Window(const Descriptor &descriptor) {
    for (size_t i = 0; i < 2; ++i) {
      stride[i] = descriptor.get<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, i);
      dilation[i] = descriptor.get<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS, i);
      before[i] = descriptor.get<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, i);
    }
  }
};

/// Calls function(x, kernel, y), references to elements, for every product of the convolution.
template <typename Function>
void for_products(const Tensor &x, const Tensor &kernel, const Tensor &y, const Window &window, Function function) {
  const int64_t groups = x.dims[1] / kernel.dims[1], group_filters = kernel.dims[0] / groups;
  for (int64_t n = 0; n < y.dims[0]; ++n)
    for (int64_t f = 0; f < y.dims[1]; ++f)
      for (int64_t p = 0; p < y.dims[2]; ++p)
        for (int64_t q = 0; q < y.dims[3]; ++q)
          for (int64_t c = 0; c < kernel.dims[1]; ++c)
            for (int64_t i = 0; i < kernel.dims[2]; ++i)
              for (int64_t j = 0; j < kernel.dims[3]; ++j) {
                const int64_t h = p * window.stride[0] + i * window.dilation[0] - window.before[0];
                const int64_t w = q * window.stride[1] + j * window.dilation[1] - window.before[1];
                if (h < 0 || h >= x.dims[2] || w < 0 || w >= x.dims[3]) continue;
                const int64_t channel = f / group_filters * kernel.dims[1] + c;
                function(x.at(n, channel, h, w), kernel.at(f, c, i, j), y.at(n, f, p, q));
              }
}

cudnnStatus_t execute(cudnnHandle_t, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t variant_pack) {
  ++record.calls;
  const Descriptor &pack = descriptor_of(variant_pack);
  if (!pack.is_final || pack.get<char *>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE) == nullptr) return CUDNN_STATUS_BAD_PARAM;
  std::memset(pack.get<char *>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE), 0xff, 512);
  const Descriptor &configuration = descriptor_of(plan).part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  const auto time = record.engine_milliseconds.find(configuration.get<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
  record.milliseconds += time == record.engine_milliseconds.end() ? 0 : time->second;
  const Descriptor &operation =
      configuration.part(CUDNN_ATTR_ENGINE_OPERATION_GRAPH).part(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  const auto run = [&](int x_name, int kernel_name, int y_name, int window_name, int result, auto function) {
    const Tensor tensors[] = {Tensor(operation.part(x_name), pack), Tensor(operation.part(kernel_name), pack),
                              Tensor(operation.part(y_name), pack)};
    tensors[result].clear();
    for_products(tensors[0], tensors[1], tensors[2], Window(operation.part(window_name)), function);
    return CUDNN_STATUS_SUCCESS;
  };
  if (operation.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR)
    return run(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
               CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, 2,
               [](float x, float kernel, float &y) { y += x * kernel; });
  if (operation.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR)
    return run(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, 0,
               [](float &x, float kernel, float y) { x += y * kernel; });
  return run(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, 1,
             [](float x, float &kernel, float y) { kernel += x * y; });
}

cudnnStatus_t create(cudnnHandle_t *handle) {
  *handle = reinterpret_cast<cudnnHandle_t>(&record);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t destroy(cudnnHandle_t) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t set_stream(cudnnHandle_t, cudaStream_t) { return CUDNN_STATUS_SUCCESS; }
size_t version() { return 91200; }
const char *error_string(cudnnStatus_t) { return "no"; }
void last_error_string(char *, size_t) {}

}  // namespace

HostCudnn &host_cudnn() {
  record.functions = {
      create,   destroy, set_stream, version, error_string, last_error_string, create_descriptor, destroy_descriptor,
      finalize, set,     get,        execute};
  return record;
}

}  // namespace tutti::testing
