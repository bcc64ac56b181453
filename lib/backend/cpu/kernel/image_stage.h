// SPDX-License-Identifier: Apache-2.0
//
// Kernels that work image by image, and chains of them: all stages of a chain do a few images before any does the next
// few, so that what one stage writes the next one finds in the second-level cache.
//
//   normalise images 0, 1 · convolve images 0, 1 · sums of images 0, 1 · normalise images 2, 3 · ...
//
// A stage gets the images in parts. Parts that follow each other are a group, which one thread does in order; groups
// are done in any order and by several threads. What a stage does with all parts stands before (`begin`) or behind
// (`end`) them. In a chain every `begin` comes before all parts, and every `end` behind them: so what an `end` makes is
// not there yet for a later stage of the same chain (call_chains.h sees to that).
//
// What only stages of one chain use, and one part of it at a time, needs no memory for all images (`Local`): each
// thread has room for those of a part.
//
// Immutable once made; what differs from program to program is in the KernelState.
#ifndef TUTTI_BACKEND_CPU_KERNEL_IMAGE_STAGE_H_
#define TUTTI_BACKEND_CPU_KERNEL_IMAGE_STAGE_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "backend/cpu/kernel/kernel.h"
#include "base/status.h"

namespace tutti::impl::backend::cpu {

/// A part of the images, and who does it.
struct ImagePart {
  int32_t part = 0;
  int32_t thread = 0;
  int32_t group = 0;
  bool first = true;  ///< of its group
};

/// Groups of parts: as many as give each thread a few.
Parts groups_of(const Parts &parts);

class ImageStage : public Kernel {
 public:
  ImageStage(const Parts &parts, const Parts &groups) : parts_(parts), groups_(groups) {}
  const Parts &parts() const { return parts_; }
  const Parts &groups() const { return groups_; }

  virtual void begin(const RunContext &, KernelState *) const {}
  virtual void run_part(const RunContext &context, KernelState *state, const ImagePart &part) const = 0;
  /// 0, or the code of an error that was reported: of a part, too.
  virtual int32_t end(const RunContext &, KernelState *) const { return 0; }

  int32_t run(const RunContext &context, KernelState *state) const final;

 private:
  Parts parts_, groups_;
};

/// A stage from functions: begin(context), run(context, images, number of the part), end(context).
template <typename Begin, typename Run, typename End>
class FunctionStage final : public ImageStage {
 public:
  FunctionStage(const Parts &parts, Begin begin, Run run, End end)
      : ImageStage(parts, groups_of(parts)), begin_(std::move(begin)), run_(std::move(run)), end_(std::move(end)) {}

  void begin(const RunContext &context, KernelState *) const override { begin_(context); }
  void run_part(const RunContext &context, KernelState *, const ImagePart &part) const override {
    run_(context, parts()[part.part], part.part);
  }
  int32_t end(const RunContext &context, KernelState *) const override {
    end_(context);
    return 0;
  }

 private:
  Begin begin_;
  Run run_;
  End end_;
};

class ImageChain final : public Kernel {
 public:
  /// A buffer of which each thread has room for the images of a part.
  struct Local {
    BufferId buffer = -1;
    int64_t image_bytes = 0;
  };

  explicit ImageChain(const Parts &parts) : parts_(parts), groups_(groups_of(parts)) {}

  /// A stage behind the others, whose parts are the chain's.
  void add(std::unique_ptr<ImageStage> stage) { stages_.push_back(std::move(stage)); }
  /// What only this chain uses, out of so many buffers of the program.
  void set_locals(std::vector<Local> locals, size_t buffer_count) {
    locals_ = std::move(locals);
    buffer_count_ = buffer_count;
  }
  /// Memory that a local buffer needs.
  int64_t local_bytes(int64_t image_bytes) const { return slot_bytes(image_bytes) * parts_.threads(); }
  const Parts &parts() const { return parts_; }

  base::Result<std::unique_ptr<KernelState>> make_state() const override;
  int32_t run(const RunContext &context, KernelState *state) const override;

 private:
  int64_t slot_bytes(int64_t image_bytes) const;
  void run_group(const RunContext &context, KernelState *state, int32_t group, int32_t thread) const;
  /// Lets local buffers begin where the thread's images of the part are found behind those of all parts before.
  void place_locals(const RunContext &context, const ImagePart &part, void **buffers) const;

  Parts parts_, groups_;
  std::vector<std::unique_ptr<ImageStage>> stages_;
  std::vector<Local> locals_;
  size_t buffer_count_ = 0;
};

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_KERNEL_IMAGE_STAGE_H_
