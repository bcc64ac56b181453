// SPDX-License-Identifier: Apache-2.0
//
// Turns a graph into a list of kernel calls over numbered buffers. The lower_*.cc files say how each op is done; this
// class keeps the books: where every value lies and in which layout, which reorders are needed, what may be computed
// in place, in a state entry or in an output, and how long each buffer lives.
//
//   void lower_relu(Lowering &l, const Node &node) {
//     BufferId x = l.read(node.inputs[0]);
//     BufferId y = l.write(node.outputs[0], "", {node.inputs[0]});      // may lie on top of x
//     int64_t n = l.value(node.outputs[0]).elements;
//     l.emit_ranges("relu", n, kPartElements,
//                   [=](const RunContext &c, Range r) { relu(c.in(x) + r.begin, c.out(y) + r.begin, r.size()); });
//   }
//
// A layout is a name: "" is row-major, kBlocked16 and by_elements() (layouts.h) are for images and sequences, names
// made by oneDNN are for kernels (dnnl_convolution.h). Every value has one buffer per layout in which somebody wanted
// it.
#ifndef TUTTI_BACKEND_CPU_LOWER_LOWERING_H_
#define TUTTI_BACKEND_CPU_LOWER_LOWERING_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/attention_views.h"
#include "backend/cpu/dnnl/layouts.h"
#include "backend/cpu/kernel/call_chains.h"
#include "backend/cpu/kernel/image_stage.h"
#include "backend/cpu/kernel/kernel.h"
#include "backend/cpu/lower/fusion.h"
#include "backend/cpu/lower/image_layouts.h"
#include "backend/executable.h"
#include "backend/lowered_graph.h"
#include "backend/storage_plan.h"
#include "base/status.h"

namespace tutti::impl::backend::cpu {

class Lowering {
 public:
  explicit Lowering(const LoweredGraph &graph);

  /// Lowers the whole graph.
  base::Result<CallList> run();

  // ---- for the lower_*.cc files ----
  const LoweredGraph &graph() const { return graph_; }
  const FusionPlan &fusion() const { return fusion_; }
  const ImageLayouts &images() const { return images_; }
  /// Slices and heads that lie in the memory of what they were taken from.
  const AttentionViews &views() const { return views_; }
  const LoweredValue &value(graph::ValueId id) const { return graph_.value(id); }
  bool is_f32(graph::ValueId id) const { return value(id).dtype == tensor::DType::f32; }
  /// fast level: kernels may be chosen that round differently.
  bool fast() const { return graph_.level() == TUTTI_LEVEL_FAST; }
  /// Threads of the program: thread numbers of parts are below it.
  int32_t threads() const { return graph_.threads(); }

  /// Has a kernel been emitted, or is a place known, that makes the value?
  bool has_place(graph::ValueId id) const { return !copies_[static_cast<size_t>(id)].empty(); }
  /// The layout in which the value was computed; "" when it has no buffer yet.
  std::string layout_of(graph::ValueId id) const;
  /// The buffer that holds a value in a layout, reordering if needed; counts as read by the next emit.
  BufferId read(graph::ValueId id, std::string_view layout = "");
  /// A buffer for a value that the next emit computes. `bytes` = -1 is the row-major size. It may be the buffer of one
  /// of `overwrite` if nobody needs that any more. `elementwise`: each element of the result depends only on the same
  /// elements of the inputs, so it may lie on state that the same call reads.
  BufferId write(graph::ValueId id, std::string_view layout = "", std::span<const graph::ValueId> overwrite = {},
                 bool elementwise = false, int64_t bytes = -1);
  BufferId write(graph::ValueId id, std::string_view layout, std::initializer_list<graph::ValueId> overwrite,
                 bool elementwise = false) {
    return write(id, layout, std::span<const graph::ValueId>(overwrite.begin(), overwrite.size()), elementwise);
  }
  /// A buffer for a value that has one and that the next emit computes again, the same bits: what is lowered from now
  /// on reads this one, so that the memory it had is free in between.
  BufferId write_again(graph::ValueId id, std::string_view layout);
  /// Emits a reorder unless a value that was just computed lies in `layout`: it is now taken to have been computed so.
  void prefer(graph::ValueId id, std::string_view layout);
  /// Memory for the next emit alone, and for those that are told of it by use().
  BufferId scratch(int64_t bytes);
  /// The next emit uses a buffer that was asked for before, and writes it perhaps.
  void use(BufferId buffer) { touch(buffer); }
  /// Emits a call of its own that makes `bytes` of memory from a row-major value; counts as read by the next emit.
  BufferId repeat(graph::ValueId id, int64_t bytes, std::function<void(const void *from, void *to)> make);
  /// `id` is the same memory as `source` (identity, reshape; a slice that is a view). Nothing is to be emitted.
  void alias(graph::ValueId id, graph::ValueId source);

