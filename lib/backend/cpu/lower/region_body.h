// SPDX-License-Identifier: Apache-2.0
//
// A region of a node as a list of kernel calls of its own, which the node's kernel makes as often as it likes: once for
// each element of a sequence, or not at all. What stands in a region is lowered as outside of it.
//
//   TUTTI_ASSIGN(const std::optional<RegionBody> body, RegionBody::lower(graph, node, 0));
//   state.begin(body, workspace);                        // once for each run of the kernel
//   state.set_parameter(i, pointer), state.set_result(i, pointer);
//   const int32_t code = body.run(context, state);       // now, and again with other pointers
//
// Threads: a body is immutable; a RegionState belongs to one program.
#ifndef TUTTI_BACKEND_CPU_LOWER_REGION_BODY_H_
#define TUTTI_BACKEND_CPU_LOWER_REGION_BODY_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "backend/cpu/kernel/call_chains.h"
#include "backend/cpu/kernel/kernel.h"
#include "backend/lowered_graph.h"
#include "base/status.h"
#include "graph/graph.h"

namespace tutti::impl::backend::cpu {

class RegionState;

class RegionBody {
 public:
  /// Region `index` of a node; none where it draws random numbers, which depend on the loops around.
  static base::Result<std::optional<RegionBody>> lower(const LoweredGraph &graph, const graph::Node &node,
                                                       size_t index);

  int64_t workspace_bytes() const { return list_.workspace_bytes; }
  int32_t fallbacks() const { return list_.fallbacks; }
  /// Does any of its kernels read a parameter?
  bool reads(size_t parameter) const;
  const LoweredValue &result(size_t index) const { return results_[index]; }
  size_t result_count() const { return results_.size(); }
  base::Result<std::unique_ptr<RegionState>> make_state() const;
  /// 0, or the code of an error that was reported. `context`: of the node's kernel.
  int32_t run(const RunContext &context, RegionState &state) const;

 private:
  friend class RegionState;
  struct Port {
    BufferId buffer;
    size_t index;  // of the parameter or result
  };

  std::unique_ptr<const LoweredGraph> graph_;  // whose constants are read where they lie
  CallList list_;
  std::vector<Port> parameters_, result_ports_;
  std::vector<LoweredValue> results_;
};

/// What belongs to one region in one program.
class RegionState {
 public:
  /// Its memory, of workspace_bytes().
  void begin(const RegionBody &body, void *workspace);
  void set_parameter(size_t index, const void *pointer) { parameters_[index] = const_cast<void *>(pointer); }
  void set_result(size_t index, void *pointer) { results_[index] = pointer; }

 private:
  friend class RegionBody;
  std::vector<void *> buffers_, parameters_, results_;
  std::vector<std::pair<const Kernel *, KernelState *>> calls_;
  std::vector<std::unique_ptr<KernelState>> states_;
};

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_LOWER_REGION_BODY_H_
