// SPDX-License-Identifier: Apache-2.0
#include "backend/pjrt/emit/random_words.h"

#include "base/random/philox.h"

namespace tutti::impl::backend::pjrt {

using tensor::DType;

namespace {

Value shift_right(ProgramText &text, const Value &x, double bits) {
  return text.binary("shift_right_logical", x, text.like(x, bits));
}

WordPair constant_words(ProgramText &text, uint64_t value) {
  return {text.integer(DType::u32, static_cast<int64_t>(value & UINT32_MAX)),
          text.integer(DType::u32, static_cast<int64_t>(value >> 32))};
}

/// x · multiplier, of 32 bits each.
WordPair multiply(ProgramText &text, const Value &x, uint32_t multiplier) {
  const Value wide = text.convert(x, DType::u64);
  return split_words(text, text.mul(wide, static_cast<double>(multiplier)));
}

/// The value as u64, for what takes such.
Value join_words(ProgramText &text, const WordPair &words) {
  const Value high = text.convert(words.high, DType::u64);
  const Value shifted = text.binary("shift_left", high, text.like(high, 32));
  return text.binary("or", shifted, text.convert(words.low, DType::u64));
}

WordPair spread(ProgramText &text, const WordPair &words, const Dims &dims) {
  return {text.broadcast(words.low, dims, {}), text.broadcast(words.high, dims, {})};
}

}  // namespace

WordPair split_words(ProgramText &text, const Value &x) {
  const Value bits = text.convert(x, DType::u64);
  const Value low = text.binary("and", bits, text.like(bits, static_cast<double>(UINT32_MAX)));
  return {text.convert(low, DType::u32), text.convert(shift_right(text, bits, 32), DType::u32)};
}

std::array<Value, 4> philox(ProgramText &text, const WordPair &key, const WordPair &high, const WordPair &low) {
  std::array<Value, 4> counter = {low.low, low.high, high.low, high.high};
  WordPair round_key = key;
  const auto mix = [&](const Value &product, const Value &word, const Value &key_word) {
    return text.binary("xor", text.binary("xor", product, word), key_word);
  };
  for (int round = 0; round < base::kPhiloxRounds; ++round) {
    const WordPair first = multiply(text, counter[0], base::kPhiloxMultipliers[0]);
    const WordPair second = multiply(text, counter[2], base::kPhiloxMultipliers[1]);
    counter = {mix(second.high, counter[1], round_key.low), second.low, mix(first.high, counter[3], round_key.high),
               first.low};
    round_key.low = text.add(round_key.low, static_cast<double>(base::kPhiloxWeyl[0]));
    round_key.high = text.add(round_key.high, static_cast<double>(base::kPhiloxWeyl[1]));
  }
  return counter;
}

WordPair fold_key(ProgramText &text, const WordPair &key, const WordPair &a, const WordPair &b) {
  const std::array<Value, 4> words = philox(text, key, a, b);
  return {words[0], words[1]};
}

WordPair random_key(NodeEmitter &node, uint64_t stream) {
  ProgramText &text = node.text();
  const WordPair seed = split_words(text, node.run_scalar(TUTTI_RUN_SEED));
  const WordPair counter = split_words(text, node.run_scalar(TUTTI_RUN_BATCH_COUNTER));
  const WordPair key = fold_key(text, seed, constant_words(text, stream), counter);
  const Value &iteration = node.run().iteration;
  if (iteration.is_absent()) return key;
  return fold_key(text, key, split_words(text, iteration), constant_words(text, 0));
}

Value global_rows(NodeEmitter &node, int64_t rows, bool has_batch) {
  ProgramText &text = node.text();
  if (!has_batch) return text.splat(DType::u64, {rows}, 0);
  const Value first = text.broadcast(node.run_scalar(TUTTI_RUN_ROW_OFFSET), {rows}, {});
  return text.convert(text.add(first, text.iota(DType::i64, {rows}, 0)), DType::u64);
}

Value scan_iteration_value(ProgramText &text, const Value &outer, const Value &index) {
  if (outer.is_absent()) return text.convert(text.add(index, 1), DType::u64);
  return join_words(text, fold_key(text, split_words(text, outer), split_words(text, index), constant_words(text, 1)));
}

Value random_words(ProgramText &text, const WordPair &key, const Value &rows, int64_t blocks) {
  const Dims dims = {rows.dims[0], blocks};
  const WordPair row = split_words(text, text.broadcast(rows, dims, {0}));
  const WordPair block = split_words(text, text.iota(DType::u64, dims, 1));
  const std::array<Value, 4> words = philox(text, spread(text, key, dims), row, block);
  std::vector<Value> parts;
  for (const Value &word : words)
    parts.push_back(text.reshape(word, {dims[0], blocks, 1}));
  return text.reshape(text.concat_parts(parts, 2), {dims[0], 4 * blocks});
}

}  // namespace tutti::impl::backend::pjrt
