// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/host_cudnn.h"

#include <chrono>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "backend/cuda/host_cudnn_graph.h"
#include "backend/cuda/host_runtime.h"

namespace tutti::testing {

namespace {

using Descriptor = CudnnGraphDescriptor;

HostCudnn cudnn_record;
std::set<const Descriptor *> plans;  // those that were compiled

Descriptor &descriptor_of(cudnnBackendDescriptor_t pointer) { return *static_cast<Descriptor *>(pointer); }

size_t size_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR:
      return 1;
    default:
      return 4;
  }
}

cudnnStatus_t create_descriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *descriptor) {
  ++cudnn_record.descriptors;
  *descriptor = new Descriptor{type, {}, false};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t destroy_descriptor(cudnnBackendDescriptor_t descriptor) {
  --cudnn_record.descriptors;
  plans.erase(&descriptor_of(descriptor));
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
size_t operation_count(const Descriptor &graph) {
  return graph.attributes.at(CUDNN_ATTR_OPERATIONGRAPH_OPS).size() / sizeof(void *);
}
bool has_stride(const Descriptor &graph) {
  for (size_t i = 0; i < operation_count(graph); ++i) {
    const Descriptor &operation = *graph.get<const Descriptor *>(CUDNN_ATTR_OPERATIONGRAPH_OPS, i);
    for (const int name :
         {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC}) {
      if (operation.has(name) && operation.part(name).get<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES) > 1)
        return true;
    }
  }
  return false;
}
bool has_refused_operation(const Descriptor &graph) {
  for (size_t i = 0; i < operation_count(graph); ++i) {
    const Descriptor &operation = *graph.get<const Descriptor *>(CUDNN_ATTR_OPERATIONGRAPH_OPS, i);
    if (operation.type == CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR &&
        cudnn_record.summed_types.count(
            operation.part(CUDNN_ATTR_OPERATION_GENSTATS_XDESC).get<int32_t>(CUDNN_ATTR_TENSOR_DATA_TYPE)) == 0)
      return true;
    if (operation.type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR &&
        cudnn_record.refused_modes.count(
            operation.part(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR).get<int32_t>(CUDNN_ATTR_POINTWISE_MODE)) != 0)
      return true;
  }
  return false;
}
/// The text of a plan is where it lies: it can be read while the plan is there.
std::string text_of(const Descriptor &plan) { return std::to_string(reinterpret_cast<uintptr_t>(&plan)); }

/// A plan becomes as the one of which it has the text, or is compiled.
cudnnStatus_t finish_plan(Descriptor &self) {
  // cuDNN asks the stream whether it is captured.
  if (cudnn_record.stream != nullptr && host_runtime().streams.count(cudnn_record.stream) == 0)
    ++cudnn_record.asked_lost_streams;
  if (!cudnn_record.supports) return CUDNN_STATUS_NOT_SUPPORTED;
  if (!self.has(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION)) {
    const Descriptor &graph =
        self.part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG).part(CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
    if (operation_count(graph) == 1) return CUDNN_STATUS_SUCCESS;
    ++cudnn_record.compiled;
    std::this_thread::sleep_for(std::chrono::duration<double>(cudnn_record.compile_seconds));
    plans.insert(&self);
    return CUDNN_STATUS_SUCCESS;
  }
  const std::vector<char> &bytes = self.attributes.at(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION);
  for (const Descriptor *plan : plans) {
    if (text_of(*plan) != std::string(bytes.begin(), bytes.end())) continue;
    self.attributes[CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG] =
        plan->attributes.at(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    ++cudnn_record.read;
    return CUDNN_STATUS_SUCCESS;
  }
  return CUDNN_STATUS_SERIALIZATION_VERSION_MISMATCH;
}

cudnnStatus_t finalize(cudnnBackendDescriptor_t descriptor) {
  Descriptor &self = descriptor_of(descriptor);
  if (self.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
    const cudnnStatus_t status = finish_plan(self);
    if (status != CUDNN_STATUS_SUCCESS) return status;
  }
  if (self.type == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR && has_refused_operation(self))
    return CUDNN_STATUS_NOT_SUPPORTED;
  self.is_final = true;
  return CUDNN_STATUS_SUCCESS;
}

/// What an engine of single operations has, one of several has, too, by this greater number.
constexpr int64_t kFused = 20;
constexpr int64_t kEngines[] = {7, 8, 9};
constexpr size_t kScratch = 512, kFusedScratch = 768;

/// The descriptors that the caller brought become the proposals.
void give_proposals(const Descriptor &heuristics, Descriptor *const *configurations) {
  const bool is_fused = operation_count(heuristics.part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)) > 1;
  for (size_t i = 0; i < std::size(kEngines); ++i) {
    Descriptor &configuration = *configurations[i];
    configuration.is_final = true;
    configuration.attributes[CUDNN_ATTR_ENGINE_OPERATION_GRAPH] =
        heuristics.attributes.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    const int64_t engine = kEngines[i] + (is_fused ? kFused : 0);
    const char *const number = reinterpret_cast<const char *>(&engine);
    configuration.attributes[CUDNN_ATTR_ENGINE_GLOBAL_INDEX].assign(number, number + 8);
  }
}

size_t scratch_of(const Descriptor &plan) {
  const Descriptor &configuration = plan.part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  return configuration.get<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX) > kFused ? kFusedScratch : kScratch;
}

