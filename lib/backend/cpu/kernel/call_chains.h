// SPDX-License-Identifier: Apache-2.0
//
// The list of kernel calls while it grows, and how stages that work image by image (image_stage.h) become chains: a
// stage joins the last chain where the calls that were emitted since allow that it is done earlier, or that the chain
// is done later. Calls may change places when they use no memory together, or only read it.
#ifndef TUTTI_BACKEND_CPU_KERNEL_CALL_CHAINS_H_
#define TUTTI_BACKEND_CPU_KERNEL_CALL_CHAINS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/cpu/kernel/image_stage.h"
#include "backend/cpu/kernel/kernel.h"
#include "backend/executable.h"
#include "backend/storage_plan.h"

namespace tutti::impl::backend::cpu {

/// A place in memory with its time of use in calls.
struct BufferInfo {
  Location location;
  int64_t bytes = 0;
  int32_t first = INT32_MAX;
  int32_t last = -1;
  int32_t uses_left = 0;  ///< by nodes not lowered yet, of all values that lie here
};

/// What a call does with a buffer.
struct BufferUse {
  BufferId buffer = -1;
  bool writes = false;
  int64_t image_bytes = 0;  ///< of each image, where a part of images uses these images of it alone; 0 = all of it
};

/// One kernel call, or an external node (kernel null).
struct Call {
  std::unique_ptr<Kernel> kernel;
  std::string node;
  std::string op;
  std::string kernel_name;
  std::string layout;           ///< of what it computes
  int64_t bytes = 0;            ///< of all memory that it reads and writes
  std::vector<BufferUse> uses;  ///< each buffer once
  ImageChain *chain = nullptr;  ///< the kernel, if it is one
  std::string stages;           ///< of a chain of several: their nodes
  std::string main_stage;       ///< the node by whose name the chain goes
};

/// The result: what Executable runs.
struct CallList {
  std::vector<Call> calls;
  std::vector<BufferInfo> buffers;
  std::vector<int32_t> external_calls;  ///< positions in `calls`
  std::vector<ExternalDescription> externals;
  int64_t workspace_bytes = 0;
  int64_t workspace_lower_bound = 0;
  int32_t fallbacks = 0;
  int32_t reorders = 0;
  int32_t last_chain = -1;  ///< position of the chain that stages may join

  /// A call that computes with `kernel` (null = external) at the end.
  void append(Call call, std::unique_ptr<Kernel> kernel);
  /// A stage, in the last chain or as one of its own at the end.
  void append_stage(Call call, std::unique_ptr<ImageStage> stage);
  /// The chain that stages may join; null if there is none.
  const Call *open_chain() const { return last_chain < 0 ? nullptr : &calls[static_cast<size_t>(last_chain)]; }
  /// When each buffer is used first and last, and what is local to a chain; behind this nothing may be appended.
  void finish();

 private:
  void find_locals();
  bool overlap(BufferId a, BufferId b) const;
  bool collide(const std::vector<BufferUse> &a, const std::vector<BufferUse> &b) const;
  bool may_join(const std::vector<BufferUse> &chain, const std::vector<BufferUse> &stage) const;
  /// Where the chain will be when the stage has joined it; -1 = it cannot.
  int32_t place_to_join(const Call &stage, const Parts &parts) const;
};

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_KERNEL_CALL_CHAINS_H_
