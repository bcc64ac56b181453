// SPDX-License-Identifier: Apache-2.0
//
// Blocks of transformers: parts, each of which adds to x what it makes of it, with a normalization behind or in front.
#include <functional>
#include <string>
#include <string_view>

#include "base/text.h"
#include "nn/expansion.h"
#include "nn/layers/attention.h"

namespace tutti::impl::nn {
namespace {

class Block {
 public:
  explicit Block(Expansion &e) : e_(e), b_(e.builder()) {}

  /// False after an error.
  bool check() {
    const ValueId x = e_.input(0);
    if (x == kNoValue) return false;
    if (b_.rank(x) != 3) {
      e_.fail(base::concat("expected x of rank 3, [batch, length, channels], got ", graph::to_string(b_.dims(x))));
      return false;
    }
    if (e_.f64("dropout") >= 1) e_.fail("attribute 'dropout' must be below 1");
    channels_ = e_.last_dimension(x);
    return channels_ != 0 && b_.ok();
  }

  ValueId add_part(ValueId x, std::string_view norm, const std::function<ValueId(ValueId x)> &part) {
    if (!b_.ok()) return kNoValue;
    const bool is_before = e_.flag("pre_norm");
    const ValueId sum = b_.add(x, drop(part(is_before ? normalize(x, norm) : x)));
    return is_before ? sum : normalize(sum, norm);
  }

  Attended attend_in(std::string_view name, const Attention &attention) {
    const LayerScope scope(b_, name);
    return attend(e_, attention);
  }

  ValueId add_hidden(ValueId x) {
    return add_part(x, "output_norm", [&](ValueId from) {
      const int64_t hidden = e_.i64("hidden");
      const ValueId units = drop(e_.activate(dense(from, "hidden", channels_, hidden)));
      return dense(units, "output", hidden, channels_);
    });
  }

 private:
  ValueId drop(ValueId x) {
    const double rate = e_.f64("dropout");
    return e_.training() && rate > 0 ? b_.op("dropout", {x}, {{"rate", rate}}) : x;
  }

  ValueId dense(ValueId x, std::string_view name, int64_t inputs, int64_t units) {
    const LayerScope scope(b_, name);
    const ValueId y = b_.matmul(x, e_.kernel("kernel", x, {inputs, units}));
    return e_.flag("use_bias") ? b_.add(y, e_.weight("bias", x, {units}, e_.text("bias_initializer"))) : y;
  }

  ValueId normalize(ValueId x, std::string_view name) {
    const LayerScope scope(b_, name);
    const ValueId scale = e_.weight("scale", x, {channels_}, "ones");
    if (!b_.ok()) return kNoValue;
    const ValueId offset = e_.flag("use_bias") ? e_.weight("offset", x, {channels_}, "zeros")
                                               : b_.broadcast_to(b_.constant(0, b_.dtype(x)), {channels_});
    return b_.op_n("layer_norm", {x, scale, offset}, {{"epsilon", e_.f64("epsilon")}}, 3)[0];
  }

  Expansion &e_;
  GraphBuilder &b_;
  int64_t channels_ = 0;
};

}  // namespace

ValueId expand_layer_transformer_encoder(Expansion &e) {
  const LayerScope scope(e.builder(), "transformer_encoder");
  Block block(e);
  if (!block.check()) return kNoValue;
  const ValueId x = block.add_part(e.input(0), "attention_norm", [&](ValueId from) {
    return block.attend_in("self_attention", {.x = from, .lengths = e.input(1), .is_causal = e.flag("causal")}).y;
  });
  return block.add_hidden(x);
}

ValueId expand_layer_transformer_decoder(Expansion &e) {
  const LayerScope scope(e.builder(), "transformer_decoder");
  constexpr size_t kMemory = 1, kLengths = 2, kMemoryLengths = 3, kPastKeys = 4, kPastValues = 5;
  Block block(e);
  if (!block.check()) return kNoValue;
  if (e.has_input(kPastKeys) != e.has_input(kPastValues))
    return e.fail("expected both past_keys and past_values, or none of them");
  if (e.has_input(kMemoryLengths) && !e.has_input(kMemory)) return e.fail("there are memory_lengths, but no memory");
  Attended own;
  ValueId x = block.add_part(e.input(0), "attention_norm", [&](ValueId from) {
    own = block.attend_in("self_attention", {.x = from,
                                             .lengths = e.input(kLengths),
                                             .past_keys = e.input(kPastKeys),
                                             .past_values = e.input(kPastValues),
                                             .is_causal = true});
    return own.y;
  });
  if (e.has_input(kMemory)) {
    x = block.add_part(x, "cross_norm", [&](ValueId from) {
      return block
          .attend_in("cross_attention", {.x = from, .memory = e.input(kMemory), .lengths = e.input(kMemoryLengths)})
          .y;
    });
  }
  const ValueId y = block.add_hidden(x);
  e.give(own.keys);
  e.give(own.values);
  return y;
}

}  // namespace tutti::impl::nn
