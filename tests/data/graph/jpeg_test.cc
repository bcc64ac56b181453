// SPDX-License-Identifier: Apache-2.0
//
// decode_jpeg against libjpeg-turbo called plainly, alone and in pipelines; damaged files.
#include "sample_images.h"

#include <cstdint>

#include "conformance/dataset_conformance.h"
#include "interpreting_runner.h"
#include "routine_runs.h"
#include "sample_data.h"
#include "sample_files.h"

namespace jpeg_test {

using namespace tutti::impl;
using namespace tutti::testing;
using data::DatasetRef;
using data::Pipeline;
using graph::Attributes;
using graph::GraphBuilder;
using tensor::DType;
using tensor::Tensor;
using Ints = std::vector<int64_t>;

namespace {

Tensor window_of(int64_t top, int64_t left, int64_t height, int64_t width) {
  return Tensor::from_values<int64_t>({1, 4}, {top, left, height, width}).value();
}

void check_pixels(const Pixels &expected, const Tensor &actual, int64_t top = 0, int64_t left = 0) {
  const int64_t rank = actual.rank();
  const int64_t height = actual.shape()[static_cast<int32_t>(rank - 3)];
  const int64_t width = actual.shape()[static_cast<int32_t>(rank - 2)];
  assert_int_equal(actual.shape()[static_cast<int32_t>(rank - 1)], expected.channels);
  const auto *pixel = actual.data_as<uint8_t>();
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (int64_t c = 0; c < expected.channels; ++c, ++pixel) {
        const int value = expected.at(top + y, left + x, c);
        if (value != *pixel)
          fail_msg("row %ld column %ld channel %ld: %d, expected %d", static_cast<long>(y), static_cast<long>(x),
                   static_cast<long>(c), *pixel, value);
      }
    }
  }
}

void pixels_are_those_of_the_library(void **) {
  for (const bool is_progressive : {false, true}) {
    for (const int64_t channels : {1, 3}) {
      const std::string file = jpeg_file(sample_photo(61, 83, 5, channels), 85, is_progressive);
      for (const int64_t wanted : {1, 3}) {
        for (const int64_t ratio : {1, 2, 4, 8}) {
          for (const bool fancy : {true, false}) {
            for (const bool fast : {true, false}) {
              const Pixels expected =
                  plain_jpeg_decode(file, {static_cast<int>(wanted), static_cast<unsigned>(ratio), fancy, fast});
              const Attributes attributes{{"channels", wanted},
                                          {"ratio", ratio},
                                          {"fancy_upsampling", fancy},
                                          {"dct", std::string(fast ? "fast" : "accurate")}};
              const Tensor actual = assert_ok_value(run_routine_op("decode_jpeg", attributes, {text_tensor({file})}));
              assert_true(actual.shape() == (tensor::Shape{1, expected.height, expected.width, wanted}));
              check_pixels(expected, actual);
            }
          }
        }
      }
    }
  }
}

void minimum_sizes_choose_the_ratio(void **) {
  const std::string file = jpeg_file(sample_photo(160, 240, 1));
  const struct {
    int64_t height, width, expected_height;
  } cases[] = {{20, 30, 20}, {20, 31, 40}, {21, 0, 40}, {0, 61, 80}, {81, 1, 160}, {161, 1, 160}};
  for (const auto &one : cases) {
    const Tensor actual = assert_ok_value(run_routine_op(
        "decode_jpeg", {{"minimum_height", one.height}, {"minimum_width", one.width}}, {text_tensor({file})}));
    assert_int_equal(actual.shape()[1], one.expected_height);
  }
}

