// SPDX-License-Identifier: Apache-2.0
//
// Datasets in C++: pipelines, iterators, feeds, and writers of record files.
#ifndef TUTTI_CPP_DATASET_HPP_
#define TUTTI_CPP_DATASET_HPP_

#include <tutti/cpp/handle.hpp>

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tutti {

/// Texts, bytes[n], the most frequent first, and how often each came, i64[n].
struct TextCounts {
  Tensor texts;
  Tensor counts;
};

/// An immutable description of where examples come from; an Iterator has the progress.
class Dataset : public detail::Handle<tutti_dataset, tutti_dataset_ref, tutti_dataset_unref> {
 public:
  using Handle::Handle;
  int64_t cardinality() const { return tutti_dataset_get_cardinality(get()); }
  /// The components of an element: how many, and of each its name and role; all that is known of them, as JSON.
  int64_t component_count() const { return tutti_dataset_get_component_count(get()); }
  std::string component_name(int64_t index) const {
    return detail::copied(tutti_dataset_get_component_name(get(), index));
  }
  int32_t component_role(int64_t index) const { return tutti_dataset_get_component_role(get(), index); }
  std::string spec() const { return detail::copied(tutti_dataset_get_spec(get())); }
  /// Well-known mistakes in the order of transforms, one per line.
  std::string lint() const { return detail::copied(tutti_dataset_get_lint(get())); }
  /// The first `count` elements, and the rest.
  std::pair<Dataset, Dataset> split(int64_t count) const {
    tutti_dataset *first = nullptr, *rest = nullptr;
    detail::check([&](tutti_error **err) { return tutti_dataset_split(get(), count, &first, &rest, err); });
    return {Dataset(first), Dataset(rest)};
  }
  /// How often each class comes. Without a number of classes the dataset is walked over twice.
  std::vector<int64_t> count_classes(const char *component, int64_t class_count = 0,
                                     tutti_cancel *cancel = nullptr) const {
    if (class_count == 0) {
      detail::check([&](tutti_error **err) {
        return tutti_dataset_count_classes(get(), component, 0, cancel, nullptr, &class_count, err);
      });
    }
    std::vector<int64_t> counts(static_cast<size_t>(class_count));
    if (class_count == 0) return counts;
    detail::check([&](tutti_error **err) {
      return tutti_dataset_count_classes(get(), component, class_count, cancel, counts.data(), nullptr, err);
    });
    return counts;
  }
  /// How often each text comes: at most so many texts (0 = all), each at least so often, in so much memory (0 = 1 GiB).
  TextCounts count_texts(const char *component, int64_t most_texts = 0, int64_t least_count = 0,
                         int64_t memory_bytes = 0, tutti_cancel *cancel = nullptr) const {
    tutti_tensor *texts = nullptr, *counts = nullptr;
    detail::check([&](tutti_error **err) {
      return tutti_dataset_count_texts(get(), component, most_texts, least_count, memory_bytes, cancel, &texts, &counts,
                                       err);
    });
    return {Tensor(texts), Tensor(counts)};
  }
};

/// while (iterator.next()) use(iterator.component(0));
class Iterator : public detail::Handle<tutti_iterator, tutti_iterator_ref, tutti_iterator_unref> {
 public:
  explicit Iterator(const Dataset &dataset, int64_t seed = 0) {
    detail::check([&](tutti_error **err) { return tutti_iterator_create(dataset, seed, out(), err); });
  }
  bool next(tutti_cancel *cancel = nullptr) {
    uint8_t more = 0;
    detail::check([&](tutti_error **err) { return tutti_iterator_next(get(), cancel, &more, err); });
    return more != 0;
  }
  /// Of the element last moved to; empty when there is none. May be kept.
  Tensor component(int64_t index) const { return Tensor::shared(tutti_iterator_get_component(get(), index)); }
  /// Its rows that a replica of this process gets, where a strategy has distributed the dataset; else empty.
  Tensor piece(int64_t replica, int64_t index) const {
    return Tensor::shared(tutti_iterator_get_piece(get(), replica, index));
  }
  /// The position after the element last given, for restore() on an iterator of the same dataset and seed.
  std::string save() {
    const char *state = nullptr;
    detail::check([&](tutti_error **err) { return tutti_iterator_save(get(), &state, err); });
    return detail::copied(state);
  }
  /// What the walk has cost until now, stage by stage, as JSON.
  std::string report() {
    const char *report = nullptr;
    detail::check([&](tutti_error **err) { return tutti_iterator_get_report(get(), &report, err); });
    return detail::copied(report);
  }
  void restore(const std::string &state) {
    detail::check([&](tutti_error **err) { return tutti_iterator_restore(get(), state.c_str(), err); });
  }
};

/// A bounded queue that the program pushes examples, or batches of them, into, from any thread.
class Feed : public detail::Handle<tutti_feed, tutti_feed_ref, tutti_feed_unref> {
 public:
  explicit Feed(int64_t capacity, tutti_context *context = nullptr) {
    detail::check([&](tutti_error **err) { return tutti_feed_create(context, capacity, out(), err); });
  }
  Feed &declare(const char *name, int32_t role, int32_t dtype, const std::vector<int64_t> &dims) {
    const int64_t rank = static_cast<int64_t>(dims.size());
    detail::check(
        [&](tutti_error **err) { return tutti_feed_declare(get(), name, role, dtype, dims.data(), rank, err); });
    return *this;
  }
  /// Each element is a batch of 1 to `most_rows` rows, in tensors whose first dimension is the rows.
  Feed &set_batch_size(int64_t most_rows) {
    detail::check([&](tutti_error **err) { return tutti_feed_set_batch_size(get(), most_rows, err); });
    return *this;
  }
  /// Waits while the feed is full.
  Feed &push(const std::vector<Tensor> &components, tutti_cancel *cancel = nullptr) {
    const std::vector<tutti_tensor *> handles(components.begin(), components.end());
    const int64_t count = static_cast<int64_t>(handles.size());
    detail::check([&](tutti_error **err) { return tutti_feed_push(get(), handles.data(), count, cancel, err); });
    return *this;
  }
  /// No more will come.
  void finish() {
    detail::check([&](tutti_error **err) { return tutti_feed_finish(get(), err); });
  }
  /// The reader shall fail with this error.
  void fail(int32_t code, const std::string &message) {
    detail::check([&](tutti_error **err) { return tutti_feed_fail(get(), code, message.c_str(), err); });
  }
  /// The number of the first element that the reader needs: 0, or where a resumed training goes on, which is known when
  /// its hooks get TUTTI_EVENT_BEGIN.
  int64_t position() const { return tutti_feed_get_position(get()); }
};

/// Writes a file of records, which is there once close() has returned; without it there is none.
class RecordWriter : public detail::Handle<tutti_record_writer, tutti_record_writer_ref, tutti_record_writer_unref> {
 public:
  explicit RecordWriter(const std::string &path, const char *compression = nullptr, tutti_context *context = nullptr) {
    detail::check(
        [&](tutti_error **err) { return tutti_record_writer_create(context, path.c_str(), compression, out(), err); });
  }
  RecordWriter &write(const std::string &record) {
    const int64_t size = static_cast<int64_t>(record.size());
    detail::check([&](tutti_error **err) { return tutti_record_writer_write(get(), record.data(), size, err); });
    return *this;
  }
  /// A feature of the example that is written next.
  RecordWriter &feature(const char *name, const Tensor &tensor) {
    detail::check([&](tutti_error **err) { return tutti_record_writer_add_feature(get(), name, tensor, err); });
    return *this;
  }
  RecordWriter &write_example() {
    detail::check([&](tutti_error **err) { return tutti_record_writer_write_example(get(), err); });
    return *this;
  }
  /// A feature list of the sequence example that is written next: rows are steps, all of them whole.
  RecordWriter &feature_list(const char *name, const Tensor &tensor) {
    const auto add = [&](tutti_error **err) {
      return tutti_record_writer_add_feature_list(get(), name, tensor, nullptr, err);
    };
    detail::check(add);
    return *this;
  }
  /// The same where each step has so many rows of its own.
  RecordWriter &feature_list(const char *name, const Tensor &tensor, const Tensor &lengths) {
    const auto add = [&](tutti_error **err) {
      return tutti_record_writer_add_feature_list(get(), name, tensor, lengths, err);
    };
    detail::check(add);
    return *this;
  }
  RecordWriter &write_sequence_example() {
    detail::check([&](tutti_error **err) { return tutti_record_writer_write_sequence_example(get(), err); });
    return *this;
  }
  void close() {
    detail::check([&](tutti_error **err) { return tutti_record_writer_close(get(), err); });
  }
};

/// A dataset being written; the first mistake is thrown by build().
class Pipeline : public detail::Handle<tutti_pipeline, tutti_pipeline_ref, tutti_pipeline_unref> {
 public:
  explicit Pipeline(tutti_context *context = nullptr) {
    detail::check([&](tutti_error **err) { return tutti_pipeline_create(context, out(), err); });
  }
  Pipeline &slices(const char *name, int32_t role, const Tensor &tensor) {
    return tutti_pipeline_add_slices(get(), name, role, tensor), *this;
  }
  /// A component of exactly one element.
  Pipeline &tensor(const char *name, int32_t role, const Tensor &tensor) {
    return tutti_pipeline_add_tensor(get(), name, role, tensor), *this;
  }
  Pipeline &idx(const char *name, int32_t role, const std::string &path) {
    return tutti_pipeline_add_idx(get(), name, role, path.c_str()), *this;
  }
  Pipeline &dataset(const Dataset &source) { return tutti_pipeline_add_dataset(get(), source), *this; }
  Pipeline &feed(const Feed &source) { return tutti_pipeline_add_feed(get(), source), *this; }
  Pipeline &batch(int64_t size) { return tutti_pipeline_batch(get(), size, nullptr), *this; }
  Pipeline &shuffle(int64_t buffer_size) { return tutti_pipeline_shuffle(get(), buffer_size, nullptr), *this; }
  /// For ever, or so many times.
  Pipeline &repeat() { return tutti_pipeline_repeat(get(), nullptr), *this; }
  Pipeline &repeat(int64_t count) {
    tutti_pipeline_repeat_attrs attrs = {};
    attrs.has_count = 1;
    attrs.count = count;
    return tutti_pipeline_repeat(get(), &attrs), *this;
  }
  Pipeline &take(int64_t count) { return tutti_pipeline_take(get(), count), *this; }
  Pipeline &skip(int64_t count) { return tutti_pipeline_skip(get(), count), *this; }
  Pipeline &cache() { return tutti_pipeline_cache(get(), nullptr), *this; }
  /// In a file; the key stands for what functions in the pipeline do.
  Pipeline &cache(const std::string &path, const std::string &key = std::string()) {
    tutti_pipeline_cache_attrs attrs = {};
    attrs.path = path.c_str();
    attrs.key = key.c_str();
    return tutti_pipeline_cache(get(), &attrs), *this;
  }
  Pipeline &prefetch() { return tutti_pipeline_prefetch(get(), nullptr), *this; }
  /// `build(Graph)` writes the map; it runs once, before this returns.
  template <typename Build>
  Pipeline &map(Build &&build, int64_t parallelism = 1) {
    return tutti_pipeline_map_graph(get(), call_build<Build>, user_of(build), parallelism), *this;
  }
  /// A map of batches that devices with memory of their own run, where they can; else as map(). Behind batch(), with
  /// nothing but prefetch() and options behind it.
  template <typename Build>
  Pipeline &map_on_device(Build &&build) {
    tutti_pipeline_begin(get(), "map", 1);
    tutti_pipeline_set_bool(get(), "on_device", 1);
    tutti_pipeline_set_graph(get(), call_build<Build>, user_of(build));
    return tutti_pipeline_end(get()), *this;
  }
  /// The one output of the graph, a truth value, says which elements stay.
  template <typename Build>
  Pipeline &filter(Build &&build) {
    return tutti_pipeline_filter_graph(get(), call_build<Build>, user_of(build)), *this;
  }
  /// Any transform: transform("shuffle", 1, [](tutti_pipeline *p) { tutti_pipeline_set_i64(p, "buffer_size", 9); }).
  template <typename SetParameters>
  Pipeline &transform(const char *name, int32_t revision, SetParameters &&set_parameters) {
    tutti_pipeline_begin(get(), name, revision);
    set_parameters(get());
    return tutti_pipeline_end(get()), *this;
  }
  Dataset build() {
    return detail::make<Dataset>([&](auto **out, auto **err) { return tutti_pipeline_build(get(), out, err); });
  }

 private:
  template <typename Build>
  static int32_t call_build(tutti_graph *graph, void *user, tutti_error **err) {
    return detail::shield(err, [&] { (*static_cast<std::remove_reference_t<Build> *>(user))(Graph(graph)); });
  }
  template <typename Build>
  static void *user_of(Build &build) {
    return const_cast<void *>(static_cast<const void *>(std::addressof(build)));
  }
};

}  // namespace tutti

#endif  // TUTTI_CPP_DATASET_HPP_
