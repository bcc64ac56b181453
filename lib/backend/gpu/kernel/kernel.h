// SPDX-License-Identifier: Apache-2.0
//
// What a kernel of a GPU backend is on the host: a function made once at compile time from a node whose shapes are
// numbers, called with device pointers when a program is bound; it puts its launches on a stream that is usually being
// captured.
//
//   Result<Kernel> make_square(KernelRequest &request) {
//     const int64_t count = request.output(0).elements;
//     return Kernel([count](const Frame &frame) {
//       return status_of(launch_square(frame.input_as<float>(0), frame.output_as<float>(0), count, frame.stream()),
//                        "launching square");
//     });
//   }
//
// A kernel never waits, never reads device memory on the host and never allocates. Pointers to zero elements may be
// null or dangling: launch nothing.
//
// Threads: a Kernel is immutable; calls for different frames may run at the same time.
#ifndef TUTTI_BACKEND_GPU_KERNEL_KERNEL_H_
#define TUTTI_BACKEND_GPU_KERNEL_KERNEL_H_

#include <tutti/plugin/backend.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/attention_views.h"
#include "backend/bounded_integers.h"
#include "backend/gpu/device/faults.h"
#include "backend/gpu/device/reduction_data.h"
#include "backend/gpu/runtime/ranges.h"
#include "backend/gpu/runtime/runtime.h"
#include "backend/lowered_graph.h"
#include "base/status.h"

namespace tutti::impl::backend::gpu {

class AlgorithmProbes;
class AlgorithmTrials;
class KernelBatch;
class Library;
class RowsKernel;
struct NormFront;
struct ProductSum;
struct ProductEpilogue;
struct GeneratedProgram;
struct Joinable;

/// What all calls of a segment share.
struct IssueContext {
  gpuStream_t stream = nullptr;
  const int64_t *scalars = nullptr;  ///< on the device, by TUTTI_RUN_ index
  void *const *constants = nullptr;  ///< on the device, by constant node
  FaultSink faults;
  const void *rows = nullptr;  ///< on the device, the tables of all joined calls
  /// Which iteration of the scans around the kernel this is (scan_iteration), 0 outside: scans are unrolled.
  int64_t scan_iteration = 0;
};

/// Where the operands of one call lie, on the device.
class Frame {
 public:
  Frame(void *const *table, const int32_t *inputs, const int32_t *outputs, void *scratch, const IssueContext &context,
        const void *rows = nullptr)
      : table_(table), inputs_(inputs), outputs_(outputs), scratch_(scratch), context_(context), rows_(rows) {}

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
  /// The bytes the factory asked for, aligned to 256; undefined contents.
  void *scratch() const { return scratch_; }
  template <typename T>
  T *scratch_as(int64_t byte_offset = 0) const {
    return reinterpret_cast<T *>(static_cast<char *>(scratch_) + byte_offset);
  }

  /// The table of a joined call, on the device.
  const void *rows() const { return rows_; }

  gpuStream_t stream() const { return context_.stream; }
  const int64_t *scalars() const { return context_.scalars; }
  FaultSink faults() const { return context_.faults; }
  int64_t scan_iteration() const { return context_.scan_iteration; }
  const IssueContext &context() const { return context_; }

 private:
  void *const *table_;
  const int32_t *inputs_;
  const int32_t *outputs_;
  void *scratch_;
  const IssueContext &context_;
  const void *rows_;
};

using Kernel = std::function<base::Status(const Frame &frame)>;

/// Where heads begin, and how far it is from a position to the next.
struct HeadPlace {
  int64_t offset, pitch;
};

/// In what order kernels add up.
inline SumOrder sum_order_of(const LoweredGraph &lowered) {
  return lowered.is_row_invariant() ? SumOrder::by_length : SumOrder::by_shape;
}

/// What a factory sees of its node.
struct KernelRequest {
  const LoweredGraph &lowered;
  const graph::Node &node;
  /// Null where the platform has none, or a row's bits are not to depend on what it chooses for a number of rows.
  Library *library;
  /// All faults of the executable.
  std::vector<BoundedIntegers> &faults;
  /// Kernels to be compiled when all nodes have theirs; null where none are.
  KernelBatch *batch = nullptr;
  /// What is computed together with a product (product_epilogues.h), or null. A factory that cannot gives an empty
  /// kernel.
  const ProductEpilogue *tail = nullptr;
  /// Where libraries may try their algorithms; null where their estimates stand.
  AlgorithmTrials *trials = nullptr;
  /// What a library is to compute together with a product (product_sums.h), as output 1 of the frame, or null. One that
  /// cannot, or is slower so, gives an empty kernel.
  const ProductSum *sum = nullptr;
  /// What makes the dy of this gradient of a normalisation, computed with it (norm_fronts.h), or null.
  const NormFront *front = nullptr;
  /// The convolution that makes what this normalisation reads, or what these are the moments of, where a library may
  /// compute both (norm_sources.h): its x and kernel come last among the inputs, its result last among the outputs; or
  /// null. A library that cannot, or is slower so, gives an empty kernel.
  const graph::Node *source = nullptr;
  /// Where libraries may find out what an algorithm does to a NaN; null: what they do not document is not taken.
  AlgorithmProbes *probes = nullptr;
  /// Of inputs that lie in something wider (attention_views.h), whose memory the frame has then; null: there are none.
  const AttentionViews *views = nullptr;
  /// Set by the factory: bytes of Frame::scratch().
  int64_t scratch_bytes = 0;
  /// Set by the factory where it says more than the op's name: "cublaslt", "simt_gemm", ...
  std::string kernel_name = {};
  /// Set by the factory where there may be a generated kernel.
  std::shared_ptr<const GeneratedProgram> generated = {};
  /// Set by the factory where the call may become one of several in a launch (rows_kernel.h).
  std::shared_ptr<const Joinable> joinable = {};

