// SPDX-License-Identifier: Apache-2.0
//
// A region compiled for a GPU backend: kernel calls whose values lie in the scratch memory of the node that owns the
// region. The table of pointers is made when the block is issued.
//
//   TUTTI_ASSIGN(Block block, Block::compile(request, request.node.regions[0]));
//   const int64_t offset = request.reserve_scratch(block.scratch_bytes());
//   ...
//   Block::Run run = block.begin(frame.scratch_as<char>(offset));
//   run.set_parameter(0, pointer);
//   TUTTI_TRY(run.issue(frame.context()));
//   const void *result = run.result(0);                  // on the device, valid until the block is issued again
//
// Elementwise nodes of a region are few launches (region_fusion.h), which may read parameters and store results where
// these lie in something wider.
#ifndef TUTTI_BACKEND_GPU_FUSION_BLOCK_H_
#define TUTTI_BACKEND_GPU_FUSION_BLOCK_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "backend/gpu/fusion/region_fusion.h"
#include "backend/gpu/kernel/kernel.h"

namespace tutti::impl::backend::gpu {

class Block {
  struct FusedCall;

 public:
  static base::Result<Block> compile(KernelRequest &request, const graph::Region &region,
                                     const LoopPlaces &places = {});

  int64_t scratch_bytes() const { return scratch_bytes_; }
  int64_t result_bytes(size_t index) const { return result_bytes_[index]; }
  size_t result_count() const { return results_.size(); }
  /// Is the parameter read where it lies, with its pitch? Else it has to be dense.
  bool reads_in_place(size_t parameter) const { return is_dense_[parameter] == 0; }
  /// Does the block store the result in its further place? Else it is to be copied from where it is.
  bool stores_in_place(size_t result) const { return is_placed_[result] != 0; }
  /// Is it made in memory of its own, which the caller may provide?
  bool makes(size_t result) const { return locals_[static_cast<size_t>(results_[result])].offset >= 0; }
  /// Calls of one issue. A product and the call that it is to be a part of count as one.
  size_t call_count() const { return calls_.size() - products_.size(); }
  /// May an issue leave products to the next one? That then needs scratch memory of its own.
  bool may_leave_products() const;
  /// Does it? Known once the kernels of the batch are compiled.
  bool leaves_products() const;

  /// One issue of the block: which pointers its values have.
  class Run {
   public:
    void set_parameter(size_t index, const void *pointer) {
      table_[static_cast<size_t>(block_->parameters_[index])] = const_cast<void *>(pointer);
    }
    /// The further place of a result.
    void set_place(size_t result, void *place) { table_[static_cast<size_t>(block_->places_[result])] = place; }
    /// The memory that a result is made in.
    void set_result(size_t result, void *memory) { table_[static_cast<size_t>(block_->results_[result])] = memory; }
    /// `before`: the issue that left products to this one, or null; `is_last`: none is left to the next one.
    base::Status issue(const IssueContext &context, const Run *before = nullptr, bool is_last = true);
    /// After issue().
    const void *result(size_t index) const { return table_[static_cast<size_t>(block_->results_[index])]; }

   private:
    friend class Block;
    /// The group with its product, whose factors are in the table.
    base::Status issue_product(const FusedCall &product, void *const *factors, const IssueContext &context) const;

    const Block *block_ = nullptr;
    char *scratch_ = nullptr;
    std::vector<void *> table_;
  };
  Run begin(void *scratch) const;

 private:
  /// A product, computed by the call that reads it where there is a kernel for that.
  struct FusedCall {
    size_t product, reader;  // calls
    bool is_before;          // the product is that of the issue before
    FusedProgram program;
    std::shared_ptr<const GeneratedProgram> generated;
  };

  struct Local {
    int64_t offset = -1;                      // in the scratch memory, or
    graph::NodeId constant = graph::kNoNode;  // the constant it is; neither for a parameter
  };

  void add_products(KernelRequest &request, const graph::Region &region, const LoopPlaces &places,
                    const RegionPlan &plan);
  void plan(const LoweredGraph &lowered, const graph::Region &region, const std::vector<int64_t> &call_scratch);

  std::vector<KernelCall> calls_;
  std::vector<FusedCall> products_;
  std::vector<Local> locals_;                           // by position in the table
  std::vector<int32_t> parameters_, results_, places_;  // positions
  std::vector<char> is_dense_, is_placed_;              // by parameter, by result
  std::vector<int64_t> result_bytes_;
  int64_t scratch_bytes_ = 0;
};

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_FUSION_BLOCK_H_
