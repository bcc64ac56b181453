// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/cudnn_plan.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

namespace tutti::impl::backend::cuda {

using base::Result;
using base::Status;

// ---- descriptors ----

CudnnDescriptor::CudnnDescriptor(const Cudnn &cudnn, cudnnBackendDescriptorType_t type) : cudnn_(&cudnn) {
  status_ = status_of(cudnn, cudnn.cudnnBackendCreateDescriptor(type, &pointer_), "making a descriptor");
}

CudnnDescriptor::~CudnnDescriptor() {
  if (pointer_ != nullptr) (void)cudnn_->cudnnBackendDestroyDescriptor(pointer_);
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                          const void *values) {
  if (status_.ok())
    status_ = status_of(*cudnn_, cudnn_->cudnnBackendSetAttribute(pointer_, name, type, count, values),
                        base::concat("setting attribute ", static_cast<int>(name)));
}

Status CudnnDescriptor::finalize() {
  if (status_.ok()) status_ = status_of(*cudnn_, cudnn_->cudnnBackendFinalize(pointer_), "finishing a descriptor");
  return status_;
}

int64_t CudnnDescriptor::get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t most,
                             void *values) const {
  int64_t count = 0;
  const cudnnStatus_t status = cudnn_->cudnnBackendGetAttribute(pointer_, name, type, most, &count, values);
  return status == CUDNN_STATUS_SUCCESS ? count : -1;
}

// ---- plans ----

// One search for plans, from heuristic to heuristic.
class CudnnSearch {
 public:
  CudnnSearch(const Cudnn &cudnn, const CudnnDevice &device, CudnnPlan::Parts parts, const CudnnLimits &limits,
              const CudnnWish &wish)
      : cudnn_(cudnn), device_(device), parts_(std::move(parts)), limits_(limits), wish_(wish) {}

  Result<std::vector<CudnnPlan>> run() {
    static constexpr struct {
      cudnnBackendHeurMode_t mode;
      const char *name;
    } kHeuristics[] = {{CUDNN_HEUR_MODE_A, "A"}, {CUDNN_HEUR_MODE_B, "B"}, {CUDNN_HEUR_MODE_FALLBACK, "fallback"}};
    for (const auto &[mode, name] : kHeuristics) {
      if (mode == CUDNN_HEUR_MODE_FALLBACK && !wish_.allows_fallback) break;
      TUTTI_TRY(ask(mode, name));
      // Few of a heuristic's engines may keep to the limits; trials choose from those of the next, too.
      if (is_done()) break;
    }
    return std::move(plans_);
  }

 private:
  using Clock = std::chrono::steady_clock;

  bool is_done() const {
    if (plans_.size() >= wish_.most) return true;
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    return !plans_.empty() && seconds > CudnnPlan::kMostSeconds;
  }

  Status ask(cudnnBackendHeurMode_t mode, const char *heuristic) {
    CudnnDescriptor heuristics(cudnn_, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, parts_->back());
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
    if (device_.properties != nullptr) heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *device_.properties);
    if (!heuristics.finalize().ok()) return Status();
    const int64_t count = heuristics.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, nullptr);
    if (count <= 0) return Status();
    std::vector<CudnnDescriptor> configurations;
    std::vector<cudnnBackendDescriptor_t> pointers;
    for (int64_t i = 0; i < count; ++i) {
      configurations.emplace_back(cudnn_, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
      pointers.push_back(configurations.back().pointer());
      if (pointers.back() == nullptr) return base::resource_exhausted("cuDNN cannot make a descriptor");
    }
    const int64_t given =
        heuristics.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, pointers.data());
    for (int64_t i = 0; i < std::min(given, count) && !is_done(); ++i)
      consider(configurations[static_cast<size_t>(i)], base::concat(heuristic, i));
    return Status();
  }

  void consider(CudnnDescriptor &configuration, std::string place) {
    CudnnPlan plan(cudnn_, parts_);
    if (!plan.keeps_to(limits_, configuration)) return;
    plan.name_ = base::concat(place, " engine ", plan.engine_);
    if (!wish_.name.empty() && plan.name_ != wish_.name) return;
    if (plan.make_ready(device_, configuration, limits_, wish_.kept_as)) plans_.push_back(std::move(plan));
  }

  const Cudnn &cudnn_;
  const CudnnDevice &device_;
  const CudnnPlan::Parts parts_;
  const CudnnLimits &limits_;
  const CudnnWish &wish_;
  const Clock::time_point start_ = Clock::now();
  std::vector<CudnnPlan> plans_;
};

