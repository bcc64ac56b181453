// SPDX-License-Identifier: Apache-2.0
//
// Attention in several heads as layers and blocks have it. Of the entry that is expanded it takes the attributes of its
// variables (use_bias, kernel_initializer, bias_initializer, ...), heads, key_heads, dropout and those of rotary
// positions.
#ifndef TUTTI_NN_LAYERS_ATTENTION_H_
#define TUTTI_NN_LAYERS_ATTENTION_H_

#include <cstdint>

#include "nn/expansion.h"

namespace tutti::impl::nn {

struct Attention {
  ValueId x = kNoValue;            ///< [batch, length, channels]
  ValueId memory = kNoValue;       ///< keys and values are made of it, instead of x
  ValueId lengths = kNoValue;      ///< valid positions of what is attended to; all where there are none
  ValueId past_keys = kNoValue;    ///< of positions before x, [batch, past length, key heads, channels of a head]
  ValueId past_values = kNoValue;  ///< likewise; both or none, and not with a memory
  bool is_causal = false;
  int64_t head_channels = 0;  ///< 0 = channels of x / heads
  int64_t channels = 0;       ///< of the result; 0 = those of x
};

struct Attended {
  ValueId y = kNoValue;
  ValueId keys = kNoValue, values = kNoValue;  ///< those of the past in front
};

/// Its variables are in the present scope. After an error there is no y.
Attended attend(Expansion &e, const Attention &attention);

}  // namespace tutti::impl::nn

#endif  // TUTTI_NN_LAYERS_ATTENTION_H_
