// SPDX-License-Identifier: Apache-2.0
//
// Queries, keys and values that attention reads where they were made. Networks make them by one product, a row of
// channels for each position, and take them apart: slices along the channels, seen as heads. Where attention alone
// reads such a slice, it need not be copied: its heads lie in the rows of the product.
//
//   const AttentionViews views = AttentionViews::find(lowered, 16, [](const Node &attention) { return true; });
//   if (const HeadView *view = views.of(q))        // [rows, length, heads, channels] as it lies in view->source:
//     element (r, i, h, c) is at view->offset + (r * length + i) * view->pitch + h * channels + c
//
// Threads: immutable.
#ifndef TUTTI_BACKEND_ATTENTION_VIEWS_H_
#define TUTTI_BACKEND_ATTENTION_VIEWS_H_

#include <cstdint>
#include <functional>
#include <map>

#include "backend/lowered_graph.h"

namespace tutti::impl::backend {

/// In elements of the source.
struct HeadView {
  graph::ValueId source = graph::kNoValue;  ///< row-major [rows, length, channels]; computed, no leaf
  int64_t offset = 0;
  int64_t pitch = 0;  ///< from a position to the next
};

class AttentionViews {
 public:
  AttentionViews() = default;
  /// `reads_views`: whether the kernel of an attention, or of its gradient, does. `alignment_bytes`: what offsets and
  /// pitches are multiples of.
  static AttentionViews find(const LoweredGraph &lowered, int64_t alignment_bytes,
                             const std::function<bool(const graph::Node &)> &reads_views);

  /// Of a slice that is not copied, or of its heads; null for values that have memory of their own.
  const HeadView *of(graph::ValueId value) const {
    const auto found = views_.find(value);
    return found == views_.end() ? nullptr : &found->second;
  }
  bool empty() const { return views_.empty(); }

 private:
  std::map<graph::ValueId, HeadView> views_;
};

}  // namespace tutti::impl::backend

#endif  // TUTTI_BACKEND_ATTENTION_VIEWS_H_
