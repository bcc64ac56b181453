// SPDX-License-Identifier: Apache-2.0
//
// What a model function is asked to build. The numbers are part of the C ABI.
#ifndef TUTTI_ESTIMATOR_MODE_H_
#define TUTTI_ESTIMATOR_MODE_H_

#include <cstdint>
#include <string_view>

namespace tutti::impl::estimator {

enum class Mode : int32_t { train = 1, evaluate = 2, predict = 3 };

/// "TRAIN", "EVAL", "PREDICT".
constexpr std::string_view name(Mode mode) {
  switch (mode) {
    case Mode::train:
      return "TRAIN";
    case Mode::evaluate:
      return "EVAL";
    case Mode::predict:
      return "PREDICT";
  }
  return "UNKNOWN";
}

}  // namespace tutti::impl::estimator

#endif  // TUTTI_ESTIMATOR_MODE_H_
