// SPDX-License-Identifier: Apache-2.0
//
// What the suites of entries share: for each entry of the registries, nn.yaml and ops.yaml, small models that contain
// it, and the rows that they are trained on. The lists are in *_cases.cc; entry_list_test.cc fails where an entry that
// may be in a model is in none of them. To add an entry: a line in the list of its kind.
//
//   {.entry = "layer_dense", .inputs = {rows({4})}, .attributes = {{"units", whole(3)}}}
//
// A case is a model whose loss is that of a small network, which every case has, plus a number of each result of the
// entry: the mean of its elements, each times a weight of its own that differs from row to row. So every element of a
// result gets a gradient of its own, and every row counts. A loss is added as it is, a metric measured beside it, and a
// schedule, an optimizer or a rule for parameters trains the small network.
#ifndef TUTTI_TESTS_ENTRIES_ENTRY_CASE_H_
#define TUTTI_TESTS_ENTRIES_ENTRY_CASE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "data/dataset/dataset.h"
#include "graph/attribute.h"
#include "graph/builder.h"
#include "tensor/dtype.h"

namespace tutti::testing::entries {

using Ints = std::vector<int64_t>;
using Doubles = std::vector<double>;

/// Attributes of the type that they must have: a literal might become another.
inline int64_t whole(int64_t value) { return value; }
inline std::string text(const char *value) { return value; }

/// What an input is given.
struct Port {
  enum class Kind {
    none,     ///< left out
    rows,     ///< a feature [batch, dims...], different in each row
    weights,  ///< a trained variable of those dims
    fixed,    ///< a constant of those dims
    carried,  ///< [batch, dims...] of a variable that gets the mean of the entry's second result over all rows
  };
  enum class Fill {
    real,      ///< numbers in (-1, 1)
    positive,  ///< in (0.5, 1.5)
    unit,      ///< in (0.1, 0.9)
    shares,    ///< positive, with the sum 1 over the last dimension
    signs,     ///< -1 or 1
    binary,    ///< 0 or 1
    numbers,   ///< i32 below `bound`
    lengths,   ///< i32 from 1 up to `bound`
    flags,     ///< booleans
  };
  Kind kind = Kind::none;
  Fill fill = Fill::real;
  Ints dims = {};
  int64_t bound = 0;
  /// Of rows: a variable of zeros [dims...], trained, is added to each of them.
  bool is_trained = false;
};

/// Of floating point, and trained.
inline Port rows(Ints dims, Port::Fill fill = Port::Fill::real) {
  return {.kind = Port::Kind::rows, .fill = fill, .dims = std::move(dims), .is_trained = true};
}
/// Of floating point: targets, weights of examples.
inline Port given(Ints dims, Port::Fill fill = Port::Fill::real) {
  return {.kind = Port::Kind::rows, .fill = fill, .dims = std::move(dims)};
}
inline Port numbers(int64_t bound, Ints dims) {
  return {.kind = Port::Kind::rows, .fill = Port::Fill::numbers, .dims = std::move(dims), .bound = bound};
}
inline Port lengths(int64_t bound, Ints dims = {}) {
  return {.kind = Port::Kind::rows, .fill = Port::Fill::lengths, .dims = std::move(dims), .bound = bound};
}
inline Port flags(Ints dims) { return {.kind = Port::Kind::rows, .fill = Port::Fill::flags, .dims = std::move(dims)}; }
inline Port weights(Ints dims, Port::Fill fill = Port::Fill::real) {
  return {.kind = Port::Kind::weights, .fill = fill, .dims = std::move(dims)};
}
inline Port fixed_numbers(int64_t bound, Ints dims) {
  return {.kind = Port::Kind::fixed, .fill = Port::Fill::numbers, .dims = std::move(dims), .bound = bound};
}
inline Port carried(Ints dims) { return {.kind = Port::Kind::carried, .dims = std::move(dims)}; }

/// Of what needs all rows of a step at once.
constexpr char kInPieces[] = "so its results must be sums or means over independent rows";

struct EntryCase {
  std::string entry;
  /// In the order of the registry.
  std::vector<Port> inputs = {};
  /// Optional ones by name.
  std::vector<std::pair<std::string, Port>> named = {};
  impl::graph::Attributes attributes = {};
  /// What the error says of a step that is computed in pieces, of replicas or micro-batches; empty: it is none.
  std::string in_pieces = {};
  /// What the error says of micro-batches, where replicas are none.
  std::string in_micro_batches = {};
  /// It draws random numbers, or takes statistics or numbers of rows, for each micro-batch: that is its batch.
  bool is_by_micro_batch = false;
  /// Nothing that the case trains has a gradient through the entry.
  bool is_flat = false;
  /// So many of its results count, the first ones; 0: all.
  size_t results = 0;
  /// By how much results may differ, as a share of the largest number: more where the entry computes in f32.
  double limit = 1e-9;

  /// "layer_conv1d(padding=causal, filters=2) of rows[6, 2]", for messages.
  std::string name() const;
};

using Fill = Port::Fill;
using Cases = std::vector<EntryCase>;

inline void append(Cases &cases, const Cases &more) { cases.insert(cases.end(), more.begin(), more.end()); }

/// All cases of a list, one list for each kind.
Cases op_cases();
Cases function_cases();
Cases layer_cases();
Cases loss_cases();
Cases metric_cases();
Cases rule_cases();  ///< schedules, optimizers, rules for parameters
/// The same of variables and constants of three rows each, in place of the rows of a batch.
Cases without_rows(const Cases &cases);
Cases all_cases();
/// The first case of each entry; all where the environment has TUTTI_TEST_ALL_CASES, as in the suite `long`.
Cases chosen_cases();

/// The features of the case, in a builder that has none.
void declare_features(impl::graph::GraphBuilder &builder, const EntryCase &one, impl::tensor::DType dtype);
/// The model of the case, in a builder that has its features. Mistakes are left in the builder.
void build(impl::graph::GraphBuilder &builder, const EntryCase &one, impl::tensor::DType dtype, bool is_training);
/// Names of the variables whose gradient flows through the entry.
std::vector<std::string> trained_through(const EntryCase &one);

/// The first `count` rows of the case's features, which are the same numbers at any call.
impl::base::Result<impl::data::DatasetRef> make_rows(const EntryCase &one, impl::tensor::DType dtype, int64_t count);

}  // namespace tutti::testing::entries

#endif  // TUTTI_TESTS_ENTRIES_ENTRY_CASE_H_
