// SPDX-License-Identifier: Apache-2.0
//
// cuDNN's graph interface: descriptors that are destroyed with their objects, and plans for a graph of operations.
//
//   CudnnDescriptor tensor(cudnn, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
//   tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type);     // the first failure is kept ...
//   TUTTI_TRY(tensor.finalize());                                            // ... and told here
//
// Threads: objects may be used by one thread at a time.
#ifndef TUTTI_BACKEND_CUDA_CUDNN_PLAN_H_
#define TUTTI_BACKEND_CUDA_CUDNN_PLAN_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/cuda/dynamic_library.h"
#include "backend/gpu/generated/library_plan_cache.h"
#include "base/status.h"

namespace tutti::impl::backend::cuda {

class CudnnDescriptor {
 public:
  CudnnDescriptor(const Cudnn &cudnn, cudnnBackendDescriptorType_t type);
  ~CudnnDescriptor();
  CudnnDescriptor(CudnnDescriptor &&other) noexcept
      : cudnn_(other.cudnn_), status_(std::move(other.status_)), pointer_(std::exchange(other.pointer_, nullptr)) {}
  CudnnDescriptor &operator=(CudnnDescriptor &&) = delete;

  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count, const void *values);
  template <typename T>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T &value) {
    set(name, type, 1, &value);
  }
  template <size_t count>
  void set(cudnnBackendAttributeName_t name, const std::array<int64_t, count> &values) {
    set(name, CUDNN_TYPE_INT64, count, values.data());
  }
  void set(cudnnBackendAttributeName_t name, const CudnnDescriptor &value) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, value.pointer_);
  }
  /// What went wrong since the descriptor was made, if anything did.
  base::Status finalize();

  /// How many values there are, of which up to `most` are written; -1 where the attribute cannot be had.
  int64_t get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t most, void *values) const;
  cudnnBackendDescriptor_t pointer() const { return pointer_; }

 private:
  const Cudnn *cudnn_;
  base::Status status_;
  cudnnBackendDescriptor_t pointer_ = nullptr;
};

/// The device that plans are made for: a handle's, or one that is described (a DEVICEPROP descriptor).
struct CudnnDevice {
  cudnnHandle_t handle = nullptr;
  const CudnnDescriptor *properties = nullptr;
  const gpu::LibraryPlanCache *kept = nullptr;  ///< where plans are kept that took long to make; null: nowhere
};

/// What a plan may do.
struct CudnnLimits {
  int64_t most_scratch = 0;
  bool allows_tensor_cores = true;  ///< of f32 they round the factors
  bool must_repeat = false;         ///< equal results in every run
};

/// Which plans of those that keep to the limits are wanted.
struct CudnnWish {
  size_t most = 1;   ///< so many, those that cuDNN thinks best
  std::string name;  ///< this one alone; "" = any
  /// Also what works where nothing fast does? It may be an engine that is slower than others that do less.
  bool allows_fallback = true;
  std::string kept_as = "";  ///< what the graph is, as exactly as plans depend on it; "" = no plan is kept
};

/// A graph to make plans for: its operations, and what they refer to, all finalized.
struct CudnnGraph {
  std::vector<CudnnDescriptor> parts, operations;
};

/// An operation graph, made ready to run.
class CudnnPlan {
 public:
  /// Seconds after which no second plan is looked for: cuDNN compiles some while they are made.
  static constexpr double kMostSeconds = 1;
  /// Seconds from which on a plan is worth keeping.
  static constexpr double kLongSeconds = 0.05;

  /// Engines that cuDNN proposes, supports and that keep to the limits, best estimate first; none where there are none.
  static base::Result<std::vector<CudnnPlan>> find(const Cudnn &cudnn, const CudnnDevice &device, CudnnGraph graph,
                                                   const CudnnLimits &limits, const CudnnWish &wish = {});

  int64_t scratch_bytes() const { return scratch_bytes_; }
  /// cuDNN's number of the engine.
  int64_t engine() const { return engine_; }
  /// The same for the same proposal of the same version: which heuristic's, which one, which engine.
  const std::string &name() const { return name_; }
  /// Puts the operations on the handle's stream; `uids` and `pointers` name the tensors. Of those by value the pointers
  /// are the host's.
  base::Status execute(cudnnHandle_t handle, std::span<const int64_t> uids, std::span<void *const> pointers,
                       void *scratch) const;

 private:
  friend class CudnnSearch;
  using Parts = std::shared_ptr<const std::vector<CudnnDescriptor>>;
  CudnnPlan(const Cudnn &cudnn, Parts parts) : cudnn_(&cudnn), parts_(std::move(parts)) {}
  bool keeps_to(const CudnnLimits &limits, const CudnnDescriptor &configuration);
  bool make_ready(const CudnnDevice &device, CudnnDescriptor &configuration, const CudnnLimits &limits,
                  const std::string &kept_as);
  /// The plan that is kept, or one made now; not to be used where that cannot be finished.
  CudnnDescriptor make_plan(const CudnnDevice &device, const CudnnDescriptor &configuration, const std::string &kept_as,
                            bool *is_ready) const;

  const Cudnn *cudnn_;
  Parts parts_;                       // the graph is the last of them; plans of one search share them
  std::vector<CudnnDescriptor> own_;  // configuration and plan
  std::string name_;
  int64_t scratch_bytes_ = 0;
  int64_t engine_ = -1;
};

}  // namespace tutti::impl::backend::cuda

#endif  // TUTTI_BACKEND_CUDA_CUDNN_PLAN_H_