void windows_are_parts_of_the_whole(void **) {
  for (const bool is_progressive : {false, true}) {
    const std::string file = jpeg_file(sample_photo(97, 131, 9), 80, is_progressive);
    for (const int64_t ratio : {1, 2}) {
      for (const bool fancy : {true, false}) {
        const Pixels whole = plain_jpeg_decode(file, {3, static_cast<unsigned>(ratio), fancy, false});
        base::RandomStream random(base::RandomKey::of(3, 1, 4));
        for (int i = 0; i < 60; ++i) {
          const int64_t height = 1 + random.below(whole.height), width = 1 + random.below(whole.width);
          const int64_t top = random.below(whole.height - height + 1), left = random.below(whole.width - width + 1);
          const Tensor actual =
              assert_ok_value(run_routine_op("decode_jpeg", {{"ratio", ratio}, {"fancy_upsampling", fancy}},
                                             {text_tensor({file}), window_of(top, left, height, width)}));
          assert_true(actual.shape() == (tensor::Shape{1, height, width, 3}));
          check_pixels(whole, actual, top, left);
        }
      }
    }
    for (const Tensor &bad : {window_of(-1, 0, 1, 1), window_of(0, 0, 98, 1), window_of(90, 130, 1, 2),
                              window_of(0, 0, 0, 1), window_of(INT64_MAX, 0, 1, 1)}) {
      assert_error_contains(run_routine_op("decode_jpeg", {}, {text_tensor({file}), bad}), "does not lie in an image");
    }
  }
}

void damage_is_data_loss(void **) {
  const std::string file = jpeg_file(sample_photo(48, 64, 2));
  const auto decode = [](const std::string &contents) {
    return run_routine_op("decode_jpeg", {}, {text_tensor({contents})});
  };
  assert_ok(decode(file));
  for (size_t length = 2; length + 2 < file.size(); length += 37) {
    const auto cut = decode(file.substr(0, length));
    if (cut.code() != base::Code::data_loss) fail_msg("cut to %zu bytes: %s", length, cut.status().to_string().c_str());
  }
  for (size_t at = 2; at < file.size(); at += 3) {
    std::string changed = file;
    changed[at] = static_cast<char>(changed[at] ^ (1 << at % 8));
    (void)decode(changed);  // pixels or an error
  }
  assert_error_contains(decode(""), "not a JPEG file");
  assert_error_contains(decode("PNG of a kind"), "not a JPEG file");
  // A header of 65500 x 65500 pixels in front of few bytes.
  std::string huge = file;
  const size_t frame = huge.find("\xff\xc0");
  assert_true(frame != std::string::npos);
  huge.replace(frame + 5, 4, "\x3f\xff\x0f\xff");
  assert_error_contains(decode(huge), "cannot hold");
  huge.replace(frame + 5, 4, "\xff\xdc\xff\xdc");
  assert_error_contains(decode(huge), "maximum_pixels = 134217728");
}

// What the inks leave of white. Adobe's files, which have a mark, hold the light that passes an ink.
void check_inks(const std::string &file, int64_t ratio, bool has_mark) {
  const Pixels decoded = plain_jpeg_decode(file, {4, static_cast<unsigned>(ratio)});
  Pixels colours{decoded.height, decoded.width, 3}, grays{decoded.height, decoded.width, 1};
  for (size_t pixel = 0; pixel < decoded.values.size(); pixel += 4) {
    int rgb[3];
    for (size_t c = 0; c < 3; ++c) {
      const double ink = decoded.values[pixel + c] / 255.0, black = decoded.values[pixel + 3] / 255.0;
      rgb[c] = static_cast<int>(255 * (has_mark ? ink * black : (1 - ink) * (1 - black)) + 0.5);
      colours.values.push_back(static_cast<uint8_t>(rgb[c]));
    }
    grays.values.push_back(static_cast<uint8_t>((19595 * rgb[0] + 38470 * rgb[1] + 7471 * rgb[2] + 32768) >> 16));
  }
  const auto decode = [&](int64_t channels, std::vector<Tensor> inputs) {
    return assert_ok_value(
        run_routine_op("decode_jpeg", {{"ratio", ratio}, {"channels", channels}}, std::move(inputs)));
  };
  check_pixels(colours, decode(3, {text_tensor({file})}));
  check_pixels(grays, decode(1, {text_tensor({file})}));
  check_pixels(colours, decode(3, {text_tensor({file}), window_of(5, 7, 9, 11)}), 5, 7);
}