  bool has_input(size_t index) const { return index < node.inputs.size() && node.inputs[index] != graph::kNoValue; }
  const LoweredValue &input(size_t index) const { return lowered.value(node.inputs[index]); }
  const LoweredValue &output(size_t index) const { return lowered.value(node.outputs[index]); }
  size_t input_count() const { return node.inputs.size(); }
  /// Where [rows, positions, heads, channels] lie in the memory of an input: in elements of it.
  HeadPlace place_of(size_t index) const {
    const HeadView *const view = views == nullptr ? nullptr : views->of(node.inputs[index]);
    const std::vector<int64_t> &dims = input(index).dims;
    return view == nullptr ? HeadPlace{0, dims[2] * dims[3]} : HeadPlace{view->offset, view->pitch};
  }
  SumOrder sum_order() const { return sum_order_of(lowered); }
  /// "node 'dense/matmul' (matmul)".
  std::string name() const { return describe(node); }
  /// Bytes of scratch memory, aligned to 256: their offset.
  int64_t reserve_scratch(int64_t bytes) {
    const int64_t offset = scratch_bytes;
    scratch_bytes += (bytes + 255) / 256 * 256;
    return offset;
  }
  /// The number of a fault of input `input`, whose integers have to lie in [0, limit).
  int32_t add_fault(size_t input, int64_t limit, std::string_view noun) {
    faults.push_back(BoundedIntegers::of(lowered, node, input, limit, noun));
    return static_cast<int32_t>(faults.size()) - 1;
  }
};

using KernelFactory = base::Result<Kernel> (*)(KernelRequest &request);

/// The factory for an op, or null.
KernelFactory find_kernel(std::string_view op);

/// One kernel with the places of its operands in a table of pointers.
struct KernelCall {
  Kernel kernel;
  std::vector<int32_t> inputs, outputs;
  int64_t scratch_offset = 0, scratch_bytes = 0;
  std::string trace_name, kernel_name;
  RangeName range = nullptr;                          ///< of programs with a trace
  std::shared_ptr<const GeneratedProgram> generated;  ///< what may do it in place of the kernel of that name
  int32_t step = -1;                                  ///< at whose turn it is made; -1: copies
  std::vector<int32_t> other_steps;                   ///< of nodes whose results it stores, too
  std::shared_ptr<const Joinable> joinable;           ///< or null
  int32_t group = -1;                                 ///< of calls that may be joined (horizontal_fusion.h)
  // Of a call that does the work of several: what does it, and where its table lies among all.
  std::shared_ptr<const RowsKernel> rows;
  std::vector<int64_t> row_elements;
  int64_t rows_offset = 0;

  /// Writes its table among those of all calls, in memory of the host.
  void fill_rows(void *const *table, void *all_rows) const;

  base::Status issue(void *const *table, void *workspace, const IssueContext &context) const {
    return kernel(Frame(table, inputs.data(), outputs.data(), static_cast<char *>(workspace) + scratch_offset, context,
                        static_cast<const char *>(context.rows) + rows_offset));
  }
};

/// Makes the call of the request's node, of the library or of this folder: its kernel, operands by value id; scratch
/// size in the request. An error names op, dtypes and what is missing.
base::Result<KernelCall> make_call(KernelRequest &request);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_KERNEL_KERNEL_H_
