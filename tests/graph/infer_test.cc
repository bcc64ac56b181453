// SPDX-License-Identifier: Apache-2.0
//
// Shape rules: a table of ops with the shapes they give, and one of misuses with what the message must name.
#include <string>
#include <vector>

#include "base/text.h"
#include "graph/builder.h"
#include "graph/op_registry.h"
#include "testing.h"

namespace infer_test {

namespace {

using namespace tutti::impl::graph;
using tutti::impl::tensor::DType;
using Values = GraphBuilder::Values;
using Ints = std::vector<int64_t>;

struct Input {
  std::string dims;  // "batch 28 28", "-" = absent
  DType dtype = DType::f32;
};

struct Case {
  const char *op;
  std::vector<Input> inputs;
  Attributes attributes;
  const char *expected;  // "f32[batch, 10] i64[3]", or part of the message
};

Dims parse_dims(const std::string &text) {
  Dims dims;
  for (const std::string &word : tutti::impl::base::split(text, ' ')) {
    if (!word.empty()) dims.push_back(*Dim::parse(word));
  }
  return dims;
}

std::string infer(const Case &one) {
  GraphBuilder b;
  Values inputs;
  for (const Input &input : one.inputs) {
    inputs.push_back(input.dims == "-"
                         ? kNoValue
                         : b.input(tutti::impl::base::concat("i", inputs.size()), input.dtype, parse_dims(input.dims)));
  }
  const Values made = b.op_n(one.op, inputs, one.attributes);
  if (!b.ok()) return b.status().to_string();
  std::string text;
  for (const ValueId value : made) {
    text += tutti::impl::base::concat(text.empty() ? "" : " ", tutti::impl::tensor::name(b.dtype(value)),
                                      to_string(b.dims(value)));
  }
  return text;
}

const Input kLabels{"batch", DType::i64};
const std::string kSame = "same", kValid = "valid", kExplicit = "explicit";

const std::vector<Case> &good_cases() {
  static const std::vector<Case> cases = {
      {"relu", {{"batch 3"}}, {}, "f32[batch, 3]"},
      {"cast", {{"batch"}}, {{"dtype", DType::i32}}, "i32[batch]"},
      {"is_finite", {{"2"}}, {}, "boolean[2]"},
      {"add", {{"batch 1 3"}, {"4 1"}}, {}, "f32[batch, 4, 3]"},
      {"add", {{""}, {""}}, {}, "f32[]"},
      {"less", {{"batch"}, {""}}, {}, "boolean[batch]"},
      {"select", {{"batch 1", DType::boolean}, {"3"}, {""}}, {}, "f32[batch, 3]"},
      {"reduce_sum", {{"batch 3 4"}}, {}, "f32[]"},
      {"reduce_sum", {{"batch 3 4"}}, {{"axes", Ints{-1, 0}}, {"keep_dims", true}}, "f32[1, 3, 1]"},
      {"argmax", {{"batch 10"}}, {}, "i64[batch]"},
      {"top_k", {{"batch 10"}}, {{"k", int64_t{10}}}, "f32[batch, 10] i64[batch, 10]"},
      {"top_k", {{"batch length", DType::i8}}, {{"k", int64_t{3}}}, "i8[batch, 3] i64[batch, 3]"},
      {"top_k", {{"7"}}, {{"k", int64_t{1}}}, "f32[1] i64[1]"},
      {"top_k_gradient",
       {{"batch 3"}, {"batch 3", DType::i64}},
       {{"dims", Dims{Dim::symbol("batch"), Dim::symbol("length")}}},
       "f32[batch, length]"},
      {"all_finite", {{"batch 10"}}, {}, "boolean[]"},
      {"reshape", {{"batch 28 28 1"}}, {{"dims", Dims{Dim::symbol("batch"), -1}}}, "f32[batch, 784]"},
      {"reshape", {{"batch 28 4"}}, {{"dims", Dims{-1, 4}}}, "f32[28*batch, 4]"},
      {"reshape", {{"0 3"}}, {{"dims", Dims{5, 0}}}, "f32[5, 0]"},
      {"transpose", {{"batch 2 3"}}, {{"permutation", Ints{0, -1, 1}}}, "f32[batch, 3, 2]"},
      {"transpose", {{"batch 2 3"}}, {}, "f32[3, 2, batch]"},
      {"broadcast_to", {{"1 3"}}, {{"dims", Dims{Dim::symbol("batch"), 4, 3}}}, "f32[batch, 4, 3]"},
      {"concat", {{"batch 2"}, {"batch 3"}, {"batch 0"}}, {{"axis", int64_t{-1}}}, "f32[batch, 5]"},
      {"slice",
       {{"batch 7"}},
       {{"begin", Dims{0, -6}}, {"size", Dims{-1, -1}}, {"strides", Ints{1, 2}}},
       "f32[batch, 3]"},
      {"pad", {{"batch 2"}}, {{"low", Ints{0, 1}}, {"high", Ints{0, 2}}}, "f32[batch, 5]"},
      {"gather", {{"100 8"}, {"batch 5", DType::i32}}, {}, "f32[batch, 5, 8]"},
      {"one_hot", {kLabels}, {{"depth", int64_t{10}}}, "f32[batch, 10]"},
      {"iota", {}, {{"dims", Dims{3, 4}}, {"axis", int64_t{-1}}}, "i64[3, 4]"},
      {"matmul", {{"batch 3 4"}, {"4 5"}}, {}, "f32[batch, 3, 5]"},
      {"matmul", {{"4 batch"}, {"5 4"}}, {{"transpose_a", true}, {"transpose_b", true}}, "f32[batch, 5]"},
      {"conv2d", {{"batch 28 28 3"}, {"3 3 3 8"}, {"8"}}, {{"stride", Ints{2, 2}}}, "f32[batch, 14, 14, 8]"},
      {"conv2d",
       {{"batch 28 27 4"}, {"5 3 1 8"}, {"-"}},
       {{"padding", kValid}, {"groups", int64_t{4}}},
       "f32[batch, 24, 25, 8]"},
      {"conv2d",
       {{"batch height 28 3"}, {"3 3 3 8"}},
       {{"padding", kExplicit}, {"pads", Ints{1, 1, 1, 1}}},
       "f32[batch, height, 28, 8]"},
      {"max_pool2d", {{"batch 7 8 3"}}, {{"window", Ints{2, 2}}}, "f32[batch, 3, 4, 3]"},
      {"avg_pool2d",
       {{"batch 7 8 3"}},
       {{"window", Ints{3, 3}}, {"stride", Ints{2, 2}}, {"padding", kSame}},
       "f32[batch, 4, 4, 3]"},
      {"batch_norm_training", {{"batch 4 4 8", DType::bf16}, {"8"}, {"8"}}, {}, "bf16[batch, 4, 4, 8] f32[8] f32[8]"},
      {"layer_norm", {{"batch 7 8"}, {"8"}, {"8"}}, {}, "f32[batch, 7, 8] f32[batch, 7] f32[batch, 7]"},
      {"rms_norm", {{"batch 7 8", DType::bf16}, {"8"}}, {}, "bf16[batch, 7, 8] f32[batch, 7]"},
      {"group_norm",
       {{"batch 7 5 8"}, {"8"}, {"8"}},
       {{"groups", int64_t{4}}},
       "f32[batch, 7, 5, 8] f32[batch, 4] f32[batch, 4]"},
      {"attention",
       {{"batch 7 12 64"}, {"batch 9 4 64"}, {"batch 9 4 64"}, {"batch", DType::i32}},
       {},
       "f32[batch, 7, 12, 64] f32[batch, 12, 7]"},
      {"attention",
       {{"batch length 2 8", DType::bf16}, {"batch length 2 8", DType::bf16}, {"batch length 2 8", DType::bf16}},
       {{"causal", true}},
       "bf16[batch, length, 2, 8] f32[batch, 2, length]"},
      {"dropout_attention",
       {{"batch 7 12 64"}, {"batch 9 4 64"}, {"batch 9 4 64"}},
       {{"rate", 0.1}},
       "f32[batch, 7, 12, 64] f32[batch, 12, 7]"},
      {"softmax", {{"batch 10"}}, {}, "f32[batch, 10]"},
      {"sparse_softmax_cross_entropy", {{"batch 10"}, kLabels}, {}, "f32[batch]"},
      {"softmax_cross_entropy", {{"batch 10"}, {"batch 10"}}, {}, "f32[batch]"},
      {"in_top_k", {{"batch 10"}, kLabels}, {{"k", int64_t{5}}}, "boolean[batch]"},
      {"dropout", {{"batch 10"}}, {{"rate", 0.5}}, "f32[batch, 10]"},
      {"decode_jpeg", {{"batch", DType::bytes}}, {}, "u8[batch, decode_jpeg.height, decode_jpeg.width, 3]"},
      {"decode_jpeg",
       {{"", DType::bytes}, {"4", DType::i32}},
       {{"channels", int64_t{1}}},
       "u8[decode_jpeg.height, decode_jpeg.width, 1]"},
      {"resize", {{"batch height width 3", DType::u8}}, {{"size", Ints{4, 5}}}, "u8[batch, 4, 5, 3]"},
      {"decode_png", {{"", DType::bytes}}, {{"channels", int64_t{4}}}, "u8[decode_png.height, decode_png.width, 4]"},
      {"image_size", {{"batch", DType::bytes}}, {}, "i64[batch, 2]"},
      {"crop", {{"batch 8 9 3"}}, {{"size", Ints{4, 5}}, {"offset", Ints{4, 4}}}, "f32[batch, 4, 5, 3]"},
      {"crop", {{"batch h w 3"}, {"batch 4", DType::i32}}, {}, "f32[batch, crop.height, crop.width, 3]"},
      {"crop", {{"batch h w 3"}, {"batch 4", DType::i32}}, {{"size", Ints{4, 5}}}, "f32[batch, 4, 5, 3]"},
      {"pad_image", {{"h 9 1"}}, {{"pads", Ints{1, 2, 3, 4}}}, "f32[h + 3, 16, 1]"},
      {"rotate90", {{"batch 8 9 3"}}, {}, "f32[batch, 9, 8, 3]"},
      {"rotate", {{"batch 8 9 3"}}, {{"degrees", 30.0}}, "f32[batch, 8, 9, 3]"},
      {"random_rotate", {{"batch 8 9 3"}}, {{"degrees", 30.0}}, "f32[batch, 8, 9, 3]"},
      {"normalize_image", {{"8 9 3", DType::u8}}, {}, "f32[8, 9, 3]"},
      {"convert_image_dtype", {{"batch", DType::f32}}, {{"dtype", DType::u8}}, "u8[batch]"},
      {"random_crop", {{"8 9 3"}}, {{"size", Ints{10, 9}}, {"padding", int64_t{1}}}, "f32[10, 9, 3]"},
      {"random_crop_window", {{"batch 2", DType::i32}}, {}, "i64[batch, 4]"},
      {"mixup", {{"batch 8"}, {"batch 10"}}, {}, "f32[batch, 8] f32[batch, 10]"},
      {"bytes_split", {{"batch", DType::bytes}}, {}, "bytes[batch, bytes_split.count]"},
      {"bytes_tokenize", {{"batch", DType::bytes}}, {{"count", int64_t{7}}}, "bytes[batch, 7]"},
      {"bytes_join", {{"batch 3", DType::bytes}}, {}, "bytes[batch]"},
      {"bytes_to_number", {{"3", DType::bytes}}, {{"dtype", DType::i64}}, "i64[3]"},
      {"bytes_to_values", {{"", DType::bytes}}, {}, "u8[bytes_to_values.count]"},
      {"bytes_hash_bucket", {{"batch", DType::bytes}}, {{"buckets", int64_t{9}}}, "i64[batch]"},
      {"lookup", {{"batch", DType::bytes}}, {{"path", std::string("words.txt")}}, "i64[batch]"},
      {"resize", {{"8 9 3", DType::u8}}, {{"size", Ints{4, 5}}, {"output", std::string("f32")}}, "f32[4, 5, 3]"},
      {"random_normal", {}, {{"dims", Dims{Dim::symbol("batch"), 3}}, {"dtype", DType::f64}}, "f64[batch, 3]"},
      {"momentum_update", {{"9"}, {"9"}, {"9"}, {""}, {"", DType::boolean}}, {}, "f32[9] f32[9]"},
      {"adam_update",
       {{"9"}, {"9"}, {"9"}, {"9"}, {""}, {"", DType::i64}, {"", DType::boolean}},
       {},
       "f32[9] f32[9] f32[9]"},
  };
  return cases;
}

const std::vector<Case> &bad_normalizations() {
  static const std::vector<Case> cases = {
      {"batch_norm_training", {{"batch 8"}, {"7"}, {"8"}}, {}, "input 'scale' [7]"},
      {"batch_norm_training", {{"8"}, {"8"}, {"8"}}, {}, "expected at least 2"},
      {"rms_norm", {{"batch 8"}, {"7"}}, {}, "input 'scale' [7]"},
      {"rms_norm_gradient",
       {{"batch 8"}, {"batch 8"}, {"8"}, {"batch 8"}},
       {},
       "input 'rstd' [batch, 8] has a wrong shape, expected [batch]"},
      {"group_norm", {{"8"}, {"8"}, {"8"}}, {{"groups", int64_t{2}}}, "expected at least 2"},
      {"group_norm", {{"batch 8"}, {"8"}, {"8"}}, {}, "groups"},
      {"group_norm",
       {{"batch 8"}, {"8"}, {"8"}},
       {{"groups", int64_t{3}}},
       "has 8 channels, expected a multiple of 3 (groups)"},
      {"group_norm_gradient",
       {{"batch 7 8"}, {"batch 7 8"}, {"8"}, {"batch 3"}, {"batch 3"}},
       {},
       "has 8 channels, expected a multiple of 3"},
      {"group_norm_gradient",
       {{"batch 7 8"}, {"batch 7 8"}, {"8"}, {"7 4"}, {"7 4"}},
       {},
       "input 'mean' [7, 4] has a wrong shape, expected [batch, 4]"},
      {"layer_norm",
       {{"batch 8", DType::f16}, {"8", DType::f16}, {"8", DType::f16}},
       {},
       "expected f32 for an input of f16"},
  };
  return cases;
}

/// Ops behind functions.
const std::vector<Case> &good_parts_of_functions() {
  static const std::vector<Case> cases = {
      {"running_sum", {{"batch 10", DType::i8}}, {{"axis", int64_t{-1}}}, "i8[batch, 10]"},
      {"running_product", {{"batch n"}}, {{"exclusive", true}}, "f32[batch, n]"},
      {"running_product_gradient", {{"batch 0"}, {"batch 0"}}, {}, "f32[batch, 0]"},
      {"reverse_axes", {{"batch 4", DType::boolean}}, {{"axes", Ints{-1, 0}}}, "boolean[batch, 4]"},
      {"reverse_axes", {{""}}, {{"axes", Ints{}}}, "f32[]"},
      {"merge_rows",
       {{"9 4", DType::u8}, {"n", DType::i32}, {"n 4", DType::u8}},
       {{"mode", std::string("replace")}},
       "u8[9, 4]"},
      {"merge_rows", {{"9"}, {"5", DType::i64}, {"5"}}, {{"mode", std::string("add")}}, "f32[9]"},
      {"interpolate2d", {{"batch 8 9 c"}}, {{"size", Ints{4, 5}}}, "f32[batch, 4, 5, c]"},
      {"arc_tangent2", {{"batch 1"}, {"7"}}, {}, "f32[batch, 7]"},
  };
  return cases;
}

const std::vector<Case> &bad_parts_of_functions() {
  static const std::vector<Case> cases = {
      {"gather_gradient",
       {{"batch 2"}, {"batch", DType::i64}},
       {{"dims", Dims{Dim::symbol("n"), 2}}, {"ignores_others", true}},
       "needs a known number of rows"},
      {"running_sum", {{"batch 4"}}, {{"axis", int64_t{2}}}, "axis"},
      {"running_sum", {{"4", DType::boolean}}, {}, "boolean"},
      {"running_product_gradient", {{"3 4"}, {"4 3"}}, {}, "equal shapes"},
      {"reverse_axes", {{"3 4"}}, {{"axes", Ints{1, -1}}}, "twice"},
      {"reverse_axes", {{"3 4"}}, {{"axes", Ints{2}}}, "axes"},
      {"merge_rows", {{""}, {"2", DType::i64}, {"2"}}, {{"mode", std::string("add")}}, "is a scalar"},
      {"merge_rows", {{"3 4"}, {"2", DType::i64}, {"2 3"}}, {{"mode", std::string("add")}}, "expected [2, 4]"},
      {"merge_rows", {{"3"}, {"2 1", DType::i64}, {"2"}}, {{"mode", std::string("add")}}, "rank"},
      {"merge_rows",
       {{"3", DType::boolean}, {"2", DType::i64}, {"2", DType::boolean}},
       {{"mode", std::string("maximum")}},
       "expected numbers"},
      {"interpolate2d", {{"batch h 9 3"}}, {{"size", Ints{4, 5}}}, "no image of known height and width"},
      {"interpolate2d", {{"batch 0 9 3"}}, {{"size", Ints{4, 5}}}, "no image of known height and width"},
      {"interpolate2d", {{"8 9 3"}}, {{"size", Ints{4, 5}}}, "rank"},
      {"arc_tangent2", {{"2"}, {"3"}}, {}, "do not broadcast"},
  };
  return cases;
}

const std::vector<Case> &bad_cases() {
  static const std::vector<Case> cases = {
      {"add", {{"batch 2"}, {"3"}}, {}, "input 'a' [batch, 2] and input 'b' [3] do not broadcast"},
      {"add", {{"batch"}, {"height"}}, {}, "do not broadcast"},
      {"add", {{"2"}}, {}, "got 1 inputs, expected 2: input 'b' is missing"},
      {"add", {{"2"}, {"-"}}, {}, "input 'b' is missing"},
      {"mul", {{"2", DType::boolean}, {"2", DType::boolean}}, {}, "expected a number"},
      {"decode_jpeg", {{"batch", DType::u8}}, {}, "expected bytes"},
      {"decode_jpeg", {{"batch", DType::bytes}, {"4", DType::i32}}, {}, "input 'window' [4] expected [batch, 4]"},
      {"decode_jpeg", {{"", DType::bytes}}, {{"channels", int64_t{2}}}, "attribute 'channels' is 2, expected 1 or 3"},
      {"decode_jpeg", {{"", DType::bytes}}, {{"ratio", int64_t{3}}}, "attribute 'ratio' is 3"},
      {"crop", {{"8 9 3"}}, {}, "attribute 'size' is missing, and so is a window"},
      {"crop", {{"8 9 3"}}, {{"size", Ints{4, 5}}, {"offset", Ints{5, 0}}}, "has no part of 4 x 5 pixels at row 5"},
      {"crop", {{"8 9 3"}, {"4", DType::i64}}, {{"offset", Ints{1, 1}}}, "attribute 'offset' and a window"},
      {"pad_image", {{"2 9 1"}}, {{"pads", Ints{0, 2, 0, 0}}, {"mode", std::string("reflect")}}, "has too few pixels"},
      {"normalize_image", {{"8 9 3"}}, {{"mean", std::vector<double>{1, 2}}}, "attribute 'mean' has 2 elements for 3"},
      {"convert_image_dtype", {{"8"}}, {{"dtype", DType::i32}}, "attribute 'dtype' is i32"},
      {"adjust_hue", {{"8 9 1"}}, {{"delta", 0.1}}, "has 1 channels, expected 3"},
      {"random_resized_crop",
       {{"8 9 1"}},
       {{"size", Ints{4, 5}}, {"area", std::vector<double>{0.5, 0.4}}},
       "attribute 'area' begins with 0.5"},
      {"random_crop_window", {{"3", DType::i64}}, {}, "expected [..., 2]"},
      {"mixup", {{"batch 8"}, {"4 10"}}, {}, "differ in their rows"},
      {"cutmix", {{"batch 8 3"}, {"batch 10"}}, {}, "expected [rows, height, width, channels]"},
      {"bytes_join", {{"", DType::bytes}}, {}, "has no axis to join along"},
      {"bytes_to_number", {{"", DType::bytes}}, {{"dtype", DType::u8}}, "attribute 'dtype' is u8"},
      {"bytes_to_values", {{"", DType::bytes}}, {{"dtype", DType::boolean}}, "expected a number dtype"},
      {"lookup", {{"", DType::bytes}}, {}, "attribute 'path' and the input 'vocabulary'"},
      {"lookup", {{"", DType::bytes}, {"9", DType::bytes}}, {}, "input 'vocabulary' [9] is not a constant"},
      {"resize", {{"8 9", DType::u8}}, {{"size", Ints{4, 5}}}, "input 'x' [8, 9] is not an image"},
      {"resize", {{"8 9 3", DType::i32}}, {{"size", Ints{4, 5}}}, "has dtype i32, expected u8 or f32"},
      {"resize",
       {{"8 9 3"}},
       {{"size", Ints{4, 5}}, {"antialias", true}, {"method", std::string("area")}},
       "attribute 'antialias' is set"},
      {"select", {{"2"}, {"2"}, {"2"}}, {}, "expected boolean"},
      {"reduce_sum", {{"2 3"}}, {{"axes", Ints{2}}}, "attribute 'axes' is 2"},
      {"reduce_sum", {{"2 3"}}, {{"axes", Ints{1, -1}}}, "twice"},
      {"argmax", {{"2 0"}}, {}, "no elements"},
      {"argmax", {{""}}, {}, "axis"},
      {"top_k", {{"batch 4"}}, {{"k", int64_t{5}}}, "attribute 'k' is 5, the last axis of 'x' has 4 elements"},
      {"top_k", {{"batch 0"}}, {{"k", int64_t{1}}}, "attribute 'k' is 1, the last axis of 'x' has 0 elements"},
      {"top_k", {{"batch 4"}}, {{"k", int64_t{0}}}, "attribute 'k' is 0, expected at least 1"},
      {"top_k", {{"batch 4"}}, {}, "attribute 'k'"},
      {"top_k", {{""}}, {{"k", int64_t{1}}}, "is a scalar"},
      {"top_k", {{"4", DType::boolean}}, {{"k", int64_t{1}}}, "boolean"},
      {"top_k_gradient", {{"2 3"}, {"2 4", DType::i64}}, {{"dims", Dims{2, 9}}}, "equal shapes"},
      {"top_k_gradient", {{"2 3"}, {"2 3", DType::i64}}, {{"dims", Dims{3, 9}}}, "does not fit [3, 9]"},
      {"reshape", {{"batch 3"}}, {{"dims", Dims{-1, 2}}}, "cannot become [-1, 2]"},
      {"reshape", {{"4 3"}}, {{"dims", Dims{5, 2}}}, "12 elements, not 10"},
      {"reshape", {{"4 3"}}, {{"dims", Dims{-1, -1}}}, "[-1, -1], expected one −1 at most"},
      {"reshape", {{"4 3"}}, {{"dims", Dims{-2, 6}}}, "'dims'"},
      {"transpose", {{"2 3"}}, {{"permutation", Ints{0}}}, "expected 2 axes"},
      {"transpose", {{"2 3"}}, {{"permutation", Ints{0, 0}}}, "twice"},
      {"broadcast_to", {{"2 3"}}, {{"dims", Dims{3}}}, "does not broadcast to [3]"},
      {"concat", {}, {}, "got 0 inputs, expected at least 1: input 'inputs' is missing"},
      {"concat", {{"2 3"}, {"3 3"}}, {{"axis", int64_t{1}}}, "input 'inputs' #2 [3, 3]"},
      {"concat", {}, {}, "expected at least 1"},
      {"slice", {{"5"}}, {{"begin", Dims{3}}, {"size", Dims{3}}}, "begins at 3 with 3 elements"},
      {"slice", {{"5"}}, {{"begin", Dims{-6}}, {"size", Dims{1}}}, "begins at -1"},
      {"slice", {{"5"}}, {{"begin", Dims{0}}, {"size", Dims{-2}}}, "with -2 elements"},
      {"pad", {{"5"}}, {{"low", Ints{-1}}, {"high", Ints{0}}}, "'low' is -1"},
      {"gather", {{"5"}, {"2"}}, {}, "expected i32 or i64"},
      {"one_hot", {{"5", DType::i32}}, {{"depth", int64_t{0}}}, "at least 1"},
      {"iota", {}, {{"dims", Dims{3}}, {"axis", int64_t{1}}}, "axis"},
      {"matmul", {{"3 4"}, {"5 6"}}, {}, "4 columns against 5 rows"},
      {"matmul", {{"4"}, {"4 6"}}, {}, "rank 1, expected at least 2"},
      {"conv2d", {{"batch 8 8 3"}, {"3 3 4 8"}}, {}, "3 channels, expected 4"},
      {"conv2d", {{"batch 8 8 4"}, {"3 3 2 7"}}, {{"groups", int64_t{2}}}, "7 filters"},
      {"conv2d", {{"batch 2 8 3"}, {"3 3 3 8"}}, {{"padding", kValid}}, "larger than the padded image"},
      {"conv2d", {{"batch 8 8 3"}, {"3 3 3 8"}, {"7"}}, {}, "expected [8]"},
      {"conv2d",
       {{"batch 8 8 3"}, {"3 3 3 8"}},
       {{"padding", std::string("full")}},
       "expected one of same, valid, explicit"},
      {"conv2d", {{"batch 8 8 3"}, {"3 3 3 8"}}, {{"stride", Ints{0, 1}}}, "'stride' is 0"},
      {"conv2d", {{"batch 8 8 3"}, {"3 3 3 8"}}, {{"stride", Ints{1}}}, "1 elements, expected 2"},
      {"max_pool2d", {{"batch 8 8"}}, {{"window", Ints{2, 2}}}, "expected 4"},
      {"max_pool2d",
       {{"batch 8 8 1"}},
       {{"window", Ints{2, 2}}, {"padding", kExplicit}, {"pads", Ints{2, 0, 0, 0}}},
       "less than the window"},
      {"sparse_softmax_cross_entropy", {{"batch 10"}, {"batch 10", DType::i64}}, {}, "expected labels [batch]"},
      {"sparse_softmax_cross_entropy", {{"batch 10"}, {"batch"}}, {}, "expected an integer"},
      {"softmax_cross_entropy", {{"batch 10"}, {"batch 9"}}, {}, "equal shapes"},
      {"attention", {{"batch 7 64"}, {"batch 7 64"}, {"batch 7 64"}}, {}, "input 'q' [batch, 7, 64] has rank 3"},
      {"attention", {{"4 7 2 8"}, {"4 9 2 8"}, {"4 8 2 8"}}, {}, "input 'k' [4, 9, 2, 8] and input 'v' [4, 8, 2, 8]"},
      {"attention", {{"4 7 2 8"}, {"5 7 2 8"}, {"5 7 2 8"}}, {}, "differ in their rows"},
      {"attention", {{"4 7 2 8"}, {"4 7 2 4"}, {"4 7 2 4"}}, {}, "differ in their channels"},
      {"attention", {{"4 7 2 0"}, {"4 7 2 0"}, {"4 7 2 0"}}, {}, "has no channels"},
      {"attention", {{"4 7 6 8"}, {"4 7 4 8"}, {"4 7 4 8"}}, {}, "6 heads of queries are not a multiple of 4 heads"},
      {"attention", {{"4 7 6 8"}, {"4 7 0 8"}, {"4 7 0 8"}}, {}, "6 heads of queries are not a multiple of 0 heads"},
      {"attention", {{"4 7 2 8"}, {"4 7 2 8"}, {"4 7 2 8"}, {"7", DType::i32}}, {}, "input 'lengths' [7]"},
      {"attention", {{"4 7 2 8"}, {"4 7 2 8"}, {"4 7 2 8"}, {"4", DType::i64}}, {}, "expected i32"},
      {"attention", {{"4 7 2 8"}, {"4 7 2 8"}, {"4 7 2 8"}}, {{"scale", -1.0}}, "attribute 'scale' is -1"},
      {"attention_gradient",
       {{"4 7 2 8"}, {"4 7 2 8"}, {"4 7 2 8"}, {"4 7 2 8"}, {"4 7 2 8"}, {"4 7 2"}},
       {},
       "input 'statistics' [4, 7, 2] has a wrong shape, expected [4, 2, 7]"},
      {"dropout_attention", {{"4 7 2 8"}, {"4 7 2 8"}, {"4 7 2 8"}}, {{"rate", 1.0}}, "attribute 'rate' is 1"},
      {"random_uniform", {}, {{"dims", Dims{2}}, {"low", 2.0}}, "at most high"},
      {"sgd_update", {{"9"}, {"8"}, {""}, {"", DType::boolean}}, {}, "input 'w' [9] and input 'g' [8]"},
      {"sgd_update", {{"9"}, {"9"}, {"1"}, {"", DType::boolean}}, {}, "'lr' [1] is not a scalar"},
      {"pad", {{"281474976710656"}}, {{"low", Ints{1}}, {"high", Ints{0}}}, "2^48"},
      {"concat", {{"1 1 1 1 1 1 1 1"}}, {{"axis", int64_t{8}}}, "rank 8"},
      {"one_hot", {{"1 1 1 1 1 1 1 1", DType::i32}}, {{"depth", int64_t{3}}}, "rank 9"},
  };
  return cases;
}

void check_shapes(const std::vector<Case> &cases) {
  for (const Case &one : cases) {
    const std::string got = infer(one);
    if (got != one.expected) fail_msg("%s: expected %s, got %s", one.op, one.expected, got.c_str());
  }
}

void shapes_are_inferred(void **) {
  check_shapes(good_cases());
  check_shapes(good_parts_of_functions());
}

void check_misuse(const std::vector<Case> &cases) {
  for (const Case &one : cases) {
    const std::string got = infer(one);
    if (got.find(one.expected) == std::string::npos)
      fail_msg("%s: expected '%s' in: %s", one.op, one.expected, got.c_str());
    if (got.find(one.op) == std::string::npos) fail_msg("the op is not named: %s", got.c_str());
  }
}

void misuse_is_named(void **) {
  check_misuse(bad_cases());
  check_misuse(bad_normalizations());
  check_misuse(bad_parts_of_functions());
}

void attributes_become_normal(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {b.batch(), 28, 28, 1});
  const auto attribute = [&](ValueId value, const char *name) {
    return b.graph().node(b.info(value).producer).attributes.at(name);
  };
  assert_true(std::get<Dims>(attribute(b.reshape(x, {b.batch(), -1}), "dims")) == (Dims{b.batch(), 784}));
  assert_true(std::get<Ints>(attribute(b.reduce_sum(x, {-1, 0}), "axes")) == (Ints{0, 3}));
  assert_true(std::get<int64_t>(attribute(b.unary("softmax", x), "axis")) == 3);
  assert_true(std::get<Ints>(attribute(b.op("max_pool2d", {x}, {{"window", Ints{2, 3}}}), "stride")) == (Ints{2, 3}));
}

void the_registry_is_sound(void **) {
  assert_true(all_ops().size() > 100);
  for (const OpDefinition &definition : all_ops()) {
    assert_true(find_op(definition.name, definition.revision) == &definition);
    assert_non_null(definition.infer);
    assert_true((definition.gradient != nullptr) ==
                (definition.differentiability == Differentiability::differentiable));
    assert_false(definition.doc.empty());
    for (const AttributeDefinition &attribute : definition.attributes) {
      if (!attribute.required) assert_true(holds(attribute.default_value, attribute.type));
    }
  }
  assert_null(find_op("matmul", 99));
  assert_null(find_op("no_such_op"));
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(shapes_are_inferred),
      cmocka_unit_test(misuse_is_named),
      cmocka_unit_test(attributes_become_normal),
      cmocka_unit_test(the_registry_is_sound),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace infer_test
