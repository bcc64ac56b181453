// SPDX-License-Identifier: Apache-2.0
//
// A region compiled for the reference backend: kernel calls over a table of pointers that lies, like all values of the
// region, in the scratch memory of the node that owns the region.
//
//   TUTTI_ASSIGN(Block block, Block::compile(lowered, node.regions[0]));
//   request.scratch_bytes = block.scratch_bytes();
//   ...
//   block.begin(scratch);                               // once per call of the owning kernel
//   block.set_parameter(scratch, 0, pointer);
//   TUTTI_TRY(block.run(scratch, scalars));
//   const void *result = block.result(scratch, 0);      // valid until the next run
#ifndef TUTTI_BACKEND_REFERENCE_BLOCK_H_
#define TUTTI_BACKEND_REFERENCE_BLOCK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "backend/reference/kernel.h"

namespace tutti::impl::backend::reference {

/// One kernel with the places of its operands in a table of pointers.
struct KernelCall {
  Kernel kernel;
  std::vector<int32_t> inputs, outputs;
  int64_t scratch_offset = 0;
  std::string trace_name;

  base::Status run(void *const *table, void *workspace, const int64_t *scalars) const {
    return kernel(
        Frame(table, inputs.data(), outputs.data(), static_cast<char *>(workspace) + scratch_offset, scalars));
  }
};

/// Makes the call of a node: its kernel, operands by value id, scratch size in `scratch_bytes`. An error names op,
/// dtype and what is missing.
base::Result<KernelCall> make_call(const LoweredGraph &lowered, const graph::Node &node, int64_t *scratch_bytes);

class Block {
 public:
  static base::Result<Block> compile(const LoweredGraph &lowered, const graph::Region &region);

  int64_t scratch_bytes() const { return scratch_bytes_; }
  void begin(void *scratch) const;
  void set_parameter(void *scratch, size_t index, const void *pointer) const {
    table(scratch)[parameters_[index]] = const_cast<void *>(pointer);
  }
  base::Status run(void *scratch, const int64_t *scalars) const;
  const void *result(void *scratch, size_t index) const { return table(scratch)[results_[index]]; }
  int64_t result_bytes(size_t index) const { return result_bytes_[index]; }
  size_t result_count() const { return results_.size(); }

 private:
  struct Local {
    int64_t offset = -1;             // in the scratch memory, or
    const void *constant = nullptr;  // where a constant lies
  };

  static void **table(void *scratch) { return static_cast<void **>(scratch); }
  void plan(const LoweredGraph &lowered, const graph::Region &region, const std::vector<int64_t> &call_scratch);

  std::vector<KernelCall> calls_;
  std::vector<Local> locals_;  // by position in the table
  std::vector<int32_t> parameters_, results_;
  std::vector<int64_t> result_bytes_;
  int64_t scratch_bytes_ = 0;
};

}  // namespace tutti::impl::backend::reference

#endif  // TUTTI_BACKEND_REFERENCE_BLOCK_H_