cudnnStatus_t get(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t,
                  int64_t most, int64_t *count, void *values) {
  Descriptor &self = descriptor_of(descriptor);
  *count = 1;
  if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS) {
    const bool is_fallback = self.get<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_FALLBACK;
    *count = cudnn_record.has_only_fallbacks && !is_fallback ? 0 : std::size(kEngines);
    if (*count > 0 && most == *count) give_proposals(self, static_cast<Descriptor *const *>(values));
  } else if (name == CUDNN_ATTR_ENGINECFG_ENGINE) {
    (*static_cast<Descriptor **>(values))->attributes = self.attributes;
  } else if (name == CUDNN_ATTR_ENGINE_GLOBAL_INDEX) {
    *static_cast<int64_t *>(values) = self.get<int64_t>(name);
  } else if (name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE) {
    const int64_t engine = self.get<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX) % kFused;
    *count = engine == 9 ? 0 : 1;
    *static_cast<cudnnBackendNumericalNote_t *>(values) =
        engine == 7 ? CUDNN_NUMERICAL_NOTE_TENSOR_CORE : CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
  } else if (name == CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION) {
    const std::string text = text_of(self);
    *count = static_cast<int64_t>(text.size());
    if (most == *count) std::memcpy(values, text.data(), text.size());
  } else if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) {
    *static_cast<int64_t *>(values) = static_cast<int64_t>(scratch_of(self));
  } else {
    return CUDNN_STATUS_BAD_PARAM;
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t execute(cudnnHandle_t, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t variant_pack) {
  ++cudnn_record.calls;
  const Descriptor &pack = descriptor_of(variant_pack);
  if (!pack.is_final || pack.get<char *>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE) == nullptr) return CUDNN_STATUS_BAD_PARAM;
  std::memset(pack.get<char *>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE), 0xff, scratch_of(descriptor_of(plan)));
  const Descriptor &configuration = descriptor_of(plan).part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  const auto time = cudnn_record.engine_milliseconds.find(configuration.get<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
  cudnn_record.milliseconds += time == cudnn_record.engine_milliseconds.end() ? 0 : time->second;
  const Descriptor &graph = configuration.part(CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
  cudnn_record.operations = operation_count(graph);
  cudnn_record.milliseconds += has_stride(graph) ? cudnn_record.stride_milliseconds : 0;
  return run_cudnn_graph(graph, pack);
}

cudnnStatus_t create(cudnnHandle_t *handle) {
  *handle = reinterpret_cast<cudnnHandle_t>(&cudnn_record);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t destroy(cudnnHandle_t) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t set_stream(cudnnHandle_t, cudaStream_t stream) {
  cudnn_record.stream = stream;
  return CUDNN_STATUS_SUCCESS;
}
size_t cudnn_version() { return cudnn_record.version; }
const char *error_string(cudnnStatus_t) { return "no"; }
void last_error_string(char *, size_t) {}

}  // namespace

HostCudnn &host_cudnn() {
  cudnn_record.functions = {create,
                            destroy,
                            set_stream,
                            cudnn_version,
                            error_string,
                            last_error_string,
                            create_descriptor,
                            destroy_descriptor,
                            finalize,
                            set,
                            get,
                            execute};
  return cudnn_record;
}

}  // namespace tutti::testing
