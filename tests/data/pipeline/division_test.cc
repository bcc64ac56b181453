// SPDX-License-Identifier: Apache-2.0
//
// tests lib/data/pipeline/division.cc and what it divides by: parts of all workers against the whole dataset.
#include "data/pipeline/division.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "data/dataset/stage.h"
#include "graph/builder.h"
#include "interpreting_runner.h"
#include "odd_file_systems.h"
#include "sample_data.h"
#include "sample_files.h"
#include "testing.h"

namespace division_test {

using namespace tutti::impl;
using namespace tutti::testing;
using data::DatasetRef;
using data::DivideBy;
using data::Element;
using data::Iterator;
using data::Pipeline;
using graph::GraphBuilder;
using graph::SealedGraph;
using tensor::DType;

namespace {

constexpr int64_t kRows = 23;
using Batch = std::vector<std::string>;  // rows, each the bytes of its components

SealedGraph seal(GraphBuilder &builder) {
  return std::make_shared<const graph::Graph>(assert_ok_value(builder.finish_graph()));
}

// x plus noise keyed by where the row came from.
SealedGraph noisy() {
  GraphBuilder b;
  const auto x = b.input("x", DType::f32, {GraphBuilder::batch(), 3});
  const auto noise = b.op("random_uniform", std::initializer_list<graph::ValueId>{},
                          {{"dims", graph::Dims{GraphBuilder::batch(), 3}}, {"low", 0.0}, {"high", 1.0}});
  b.set_result("x", b.add(x, noise));
  return seal(b);
}

SealedGraph halve() {
  GraphBuilder b;
  const auto x = b.input("x", DType::f32, {GraphBuilder::batch(), 3});
  b.set_result("x", b.div(x, b.constant(2, DType::f32)));
  return seal(b);
}

// What each row becomes depends on the others.
SealedGraph less_the_sum() {
  GraphBuilder b;
  const auto x = b.input("x", DType::f32, {GraphBuilder::batch(), 3});
  b.set_result("x", b.sub(x, b.reduce_sum(x, {0}, true)));
  return seal(b);
}

Pipeline mapped(Pipeline pipeline, SealedGraph graph, int64_t parallelism = 1) {
  data::TransformArguments arguments;
  arguments.graph = std::move(graph);
  return std::move(pipeline.apply("map", {{"parallelism", parallelism}}, std::move(arguments)));
}

Pipeline called(Pipeline pipeline) {
  data::TransformArguments arguments;
  arguments.map = [](const Element &input, Element &output) {
    output = input;
    return base::Status();
  };
  return std::move(pipeline.apply("map_callback", {{"parallelism", int64_t{3}}}, std::move(arguments)));
}

// Each batch gets its rows the other way round: what a row becomes depends on the batch.
Pipeline turned(Pipeline pipeline) {
  data::TransformArguments arguments;
  arguments.map = [](const Element &input, Element &output) {
    output = input;
    const auto labels = input.components[1].values<int32_t>().value();
    const std::vector<int32_t> backwards(labels.rbegin(), labels.rend());
    output.components[1] = tensor::Tensor::from_values<int32_t>({input.rows()}, backwards).value();
    return base::Status();
  };
  return std::move(pipeline.apply("map_callback", {}, std::move(arguments)));
}

// Elements i with i % 5 = 3 fail.
Pipeline failing(Pipeline pipeline) {
  data::TransformArguments arguments;
  arguments.map = [](const Element &input, Element &output) {
    if (input.components[1].values<int32_t>().value()[0] % 5 == 3) return base::data_loss("a bad element");
    output = input;
    return base::Status();
  };
  return std::move(pipeline.apply("map_callback", {}, std::move(arguments)));
}

data::IteratorContext context(int64_t epoch = 0) {
  data::IteratorContext context;
  context.seed = 7;
  context.epoch = epoch;
  context.threads = 2;
  context.graphs = std::make_shared<InterpretingRunner>();
  return context;
}

Batch rows_of(const Element &batch) {
  Batch rows(static_cast<size_t>(batch.rows()));
  for (const tensor::Tensor &component : batch.components) {
    for (size_t r = 0; r < rows.size(); ++r) {
      const auto row = assert_ok_value(component.row(static_cast<int64_t>(r)));
      if (row.dtype() == DType::bytes) {
        for (const std::string_view text : assert_ok_value(tensor::bytes_values(row)))
          rows[r] += text;
      } else {
        rows[r].append(row.data_as<char>(), static_cast<size_t>(row.size_bytes()));
      }
    }
  }
  return rows;
}

// Batches to the end; interrupts are only that.
std::vector<Batch> read(Iterator &iterator, int64_t most = INT64_MAX) {
  std::vector<Batch> batches;
  Element element;
  while (static_cast<int64_t>(batches.size()) < most) {
    const base::Result<bool> more = iterator.next(element);
    if (base::is_interrupt(more.status())) continue;
    assert_ok(more);
    if (!*more) break;
    batches.push_back(rows_of(element));
  }
  return batches;
}

std::unique_ptr<Iterator> open(const DatasetRef &dataset, int64_t epoch = 0) {
  return assert_ok_value(dataset->make_iterator(context(epoch)));
}

DatasetRef part(const DatasetRef &dataset, DivideBy by, int32_t worker, int32_t workers) {
  return assert_ok_value(divide(dataset, by, worker, workers));
}

// The batches of all workers: the rows of worker 0, then those of worker 1, ...
std::vector<Batch> joined(const std::vector<std::vector<Batch>> &of_workers) {
  std::vector<Batch> all;
  for (const std::vector<Batch> &own : of_workers) {
    for (size_t b = 0; b < own.size(); ++b) {
      if (all.size() <= b) all.resize(b + 1);
      all[b].insert(all[b].end(), own[b].begin(), own[b].end());
    }
  }
  return all;
}

struct Case {
  const char *name;
  const char *behind;  // the last that each worker computes as a whole
  std::function<Pipeline()> make;
};

// In memory and forward only; each with what can be between a batch and its sources.
const std::vector<Case> cases = {
    {"slices", "slices", [] { return std::move(sample(kRows).batch(5)); }},
    {"fewer rows than workers", "slices", [] { return std::move(sample(kRows).batch(2)); }},
    {"drop", "slices", [] { return std::move(sample(kRows).batch(5, true)); }},
    {"forward only", "filter_callback", [] { return std::move(forward_only(sample(kRows)).batch(5)); }},
    {"forward only, drop", "filter_callback", [] { return std::move(forward_only(sample(kRows)).batch(5, true)); }},
    {"two rows, drop", "filter_callback", [] { return std::move(forward_only(sample(kRows)).batch(2, true)); }},
    {"shuffle", "shuffle", [] { return std::move(sample(kRows).shuffle(9).batch(4)); }},
    {"shuffle forward only", "shuffle", [] { return std::move(forward_only(sample(kRows)).shuffle(9).batch(4)); }},
    {"map before shuffle", "shuffle", [] { return std::move(mapped(sample(kRows), noisy()).shuffle(30).batch(5)); }},
    {"map behind shuffle", "shuffle",
     [] { return std::move(mapped(std::move(sample(kRows).shuffle(30)), noisy(), 3).prefetch(2).batch(5)); }},
    {"callbacks", "filter_callback", [] { return std::move(called(forward_only(sample(kRows))).batch(7).prefetch()); }},
    {"callbacks, drop", "filter_callback",
     [] { return std::move(called(forward_only(sample(kRows))).batch(3, true)); }},
    {"repeat before batch", "repeat", [] { return std::move(sample(kRows).shuffle(9).repeat(3).batch(6)); }},
    {"repeat of whole batches", "slices", [] { return std::move(sample(20).batch(5).repeat(3)); }},
    {"repeat of uneven batches", "repeat", [] { return std::move(sample(kRows).batch(5).repeat(2)); }},
    {"take", "take",
     [] {
       return std::move(sample(kRows).apply("take", {{"count", int64_t{17}}}).batch(4));
     }},
    {"map of batches", "slices", [] { return mapped(std::move(sample(kRows).batch(5)), halve()); }},
    {"random map of batches", "slices", [] { return mapped(std::move(sample(kRows).batch(5)), noisy()); }},
    {"random map of uneven batches", "map",
     [] { return mapped(std::move(sample(kRows).batch(5).repeat(2)), noisy()); }},
    {"map over a batch", "map_callback", [] { return turned(std::move(sample(kRows).batch(5))); }},
    {"rebatch", "unbatch",
     [] {
       return std::move(sample(kRows).batch(3).apply("rebatch", {{"batch_size", int64_t{7}}}));
     }},
    {"padded", "padded_batch",
     [] {
       return std::move(sample(kRows).apply("padded_batch", {{"batch_size", int64_t{5}}}));
     }},
    {"any order", "interleave",
     [] {
       data::TransformArguments other;
       other.others.push_back(assert_ok_value(forward_only(sample(12)).build()));
       Pipeline pipeline = forward_only(sample(kRows));
       pipeline.apply("interleave", {{"parallelism", int64_t{2}}}, std::move(other));
       return std::move(pipeline.apply("options", {{"deterministic", false}}).batch(5));
     }},
};

void parts_make_the_batches_of_the_whole(void **) {
  for (const Case &c : cases) {
    const DatasetRef whole = assert_ok_value(c.make().build());
    for (int64_t epoch = 0; epoch < 2; ++epoch) {
      data::IteratorContext in_order = context(epoch);
      in_order.requires_order = true;
      const std::vector<Batch> expected = read(*assert_ok_value(whole->make_iterator(in_order)));
      assert_true(!expected.empty());
      for (int32_t workers = 1; workers <= 4; ++workers) {
        std::vector<std::vector<Batch>> of_workers;
        for (int32_t w = 0; w < workers; ++w) {
          const DatasetRef own = part(whole, DivideBy::elements, w, workers);
          of_workers.push_back(read(*open(own, epoch)));
          assert_contains(own->part()->how.c_str(), base::concat("behind '", c.behind, "'").c_str());
          if (own->cardinality().is_exact()) assert_int_equal(own->cardinality().value(), of_workers.back().size());
          for (const Batch &batch : of_workers.back())
            assert_true(static_cast<int64_t>(batch.size()) <= own->spec().batch_size);
        }
        if (joined(of_workers) == expected) continue;
        fail_msg("%s: %d workers make other batches", c.name, workers);
      }
    }
  }
}

// A graph that adds up the rows of a batch has all of them.
void graphs_over_batches_see_whole_batches(void **) {
  const DatasetRef whole = assert_ok_value(mapped(std::move(sample(kRows).batch(5)), less_the_sum()).build());
  assert_contains(part(whole, DivideBy::elements, 0, 2)->part()->how.c_str(), "behind 'map'");
}

// What worker 0 saves is good for all workers of any number.
void a_walk_continues_on_other_workers(void **) {
  for (const Case &c : cases) {
    if (c.name == std::string("any order")) continue;
    const DatasetRef whole = assert_ok_value(c.make().build());
    const std::vector<Batch> expected = read(*open(whole));
    for (int32_t before = 1; before <= 3; ++before) {
      const auto leader = open(part(whole, DivideBy::elements, 0, before));
      for (size_t begun = 0; begun <= expected.size(); ++begun) {
        const base::Json state = leader->save();
        for (int32_t after = 1; after <= 3; ++after) {
          std::vector<std::vector<Batch>> of_workers;
          for (int32_t w = 0; w < after; ++w) {
            const auto iterator = open(part(whole, DivideBy::elements, w, after));
            assert_ok(iterator->restore(state));
            of_workers.push_back(read(*iterator));
          }
          const std::vector<Batch> left(expected.begin() + static_cast<ptrdiff_t>(begun), expected.end());
          if (joined(of_workers) == left) continue;
          fail_msg("%s: %d workers go on otherwise than %d behind batch %zu", c.name, after, before, begun);
        }
        read(*leader, 1);
      }
    }
  }
}

// An element of another worker that fails is that one's concern.
void errors_come_to_who_has_the_element(void **) {
  for (const bool drops : {false, true}) {
    const DatasetRef whole = assert_ok_value(failing(forward_only(sample(10))).shuffle(1).batch(10, drops).build());
    for (int32_t w = 0; w < 5; ++w) {
      const auto iterator = open(part(whole, DivideBy::elements, w, 5));
      Element element;
      // Elements 3 and 8 are those of workers 1 and 4.
      const base::Result<bool> more = iterator->next(element);
      if (w == 1 || w == 4) {
        assert_error_contains(more, "a bad element");
      } else {
        assert_true(assert_ok_value(more));
        assert_int_equal(element.rows(), 2);
      }
      assert_false(assert_ok_value(iterator->next(element)));
    }
  }
}

// ---- files ----

// File i of `count` has i % 4 + 1 lines, "i-0", "i-1", ...; the paths, behind a scheme.
class Lines {
 public:
  Lines(int count, const std::string &scheme) {
    for (int i = 0; i < count; ++i) {
      std::string text;
      for (int line = 0; line <= i % 4; ++line) {
        lines.push_back(base::concat(i, "-", line));
        text += lines.back() + "\n";
      }
      const std::string path = base::concat(folder_.path(), "/", char('a' + i), ".txt");
      write_bytes(path, text);
      paths.push_back(scheme + path);
    }
    std::ranges::sort(lines);
    pattern = base::concat(scheme, folder_.path(), "/*.txt");
  }
  std::vector<std::string> paths, lines;
  std::string pattern;

