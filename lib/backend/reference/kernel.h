// SPDX-License-Identifier: Apache-2.0
//
// What a kernel of the reference backend is: a function made once at compile time from a node whose shapes are numbers,
// then called with pointers. Kernels are plain loops that compute in double (or 64-bit integers) and round once when
// they store; other backends are tested against them.
//
//   Result<Kernel> make_square(KernelRequest &request) {
//     const int64_t count = request.output(0).elements;
//     return Kernel([count](const Frame &frame) { ...; return Status(); });
//   }
//
// A new kernel: a factory here or in a file of its own, and a line in kernel_list.cc.
//
// Threads: a Kernel is immutable; one call uses the memory of one Frame.
#ifndef TUTTI_BACKEND_REFERENCE_KERNEL_H_
#define TUTTI_BACKEND_REFERENCE_KERNEL_H_

#include <tutti/plugin/backend.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/lowered_graph.h"
#include "base/status.h"

namespace tutti::impl::backend::reference {

/// Behind the scalars of the run: which iteration of the scans around the kernel runs (scan_iteration), 0 outside.
constexpr size_t kScanIteration = TUTTI_RUN_SCALAR_COUNT;
constexpr size_t kScalarCount = kScanIteration + 1;

/// Where the operands of one call lie. Pointers to zero elements may be null.
class Frame {
 public:
  Frame(void *const *table, const int32_t *inputs, const int32_t *outputs, void *scratch, const int64_t *scalars)
      : table_(table), inputs_(inputs), outputs_(outputs), scratch_(scratch), scalars_(scalars) {}

  const void *input(int32_t index) const { return table_[inputs_[index]]; }
  void *output(int32_t index) const { return table_[outputs_[index]]; }
  template <typename T>
  const T *input_as(int32_t index) const {
    return static_cast<const T *>(input(index));
  }
  template <typename T>
  T *output_as(int32_t index) const {
    return static_cast<T *>(output(index));
  }
  /// The bytes the factory asked for, aligned to 64.
  void *scratch() const { return scratch_; }
  double *scratch_doubles() const { return static_cast<double *>(scratch_); }
  /// kScalarCount values: those of the run, by TUTTI_RUN_ index, then kScanIteration.
  const int64_t *scalars() const { return scalars_; }

 private:
  void *const *table_;
  const int32_t *inputs_;
  const int32_t *outputs_;
  void *scratch_;
  const int64_t *scalars_;
};

/// Allocates nothing unless it fails.
using Kernel = std::function<base::Status(const Frame &frame)>;

/// What a factory sees of its node.
struct KernelRequest {
  const LoweredGraph &lowered;
  const graph::Node &node;
  /// Set by the factory: bytes of Frame::scratch().
  int64_t scratch_bytes = 0;

  bool has_input(size_t index) const { return index < node.inputs.size() && node.inputs[index] != graph::kNoValue; }
  const LoweredValue &input(size_t index) const { return lowered.value(node.inputs[index]); }
  const LoweredValue &output(size_t index) const { return lowered.value(node.outputs[index]); }
  size_t input_count() const { return node.inputs.size(); }
  /// "node 'dense/matmul' (matmul)".
  std::string name() const { return describe(node); }
};

using KernelFactory = base::Result<Kernel> (*)(KernelRequest &request);

/// The factory for an op, or null.
KernelFactory find_kernel(std::string_view op);
/// Names of all ops with a kernel, sorted.
std::vector<std::string_view> kernel_ops();

}  // namespace tutti::impl::backend::reference

#endif  // TUTTI_BACKEND_REFERENCE_KERNEL_H_