void four_inks_become_colours(void **) {
  const Pixels inks = sample_photo(37, 53, 4, 4);
  for (const bool is_progressive : {false, true}) {
    for (const J_COLOR_SPACE space : {JCS_CMYK, JCS_YCCK}) {
      for (const bool has_mark : {true, false}) {
        if (space == JCS_YCCK && !has_mark) continue;  // the mark says that it is YCCK
        const std::string file = jpeg_file(inks, 90, false, [&](jpeg_compress_struct &encoder) {
          jpeg_set_colorspace(&encoder, space);
          encoder.write_Adobe_marker = has_mark ? TRUE : FALSE;
          if (is_progressive) jpeg_simple_progression(&encoder);
        });
        check_inks(file, 1, has_mark);
        check_inks(file, 2, has_mark);
      }
    }
  }
}

void set_arithmetic(jpeg_compress_struct &encoder) { encoder.arith_code = TRUE; }

// A scan for each component.
void set_scans(jpeg_compress_struct &encoder) {
  static const jpeg_scan_info scans[] = {
      {1, {0, 0, 0, 0}, 0, 63, 0, 0}, {1, {1, 0, 0, 0}, 0, 63, 0, 0}, {1, {2, 0, 0, 0}, 0, 63, 0, 0}};
  encoder.scan_info = scans;
  encoder.num_scans = 3;
}

// Without its last two bytes, FF D9, a file has all its pixels; without one more it has not.
void only_the_end_marker_may_be_missing(void **) {
  const Pixels photo = sample_photo(48, 64, 2), gray = sample_photo(48, 64, 2, 1);
  const auto decode = [](const std::string &contents) {
    return run_routine_op("decode_jpeg", {}, {text_tensor({contents})});
  };
  for (const std::string &file :
       {jpeg_file(photo), jpeg_file(photo, 80, true), jpeg_file(gray), jpeg_file(gray, 80, true),
        jpeg_file(photo, 90, false, set_scans),
        jpeg_file(photo, 90, false, [](jpeg_compress_struct &encoder) { encoder.restart_interval = 2; })}) {
    const Pixels whole = plain_jpeg_decode(file);
    for (const size_t missing : {size_t{0}, size_t{1}, size_t{2}})
      check_pixels(whole, assert_ok_value(decode(file.substr(0, file.size() - missing))));
    for (size_t length = 2; length + 2 < file.size(); ++length) {
      const auto cut = decode(file.substr(0, length));
      if (cut.code() != base::Code::data_loss)
        fail_msg("%zu bytes cut to %zu: %s", file.size(), length, cut.status().to_string().c_str());
    }
  }
  // Arithmetic coding leaves zeros out at the end, so that nothing tells what is missing.
  const std::string file = jpeg_file(photo, 90, false, set_arithmetic);
  for (size_t length = 2; length + 2 < file.size(); length += 7)
    assert_true(decode(file.substr(0, length)).code() == base::Code::data_loss);
}

// ---- in pipelines ----

std::vector<std::string> files(int64_t count) {
  std::vector<std::string> all;
  for (int64_t i = 0; i < count; ++i)
    all.push_back(jpeg_file(sample_photo(20 + i % 7, 30 - i % 5, static_cast<uint64_t>(i)), 75));
  return all;
}

Pipeline photos(const std::vector<std::string> &contents) {
  const auto count = static_cast<int64_t>(contents.size());
  return Pipeline(data::from_slices({{"file", text_tensor(contents)}, {"y", counted(count), data::Role::label}}));
}

Pipeline mapped(Pipeline pipeline, GraphBuilder &b, int64_t parallelism = 1) {
  data::TransformArguments arguments;
  arguments.graph = std::make_shared<const graph::Graph>(assert_ok_value(b.finish_graph()));
  return std::move(pipeline.apply("map", {{"parallelism", parallelism}}, std::move(arguments)));
}

Pipeline decoded(Pipeline pipeline, bool has_rows = true) {
  GraphBuilder b;
  const graph::Dims dims = has_rows ? graph::Dims{GraphBuilder::batch()} : graph::Dims{};
  b.set_result("image", b.op("decode_jpeg", {b.input("file", DType::bytes, dims)}));
  return mapped(std::move(pipeline), b);
}

