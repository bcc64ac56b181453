// SPDX-License-Identifier: Apache-2.0
//
// The program of a group of nodes of a region (region_fusion.h): what is stored, and what that is made of.
#ifndef TUTTI_BACKEND_GPU_FUSION_FUSED_PROGRAM_MAKER_H_
#define TUTTI_BACKEND_GPU_FUSION_FUSED_PROGRAM_MAKER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "backend/gpu/fusion/region_fusion.h"
#include "backend/gpu/fusion/region_nodes.h"

namespace tutti::impl::backend::gpu {

class FusedProgramMaker {
 public:
  using PitchOf = std::function<int64_t(graph::ValueId)>;  // of a parameter; 0: dense
  using IsInside = std::function<bool(size_t)>;            // is the elementwise node one of the group?

  FusedProgramMaker(const RegionNodes &nodes, const Space &space, PitchOf pitch_of, IsInside is_inside)
      : nodes_(nodes), space_(space), pitch_of_(std::move(pitch_of)), is_inside_(std::move(is_inside)) {}

  /// What the node makes, each part of a concat; `pitch`: from a row of the target to the next, 0: it is dense.
  void store(size_t at, int64_t pitch, const FusedTarget &target);
  void store_value(graph::ValueId value, int64_t pitch, const FusedTarget &target);

  /// Has the program held everything so far?
  bool fits() const;
  FusedGroup take(int32_t nodes);

 private:
  /// Elements of a value as the group reads them.
  struct Reading {
    graph::ValueId value;
    int64_t first_column;
    bool is_constant;  // along the columns

    bool operator<(const Reading &other) const;
  };

  int32_t register_of(Reading reading);
  int32_t make_register(const Reading &reading);
  int32_t view_register(size_t at, const Reading &reading);
  int32_t input_register(const Reading &reading);
  /// The node's result where its operands are read like `reading`.
  int32_t computed(size_t at, const Reading &reading);
  int32_t add(const ElementInstruction &instruction);
  void add_output(const Reading &reading, int64_t first_column, int64_t row_stride, const FusedTarget &target);

  const RegionNodes &nodes_;
  const Space space_;
  const PitchOf pitch_of_;
  const IsInside is_inside_;
  bool fits_ = true;
  int32_t depth_ = 0;  // of what is read, below what is stored
  std::map<Reading, int32_t> registers_;
  // Inputs are numbered when all are known: until then they are negative.
  std::vector<FusedOperand> inputs_;
  std::vector<ElementInstruction> instructions_;
  FusedGroup group_;
};

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_FUSION_FUSED_PROGRAM_MAKER_H_
