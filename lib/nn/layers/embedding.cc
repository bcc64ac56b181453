// SPDX-License-Identifier: Apache-2.0
//
// Trained tables whose rows integers look up. A lookup is one gather of the table's rows, so that what reads the graph
// finds which rows of the table a step changes.
#include <limits>
#include <utility>

#include "base/text.h"
#include "graph/initializer.h"
#include "nn/expansion.h"
#include "nn/layers/positions.h"

namespace tutti::impl::nn {
namespace {

using graph::Dim;
using graph::Dims;

constexpr tensor::DType kTable = tensor::DType::f32;

bool check_integers(Expansion &e, ValueId value, std::string_view name) {
  const tensor::DType dtype = e.builder().dtype(value);
  if (tensor::is_integer(dtype)) return true;
  e.fail(base::concat("input '", name, "' is ", tensor::name(dtype), ", expected integers"));
  return false;
}

/// Of a dtype that gather takes.
ValueId gatherable(GraphBuilder &b, ValueId value) {
  const tensor::DType dtype = b.dtype(value);
  const bool is_wide = dtype == tensor::DType::i64 || dtype == tensor::DType::u32 || dtype == tensor::DType::u64;
  return b.cast(value, is_wide ? tensor::DType::i64 : tensor::DType::i32);
}

/// [ids...] as [ids..., 1], to go with rows.
ValueId as_column(GraphBuilder &b, ValueId value) {
  if (value == kNoValue) return kNoValue;
  Dims dims = b.dims(value);
  dims.emplace_back(1);
  return b.reshape(value, dims);
}

ValueId make_table(Expansion &e) {
  base::Result<graph::InitializerSpec> spec = graph::parse_initializer(e.text("table_initializer"));
  if (!spec.ok()) return e.fail(spec.status().message());
  const int64_t padding = e.i64("padding_id"), count = e.i64("count");
  if (padding >= count)
    return e.fail(base::concat("padding_id is ", padding, ", expected an id below the count ", count));
  graph::InitializerSpec initializer = spec.take();
  if (padding >= 0) initializer.attributes.insert_or_assign(std::string(graph::kZeroRow), padding);
  const ValueId table =
      e.builder().variable("table", kTable, {count, e.i64("width")}, std::move(initializer), {.automatic_name = true});
  e.builder().add_penalty({table, e.f64("table_l1"), e.f64("table_l2")});
  return table;
}

/// Which ids are the padding; kNoValue where there is none.
ValueId is_padding(Expansion &e, ValueId ids) {
  const int64_t padding = e.i64("padding_id");
  if (padding < 0) return kNoValue;
  GraphBuilder &b = e.builder();
  if (padding > std::numeric_limits<int32_t>::max()) ids = b.cast(ids, tensor::DType::i64);
  return b.op("equal", {ids, b.constant(static_cast<double>(padding), b.dtype(ids))});
}

/// One bag for each index of all axes but the last.
class Bags {
 public:
  explicit Bags(Expansion &e) : e_(e), b_(e.builder()), combiner_(e.text("combiner")) {}

  ValueId run() {
    const LayerScope scope(b_, "embedding_bag");
    if (!check_inputs()) return kNoValue;
    find_kept();
    const ValueId table = make_table(e_);
    if (table == kNoValue || !b_.ok()) return kNoValue;
    const ValueId rows = b_.op("gather", {table, ids_});
    return combiner_ == "max" ? largest(rows) : sums(rows);
  }

 private:
  int64_t axis() const { return static_cast<int64_t>(dims_.size()) - 1; }

  bool check_inputs() {
    const ValueId ids = e_.input(0), weights = e_.input(1), lengths = e_.input(2);
    if (ids == kNoValue || !check_integers(e_, ids, "ids")) return false;
    dims_ = b_.dims(ids);
    if (dims_.size() < 2) return refuse("ids [batch, ..., length]", ids);
    const Dims bags(dims_.begin(), dims_.end() - 1);
    if (lengths != kNoValue && !check_integers(e_, lengths, "lengths")) return false;
    if (lengths != kNoValue && b_.dims(lengths) != bags)
      return refuse(base::concat("lengths ", graph::to_string(bags), ", one for each bag"), lengths);
    if (weights != kNoValue && (b_.dims(weights) != dims_ || !tensor::is_floating(b_.dtype(weights))))
      return refuse(base::concat("weights of floating point ", graph::to_string(dims_), ", one for each id"), weights);
    if (weights != kNoValue && combiner_ == "max") {
      e_.fail("a maximum has no weights: combiner must be sum or mean");
      return false;
    }
    ids_ = gatherable(b_, ids);
    return b_.ok();
  }

