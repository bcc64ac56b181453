// SPDX-License-Identifier: Apache-2.0
#include "nn/layers/windows.h"

#include <array>
#include <string>
#include <utility>

#include "base/text.h"

namespace tutti::impl::nn {

std::vector<int64_t> along_axes(const Expansion &e, std::string_view one, std::string_view each, size_t axes) {
  std::vector<int64_t> numbers(axes, e.i64(one));
  for (size_t i = 0; axes > 1 && i < axes; ++i)
    numbers[i] = e.ints(each)[i] != 0 ? e.ints(each)[i] : numbers[i];
  return numbers;
}

bool has_axes(Expansion &e, ValueId x, size_t axes) {
  static constexpr std::array<std::string_view, 3> kExpected = {"sequences [batch, length, channels]",
                                                                "images [batch, height, width, channels]",
                                                                "volumes [batch, depth, height, width, channels]"};
  if (x == kNoValue) return false;
  const graph::Dims &dims = e.builder().dims(x);
  if (dims.size() == axes + 2) return true;
  e.fail(base::concat("expected ", kExpected[axes - 1], ", got ", graph::to_string(dims)));
  return false;
}

graph::Attribute for_axes(const std::vector<int64_t> &numbers) {
  if (numbers.size() == 1) return numbers.front();
  return numbers;
}

ValueId on_axes(Expansion &e, std::string_view stem, size_t axes, const std::vector<ValueId> &inputs,
                graph::Attributes attributes) {
  const std::string name = base::concat(stem, axes, "d");
  if (find_definition(name, 1) == nullptr) return e.builder().op(name, inputs, std::move(attributes));
  return expand(e.builder(), name, 1, inputs, std::move(attributes), {.training = e.training()});
}

}  // namespace tutti::impl::nn
