// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/kernels/reduced_trees.h"

#include <algorithm>
#include <cmath>

#include "backend/gpu/device/device_elementwise.h"
#include "backend/gpu/device/reduction_layout.h"
#include "backend/gpu/generated/generated_kernels.h"
#include "backend/gpu/kernel/program_maker.h"
#include "backend/gpu/kernels/elementwise.h"

namespace tutti::impl::backend::gpu {

using base::Result;
using base::Status;
using tensor::DType;

namespace {

/// Elements that a thread takes together: what launch_reduce takes for the same elements in memory.
int32_t width_of(const ReduceWork &work) {
  const int32_t packs = work.dtype == DType::f32 ? 4 : 8;
  return takes_packs(work) && work.contiguous % packs == 0 ? packs : 1;
}

ReductionLayout layout_of(const ReduceWork &work) {
  const int64_t width = width_of(work);
  return work.columns == 1 ? line_layout(work.outer, work.rows, width, work.order)
                           : columns_reduced(work.outer, work.rows, work.columns, width, work.order);
}

ReductionText text_of(const ReduceWork &work) {
  const char *const op = work.op == ReduceOp::max ? "Max" : work.op == ReduceOp::min ? "Min" : "Sum";
  return {op, work.columns == 1, work.result, width_of(work)};
}

/// The first pass, and the second if there is one.
gpuError_t launch_reduced(const GeneratedProgram &generated, const ElementPlaces &places, const ReduceWork &work,
                          gpuStream_t stream) {
  const ReductionLayout &layout = work.layout;
  GeneratedOperands operands{};
  operands.places = places;
  operands.places.output = work.y;
  operands.partials = layout.splits == 1 ? nullptr : work.scratch;
  operands.layout = layout;
  operands.outer_walk = work.outer_walk;
  operands.row_walk = work.row_walk;
  operands.divisor = work.divisor;
  operands.start = work.op == ReduceOp::max ? -HUGE_VAL : work.op == ReduceOp::min ? HUGE_VAL : 0;
  const bool is_lines = work.columns == 1;
  const int64_t blocks = is_lines ? divide_up(layout.outer * layout.splits, kBlockThreads / layout.lanes)
                                  : layout.outer * layout.splits * layout.tiles;
  const size_t shared_bytes = is_lines ? 0 : sizeof(float) * static_cast<size_t>(generated.text.width) * kBlockThreads;
  const gpuError_t error =
      generated.kernel->launch(operands, static_cast<unsigned>(std::min(blocks, kMostBlocks)), shared_bytes, stream);
  return error != gpuSuccess || layout.splits == 1 ? error : launch_reduce_partials(work, stream);
}

}  // namespace

Result<KernelCall> make_reduced_tree_call(const LoweredGraph &lowered, std::span<const int32_t> steps,
                                          KernelBatch &batch, int64_t *scratch_bytes) {
  const graph::Node &root = lowered.step(steps.back());
  TUTTI_ASSIGN(TreeProgram tree, make_tree_program(lowered, steps.first(steps.size() - 1), ProgramResult::consumed));
  TUTTI_ASSIGN(ReduceWork work, reduce_work_of(lowered, root));
  work.layout = layout_of(work);
  const ReductionText text = text_of(work);
  const GeneratedProgramRef generated = batch.add(tree.program, &text);
  const int64_t tree_bytes = (lowered.value(root.inputs[0]).bytes + 255) / 256 * 256;
  *scratch_bytes = tree_bytes + reduce_scratch_bytes(work);
  KernelCall call;
  call.inputs = tree.inputs;
  call.outputs = root.outputs;
  call.trace_name = root.scope_name.empty() ? root.op : root.scope_name;
  call.kernel_name = base::concat("reduction(", steps.size(), ")");
  call.generated = generated;
  call.kernel = [program = tree.program, work, generated, tree_bytes](const Frame &frame) -> Status {
    const ElementPlaces places = place_program(program, frame, frame.scratch());
    ReduceWork issued = work;
    issued.x = frame.scratch();
    issued.y = frame.output(0);
    issued.scratch = frame.scratch_as<char>(tree_bytes);
    if (can_launch(generated, program, places))
      return status_of(launch_reduced(*generated, places, issued, frame.stream()), "launching a generated reduction");
    TUTTI_TRY(status_of(launch_elements(program, places, frame.stream()), "launching elementwise work"));
    return status_of(launch_reduce(issued, frame.stream()), "launching a reduction");
  };
  return call;
}

}  // namespace tutti::impl::backend::gpu