Result<std::vector<CudnnPlan>> CudnnPlan::find(const Cudnn &cudnn, const CudnnDevice &device, CudnnGraph graph,
                                               const CudnnLimits &limits, const CudnnWish &wish) {
  std::vector<CudnnDescriptor> parts = std::move(graph.parts);
  std::vector<cudnnBackendDescriptor_t> operations;
  for (CudnnDescriptor &operation : graph.operations) {
    operations.push_back(operation.pointer());
    parts.push_back(std::move(operation));
  }
  CudnnDescriptor whole(cudnn, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  whole.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(operations.size()),
            operations.data());
  if (device.handle != nullptr) whole.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, device.handle);
  // What cuDNN does not take at all it refuses here.
  if (!whole.finalize().ok()) return std::vector<CudnnPlan>();
  parts.push_back(std::move(whole));
  const auto shared = std::make_shared<const std::vector<CudnnDescriptor>>(std::move(parts));
  return CudnnSearch(cudnn, device, shared, limits, wish).run();
}

bool CudnnPlan::keeps_to(const CudnnLimits &limits, const CudnnDescriptor &configuration) {
  const CudnnDescriptor engine(*cudnn_, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t pointer = engine.pointer();
  if (configuration.get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &pointer) != 1) return false;
  (void)engine.get(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &engine_);
  std::array<cudnnBackendNumericalNote_t, 64> notes{};
  const int64_t count =
      engine.get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, notes.size(), notes.data());
  // An engine that cannot be asked is not trusted.
  if (count < 0 || count > static_cast<int64_t>(notes.size())) return false;
  return std::none_of(notes.begin(), notes.begin() + count, [&](cudnnBackendNumericalNote_t note) {
    switch (note) {
      case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
        return !limits.allows_tensor_cores;
      case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
        return limits.must_repeat;
      // Factors in fewer bits, sums in 16, and transformations that lose digits.
      case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
      case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
      case CUDNN_NUMERICAL_NOTE_FFT:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13:
        return true;
      default:
        return false;
    }
  });
}

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// A plan for the device, to be given its contents.
CudnnDescriptor plan_for(const Cudnn &cudnn, const CudnnDevice &device) {
  CudnnDescriptor plan(cudnn, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  if (device.handle != nullptr) plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, device.handle);
  if (device.properties != nullptr) plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *device.properties);
  return plan;
}

/// A finished plan as text, with the code of its kernels; "" where cuDNN gives none.
std::string text_of(const CudnnDescriptor &plan) {
  const int64_t size = plan.get(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, 0, nullptr);
  std::string text(static_cast<size_t>(std::max<int64_t>(size, 0)), '\0');
  if (plan.get(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, size, text.data()) != size) text.clear();
  return text;
}

}  // namespace

CudnnDescriptor CudnnPlan::make_plan(const CudnnDevice &device, const CudnnDescriptor &configuration,
                                     const std::string &kept_as, bool *is_ready) const {
  const bool may_keep = device.kept != nullptr && !kept_as.empty();
  const std::string key = base::concat("cudnn ", cudnn_->cudnnGetVersion(), " ", kept_as, " by ", name_);
  const std::optional<std::string> kept = may_keep ? device.kept->load(key) : std::nullopt;
  if (kept) {
    CudnnDescriptor plan = plan_for(*cudnn_, device);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, static_cast<int64_t>(kept->size()),
             kept->data());
    *is_ready = plan.finalize().ok();
    if (*is_ready) return plan;
  }
  const auto start = std::chrono::steady_clock::now();
  CudnnDescriptor plan = plan_for(*cudnn_, device);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  // A proposal is a guess; this is the check.
  *is_ready = plan.finalize().ok();
  if (!*is_ready || !may_keep || seconds_since(start) < kLongSeconds) return plan;
  const std::string text = text_of(plan);
  if (!text.empty()) device.kept->store(key, text);
  return plan;
}

bool CudnnPlan::make_ready(const CudnnDevice &device, CudnnDescriptor &configuration, const CudnnLimits &limits,
                           const std::string &kept_as) {
  bool is_ready = false;
  CudnnDescriptor plan = make_plan(device, configuration, kept_as, &is_ready);
  if (!is_ready) return false;
  int64_t bytes = 0;
  if (plan.get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &bytes) != 1) return false;
  if (bytes > limits.most_scratch) return false;
  scratch_bytes_ = bytes;
  own_.push_back(std::move(configuration));
  own_.push_back(std::move(plan));
  return true;
}

Status CudnnPlan::execute(cudnnHandle_t handle, std::span<const int64_t> uids, std::span<void *const> pointers,
                          void *scratch) const {
  CudnnDescriptor pack(*cudnn_, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, static_cast<int64_t>(uids.size()), uids.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, static_cast<int64_t>(pointers.size()),
           pointers.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, scratch);
  TUTTI_TRY(pack.finalize());
  return status_of(*cudnn_, cudnn_->cudnnBackendExecute(handle, own_.back().pointer(), pack.pointer()),
                   "running a graph of operations");
}

}  // namespace tutti::impl::backend::cuda
