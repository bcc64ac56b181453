// SPDX-License-Identifier: Apache-2.0
//
// Running sums and products, and the gradient of the latter.
#include <algorithm>

#include "backend/cpu/kernel/running.h"
#include "backend/cpu/lower/lower.h"
#include "backend/running_lines.h"

namespace tutti::impl::backend::cpu {

using graph::Node;

bool lower_running(Lowering &l, const Node &node) {
  const base::Result<RunningLines> lines = RunningLines::of(l.graph(), node);
  if (!lines.ok() || !l.is_f32(node.inputs[0])) return false;
  const int64_t groups = running_groups(*lines);
  const bool is_product = node.op == "running_product";
  const BufferId x = l.read(node.inputs[0]);
  const BufferId y = l.write(node.outputs[0], "", {node.inputs[0]});
  const int64_t elements = l.value(node.inputs[0]).elements / std::max<int64_t>(groups, 1);
  l.emit_ranges("simd:" + node.op, groups, grain_of(elements), [=, shape = *lines](const RunContext &c, Range r) {
    run_lines(shape, is_product, r.begin, r.end, c.in(x), c.out(y));
  });
  return true;
}

bool lower_running_product_gradient(Lowering &l, const Node &node) {
  const base::Result<RunningLines> lines = RunningLines::of(l.graph(), node);
  if (!lines.ok() || !l.is_f32(node.inputs[0])) return false;
  const BufferId dy = l.read(node.inputs[0]), x = l.read(node.inputs[1]);
  const BufferId dx = l.write(node.outputs[0]);
  const int64_t count = lines->length > 0 ? lines->lines() : 0, grain = grain_of(lines->length);
  const int64_t threads = Parts(count, grain, l.threads()).threads();
  const BufferId scratch = l.scratch(threads * lines->length * static_cast<int64_t>(sizeof(double)));
  l.emit_ranges("simd:running_product_gradient", count, grain,
                [=, shape = *lines](const RunContext &c, Range r, int32_t thread) {
                  double *const own = static_cast<double *>(c.buffers[scratch]) + thread * shape.length;
                  run_product_gradient(shape, r.begin, r.end, c.in(dy), c.in(x), c.out(dx), own);
                });
  return true;
}

}  // namespace tutti::impl::backend::cpu
