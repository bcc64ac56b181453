// SPDX-License-Identifier: Apache-2.0
//
// Image ops that draw random numbers, or that image_golden_test.cc cannot ask TensorFlow for: what they give is found
// again by other ops, by searching, or by drawing the same numbers.
#include <cmath>
#include <cstdint>
#include <set>

#include "base/random/philox.h"
#include "routine_runs.h"

namespace image_ops_test {

using namespace tutti::impl;
using namespace tutti::testing;
using data::GraphScalars;
using graph::Attributes;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;
using Ints = std::vector<int64_t>;
using Doubles = std::vector<double>;

namespace {

constexpr int64_t kKey = 5;

Tensor random_image(const Shape &shape, DType dtype, uint64_t seed) {
  Tensor image = Tensor::allocate(dtype, shape).value();
  base::RandomStream random(base::RandomKey::of(seed, 5, 6));
  for (int64_t i = 0; i < image.elements(); ++i) {
    if (dtype == DType::u8) image.mutable_data_as<uint8_t>()[i] = static_cast<uint8_t>(random.next());
    if (dtype == DType::f32) image.mutable_data_as<float>()[i] = base::uniform_float(random.next());
  }
  return image;
}

Tensor run(const std::string &op, const Attributes &attributes, const std::vector<Tensor> &inputs, int64_t row = 0,
           int64_t epoch = 0) {
  return assert_ok_value(run_routine_op(op, attributes, inputs, {7, epoch, row, 1}));
}

// The stream that row `row` draws from in run().
base::RandomStream stream_of(int64_t row) {
  return base::RandomStream(base::RandomKey::of(7, kKey, 0).fold(static_cast<uint64_t>(row), 0));
}

double drawn(base::RandomStream &stream) { return static_cast<double>(base::uniform_float(stream.next())); }

bool are_equal(const Tensor &a, const Tensor &b) { return tensor::identical(a, b); }

Ints numbers_in(const Tensor &tensor) {
  return {tensor.data_as<int64_t>(), tensor.data_as<int64_t>() + tensor.elements()};
}

void random_ops_are_keyed_by_element(void **) {
  const struct {
    const char *op;
    Attributes attributes;
  } cases[] = {
      {"random_crop", {{"size", Ints{5, 4}}, {"padding", int64_t{2}}}},
      {"random_flip", {}},
      {"random_flip", {{"direction", std::string("vertical")}}},
      {"random_rotate", {{"degrees", 45.0}}},
      {"random_resized_crop", {{"size", Ints{5, 4}}, {"flip_probability", 0.5}}},
      {"random_cutout", {{"size", Ints{3, 3}}}},
      {"random_color_jitter", {{"brightness", 0.3}, {"contrast", 0.3}, {"saturation", 0.3}, {"hue", 0.1}}},
  };
  const Tensor images = random_image({6, 8, 9, 3}, DType::u8, 1);
  for (const auto &one : cases) {
    // Rows together or alone, as rows or as single images.
    const Tensor together = run(one.op, one.attributes, {images}, 40);
    std::set<std::string> seen;
    for (int64_t row = 0; row < 6; ++row) {
      const Tensor rows = assert_ok_value(images.slice_rows(row, row + 1));
      const Tensor alone = assert_ok_value(images.row(row));
      const Tensor expected = assert_ok_value(together.row(row));
      assert_true(are_equal(assert_ok_value(run(one.op, one.attributes, {rows}, 40 + row).row(0)), expected));
      assert_true(are_equal(run(one.op, one.attributes, {alone}, 40 + row), expected));
      // Many elements and epochs do not all draw the same.
      for (int64_t epoch = 0; epoch < 8; ++epoch) {
        const Tensor other = run(one.op, one.attributes, {rows}, row, epoch);
        seen.insert(std::string(other.data_as<char>(), static_cast<size_t>(other.size_bytes())));
      }
    }
    assert_true(seen.size() > 10);
  }
}

void random_crops_are_parts_anywhere(void **) {
  const Tensor image = random_image({6, 7, 3}, DType::u8, 2);
  const Tensor padded = run("pad_image", {{"pads", Ints{1, 1, 1, 1}}, {"value", 9.0}}, {image});
  std::set<std::pair<int64_t, int64_t>> places;
  for (int64_t element = 0; element < 400; ++element) {
    const Tensor part =
        run("random_crop", {{"size", Ints{5, 6}}, {"padding", int64_t{1}}, {"value", 9.0}}, {image}, element);
    for (int64_t top = 0; top <= 3; ++top) {
      for (int64_t left = 0; left <= 3; ++left) {
        const Tensor window = run("crop", {{"size", Ints{5, 6}}, {"offset", Ints{top, left}}}, {padded});
        if (are_equal(window, part)) places.emplace(top, left);
      }
    }
  }
  assert_int_equal(places.size(), 16);
  assert_error_contains(run_routine(
                            [](graph::GraphBuilder &b, const auto &x) {
                              return b.op("random_crop", {b.op("crop", {x[0], x[1]})}, {{"size", Ints{5, 6}}});
                            },
                            {image, Tensor::from_values<int64_t>({4}, {0, 0, 4, 4}).value()}),
                        "has no part of 5 x 6");
}

void random_flips_happen_as_often_as_said(void **) {
  const Tensor image = random_image({3, 4, 1}, DType::f32, 3);
  for (const char *direction : {"horizontal", "vertical"}) {
    const Tensor flipped = run("flip", {{"direction", std::string(direction)}}, {image});
    for (const double probability : {0.0, 0.3, 1.0}) {
      int flips = 0;
      for (int64_t element = 0; element < 1000; ++element) {
        const Tensor y =
            run("random_flip", {{"direction", std::string(direction)}, {"probability", probability}}, {image}, element);
        assert_true(are_equal(y, flipped) || are_equal(y, image));
        flips += are_equal(y, flipped) ? 1 : 0;
      }
      assert_true(std::fabs(flips - 1000 * probability) <= 50 * (probability > 0 && probability < 1 ? 1 : 0));
    }
  }
}

// Where a pixel's values are its column and its row, those of a turned image tell the angle.
void random_rotations_are_by_angles_within_the_bound(void **) {
  constexpr int64_t kSide = 9, kMiddle = kSide / 2;
  Tensor image = Tensor::allocate(DType::f32, {kSide, kSide, 2}).value();
  for (int64_t i = 0; i < kSide * kSide; ++i) {
    image.mutable_data_as<float>()[2 * i] = static_cast<float>(i % kSide);
    image.mutable_data_as<float>()[2 * i + 1] = static_cast<float>(i / kSide);
  }
  constexpr int kElements = 400;
  constexpr double kBound = 40;
  double least = 0, most = 0, sum = 0;
  for (int64_t element = 0; element < kElements; ++element) {
    const Tensor y = run("random_rotate", {{"degrees", kBound}}, {image}, element);
    const float *const middle = y.data_as<float>() + 2 * (kMiddle * kSide + kMiddle), *const right = middle + 2;
    const double cosine = right[0] - middle[0], sine = right[1] - middle[1];
    assert_true(std::fabs(cosine * cosine + sine * sine - 1) < 1e-4);
    const double degrees = std::atan2(sine, cosine) * 180 / M_PI;
    assert_true(tensor::identical(y, run("random_rotate", {{"degrees", kBound}}, {image}, element)));
    least = std::min(least, degrees);
    most = std::max(most, degrees);
    sum += degrees;
  }
  assert_true(least >= -kBound && least < -0.9 * kBound && most <= kBound && most > 0.9 * kBound);
  assert_true(std::fabs(sum / kElements) < 4 * kBound / std::sqrt(3.0 * kElements));
}

void quarter_turns_move_pixels(void **) {
  for (const DType dtype : {DType::u8, DType::f32}) {
    const Tensor image = random_image({2, 6, 6, 3}, dtype, 8);
    for (const char *method : {"bilinear", "nearest"}) {
      for (int64_t turns = -5; turns <= 5; ++turns) {
        const Attributes attributes{{"degrees", 90.0 * static_cast<double>(turns)}, {"method", std::string(method)}};
        assert_true(
            are_equal(run("rotate", attributes, {image}), run("rotate90", {{"turns", (turns + 8) % 4}}, {image})));
      }
    }
  }
  const Tensor wide = run("rotate", {{"degrees", 90.0}, {"value", 300.0}}, {random_image({1, 9, 1}, DType::u8, 8)});
  assert_int_equal(std::count(wide.data_as<uint8_t>(), wide.data_as<uint8_t>() + 9, 255), 8);
}

void resized_crops_are_windows_resized(void **) {
  for (const DType dtype : {DType::u8, DType::f32}) {
    const Tensor image = random_image({31, 45, 3}, dtype, 4);
    const Tensor size = Tensor::from_values<int64_t>({2}, {31, 45}).value();
    int flips = 0;
    for (int64_t element = 0; element < 60; ++element) {
      const Tensor window = run("random_crop_window", {{"key", kKey}}, {size}, element);
      const Tensor part = run("crop", {}, {image, window});
      for (const bool antialias : {false, true}) {
        const Tensor expected = run("resize", {{"size", Ints{7, 9}}, {"antialias", antialias}}, {part});
        const Tensor flipped = run("flip", {}, {expected});
        const Attributes attributes{
            {"size", Ints{7, 9}}, {"antialias", antialias}, {"key", kKey}, {"flip_probability", 0.5}};
        const Tensor y = run("random_resized_crop", attributes, {image}, element);
        assert_true(are_equal(y, expected) || are_equal(y, flipped));
        flips += are_equal(y, flipped) ? 1 : 0;
      }
    }
    assert_in_range(flips, 30, 90);
  }
}

void windows_keep_their_bounds(void **) {
  const Tensor sizes = Tensor::from_values<int64_t>({3, 2}, {100, 100, 20, 400, 1, 1}).value();
  double least = 1, most = 0;
  for (int64_t element = 0; element < 500; ++element) {
    const Ints windows = numbers_in(run(
        "random_crop_window", {{"area", Doubles{0.25, 0.75}}, {"aspect", Doubles{0.5, 2.0}}}, {sizes}, 3 * element));
    for (size_t i = 0; i < 3; ++i) {
      const int64_t height = sizes.data_as<int64_t>()[2 * i], width = sizes.data_as<int64_t>()[2 * i + 1];
      const Ints w(windows.begin() + static_cast<std::ptrdiff_t>(4 * i),
                   windows.begin() + static_cast<std::ptrdiff_t>(4 * i + 4));
      assert_true(w[0] >= 0 && w[1] >= 0 && w[2] >= 1 && w[3] >= 1 && w[0] + w[2] <= height && w[1] + w[3] <= width);
      // No part of 20 x 400 pixels with a quarter of the area has that aspect ratio: the middle, 20 x 40.
      if (i == 1) assert_true(w == (Ints{0, 180, 20, 40}));
    }
    const double share = static_cast<double>(windows[2] * windows[3]) / 10000;
    const double aspect = static_cast<double>(windows[3]) / static_cast<double>(windows[2]);
    assert_true(aspect > 0.48 && aspect < 2.1);
    least = std::min(least, share);
    most = std::max(most, share);
  }
  assert_true(least > 0.23 && least < 0.3 && most > 0.65 && most < 0.77);
}

void cutouts_set_a_rectangle(void **) {
  const Tensor image = random_image({9, 8, 2}, DType::f32, 5);
  for (int64_t element = 0; element < 50; ++element) {
    const Tensor y = run("random_cutout", {{"size", Ints{4, 3}}, {"value", -1.0}, {"key", kKey}}, {image}, element);
    base::RandomStream random = stream_of(element);
    const int64_t middle = random.below(9), centre = random.below(8);
    for (int64_t i = 0; i < 9; ++i) {
      for (int64_t j = 0; j < 8; ++j) {
        const bool is_cut = i >= middle - 2 && i < middle + 2 && j >= centre - 1 && j < centre + 2;
        for (int64_t c = 0; c < 2; ++c) {
          const int64_t at = (i * 8 + j) * 2 + c;
          assert_true(y.data_as<float>()[at] == (is_cut ? -1.0F : image.data_as<float>()[at]));
        }
      }
    }
  }
}

void jitter_is_the_adjustments_in_turn(void **) {
  const Attributes attributes{{"brightness", 0.3}, {"contrast", 0.4}, {"saturation", 0.5}, {"hue", 0.2}, {"key", kKey}};
  const Tensor image = random_image({6, 5, 3}, DType::f32, 6);
  for (int64_t element = 0; element < 20; ++element) {
    base::RandomStream random = stream_of(element);
    const double brightness = 0.3 * (2 * drawn(random) - 1), contrast = 1 + 0.4 * (2 * drawn(random) - 1);
    const double saturation = 1 + 0.5 * (2 * drawn(random) - 1), hue = 0.2 * (2 * drawn(random) - 1);
    Tensor expected = run("adjust_brightness", {{"delta", brightness}}, {image});
    expected = run("adjust_contrast", {{"factor", contrast}}, {expected});
    expected = run("adjust_saturation", {{"factor", saturation}}, {expected});
    expected = run("adjust_hue", {{"delta", hue}}, {expected});
    assert_ok(tensor::compare_close(run("random_color_jitter", attributes, {image}, element), expected, 0, 1e-5));
  }
  assert_true(are_equal(run("random_color_jitter", {}, {image}), image));
}

void mixed_rows_are_found_again(void **) {
  const int64_t rows = 8;
  const Tensor images = random_image({rows, 6, 5, 3}, DType::f32, 7);
  Tensor classes = Tensor::zeros(DType::f32, {rows, rows}).value();
  for (int64_t row = 0; row < rows; ++row)
    classes.mutable_data_as<float>()[row * rows + row] = 1;
  double total = 0;
  for (const std::string op : {"mixup", "cutmix"}) {
    for (int64_t epoch = 0; epoch < 50; ++epoch) {
      const auto part = [&](size_t which) {
        return assert_ok_value(run_routine(
            [&](graph::GraphBuilder &b, const auto &x) {
              return b.op_n(op, x, {{"alpha", 0.8}, {"key", kKey}})[which];
            },
            {images, classes}, {7, epoch, 16, rows}));
      };
      const Tensor mixed = part(0), targets = part(1);
      int64_t rotation = -1;
      for (int64_t row = 0; row < rows; ++row) {
        const float *const shares = targets.data_as<float>() + row * rows;
        float sum = 0;
        int64_t partner = (row + std::max<int64_t>(rotation, 1)) % rows;
        for (int64_t other = 0; other < rows; ++other) {
          sum += shares[other];
          if (other != row && shares[other] > 0) partner = other;
        }
        assert_true(std::fabs(sum - 1) < 1e-5);
        if (rotation < 0) rotation = (partner - row + rows) % rows;
        const float share = shares[row];
        total += static_cast<double>(share);
        int64_t from_partner = 0;
        for (int64_t i = 0; i < 90; ++i) {
          const float x = images.data_as<float>()[row * 90 + i], p = images.data_as<float>()[partner * 90 + i];
          const float y = mixed.data_as<float>()[row * 90 + i];
          if (op == "mixup") assert_true(std::fabs(y - (share * x + (1 - share) * p)) < 1e-5);
          if (op == "cutmix") assert_true(y == x || y == p);
          from_partner += y == p && y != x ? 1 : 0;
        }
        if (op == "cutmix") assert_true(std::fabs(static_cast<float>(from_partner) - (1 - share) * 90) < 0.01F);
      }
    }
  }
  assert_true(std::fabs(total / 800 - 0.55) < 0.1);
}

void colours_and_values_outside_of_the_range(void **) {
  const Tensor odd = Tensor::from_values<float>({5}, {NAN, -1, 2, 0.5F, INFINITY}).value();
  const Tensor bytes = run("convert_image_dtype", {{"dtype", DType::u8}}, {odd});
  const std::vector<uint8_t> expected{0, 0, 255, 127, 255};
  assert_memory_equal(bytes.data(), expected.data(), 5);
  const Tensor four = random_image({2, 3, 4}, DType::u8, 8);
  const Doubles means{1, 2, 3, 4};
  const Tensor y = run("normalize_image", {{"mean", means}, {"stddev", Doubles{2}}, {"scale", 0.5}}, {four});
  for (int64_t i = 0; i < 24; ++i) {
    const double value = (four.data_as<uint8_t>()[i] * 0.5 - means[static_cast<size_t>(i % 4)]) / 2;
    assert_true(std::fabs(static_cast<double>(y.data_as<float>()[i]) - value) < 1e-5);
  }
  assert_error_contains(run_routine_op("adjust_hue", {{"delta", 0.1}}, {four}), "has 4 channels, expected 3");
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(random_ops_are_keyed_by_element),
    cmocka_unit_test(random_crops_are_parts_anywhere),
    cmocka_unit_test(random_flips_happen_as_often_as_said),
    cmocka_unit_test(random_rotations_are_by_angles_within_the_bound),
    cmocka_unit_test(quarter_turns_move_pixels),
    cmocka_unit_test(resized_crops_are_windows_resized),
    cmocka_unit_test(windows_keep_their_bounds),
    cmocka_unit_test(cutouts_set_a_rectangle),
    cmocka_unit_test(jitter_is_the_adjustments_in_turn),
    cmocka_unit_test(mixed_rows_are_found_again),
    cmocka_unit_test(colours_and_values_outside_of_the_range),
};
TEST_MAIN(tests)

}  // namespace image_ops_test
