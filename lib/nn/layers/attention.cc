// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "nn/expansion.h"

namespace tutti::impl::nn {
namespace {

/// Channels of a head, heads of queries and of keys.
struct Heads {
  int64_t size = 0, queries = 0, keys = 0;
};

/// x · kernel + bias over the last dimension.
ValueId project(Expansion &e, const std::string &name, ValueId x, int64_t channels, int64_t units) {
  GraphBuilder &b = e.builder();
  const ValueId y = b.matmul(x, e.kernel(name + "_kernel", x, {channels, units}));
  return e.flag("use_bias") ? b.add(y, e.weight(name + "_bias", x, {units}, e.text("bias_initializer"))) : y;
}

/// `heads` heads of y [batch, length, ...] from channel `first` on: [batch, length, heads, size].
ValueId heads_of(GraphBuilder &b, ValueId y, int64_t first, int64_t heads, int64_t size) {
  const graph::Dims dims = b.dims(y);
  const ValueId part = b.slice(y, {0, 0, first}, {dims[0], dims[1], heads * size});
  return b.reshape(part, {dims[0], dims[1], heads, size});
}

bool is_sequence(Expansion &e, ValueId x, const char *what) {
  const size_t rank = e.builder().dims(x).size();
  if (rank == 3) return true;
  e.fail(base::concat("expected ", what, " of rank 3, [batch, length, channels], got rank ", rank));
  return false;
}

/// False after an error.
bool read_heads(Expansion &e, int64_t channels, Heads &heads) {
  heads.queries = e.i64("heads");
  heads.keys = e.i64("key_heads") == 0 ? heads.queries : e.i64("key_heads");
  heads.size = e.i64("head_channels");
  if (heads.size == 0 && channels % heads.queries != 0) {
    e.fail(base::concat(channels, " channels cannot be divided among ", heads.queries,
                        " heads; give attribute 'head_channels'"));
    return false;
  }
  if (heads.size == 0) heads.size = channels / heads.queries;
  if (heads.queries % heads.keys == 0) return true;
  e.fail(base::concat("attribute 'key_heads' is ", heads.keys, ", which does not divide ", heads.queries, " heads"));
  return false;
}

}  // namespace

ValueId expand_layer_multi_head_attention(Expansion &e) {
  GraphBuilder &b = e.builder();
  const LayerScope scope(b, "multi_head_attention");
  const ValueId x = e.input(0);
  if (x == kNoValue || !is_sequence(e, x, "x")) return kNoValue;
  if (e.f64("dropout") >= 1) return e.fail("attribute 'dropout' must be below 1");
  const int64_t channels = e.last_dimension(x);
  Heads heads;
  if (channels == 0 || !read_heads(e, channels, heads)) return kNoValue;
  const int64_t of_queries = heads.queries * heads.size, of_keys = heads.keys * heads.size;
  ValueId from_x = kNoValue, from_memory = kNoValue;
  int64_t first_key = of_queries;
  if (e.has_input(1)) {
    if (!is_sequence(e, e.input(1), "a memory")) return kNoValue;
    const int64_t memory_channels = e.last_dimension(e.input(1));
    if (memory_channels == 0) return kNoValue;
    from_x = project(e, "query", x, channels, of_queries);
    from_memory = project(e, "memory", e.input(1), memory_channels, 2 * of_keys);
    first_key = 0;
  } else {
    from_x = from_memory = project(e, "input", x, channels, of_queries + 2 * of_keys);
  }
  if (!b.ok()) return kNoValue;
  const ValueId queries = heads_of(b, from_x, 0, heads.queries, heads.size);
  const ValueId keys = heads_of(b, from_memory, first_key, heads.keys, heads.size);
  const ValueId values = heads_of(b, from_memory, first_key + of_keys, heads.keys, heads.size);
  const ValueId lengths = e.has_input(2) ? b.cast(e.input(2), tensor::DType::i32) : kNoValue;
  const double rate = e.training() ? e.f64("dropout") : 0;
  graph::Attributes attributes{{"causal", e.flag("causal")}};
  if (rate > 0) attributes["rate"] = rate;
  const auto seen =
      b.op_n(rate > 0 ? "dropout_attention" : "attention", {queries, keys, values, lengths}, attributes, 2);
  if (!b.ok()) return kNoValue;
  const graph::Dims dims = b.dims(x);
  const int64_t units = e.i64("channels") == 0 ? channels : e.i64("channels");
  return project(e, "output", b.reshape(seen[0], {dims[0], dims[1], of_queries}), of_queries, units);
}

}  // namespace tutti::impl::nn
