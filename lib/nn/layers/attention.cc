// SPDX-License-Identifier: Apache-2.0
#include "nn/layers/attention.h"

#include <string>

#include "base/text.h"
#include "nn/layers/positions.h"

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

class HeadsAttention {
 public:
  HeadsAttention(Expansion &e, const Attention &attention) : e_(e), b_(e.builder()), attention_(attention) {}

  Attended run() {
    const ValueId x = attention_.x;
    if (x == kNoValue || !is_sequence(e_, x, "x")) return {};
    if (e_.f64("dropout") >= 1) return fail("attribute 'dropout' must be below 1");
    channels_ = e_.last_dimension(x);
    if (channels_ == 0 || !read_heads() || !check_rotation() || !project_inputs()) return {};
    turn();
    if (attention_.past_keys != kNoValue && !add_past()) return {};
    const ValueId y = combine();
    return b_.ok() ? Attended{y, keys_, values_} : Attended();
  }

 private:
  Attended fail(std::string_view text) {
    e_.fail(text);
    return {};
  }

  /// False after an error.
  bool read_heads() {
    heads_.queries = e_.i64("heads");
    heads_.keys = e_.i64("key_heads") == 0 ? heads_.queries : e_.i64("key_heads");
    heads_.size = attention_.head_channels;
    if (heads_.size == 0 && channels_ % heads_.queries != 0) {
      e_.fail(base::concat(channels_, " channels cannot be divided among ", heads_.queries, " heads",
                           e_.has("head_channels") ? "; give attribute 'head_channels'" : ""));
      return false;
    }
    if (heads_.size == 0) heads_.size = channels_ / heads_.queries;
    if (heads_.queries % heads_.keys == 0) return true;
    e_.fail(
        base::concat("attribute 'key_heads' is ", heads_.keys, ", which does not divide ", heads_.queries, " heads"));
    return false;
  }

  bool is_turned() const { return e_.f64("rotary_base") > 0 && attention_.memory == kNoValue; }

  bool check_rotation() {
    if (!is_turned() || heads_.size % 2 == 0) return true;
    e_.fail(base::concat("attribute 'rotary_base' turns pairs of channels, and a head has ", heads_.size));
    return false;
  }

  bool project_inputs() {
    const int64_t of_queries = heads_.queries * heads_.size, of_keys = heads_.keys * heads_.size;
    ValueId from_x = kNoValue, from_memory = kNoValue;
    int64_t first_key = of_queries;
    if (attention_.memory != kNoValue) {
      if (!is_sequence(e_, attention_.memory, "a memory")) return false;
      const int64_t memory_channels = e_.last_dimension(attention_.memory);
      if (memory_channels == 0) return false;
      from_x = project(e_, "query", attention_.x, channels_, of_queries);
      from_memory = project(e_, "memory", attention_.memory, memory_channels, 2 * of_keys);
      first_key = 0;
    } else {
      from_x = from_memory = project(e_, "input", attention_.x, channels_, of_queries + 2 * of_keys);
    }
    if (!b_.ok()) return false;
    queries_ = heads_of(b_, from_x, 0, heads_.queries, heads_.size);
    keys_ = heads_of(b_, from_memory, first_key, heads_.keys, heads_.size);
    values_ = heads_of(b_, from_memory, first_key + of_keys, heads_.keys, heads_.size);
    return b_.ok();
  }

  /// Queries and keys by their positions, which go on behind those of the past.
  void turn() {
    if (!is_turned()) return;
    const bool has_past = attention_.past_keys != kNoValue && b_.rank(attention_.past_keys) == 4;
    const graph::Dim first = has_past ? b_.dims(attention_.past_keys)[1] : graph::Dim(0);
    const ValueId positions = positions_from(b_, first, b_.dims(attention_.x)[1]);
    const Rotation rotation{.base = e_.f64("rotary_base"), .is_adjacent = e_.text("rotary_pairs") == "adjacent"};
    queries_ = rotated(b_, queries_, positions, rotation);
    keys_ = rotated(b_, keys_, positions, rotation);
  }

  bool add_past() {
    for (const ValueId past : {attention_.past_keys, attention_.past_values}) {
      graph::Dims expected = b_.dims(keys_);
      if (b_.rank(past) == 4) expected[1] = b_.dims(past)[1];
      if (b_.dims(past) == expected) continue;
      e_.fail(base::concat("past keys or values are ", graph::to_string(b_.dims(past)),
                           ", expected [batch, past length, key heads, channels of a head] as in ",
                           graph::to_string(expected)));
      return false;
    }
    // Lengths of both that only the data tells are one.
    if (b_.dims(attention_.past_keys) != b_.dims(attention_.past_values))
      b_.add(attention_.past_keys, attention_.past_values);
    keys_ = b_.concat({attention_.past_keys, keys_}, 1);
    values_ = b_.concat({attention_.past_values, values_}, 1);
    return b_.ok();
  }

  ValueId combine() {
    const ValueId lengths =
        attention_.lengths != kNoValue ? lengths_within(e_, attention_.lengths, b_.dims(keys_)[1]) : kNoValue;
    if (!b_.ok()) return kNoValue;
    const double rate = e_.training() ? e_.f64("dropout") : 0;
    graph::Attributes attributes{{"causal", attention_.is_causal}};
    if (rate > 0) attributes["rate"] = rate;
    const auto seen =
        b_.op_n(rate > 0 ? "dropout_attention" : "attention", {queries_, keys_, values_, lengths}, attributes, 2);
    if (!b_.ok()) return kNoValue;
    const graph::Dims dims = b_.dims(attention_.x);
    const int64_t units = attention_.channels == 0 ? channels_ : attention_.channels;
    const int64_t of_queries = heads_.queries * heads_.size;
    return project(e_, "output", b_.reshape(seen[0], {dims[0], dims[1], of_queries}), of_queries, units);
  }

  Expansion &e_;
  GraphBuilder &b_;
  const Attention &attention_;
  int64_t channels_ = 0;
  Heads heads_;
  ValueId queries_ = kNoValue, keys_ = kNoValue, values_ = kNoValue;
};

}  // namespace

Attended attend(Expansion &e, const Attention &attention) { return HeadsAttention(e, attention).run(); }

ValueId expand_layer_multi_head_attention(Expansion &e) {
  const LayerScope scope(e.builder(), "multi_head_attention");
  return attend(e, {.x = e.input(0),
                    .memory = e.input(1),
                    .lengths = e.input(2),
                    .is_causal = e.flag("causal"),
                    .head_channels = e.i64("head_channels"),
                    .channels = e.i64("channels")})
      .y;
}

}  // namespace tutti::impl::nn
