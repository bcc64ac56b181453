// SPDX-License-Identifier: Apache-2.0
//
// What the tests of interrupted walks share: every stage once, over a source of thirteen rows that the test gives it,
// and what a walk answered, as text.
#ifndef TUTTI_TESTS_DATA_INTERRUPT_CASES_H_
#define TUTTI_TESTS_DATA_INTERRUPT_CASES_H_

#include <functional>
#include <string>
#include <vector>

#include "../base/temporary_directory.h"
#include "conformance/dataset_conformance.h"
#include "graph/builder.h"
#include "interpreting_runner.h"
#include "sample_data.h"

namespace tutti::testing {

using namespace tutti::impl;
using base::CancelToken;
using base::Ref;
using base::Result;
using base::Status;
using data::DatasetRef;
using data::Element;
using data::IteratorContext;
using data::Pipeline;
using graph::GraphBuilder;
using tensor::Tensor;

inline constexpr int64_t kElements = 13;
inline const graph::Attributes kWeights{{"component", std::string("y")},
                                        {"counts", std::vector<int64_t>(kElements, 2)}};
inline const graph::Attributes kOnlyY{{"labels", std::vector<std::string>{"y"}}};
inline const graph::Attributes kProgram{{"command", std::vector<std::string>{MAP_WORKER, "fail"}}};

inline data::TransformArguments with_map(data::MapFunction function) {
  data::TransformArguments arguments;
  arguments.map = std::move(function);
  return arguments;
}

inline data::TransformArguments with_others(std::vector<DatasetRef> others) {
  data::TransformArguments arguments;
  arguments.others = std::move(others);
  return arguments;
}

// x ↦ x / 2, for rows or for single elements.
inline data::TransformArguments halve(graph::Dims dims) {
  GraphBuilder b;
  b.set_result("x", b.div(b.input("x", tensor::DType::f32, std::move(dims)), b.constant(2, tensor::DType::f32)));
  data::TransformArguments arguments;
  arguments.graph = std::make_shared<const graph::Graph>(b.finish_graph().take());
  return arguments;
}

inline Status through(const Element &input, Element &output) {
  output = input;
  return Status();
}

inline Status fail_on_five(const Element &input, Element &output) {
  output = input;
  TUTTI_ASSIGN(const int32_t row, input.components[1].scalar_value<int32_t>());
  return row == 5 ? base::out_of_range("five is not allowed") : Status();
}

// A callback's own deadline is an error like any other.
inline Status late_on_five(const Element &input, Element &output) {
  const Status status = fail_on_five(input, output);
  return status.ok() ? status : base::deadline_exceeded("five was too slow");
}

inline Status keep_even(const Element &input, bool &keep) {
  TUTTI_ASSIGN(const int32_t row, input.components[1].scalar_value<int32_t>());
  keep = row % 2 == 0;
  return Status();
}

// Shapes that are known only when the element is there.
inline Pipeline unstatic(Pipeline pipeline) {
  data::TransformArguments arguments = with_map(through);
  arguments.output_spec = data::ElementSpec{{{"x", data::Role::feature, tensor::DType::f32, {data::unknown_dim()}},
                                             {"y", data::Role::label, tensor::DType::i32, {}}}};
  return std::move(pipeline.apply("map_callback", {}, std::move(arguments)));
}

inline data::TransformArguments below_nine() {
  data::TransformArguments arguments;
  arguments.filter = [](const Element &input, bool &goes_on) -> Status {
    TUTTI_ASSIGN(const int32_t row, input.components[1].scalar_value<int32_t>());
    goes_on = row < 9;
    return Status();
  };
  return arguments;
}

// y becomes y / 7.
inline data::TransformArguments with_class() {
  return with_map([](const Element &input, Element &output) -> Status {
    TUTTI_ASSIGN(const int32_t row, input.components[1].scalar_value<int32_t>());
    output = input;
    TUTTI_ASSIGN(output.components[1], Tensor::scalar(row / 7));
    return Status();
  });
}

// x with 1, 2 or 3 of its columns.
inline data::TransformArguments with_shortened() {
  data::TransformArguments arguments = with_map([](const Element &input, Element &output) -> Status {
    TUTTI_ASSIGN(const int32_t row, input.components[1].scalar_value<int32_t>());
    output = input;
    TUTTI_ASSIGN(output.components[0], input.components[0].slice_rows(0, row % 3 + 1));
    return Status();
  });
  arguments.output_spec = data::ElementSpec{{{"x", data::Role::feature, tensor::DType::f32, {data::unknown_dim()}},
                                             {"y", data::Role::label, tensor::DType::i32, {}}}};
  return arguments;
}

// A file that nobody has written before.
inline std::string fresh_path() {
  static const TemporaryDirectory directory;
  static int64_t number = 0;
  return directory / base::concat(++number, ".elements");
}

inline Pipeline cached_in_file(Pipeline p, const char *transform = "cache") {
  return std::move(p.apply(transform, {{"path", fresh_path()}, {"key", std::string("feed")}}));
}

// x becomes the sum of all x so far, by function or by graph.
inline data::TransformArguments summing(bool by_graph) {
  data::TransformArguments arguments;
  arguments.state = {{"sum", Tensor::zeros(tensor::DType::f32, {3}).take()}};
  if (by_graph) {
    GraphBuilder b;
    const auto sum = b.add(b.input("x", tensor::DType::f32, {3}), b.input("sum", tensor::DType::f32, {3}));
    b.set_result("x", sum);
    b.set_result("sum", sum);
    arguments.graph = std::make_shared<const graph::Graph>(b.finish_graph().take());
    return arguments;
  }
  arguments.scan = [](const Element &state, const Element &input, Element &next, Element &output) -> Status {
    TUTTI_ASSIGN(Tensor sum, state.components[0].clone());
    for (int64_t i = 0; i < 3; ++i)
      sum.mutable_data_as<float>()[i] += input.components[0].data_as<float>()[i];
    next.components = {sum};
    output.components = {sum, input.components[1]};
    return Status();
  };
  return arguments;
}

using Build = std::function<Pipeline(Pipeline)>;

inline Build apply(std::string transform, std::string key, int64_t value) {
  return [=](Pipeline p) { return std::move(p.apply(transform, {{key, value}})); };
}

inline Build map_callback(data::MapFunction function, int64_t parallelism, int64_t batch = 0) {
  return [=](Pipeline p) {
    p.apply("map_callback", {{"parallelism", parallelism}}, with_map(function));
    return std::move(batch > 0 ? p.batch(batch) : p);
  };
}

struct Case {
  const char *name;
  Build build;
  bool in_background = false;
};

inline const graph::Dims kRows{GraphBuilder::batch(), 3};

// Transforms that put elements together or choose among them.
inline std::vector<Case> grouping_cases() {
  return {
      {"interleave, first",
       [](Pipeline p) {
         return std::move(
             p.apply("interleave", {{"block_length", int64_t{2}}}, with_others({sample(4).build().value()})).batch(3));
       }},
      {"interleave, second",
       [](Pipeline p) {
         return std::move(
             sample(4).apply("interleave", {{"block_length", int64_t{2}}}, with_others({p.build().value()})));
       }},
      {"sample_from",
       [](Pipeline p) {
         return std::move(sample(9).apply("sample_from", {}, with_others({p.build().value()})).batch(2));
       }},
      {"resample",
       [](Pipeline p) {
         return std::move(p.apply("map_callback", {}, with_class())
                              .apply("resample", {{"component", std::string("y")},
                                                  {"initial", std::vector<double>{1, 3}},
                                                  {"repetition", true}}));
       }},
      {"flat_map",
       [](Pipeline p) {
         data::TransformArguments arguments;
         arguments.expand = [](const Element &element) -> Result<DatasetRef> {
           TUTTI_ASSIGN(const int32_t row, element.components[1].scalar_value<int32_t>());
           return sample(row % 3).build();
         };
         return std::move(p.apply("flat_map", {}, arguments).batch(2));
       }},
      {"ignore_errors",
       [](Pipeline p) {
         p.apply("map_callback", {}, with_map(fail_on_five));
         return std::move(p.apply("ignore_errors").batch(2));
       }},
      {"rebatch",
       [](Pipeline p) {
         return std::move(p.batch(4).apply("rebatch", {{"batch_size", int64_t{3}}}));
       }},
      {"window, overlapping",
       [](Pipeline p) {
         return std::move(p.apply("window", {{"size", int64_t{3}}, {"shift", int64_t{2}}}));
       }},
      {"window, distant",
       [](Pipeline p) {
         return std::move(p.apply("window", {{"size", int64_t{2}}, {"shift", int64_t{5}}, {"drop_remainder", true}}));
       }},
      {"take_while_callback",
       [](Pipeline p) { return std::move(p.apply("take_while_callback", {}, below_nine()).batch(2)); }},
      {"unique",
       [](Pipeline p) {
         return std::move(p.apply("unique", {{"component", std::string("y")}}).batch(2));
       }},
      {"padded_batch",
       [](Pipeline p) {
         return std::move(unstatic(std::move(p)).apply("padded_batch", {{"batch_size", int64_t{4}}}));
       }},
      {"bucket_by_length",
       [](Pipeline p) {
         p.apply("map_callback", {}, with_shortened());
         return std::move(p.apply("bucket_by_length", {{"component", std::string("x")},
                                                       {"boundaries", std::vector<int64_t>{1, 2}},
                                                       {"batch_sizes", std::vector<int64_t>{2}}}));
       }},
  };
}

inline std::vector<Case> other_cases() {
  const auto other = [] { return range(10).build().value(); };
  const auto forward = [] { return forward_only(range(10)).build().value(); };
  return {
      {"source", [](Pipeline p) { return p; }},
      {"batch", [](Pipeline p) { return std::move(p.batch(4)); }},
      {"batch, remainder dropped", [](Pipeline p) { return std::move(p.batch(4, true)); }},
      {"batch of elements", [](Pipeline p) { return std::move(unstatic(std::move(p)).batch(4)); }},
      {"batch of batches", [](Pipeline p) { return std::move(p.batch(3, true).batch(2)); }},
      {"unbatch", [](Pipeline p) { return std::move(p.batch(4).apply("unbatch").batch(3)); }},
      {"shuffle", [](Pipeline p) { return std::move(p.shuffle(4)); }},
      {"shuffle, batch", [](Pipeline p) { return std::move(p.shuffle(4).batch(3)); }},
      {"shuffle, all", [](Pipeline p) { return std::move(p.shuffle(100)); }},
      {"skip", apply("skip", "count", 5)},
      {"skip, batch",
       [](Pipeline p) {
         return std::move(p.apply("skip", {{"count", int64_t{5}}}).batch(3));
       }},
      {"take", apply("take", "count", 7)},
      {"take, batch",
       [](Pipeline p) {
         return std::move(p.apply("take", {{"count", int64_t{7}}}).batch(3));
       }},
      {"shard",
       [](Pipeline p) {
         return std::move(p.apply("shard", {{"num_shards", int64_t{3}}, {"index", int64_t{1}}}));
       }},
      {"enumerate", [](Pipeline p) { return std::move(p.apply("enumerate")); }},
      {"enumerate, batch", [](Pipeline p) { return std::move(p.apply("enumerate").batch(4)); }},
      {"class_weights", [](Pipeline p) { return std::move(p.apply("class_weights", kWeights)); }},
      {"class_weights, batch", [](Pipeline p) { return std::move(p.apply("class_weights", kWeights).batch(4)); }},
      {"select", [](Pipeline p) { return std::move(p.apply("select", kOnlyY)); }},
      {"select, batch", [](Pipeline p) { return std::move(p.apply("select", kOnlyY).batch(4)); }},
      {"zip", [=](Pipeline p) { return std::move(p.apply("zip", {}, with_others({other()}))); }},
      {"zip, second",
       [=](Pipeline p) {
         Pipeline first(forward());
         return std::move(first.apply("zip", {}, with_others({p.build().value()})).batch(4));
       }},
      {"concatenate, first",
       [](Pipeline p) {
         const DatasetRef more = sample(4).build().value();
         return std::move(p.apply("concatenate", {}, with_others({more})).batch(3));
       }},
      {"concatenate, second",
       [](Pipeline p) {
         Pipeline first = sample(4);
         return std::move(first.apply("concatenate", {}, with_others({p.build().value()})));
       }},
      {"filter_callback",
       [](Pipeline p) {
         data::TransformArguments arguments;
         arguments.filter = keep_even;
         return std::move(p.apply("filter_callback", {}, std::move(arguments)).batch(2));
       }},
      {"cache, repeat", [](Pipeline p) { return std::move(p.apply("cache").repeat(2)); }},
      {"cache, repeat, batch", [](Pipeline p) { return std::move(p.apply("cache").repeat(2).batch(4)); }},
      {"cache, shuffle", [](Pipeline p) { return std::move(p.apply("cache").shuffle(4).batch(3)); }},
      {"cache, permutation", [](Pipeline p) { return std::move(p.apply("cache").shuffle(100).batch(3)); }},
      {"cache, permutation of elements", [](Pipeline p) { return std::move(p.apply("cache").shuffle(100)); }},
      {"file cache, batch", [](Pipeline p) { return std::move(cached_in_file(std::move(p)).batch(4)); }},
      {"file cache, shuffle", [](Pipeline p) { return std::move(cached_in_file(std::move(p)).shuffle(4).batch(3)); }},
      {"file cache, permutation", [](Pipeline p) { return std::move(cached_in_file(std::move(p)).shuffle(100)); }},
      {"file cache of elements",
       [](Pipeline p) { return cached_in_file(std::move(p.apply("map_callback", {}, with_shortened()))); }},
      {"snapshot", [](Pipeline p) { return cached_in_file(std::move(p), "snapshot"); }},
      {"scan_callback", [](Pipeline p) { return std::move(p.apply("scan_callback", {}, summing(false)).batch(2)); }},
      {"scan", [](Pipeline p) { return std::move(p.apply("scan", {}, summing(true))); }},
      {"map, elements, parallel",
       [](Pipeline p) {
         p.apply("map_callback", {}, with_shortened());
         return std::move(p.apply("map", {{"parallelism", int64_t{3}}}, halve({data::unknown_dim()})));
       },
       true},
      {"map, rows", [](Pipeline p) { return std::move(p.apply("map", {}, halve(kRows)).batch(4)); }},
      {"map of map, rows",
       [](Pipeline p) { return std::move(p.apply("map", {}, halve(kRows)).apply("map", {}, halve(kRows)).batch(4)); }},
      {"map, rows, parallel",
       [](Pipeline p) {
         return std::move(p.apply("map", {{"parallelism", int64_t{2}}}, halve(kRows)).batch(4));
       }},
      {"map, elements", [](Pipeline p) { return std::move(p.apply("map", {}, halve({3}))); }},
      {"map, batches", [](Pipeline p) { return std::move(p.batch(4).apply("map", {}, halve(kRows))); }},
      {"map_callback", map_callback(through, 1, 4)},
      {"map_callback failing", map_callback(fail_on_five, 1)},
      {"map_callback failing, batch", map_callback(fail_on_five, 1, 4)},
      {"map_callback late, batch", map_callback(late_on_five, 1, 4)},
      {"map_callback failing, batch of elements",
       [](Pipeline p) {
         p.apply("map_callback", {}, with_map(fail_on_five));
         return std::move(unstatic(std::move(p)).batch(4));
       }},
      {"map_callback failing, shuffle",
       [](Pipeline p) { return std::move(p.apply("map_callback", {}, with_map(fail_on_five)).shuffle(3)); }},
      {"map_callback, parallel", map_callback(through, 3, 4), true},
      {"map_callback late, parallel", map_callback(late_on_five, 3), true},
      {"map_process failing", [](Pipeline p) { return std::move(p.apply("map_process", kProgram)); }, true},
      {"prefetch", [](Pipeline p) { return std::move(p.prefetch(2)); }, true},
      {"batch, prefetch", [](Pipeline p) { return std::move(p.batch(4).prefetch(2)); }, true},
      {"prefetch, batch", [](Pipeline p) { return std::move(p.prefetch(2).batch(4)); }, true},
      {"prefetch, shuffle, batch, prefetch",
       [](Pipeline p) { return std::move(p.prefetch(2).shuffle(3).batch(4).prefetch()); }, true},
  };
}

inline std::vector<Case> cases() {
  std::vector<Case> all = other_cases();
  for (Case &one : grouping_cases())
    all.push_back(std::move(one));
  return all;
}

inline IteratorContext context_of(Ref<CancelToken> cancel) {
  IteratorContext context;
  context.cancel = std::move(cancel);
  context.seed = 7;
  context.graphs = std::make_shared<InterpretingRunner>();
  return context;
}

// What next() answered, as text; an error is its code.
inline std::string answer_of(const Result<bool> &more, const Element &element) {
  return more.ok() ? fingerprint(element) : base::concat(name(more.status().code()), ": ", more.status().message());
}

inline void check_equal(const char *name, const std::vector<std::string> &got, const std::vector<std::string> &expected,
                        size_t from, const char *what) {
  const bool equal = got.size() + from == expected.size() &&
                     std::equal(got.begin(), got.end(), expected.begin() + static_cast<std::ptrdiff_t>(from));
  if (equal) return;
  print_error("%s: %s: %zu answers from %zu on, expected %zu in all\n", name, what, got.size(), from, expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const std::string wanted = i + from < expected.size() ? expected[i + from] : "nothing";
    if (got[i] != wanted) print_error("answer %zu: %s\ninstead of: %s\n", i + from, got[i].c_str(), wanted.c_str());
  }
  _fail(__FILE__, __LINE__);
}

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_DATA_INTERRUPT_CASES_H_