Pipeline resized(Pipeline pipeline, int64_t parallelism = 1) {
  GraphBuilder b;
  const auto image = b.op("decode_jpeg", {b.input("file", DType::bytes, {GraphBuilder::batch()})});
  b.set_result("image", b.op("resize", {image}, {{"size", Ints{8, 9}}}));
  return mapped(std::move(pipeline), b, parallelism);
}

// A program behind the kernels, and one before a kernel.
Pipeline scaled(Pipeline pipeline, int64_t parallelism = 1) {
  GraphBuilder b;
  const auto image = b.op("decode_jpeg", {b.input("file", DType::bytes, {GraphBuilder::batch()})});
  const auto small = b.op("resize", {image}, {{"size", Ints{8, 9}}});
  b.set_result("image", b.div(b.cast(small, DType::f32), b.constant(255, DType::f32)));
  return mapped(std::move(pipeline), b, parallelism);
}

std::string spec_of(const Pipeline &pipeline) { return assert_ok_value(pipeline.build())->spec().to_string(); }

void shapes_become_static_again(void **) {
  const auto all = files(3);
  assert_string_equal(spec_of(decoded(photos(all))).c_str(), "(y: i32[] label, image: u8[unknown, unknown, 3])");
  assert_string_equal(spec_of(decoded(photos(all), false)).c_str(), "(y: i32[] label, image: u8[unknown, unknown, 3])");
  assert_string_equal(spec_of(resized(photos(all))).c_str(), "(y: i32[] label, image: u8[8, 9, 3])");
  // The next map declares the unknown sizes as two symbols.
  const data::ElementSpec inputs = assert_ok_value(decoded(photos(all)).map_inputs());
  assert_string_equal(inputs.components[1].to_string().c_str(), "image: u8[batch, unknown.1.0, unknown.1.1, 3]");
}

void maps_of_files_conform(void **) {
  const auto all = files(21);
  const auto of = [&](std::string name, std::function<Pipeline(Pipeline)> make, bool is_forward_only) {
    return DatasetCase{
        std::move(name),
        [=, &all] { return DatasetInstance{make(is_forward_only ? forward_only(photos(all)) : photos(all)).build()}; },
        64, std::make_shared<InterpretingRunner>()};
  };
  for (const bool is_forward_only : {false, true}) {
    const DatasetCase cases[] = {
        of(
            "decoded", [](Pipeline p) { return decoded(std::move(p)); }, is_forward_only),
        of(
            "resized", [](Pipeline p) { return resized(std::move(p), 0); }, is_forward_only),
        of(
            "resized, batch", [](Pipeline p) { return std::move(resized(std::move(p), 0).batch(4)); }, is_forward_only),
        of(
            "resized, shuffle, batch",
            [](Pipeline p) { return std::move(resized(std::move(p), 0).shuffle(10).batch(4).repeat(2)); },
            is_forward_only),
        of(
            "scaled, batch, prefetch",
            [](Pipeline p) { return std::move(scaled(std::move(p), 0).batch(4).prefetch(2)); }, is_forward_only),
    };
    for (const DatasetCase &one : cases) {
      check_dataset_case(one);
      check_dataset_leaving(one);
    }
  }
}

void batches_hold_the_pixels(void **) {
  const auto all = files(9);
  data::IteratorContext context;
  context.graphs = std::make_shared<InterpretingRunner>();
  const DatasetRef rows = assert_ok_value(resized(photos(all), 4).batch(4).build());
  const DatasetRef divided = assert_ok_value(scaled(photos(all), 4).batch(4).build());
  const std::vector<uint8_t> pixels = values_of<uint8_t>(rows, "image", context);
  const std::vector<float> shares = values_of<float>(divided, "image", context);
  assert_int_equal(pixels.size(), 9 * 8 * 9 * 3);
  assert_int_equal(shares.size(), pixels.size());
  for (size_t i = 0; i < all.size(); ++i) {
    const Pixels whole = plain_jpeg_decode(all[i]);
    const Tensor image = Tensor::from_values<uint8_t>({whole.height, whole.width, 3}, whole.values).value();
    const Tensor expected = assert_ok_value(run_routine_op("resize", {{"size", Ints{8, 9}}}, {image}));
    assert_memory_equal(expected.data(), pixels.data() + i * 216, 216);
  }
  for (size_t i = 0; i < pixels.size(); ++i)
    assert_true(shares[i] == static_cast<float>(pixels[i]) / 255);
}