  bool refuse(std::string_view expected, ValueId got) {
    e_.fail(base::concat("expected ", expected, ", got ", tensor::name(b_.dtype(got)), " ",
                         graph::to_string(b_.dims(got))));
    return false;
  }

  /// [ids..., 1] of what counts, where not all does. Ids behind the end of a bag become its first one, so that no other
  /// row is looked up; of an empty bag they become 0.
  void find_kept() {
    ValueId kept = kNoValue;
    if (e_.has_input(2)) {
      kept = is_inside();
      ids_ = b_.select(kept, ids_, b_.select(first_of(kept), first_of(ids_), b_.constant(0, b_.dtype(ids_))));
    }
    if (const ValueId padding = is_padding(e_, ids_); padding != kNoValue) {
      const ValueId others = b_.op("logical_not", {padding});
      kept = kept == kNoValue ? others : b_.op("logical_and", {kept, others});
    }
    kept_ = as_column(b_, kept);
  }

  /// [ids...]: is the position below the length of its bag? The gather of the lengths finds one that no bag can have.
  /// Of each bag, with an axis of 1.
  ValueId first_of(ValueId values) {
    Dims size = dims_;
    size.back() = 1;
    return b_.slice(values, Dims(dims_.size(), 0), size);
  }

  ValueId is_inside() {
    const Dim &length = dims_.back();
    const ValueId found = lengths_within(e_, e_.input(2), length);
    const ValueId positions = b_.op("iota", {}, {{"dims", Dims{length}}, {"dtype", tensor::DType::i32}});
    return b_.op("less", {positions, as_column(b_, found)});
  }

  ValueId only_kept(ValueId value, double otherwise) {
    return kept_ == kNoValue ? value : b_.select(kept_, value, b_.constant(otherwise, kTable));
  }

  /// [bags..., 1], or [1] where it is the same for all: what the weights, of which only those that count are not 0, of
  /// a bag sum up to; 1 for each id where there are none.
  ValueId shares(ValueId weights) {
    if (weights != kNoValue) return b_.reduce_sum(weights, {axis()});
    if (kept_ != kNoValue) return b_.reduce_sum(b_.cast(kept_, kTable), {axis()});
    const ValueId ones = b_.broadcast_to(b_.constant(1, kTable), {dims_.back(), Dim(1)});
    return b_.reduce_sum(ones, {0});
  }

  ValueId sums(ValueId rows) {
    ValueId weights = kNoValue;
    if (e_.has_input(1)) weights = only_kept(as_column(b_, b_.cast(e_.input(1), kTable)), 0);
    ValueId weighed = only_kept(rows, 0);
    if (weights != kNoValue) weighed = b_.mul(weighed, weights);
    const ValueId sum = b_.reduce_sum(weighed, {axis()});
    if (combiner_ == "sum") return sum;
    const ValueId share = shares(weights), zero = b_.constant(0, kTable);
    const ValueId is_nothing = b_.op("equal", {share, zero});
    const ValueId divisor = b_.select(is_nothing, b_.constant(1, kTable), share);
    return b_.select(is_nothing, zero, b_.div(sum, divisor));
  }

  ValueId largest(ValueId rows) {
    const ValueId most = b_.reduce("reduce_max", only_kept(rows, -std::numeric_limits<double>::infinity()), {axis()});
    const Dim &length = dims_.back();
    if (kept_ == kNoValue && length.is_constant() && length.constant() > 0) return most;
    const ValueId zero = b_.constant(0, kTable);
    return b_.select(b_.op("greater", {shares(kNoValue), zero}), most, zero);
  }

  Expansion &e_;
  GraphBuilder &b_;
  const std::string &combiner_;
  Dims dims_;  // of the ids
  ValueId ids_ = kNoValue, kept_ = kNoValue;
};

}  // namespace

ValueId expand_layer_embedding(Expansion &e) {
  GraphBuilder &b = e.builder();
  const LayerScope scope(b, "embedding");
  if (e.input(0) == kNoValue || !check_integers(e, e.input(0), "ids")) return kNoValue;
  const ValueId ids = gatherable(b, e.input(0)), table = make_table(e);
  if (table == kNoValue || !b.ok()) return kNoValue;
  const ValueId rows = b.op("gather", {table, ids});
  const ValueId padding = is_padding(e, ids);
  return padding == kNoValue ? rows : b.select(as_column(b, padding), b.unary("stop_gradient", rows), rows);
}

ValueId expand_layer_embedding_bag(Expansion &e) { return Bags(e).run(); }

}  // namespace tutti::impl::nn
