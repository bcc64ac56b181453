// SPDX-License-Identifier: Apache-2.0
//
// The random numbers of base/random/philox.h as a program computes them, bit for bit. Numbers of 64 bits are held in
// two values of 32.
//
//   const RandomKeyValue key = random_key(node, stream);
//   const Value words = random_words(text, key, global_rows(node, rows, has_batch), blocks);   // u32[rows, 4 · blocks]
#ifndef TUTTI_BACKEND_PJRT_EMIT_RANDOM_WORDS_H_
#define TUTTI_BACKEND_PJRT_EMIT_RANDOM_WORDS_H_

#include <array>
#include <cstdint>

#include "backend/pjrt/emit/node_emitter.h"

namespace tutti::impl::backend::pjrt {

/// A number of 64 bits: u32 values of one shape.
struct WordPair {
  Value low, high;
};

/// Of a value of u64 or i64.
WordPair split_words(ProgramText &text, const Value &x);
/// philox4x32(key, high, low): four values of the shape that all operands have.
std::array<Value, 4> philox(ProgramText &text, const WordPair &key, const WordPair &high, const WordPair &low);
/// RandomKey{key}.fold(a, b), all scalars.
WordPair fold_key(ProgramText &text, const WordPair &key, const WordPair &a, const WordPair &b);

/// The key of an op, from the run's seed and batch counter, and from the iteration where it is in a scan.
WordPair random_key(NodeEmitter &node, uint64_t stream);
/// Rows of the batch of all replicas: [rows], u64; zeros where the value has no batch.
Value global_rows(NodeEmitter &node, int64_t rows, bool has_batch);
/// The iteration that index `index` (i64) of a scan is, within the iteration `outer` (u64, or absent) around it.
Value scan_iteration_value(ProgramText &text, const Value &outer, const Value &index);

/// Words of blocks 0 ... `blocks` − 1 of each row (u64[rows]): u32[rows, 4 · blocks].
Value random_words(ProgramText &text, const WordPair &key, const Value &rows, int64_t blocks);

}  // namespace tutti::impl::backend::pjrt

#endif  // TUTTI_BACKEND_PJRT_EMIT_RANDOM_WORDS_H_
