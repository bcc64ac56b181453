// SPDX-License-Identifier: Apache-2.0
//
// Ops in routine form against a second computation, written from the definition pixel by pixel in double. Every op that
// has no program form must be among those tested here or in the test that `tested_elsewhere` names.
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "graph/op_registry.h"
#include "routine_runs.h"
#include "sample_data.h"

namespace routine_ops_test {

using namespace tutti::impl;
using namespace tutti::testing;
using graph::Attributes;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;
using Ints = std::vector<int64_t>;

namespace {

std::set<std::string, std::less<>> tested;

const std::map<std::string, std::string, std::less<>> kTestedElsewhere = {
    {"decode_jpeg", "jpeg_test.cc"},
    {"decode_png", "image_golden_test.cc"},
    {"decode_image", "image_golden_test.cc"},
    {"image_size", "image_golden_test.cc"},
    {"crop", "image_golden_test.cc"},
    {"pad_image", "image_golden_test.cc"},
    {"flip", "image_golden_test.cc"},
    {"rotate90", "image_golden_test.cc"},
    {"rotate", "image_golden_test.cc"},
    {"convert_image_dtype", "image_golden_test.cc"},
    {"normalize_image", "image_golden_test.cc"},
    {"adjust_brightness", "image_golden_test.cc"},
    {"adjust_contrast", "image_golden_test.cc"},
    {"adjust_saturation", "image_golden_test.cc"},
    {"adjust_hue", "image_golden_test.cc"},
    {"random_crop", "image_ops_test.cc"},
    {"random_flip", "image_ops_test.cc"},
    {"random_rotate", "image_ops_test.cc"},
    {"random_resized_crop", "image_ops_test.cc"},
    {"random_crop_window", "image_ops_test.cc"},
    {"random_cutout", "image_ops_test.cc"},
    {"random_color_jitter", "image_ops_test.cc"},
    {"mixup", "image_ops_test.cc"},
    {"cutmix", "image_ops_test.cc"},
    {"bytes_length", "text_ops_test.cc"},
    {"bytes_substring", "text_ops_test.cc"},
    {"bytes_split", "text_ops_test.cc"},
    {"bytes_tokenize", "text_ops_test.cc"},
    {"bytes_lower", "text_ops_test.cc"},
    {"bytes_join", "text_ops_test.cc"},
    {"bytes_to_number", "text_ops_test.cc"},
    {"bytes_to_values", "text_ops_test.cc"},
    {"bytes_hash_bucket", "text_ops_test.cc"},
    {"lookup", "text_ops_test.cc"},
};

Tensor random_image(const Shape &shape, DType dtype, uint64_t seed) {
  Tensor image = Tensor::allocate(dtype, shape).value();
  base::RandomStream random(base::RandomKey::of(seed, 5, 6));
  for (int64_t i = 0; i < image.elements(); ++i) {
    if (dtype == DType::u8) {
      image.mutable_data_as<uint8_t>()[i] = static_cast<uint8_t>(random.next());
    } else {
      image.mutable_data_as<float>()[i] = base::uniform_float(random.next()) * 4 - 2;
    }
  }
  return image;
}

double value_at(const Tensor &tensor, int64_t index) {
  return tensor.dtype() == DType::u8 ? tensor.data_as<uint8_t>()[index] : tensor.data_as<float>()[index];
}

void compare(const Tensor &expected, const Tensor &actual, double tolerance, const std::string &what) {
  if (!(expected.shape() == actual.shape()) || expected.dtype() != actual.dtype()) {
    fail_msg("%s: %s, expected %s", what.c_str(), actual.describe().c_str(), expected.describe().c_str());
  }
  for (int64_t i = 0; i < expected.elements(); ++i) {
    const double difference = std::fabs(value_at(expected, i) - value_at(actual, i));
    if (!(difference <= tolerance)) {
      fail_msg("%s: element %ld is %g, expected %g", what.c_str(), static_cast<long>(i), value_at(actual, i),
               value_at(expected, i));
    }
  }
}

Attributes with(Attributes attributes, const std::string &name, graph::Attribute value) {
  attributes.insert_or_assign(name, std::move(value));
  return attributes;
}

// ---- resize ----

// The weight of input `index` for output `i`, before weights are made to sum to 1.
double plain_weight(const std::string &method, int64_t i, int64_t index, double scale) {
  const double centre = (static_cast<double>(i) + 0.5) * scale;
  if (method == "nearest") return std::floor(centre) == static_cast<double>(index) ? 1 : 0;
  if (method == "area") {
    return std::max(0.0, std::min(static_cast<double>(index + 1), static_cast<double>(i + 1) * scale) -
                             std::max(static_cast<double>(index), static_cast<double>(i) * scale));
  }
  const double width = method == "antialias" ? std::max(scale, 1.0) : 1;
  return std::max(0.0, 1 - std::fabs(static_cast<double>(index) + 0.5 - centre) / width);
}

std::vector<double> plain_weights(const std::string &method, int64_t i, int64_t input, int64_t output) {
  std::vector<double> weights;
  double sum = 0;
  for (int64_t index = 0; index < input; ++index) {
    weights.push_back(plain_weight(method, i, index, static_cast<double>(input) / static_cast<double>(output)));
    sum += weights.back();
  }
  for (double &weight : weights)
    weight /= sum;
  return weights;
}

Tensor plain_resize(const Tensor &x, int64_t height, int64_t width, const std::string &method, DType dtype) {
  const int64_t rows = x.shape()[0], from_height = x.shape()[1], from_width = x.shape()[2], channels = x.shape()[3];
  Tensor y = Tensor::allocate(dtype, Shape{rows, height, width, channels}).value();
  int64_t at = 0;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < height; ++i) {
      const std::vector<double> vertical = plain_weights(method, i, from_height, height);
      for (int64_t j = 0; j < width; ++j) {
        const std::vector<double> horizontal = plain_weights(method, j, from_width, width);
        for (int64_t c = 0; c < channels; ++c, ++at) {
          double sum = 0;
          for (int64_t v = 0; v < from_height; ++v) {
            for (int64_t u = 0; u < from_width; ++u) {
              sum += vertical[static_cast<size_t>(v)] * horizontal[static_cast<size_t>(u)] *
                     value_at(x, ((row * from_height + v) * from_width + u) * channels + c);
            }
          }
          if (dtype == DType::u8) y.mutable_data_as<uint8_t>()[at] = static_cast<uint8_t>(sum + 0.5);
          if (dtype == DType::f32) y.mutable_data_as<float>()[at] = static_cast<float>(sum);
        }
      }
    }
  }
  return y;
}