void a_damaged_file_fails_for_its_element(void **) {
  auto all = files(6);
  all[2].resize(all[2].size() - 30);
  for (const bool is_forward_only : {false, true}) {
    const Pipeline source = is_forward_only ? forward_only(photos(all)) : photos(all);
    data::IteratorContext context;
    context.graphs = std::make_shared<InterpretingRunner>();
    const DatasetRef elements = assert_ok_value(resized(source).build());
    auto iterator = assert_ok_value(elements->make_iterator(context));
    data::Element element;
    assert_true(assert_ok_value(iterator->next(element)));
    assert_true(assert_ok_value(iterator->next(element)));
    const auto failed = iterator->next(element);
    assert_int_equal(failed.code(), base::Code::data_loss);
    assert_error_contains(failed, "map: the graph failed for element 2 of epoch 0 [element=2, epoch=0");
    assert_error_contains(failed,
                          "]; caused by: DATA_LOSS: node 'decode_jpeg' (decode_jpeg) failed; caused by: DATA_LOSS: the "
                          "JPEG file is damaged");
    assert_true(assert_ok_value(iterator->next(element)));
    assert_int_equal(assert_ok_value(element.components[0].scalar_value<int32_t>()), 3);

    Pipeline batched = resized(source, 4);
    const DatasetRef batches = assert_ok_value(batched.batch(2).build());
    iterator = assert_ok_value(batches->make_iterator(context));
    assert_true(assert_ok_value(iterator->next(element)));
    assert_error_contains(iterator->next(element), "element 2 of epoch 0");
    assert_true(assert_ok_value(iterator->next(element)));
    assert_false(assert_ok_value(iterator->next(element)));
  }
}

// A picture's file, whoever decodes it and wherever it lies between others.
void a_damaged_picture_is_named(void **) {
  const TemporaryDirectory folder;
  auto all = files(6);
  all[3].resize(all[3].size() - 30);
  assert_ok(base::make_directories(folder / "kind"));
  for (size_t i = 0; i < all.size(); ++i)
    write_bytes(folder / base::concat("kind/", i, ".jpg"), all[i]);
  data::IteratorContext context;
  context.graphs = std::make_shared<InterpretingRunner>();
  for (const int64_t parallelism : {1, 4}) {
    for (const int64_t buffer : {1, 3, 10}) {
      GraphBuilder b;
      const auto image = b.op("decode_jpeg", {b.input("image", DType::bytes, {GraphBuilder::batch()})});
      b.set_result("image", b.op("resize", {image}, {{"size", Ints{8, 9}}}));
      Pipeline pipeline = begin_with("image_folder", {{"path", folder.path()}}).shuffle(buffer);
      pipeline = std::move(mapped(std::move(pipeline), b, parallelism).batch(6).prefetch(1));
      auto iterator = assert_ok_value(assert_ok_value(pipeline.build())->make_iterator(context));
      data::Element element;
      const auto failed = iterator->next(element);
      assert_error_contains(failed, ("[element=3, epoch=0, file=" + (folder / "kind/3.jpg") + ", stage=map]").c_str());
      assert_error_contains(failed, "the JPEG file is damaged");
    }
  }
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(pixels_are_those_of_the_library), cmocka_unit_test(minimum_sizes_choose_the_ratio),
    cmocka_unit_test(windows_are_parts_of_the_whole),  cmocka_unit_test(damage_is_data_loss),
    cmocka_unit_test(four_inks_become_colours),        cmocka_unit_test(only_the_end_marker_may_be_missing),
    cmocka_unit_test(shapes_become_static_again),      cmocka_unit_test(maps_of_files_conform),
    cmocka_unit_test(batches_hold_the_pixels),         cmocka_unit_test(a_damaged_file_fails_for_its_element),
    cmocka_unit_test(a_damaged_picture_is_named),
};
TEST_MAIN(tests)

}  // namespace jpeg_test
