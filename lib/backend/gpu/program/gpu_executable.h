// SPDX-License-Identifier: Apache-2.0
//
// Executables of a GPU backend: kernel calls over a table of pointers, one per value, cut into segments at the
// collectives; and where everything lies. The workspace holds, besides the values of the graph, a place for each input
// and output and the run block (what changes from run to run: scalars, then pointers of inputs and outputs).
//
// Immutable after compile.
#ifndef TUTTI_BACKEND_GPU_PROGRAM_GPU_EXECUTABLE_H_
#define TUTTI_BACKEND_GPU_PROGRAM_GPU_EXECUTABLE_H_

#include <tutti/plugin/backend.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backend/gpu/fusion/elementwise_trees.h"
#include "backend/gpu/fusion/horizontal_fusion.h"
#include "backend/gpu/fusion/norm_fronts.h"
#include "backend/gpu/fusion/product_epilogues.h"
#include "backend/gpu/fusion/product_sums.h"
#include "backend/gpu/kernel/kernel.h"
#include "backend/gpu/program/gpu_device.h"
#include "backend/storage_plan.h"
#include "base/status.h"

namespace tutti::impl::backend::gpu {

/// An input or output of the graph in the workspace.
struct PortPlace {
  int64_t offset = 0;
  int64_t bytes = 0;
};

/// What kernels are made with.
struct KernelSources {
  Library *library;         ///< or null
  AlgorithmTrials *trials;  ///< or null
  AlgorithmProbes *probes;
  KernelBatch &batch;
};

class GpuExecutable {
 public:
  static base::Result<std::unique_ptr<GpuExecutable>> compile(const tutti_compile_request &request, GpuDevice &device);

  const tutti_backend_host *host() const { return host_; }
  std::string describe() const;

 private:
  friend class GpuProgram;
  explicit GpuExecutable(LoweredGraph lowered) : lowered_(std::move(lowered)) {}
  base::Status add_calls(const KernelSources &sources);
  /// The products that were taken are noted in `products`.
  base::Status add_keeping_tails(const std::vector<ProductEpilogue> &tails, const KernelSources &sources,
                                 StorageWishes &wishes, std::vector<KernelCall> &by_step, std::set<int32_t> &products);
  base::Status add_tails(const ElementwiseTrees &trees, const KernelSources &sources, StorageWishes &wishes,
                         std::vector<KernelCall> &by_step);
  void place_tail(const ProductEpilogue &tail, KernelCall call, int64_t scratch, StorageWishes &wishes,
                  std::vector<KernelCall> &by_step);
  base::Status add_norm_sources(const ElementwiseTrees &trees, const KernelSources &sources,
                                std::map<int32_t, ProductEpilogue> &tails, StorageWishes &wishes,
                                std::vector<KernelCall> &by_step);
  /// Those of relu before tails are looked for, the others where no library took them as a tail.
  base::Status add_fronts(const std::vector<NormFront> &fronts, bool of_relu, StorageWishes &wishes,
                          std::vector<KernelCall> &by_step);
  void place_front(const NormFront &front, KernelCall call, int64_t scratch, StorageWishes &wishes,
                   std::vector<KernelCall> &by_step);
  /// May it be computed with another, at the turn of that?
  bool stays_alone(int32_t step, const ElementwiseTrees &trees, const StorageWishes &wishes) const;
  void note_early_reads(const ProductEpilogue &tail, const StorageWishes &wishes);
  base::Status add_sums(const ElementwiseTrees &trees, const KernelSources &sources, StorageWishes &wishes,
                        std::vector<KernelCall> &by_step);
  void place_sum(const ProductSum &sum, KernelCall call, int64_t scratch, StorageWishes &wishes,
                 std::vector<KernelCall> &by_step);
  base::Status make_calls(const KernelSources &sources, StorageWishes &wishes, std::vector<KernelCall> &by_step);
  void place_views(StorageWishes &wishes);
  void make_report(const KernelSources &sources);
  base::Status list_calls(const StorageWishes &wishes, std::vector<KernelCall> by_step);
  void add_copies(int32_t step, bool into_outputs);
  base::Status add_state_write(int32_t step);
  /// Of programs with a trace the report says what each call reads and writes at least, each operand once.
  void name_calls();
  int64_t least_bytes(const KernelCall &call) const;
  int32_t add_place(const PlacedBytes &place);
  void place_ports();
  int64_t run_block_bytes() const;

  const tutti_backend_host *host_ = nullptr;
  bool has_trace_ = false;
  LoweredGraph lowered_;
  AttentionViews views_;
  StoragePlan plan_;
  std::vector<BoundedIntegers> faults_;
  std::set<const graph::Node *> tail_roots_;  // computed together with a product
  std::set<const graph::Node *> read_early_;  // by a tail, before its root's turn
  HorizontalFusion joined_;
  std::vector<KernelCall> calls_;
  std::vector<int32_t> segment_ends_;  // by segment: one past its last call
  std::vector<RangeName> ranges_;      // by segment
  std::vector<PlacedBytes> places_;    // what the pointer table points to: the values, then targets of copies
  std::vector<PortPlace> inputs_, outputs_;
  int64_t run_block_ = 0;        // offset in the workspace
  int64_t constants_bytes_ = 0;  // of all constants that are used, each aligned
  base::Json report_;
};

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_PROGRAM_GPU_EXECUTABLE_H_