  template <typename Function>
  void emit(std::string_view kernel_name, Function function) {
    emit_kernel(kernel_name, std::make_unique<FunctionKernel<Function>>(std::move(function)));
  }
  /// Emits a call that does `items` in parts of at least `grain` items: function(context, range[, thread]) does some of
  /// them. With one thread, or when there are few, it is called once with all.
  template <typename Function>
  void emit_ranges(std::string_view kernel_name, int64_t items, int64_t grain, Function function) {
    const Parts parts(items, grain, threads());
    if constexpr (!std::is_invocable_v<Function &, const RunContext &, Range>) {
      emit(kernel_name, [=, function = std::move(function)](const RunContext &c) {
        c.for_parts(parts, [&](Range range, int32_t thread) { function(c, range, thread); });
      });
    } else if (parts.count() == 1) {
      emit(kernel_name, [=, function = std::move(function)](const RunContext &c) { function(c, Range{0, items}); });
    } else {
      emit(kernel_name, [=, function = std::move(function)](const RunContext &c) {
        c.for_parts(parts, [&](Range range) { function(c, range); });
      });
    }
  }
  void emit_kernel(std::string_view kernel_name, std::unique_ptr<Kernel> kernel);

  // ---- stages (image_stage.h) ----
  /// A buffer that a part of images uses these images of it alone.
  struct ImageUse {
    BufferId buffer = -1;
    int64_t bytes = 0;  ///< of each image
  };
  /// The parts in which a chain does `rows` images, so many elements being read and written for each by a stage: as
  /// many images as fit into a cache. None where there is too little to be worth while.
  std::optional<Parts> image_parts(int64_t rows, int64_t elements) const;
  /// Of the chain that may be joined; there must be one.
  const Parts &open_chain_parts() const { return list_.open_chain()->chain->parts(); }
  /// Does a stage that may be joined use the images of this value?
  bool is_in_chain(graph::ValueId image) const;
  void emit_stage(std::string_view kernel_name, std::span<const ImageUse> images, std::unique_ptr<ImageStage> stage);
  /// From begin(context), run(context, images, part) and end(context).
  template <typename Begin, typename Run, typename End>
  void emit_stage(std::string_view kernel_name, const Parts &parts, std::initializer_list<ImageUse> images, Begin begin,
                  Run run, End end) {
    emit_stage(
        kernel_name, std::span(images.begin(), images.size()),
        std::make_unique<FunctionStage<Begin, Run, End>>(parts, std::move(begin), std::move(run), std::move(end)));
  }
  void count_fallback() { ++list_.fallbacks; }
  void count_fallbacks(int32_t count) { list_.fallbacks += count; }

  /// Storage bytes and layout of the state entry that a value is read from or written to as a whole, or whose gradient
  /// it is where the entry is updated; null if none.
  const StateEntry *entry_of(graph::ValueId id) const;

 private:
  struct Copy {
    std::string layout;
    BufferId buffer;
  };
  struct Pin {
    Location location;
    std::string layout;
    int32_t step = -1;  ///< of the state_write, -1 for an output
    int64_t bytes = 0;
  };

  void plan_pins();
  void plan_pin(graph::ValueId id, Pin pin);
  bool is_read_from(graph::ValueId id, int32_t step) const;
  bool is_read_behind_mark(graph::ValueId id, int32_t written) const;
  bool overlaps_later_reads(const Pin &pin, graph::ValueId id, bool elementwise) const;
  base::Status lower_step(int32_t step);
  void lower_leaf(int32_t step);
  void lower_state_write(int32_t step);
  void lower_all_reduce(int32_t step);
  void copy_to_output(size_t index);
  void keep_state_results(graph::ValueId id);
  void plan_workspace();
  void finish_uses(const std::vector<int32_t> &steps);
  BufferId add_buffer(Location location, int64_t bytes);
  void touch(BufferId buffer, bool writes = true);
  Call new_call(std::string_view kernel_name);
  void set_primary(graph::ValueId id, std::string_view layout, BufferId buffer);
  BufferId overwritable(std::span<const graph::ValueId> candidates, std::string_view layout, int64_t bytes) const;
  /// Does a stage of the chain that may be joined use the buffer image by image?
  bool chain_uses(BufferId buffer) const;
  bool reorder_in_chain(const LoweredValue &image, BufferId from, std::string_view from_layout, BufferId to,
                        std::string_view to_layout);
  void reorder(graph::ValueId id, BufferId from, std::string_view from_layout, BufferId to, std::string_view to_layout);
  void copy(BufferId from, BufferId to, int64_t bytes, std::string_view kernel_name);

  const LoweredGraph &graph_;
  FusionPlan fusion_;
  ImageLayouts images_;
  AttentionViews views_;
  CallList list_;
  std::vector<std::vector<Copy>> copies_;            // by value; the first is the primary
  std::map<graph::ValueId, std::vector<Pin>> pins_;  // by value that a kernel computes
  std::vector<char> write_done_;                     // by step
  std::vector<char> output_done_;                    // by output
  std::vector<BufferUse> touched_;                   // by the call being put together
  std::string written_layout_;                       // by the call being put together
  std::vector<graph::ValueId> entry_reads_;          // values of state_read nodes
  int32_t step_ = 0;                                 // being lowered
  std::vector<int32_t> group_steps_;                 // nodes being lowered together
  base::Status status_;
};

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_LOWER_LOWERING_H_