 private:
  TemporaryDirectory folder_;
};

// Remembers which files were opened.
class OpenedFiles : public data::FileSystem {
 public:
  base::Result<base::Ref<const data::ReadableFile>> open(const std::string &path,
                                                         const base::Ref<base::CancelToken> &cancel) const override {
    opened.insert(path);
    return data::open_file(path.substr(9), nullptr, cancel);
  }
  base::Result<std::vector<Entry>> list(const std::string &directory,
                                        const base::Ref<base::CancelToken> &cancel) const override {
    TUTTI_ASSIGN(const auto system, data::file_system_of("/", nullptr));
    return system->list(directory.substr(9), cancel);
  }
  mutable std::set<std::string> opened;
};

Pipeline text_lines(std::vector<std::string> paths, data::SourceServices services = {}) {
  return begin_with("text_lines", {{"paths", std::move(paths)}}, std::move(services));
}

DatasetRef lines_of_element(const Element &element, const data::SourceServices &services) {
  const auto path = assert_ok_value(tensor::bytes_values(element.components[0]));
  return assert_ok_value(text_lines({std::string(path[0])}, services).build());
}

// The files of all as a function of a list makes datasets of them.
Pipeline expanded(Pipeline list, const char *name, const data::SourceServices &services) {
  data::TransformArguments arguments;
  arguments.expand = [services](const Element &element) -> base::Result<DatasetRef> {
    return lines_of_element(element, services);
  };
  arguments.output_spec = data::ElementSpec{{{.name = "text", .dtype = DType::bytes, .dims = {}}}};
  return std::move(list.apply(name, {}, std::move(arguments)));
}

std::vector<std::string> sorted_rows(const std::vector<std::vector<Batch>> &of_workers) {
  std::vector<std::string> rows;
  for (const Batch &batch : joined(of_workers))
    rows.insert(rows.end(), batch.begin(), batch.end());
  std::ranges::sort(rows);
  return rows;
}

void each_worker_reads_its_own_files(void **) {
  for (const int count : {3, 4, 11}) {
    const Lines files(count, "opened://");
    const auto system = std::make_shared<OpenedFiles>();
    auto systems = base::make_ref<data::FileSystems>();
    assert_ok(systems->add("opened", system));
    const data::SourceServices services{.file_systems = systems};
    const auto of_one_each = [&] {
      data::TransformArguments others;
      for (size_t i = 1; i < files.paths.size(); ++i)
        others.others.push_back(assert_ok_value(text_lines({files.paths[i]}, services).build()));
      Pipeline pipeline = text_lines({files.paths[0]}, services);
      return std::move(pipeline.apply("interleave", {{"cycle_length", int64_t{2}}}, std::move(others)));
    };
    const auto list = [&](const char *name) {
      return expanded(begin_with("files", {{"paths", std::vector<std::string>{files.pattern}}}, services), name,
                      services);
    };
    std::vector<DatasetRef> wholes = {
        assert_ok_value(text_lines({files.pattern}, services).batch(5).build()),
        assert_ok_value(text_lines({files.pattern}, services).shuffle(4).batch(3).prefetch(2).build()),
        assert_ok_value(forward_only(text_lines({files.pattern}, services)).batch(4).build()),
        assert_ok_value(of_one_each().shuffle(100).batch(4).build()),
        assert_ok_value(list("flat_map").batch(7).build()),
        assert_ok_value(list("interleave_callback").shuffle(5).batch(3).build()),
    };
    for (const DatasetRef &whole : wholes) {
      for (int32_t workers = 1; workers <= 3; ++workers) {
        std::vector<std::vector<Batch>> of_workers;
        std::map<std::string, int> opened_by;
        int64_t batch_rows = 0;
        for (int32_t w = 0; w < workers; ++w) {
          system->opened.clear();
          const DatasetRef own = part(whole, DivideBy::automatic, w, workers);
          batch_rows += own->spec().batch_size;
          of_workers.push_back(read(*open(own)));
          const auto expected = static_cast<size_t>((count - w + workers - 1) / workers);
          assert_int_equal(system->opened.size(), expected);
          for (const std::string &path : system->opened)
            ++opened_by[path];
          assert_contains(
              own->part()->how.c_str(),
              base::concat("by files: worker ", w, " of ", workers, " reads ", expected, " of ", count).c_str());
        }
        assert_int_equal(batch_rows, whole->spec().batch_size);
        assert_int_equal(opened_by.size(), count);
        assert_true(std::ranges::all_of(opened_by, [](const auto &entry) { return entry.second == 1; }));
        assert_true(sorted_rows(of_workers) == files.lines);
      }
    }
  }
}

// An interrupt in one call of three changes nothing, for shares that are held until a batch is complete.
void interrupts_change_nothing(void **) {
  const Lines files(7, "late://");
  const data::SourceServices services{.file_systems = odd_file_systems()};
  for (const bool drops : {false, true}) {
    const DatasetRef whole = assert_ok_value(text_lines(files.paths, services).batch(4, drops).build());
    const std::vector<Batch> expected = read(*open(whole));
    for (int32_t workers = 1; workers <= 3; ++workers) {
      for (const DivideBy by : {DivideBy::elements, DivideBy::files}) {
        std::vector<std::vector<Batch>> of_workers;
        for (int32_t w = 0; w < workers; ++w)
          of_workers.push_back(read(*open(part(whole, by, w, workers))));
        if (by == DivideBy::elements) assert_true(joined(of_workers) == expected);
        if (by == DivideBy::files && !drops) assert_true(sorted_rows(of_workers) == files.lines);
      }
    }
  }
}

std::string refusal(Pipeline pipeline, int32_t workers = 2) {
  const DatasetRef whole = assert_ok_value(pipeline.build());
  const auto refused = divide(whole, DivideBy::files, 0, workers);
  assert_true(refused.code() == base::Code::failed_precondition);
  // The same goes with elements, and says why.
  const DatasetRef own = part(whole, DivideBy::automatic, 0, workers);
  assert_true(own->part()->by == DivideBy::elements);
  assert_contains(own->part()->how.c_str(), "not by files: ");
  return refused.status().to_string();
}

void what_cannot_be_divided_by_files_says_why(void **) {
  const Lines files(3, "");
  const auto lines = [&] { return text_lines(files.paths); };
  const auto counting = [&](const char *name, graph::Attributes attributes) {
    return refusal(std::move(lines().apply(name, std::move(attributes)).batch(4)));
  };
  assert_contains(counting("take", {{"count", int64_t{3}}}).c_str(), "'take' counts the elements of all files");
  assert_contains(counting("repeat", {{"count", int64_t{2}}}).c_str(), "'repeat' ends each pass at once");
  assert_contains(counting("enumerate", {}).c_str(), "'enumerate' numbers");
  assert_contains(counting("unique", {{"component", std::string("text")}}).c_str(), "'unique' compares");
  assert_contains(refusal(std::move(lines().batch(4)), 4).c_str(), "there are fewer files (3) than workers (4)");
  assert_contains(refusal(std::move(lines().batch(1))).c_str(), "a batch of 1 rows has none for some of 2 workers");
  assert_contains(refusal(std::move(sample().batch(4))).c_str(), "the source 'slices' does not read a list of files");
  assert_contains(refusal(std::move(lines().batch(4).repeat(2))).c_str(), "'repeat' ends");
  assert_contains(refusal(called(std::move(lines().batch(4)))).c_str(),
                  "'map_callback' behind the batch is given whole batches");
  TemporaryDirectory folder;
  assert_contains(counting("cache", {{"path", folder.path() + "/cache"}}).c_str(), "'cache' keeps");
  assert_error_contains(divide(assert_ok_value(lines().build()), DivideBy::automatic, 0, 2), "add batch()");
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(parts_make_the_batches_of_the_whole),      cmocka_unit_test(graphs_over_batches_see_whole_batches),
    cmocka_unit_test(a_walk_continues_on_other_workers),        cmocka_unit_test(errors_come_to_who_has_the_element),
    cmocka_unit_test(each_worker_reads_its_own_files),          cmocka_unit_test(interrupts_change_nothing),
    cmocka_unit_test(what_cannot_be_divided_by_files_says_why),
};
TEST_MAIN(tests)

}  // namespace division_test
