// SPDX-License-Identifier: Apache-2.0
//
// JPEG files of which only a part is looked at: maps decode that part alone. Pixels and errors are those of the whole
// image cropped.
#include "sample_images.h"

#include <cstdint>

#include "routine_runs.h"

namespace decoded_part_test {

using namespace tutti::impl;
using namespace tutti::testing;
using graph::Attributes;
using graph::GraphBuilder;
using graph::ValueId;
using tensor::DType;
using tensor::Tensor;
using Ints = std::vector<int64_t>;

namespace {

struct Part {
  const char *op;
  Attributes attributes;
};

// Key: without one, random words depend on the node's place in its graph.
std::vector<Part> parts() {
  const int64_t key = 77;
  return {
      {"crop", {{"size", Ints{20, 33}}, {"offset", Ints{11, 5}}}},
      {"crop", {{"size", Ints{1, 1}}, {"offset", Ints{37, 40}}}},
      {"crop", {{"size", Ints{30, 31}}, {"centered", true}}},
      {"crop", {{"size", Ints{49, 67}}, {"centered", true}}},
      {"random_crop", {{"size", Ints{16, 16}}, {"key", key}}},
      {"random_crop", {{"size", Ints{24, 8}}, {"padding", int64_t{9}}, {"value", 3.0}, {"key", key}}},
      {"random_crop", {{"size", Ints{4, 4}}, {"padding", int64_t{30}}, {"key", key}}},
      {"random_resized_crop", {{"size", Ints{9, 11}}, {"key", key}}},
      {"random_resized_crop",
       {{"size", Ints{12, 7}},
        {"antialias", true},
        {"flip_probability", 0.5},
        {"output", std::string("f32")},
        {"key", key}}},
  };
}

struct Decoder {
  const char *op;
  Attributes attributes;
};

std::vector<Decoder> decoders() {
  return {{"decode_jpeg", {}},
          {"decode_jpeg", {{"channels", int64_t{1}}, {"dct", std::string("fast")}}},
          {"decode_jpeg", {{"fancy_upsampling", false}}},
          {"decode_image", {}}};
}

data::GraphScalars at_element(int64_t element) {
  data::GraphScalars scalars;
  scalars.seed = 5;
  scalars.row_offset = element;
  return scalars;
}

base::Result<Tensor> decoded_part(const Decoder &decoder, const Part &part, const Tensor &files, int64_t element) {
  const auto build = [&](GraphBuilder &b, const auto &x) {
    return b.op(part.op, {b.op(decoder.op, {x[0]}, decoder.attributes)}, part.attributes);
  };
  return run_routine(build, {files}, at_element(element));
}

base::Result<Tensor> part_of_decoded(const Decoder &decoder, const Part &part, const Tensor &files, int64_t element) {
  TUTTI_ASSIGN(const Tensor image, run_routine_op(decoder.op, decoder.attributes, {files}));
  return run_routine_op(part.op, part.attributes, {image}, at_element(element));
}

void parts_are_those_of_the_whole(void **) {
  std::vector<std::string> contents;
  for (const bool is_progressive : {false, true}) {
    for (const int64_t channels : {1, 3})
      contents.push_back(jpeg_file(sample_photo(49, 67, 3, channels), 85, is_progressive));
  }
  contents.push_back(jpeg_file(sample_photo(49, 67, 4), 85, false));
  for (const Decoder &decoder : decoders()) {
    for (const Part &part : parts()) {
      for (int64_t element = 0; element < 12; ++element) {
        const auto &first = contents[static_cast<size_t>(element) % contents.size()];
        const auto &second = contents[static_cast<size_t>(element + 1) % contents.size()];
        const Tensor files = text_tensor({first, second});
        const Tensor expected = assert_ok_value(part_of_decoded(decoder, part, files, element));
        const Tensor actual = assert_ok_value(decoded_part(decoder, part, files, element));
        if (!tensor::identical(expected, actual))
          fail_msg("%s behind %s, element %ld", part.op, decoder.op, static_cast<long>(element));
      }
    }
  }
}

// Damage anywhere, and a part that the image does not have.
void errors_are_those_of_the_whole(void **) {
  const std::string file = jpeg_file(sample_photo(49, 67, 2), 70);
  const auto check = [&](const std::string &contents, const Part &part, int64_t element) {
    const Tensor files = text_tensor({contents});
    const auto expected = part_of_decoded({"decode_jpeg", {}}, part, files, element);
    const auto actual = decoded_part({"decode_jpeg", {}}, part, files, element);
    assert_string_equal(expected.status().to_string().c_str(), actual.status().to_string().c_str());
    if (expected.ok()) assert_true(tensor::identical(*expected, *actual));
    return expected.ok();
  };
  int failures = 0, successes = 0;
  for (const Part &part : parts()) {
    for (size_t at = 2; at < file.size(); at += 5) {
      std::string changed = file;
      changed[at] = static_cast<char>(changed[at] ^ (1 << at % 8));
      ++(check(changed, part, static_cast<int64_t>(at)) ? successes : failures);
    }
    for (size_t length = 2; length < file.size(); length += 41)
      ++(check(file.substr(0, length), part, 0) ? successes : failures);
  }
  assert_true(failures > 300 && successes > 300);
  const auto refused = [&](const Part &part) {
    return decoded_part({"decode_jpeg", {}}, part, text_tensor({file}), 0);
  };
  assert_error_contains(refused({"crop", {{"size", Ints{40, 40}}, {"offset", Ints{20, 0}}}}),
                        "row 20, column 0 does not lie in an image of 49 x 67 pixels");
  assert_error_contains(refused({"random_crop", {{"size", Ints{50, 10}}}}), "has no part of 50 x 10");
}

int32_t reader_of_first_step(const BuildRoutine &build) {
  GraphBuilder b;
  const ValueId file = b.input("file", DType::bytes, {1});
  b.set_result("y", build(b, {file}));
  const auto graph = std::make_shared<const graph::Graph>(assert_ok_value(b.finish_graph()));
  return assert_ok_value(data::RoutinePlan::create(graph))->steps.at(0).reader;
}

void only_sole_readers_choose_the_part(void **) {
  const Attributes size{{"size", Ints{4, 4}}};
  const auto image = [](GraphBuilder &b, const GraphBuilder::Values &x) { return b.op("decode_jpeg", {x[0]}); };
  const auto reader = [&](const auto &build) { return reader_of_first_step(build); };
  assert_int_equal(reader([&](GraphBuilder &b, const auto &x) { return b.op("crop", {image(b, x)}, size); }), 1);
  assert_int_equal(reader([&](GraphBuilder &b, const auto &x) { return b.op("resize", {image(b, x)}, size); }), -1);
  assert_int_equal(reader([&](GraphBuilder &b, const auto &x) {
                     const ValueId all = image(b, x);
                     b.set_result("corner", b.op("crop", {all}, size));
                     return b.op("random_crop", {all}, size);
                   }),
                   -1);
  assert_int_equal(reader([&](GraphBuilder &b, const auto &x) {
                     const ValueId all = image(b, x);
                     b.set_result("all", all);
                     return b.op("crop", {all}, size);
                   }),
                   -1);
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(parts_are_those_of_the_whole),
    cmocka_unit_test(errors_are_those_of_the_whole),
    cmocka_unit_test(only_sole_readers_choose_the_part),
};
TEST_MAIN(tests)

}  // namespace decoded_part_test