void resize_follows_its_definition(void **) {
  tested.insert("resize");
  const struct {
    int64_t height, width, to_height, to_width;
  } sizes[] = {{1, 1, 1, 1}, {1, 1, 3, 4},  {7, 5, 7, 5},   {7, 5, 1, 1},
               {6, 8, 3, 4}, {5, 9, 11, 4}, {13, 4, 5, 17}, {2, 31, 6, 7}};
  for (const auto &size : sizes) {
    for (const int64_t channels : {1, 3, 4}) {
      for (const std::string method : {"bilinear", "nearest", "area", "antialias"}) {
        Attributes attributes{{"size", Ints{size.to_height, size.to_width}},
                              {"method", method == "antialias" ? std::string("bilinear") : method},
                              {"antialias", method == "antialias"}};
        const std::string what = base::concat(method, " ", size.height, "x", size.width, " to ", size.to_height, "x",
                                              size.to_width, " of ", channels, " channels");
        for (const DType dtype : {DType::u8, DType::f32}) {
          const Tensor x = random_image(Shape{2, size.height, size.width, channels}, dtype, 9);
          const Tensor same = assert_ok_value(run_routine_op("resize", attributes, {x}));
          // Rounding may fall either way where the sum is a half.
          compare(plain_resize(x, size.to_height, size.to_width, method, dtype), same, dtype == DType::u8 ? 1 : 2e-6,
                  what);
          const Tensor as_float =
              assert_ok_value(run_routine_op("resize", with(attributes, "output", std::string("f32")), {x}));
          compare(plain_resize(x, size.to_height, size.to_width, method, DType::f32), as_float, 1e-4, what);
        }
      }
    }
  }
}

void every_routine_op_is_tested(void **) {
  for (const graph::OpDefinition &definition : graph::all_ops()) {
    if (definition.program || tested.count(definition.name) != 0) continue;
    if (kTestedElsewhere.count(std::string(definition.name)) != 0) continue;
    fail_msg("op '%s' has no case in tests/data", std::string(definition.name).c_str());
  }
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(resize_follows_its_definition),
    cmocka_unit_test(every_routine_op_is_tested),  // last
};
TEST_MAIN(tests)

}  // namespace routine_ops_test
