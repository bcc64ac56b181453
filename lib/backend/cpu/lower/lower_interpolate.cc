// SPDX-License-Identifier: Apache-2.0
//
// Images of another size, a row at a time.
#include "backend/cpu/lower/lower.h"
#include "backend/cpu/simd/simd_interpolate.h"
#include "graph/ops/interpolation.h"

namespace tutti::impl::backend::cpu {

bool lower_interpolate2d(Lowering &l, const graph::Node &node) {
  if (!l.is_f32(node.inputs[0])) return false;
  const std::vector<int64_t> &from = l.value(node.inputs[0]).dims, &to = l.value(node.outputs[0]).dims;
  const InterpolatedRow row{graph::ops::interpolated_axis(from[2], to[2]), from[2], from[3]};
  const int64_t row_elements = from[2] * from[3], to_elements = to[2] * to[3];
  const BufferId x = l.read(node.inputs[0]), y = l.write(node.outputs[0]);
  const int64_t items = to_elements == 0 ? 0 : to[0] * to[1], grain = grain_of(to_elements);
  const int64_t threads = Parts(items, grain, l.threads()).threads();
  const BufferId scratch = l.scratch(threads * row_elements * static_cast<int64_t>(sizeof(float)));
  l.emit_ranges("simd:interpolate2d", items, grain,
                [=, rows = graph::ops::interpolated_axis(from[1], to[1]), height = from[1]](const RunContext &c,
                                                                                            Range r, int32_t thread) {
                  const auto count = static_cast<int64_t>(rows.size());
                  for (int64_t i = r.begin; i < r.end; ++i) {
                    const auto &element = rows[static_cast<size_t>(i % count)];
                    const float *const image = c.in(x) + i / count * height * row_elements;
                    interpolate_row(row, image + element.low * row_elements, image + element.high * row_elements,
                                    static_cast<float>(element.share), c.out(scratch) + thread * row_elements,
                                    c.out(y) + i * to_elements);
                  }
                });
  return true;
}

}  // namespace tutti::impl::backend::cpu
