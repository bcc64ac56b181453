// SPDX-License-Identifier: Apache-2.0
//
// Errors name the element and the file it came from: each source of files, through each transform that can fail for an
// element, with whatever stages lie between them and behind.
#include <set>

#include "conformance/dataset_conformance.h"
#include "data/format/encode_example.h"
#include "data/format/record.h"
#include "graph/builder.h"
#include "interpreting_runner.h"
#include "sample_data.h"
#include "sample_files.h"

namespace element_origin_test {

using namespace tutti::impl;
using namespace tutti::testing;
using base::Status;
using data::DatasetRef;
using data::Element;
using data::Pipeline;
using graph::GraphBuilder;
using tensor::DType;
using tensor::Tensor;

namespace {

using Strings = std::vector<std::string>;

// ---- sources: nine elements of one text each, three from each of three files, or each from a file of its own ----

constexpr int kElements = 9, kBad = 7, kBadNumber = 600;

std::string number_of(int element) { return element == kBad ? "6e2" : std::to_string(100 + element); }

std::string example_of(int element) {
  const int64_t value = element == kBad ? 1 : 100 + element;
  // The one that fails has a number more.
  const int64_t count = element == kBad ? 2 : 1;
  const Tensor x = assert_ok_value(Tensor::from_values<int64_t>({count}, std::vector<int64_t>(count, value)));
  return assert_ok_value(data::encode_example({{"x", x}}));
}

std::string tar_of(const std::vector<std::pair<std::string, std::string>> &members) {
  std::string tar;
  for (const auto &[name, contents] : members) {
    std::string header(512, '\0');
    header.replace(0, name.size(), name);
    char size[13];
    std::snprintf(size, sizeof size, "%011zo", contents.size());
    header.replace(100, 8, std::string("0000644\0", 8));
    header.replace(124, 12, std::string(size, 12));
    header.replace(136, 12, std::string("00000000000\0", 12));
    header[156] = '0';
    header.replace(257, 8, std::string("ustar\00000", 8));
    header.replace(148, 8, "        ");
    unsigned sum = 0;
    for (const char c : header)
      sum += static_cast<unsigned char>(c);
    char checksum[8];
    std::snprintf(checksum, sizeof checksum, "%06o", sum);
    header.replace(148, 8, std::string(checksum, 7) + " ");
    tar += header + contents + std::string((512 - contents.size() % 512) % 512, '\0');
  }
  return tar + std::string(1024, '\0');
}

struct Source {
  std::string name;
  std::function<Pipeline()> begin;
  std::string file;  // of the element that fails
};

class Files {
 public:
  explicit Files(std::string (*content)(int)) {
    for (const char *kind : {"folder/one", "folder/two"})
      assert_ok(base::make_directories(folder_ / kind));
    for (int file = 0; file < 3; ++file)
      write_file(file, content);
    for (int i = 0; i < kElements; ++i)
      write_bytes(folder_ / base::concat("folder/", i < 5 ? "one" : "two", "/", i, ".png"), content(i));
  }

  std::vector<Source> of_texts() const {
    return {
        {"text_lines", begin("text_lines", "lines*"), folder_ / "lines2"},
        {"csv",
         [this] {
           return begin_with(
               "csv", {{"paths", Strings{folder_ / "lines*"}}, {"columns", Strings{"text: bytes"}}, {"header", false}});
         },
         folder_ / "lines2"},
        {"fixed_records",
         [this] {
           return begin_with(
               "fixed_records",
               {{"paths", Strings{folder_ / "fixed*"}}, {"record_bytes", int64_t{3}}, {"name", std::string("text")}});
         },
         folder_ / "fixed2"}};
  }
  std::vector<Source> of_any() const {
    return {{"tfrecord", begin("tfrecord", "records*"), folder_ / "records2"},
            {"tar",
             [this] {
               return begin_with("tar", {{"paths", Strings{folder_ / "tar*"}}, {"parts", Strings{"text: bytes"}}});
             },
             folder_ / "tar2"},
            {"image_folder",
             [this] {
               return begin_with("image_folder", {{"path", folder_ / "folder"}});
             },
             folder_ / base::concat("folder/two/", kBad, ".png")},
            {"image_folder, cache",
             [this] {
               return std::move(begin_with("image_folder", {{"path", folder_ / "folder"}}).apply("cache"));
             },
             folder_ / base::concat("folder/two/", kBad, ".png")}};
  }

 private:
  std::function<Pipeline()> begin(const char *source, const char *pattern) const {
    return [=, path = folder_ / pattern] { return begin_with(source, {{"paths", Strings{path}}}); };
  }
  void write_file(int file, std::string (*content)(int)) {
    data::RecordWriter writer =
        assert_ok_value(data::RecordWriter::create(folder_ / base::concat("records", file), data::Compression::none));
    std::string lines, fixed;
    std::vector<std::pair<std::string, std::string>> members;
    for (int i = 3 * file; i < 3 * file + 3; ++i) {
      assert_ok(writer.write(content(i)));
      lines += content(i) + "\n";
      fixed += content(i);
      members.emplace_back(base::concat(i, ".text"), content(i));
    }
    assert_ok(writer.close());
    write_bytes(folder_ / base::concat("lines", file), lines);
    write_bytes(folder_ / base::concat("fixed", file), fixed);
    write_bytes(folder_ / base::concat("tar", file), tar_of(members));
  }

  TemporaryDirectory folder_;
};

// ---- transforms that fail for one element ----

Status check_text(const Element &input) {
  return tensor::bytes_at(input.components[0], 0) == number_of(kBad) ? base::data_loss("a bad text") : Status();
}

Pipeline by_function(Pipeline pipeline, const char *transform, int64_t parallelism = 1) {
  data::TransformArguments arguments;
  const bool is_map = std::string_view(transform) == "map_callback";
  if (is_map) {
    arguments.map = [](const Element &input, Element &output) {
      output.components = input.components;
      return check_text(input);
    };
  } else {
    arguments.filter = [](const Element &input, bool &answer) {
      answer = true;
      return check_text(input);
    };
  }
  graph::Attributes attributes;
  if (is_map) attributes.emplace("parallelism", parallelism);
  return std::move(pipeline.apply(transform, attributes, std::move(arguments)));
}

// The text as a number; the bad one is no integer.
Pipeline by_routine(Pipeline pipeline, int64_t parallelism) {
  const std::string name = assert_ok_value(pipeline.build())->spec().components[0].name;
  GraphBuilder b;
  b.set_result(
      "x", b.op("bytes_to_number", {b.input(name, DType::bytes, {GraphBuilder::batch()})}, {{"dtype", DType::i32}}));
  data::TransformArguments arguments;
  arguments.graph = std::make_shared<const graph::Graph>(assert_ok_value(b.finish_graph()));
  return std::move(pipeline.apply("map", {{"parallelism", parallelism}}, std::move(arguments)));
}

// What the runner of graphs refuses is the text's number.
Pipeline by_graph(Pipeline pipeline, const char *transform) {
  data::TransformArguments to_number;
  to_number.map = [](const Element &input, Element &output) -> Status {
    const std::string text(tensor::bytes_at(input.components[0], 0));
    TUTTI_ASSIGN(Tensor number, Tensor::scalar(std::strtof(text.c_str(), nullptr)));
    output.components.assign(1, std::move(number));
    return Status();
  };
  to_number.output_spec = data::ElementSpec{{{"number", data::Role::feature, DType::f32, {}}}};
  pipeline.apply("map_callback", {}, std::move(to_number));
  GraphBuilder b;
  const auto number = b.input("number", DType::f32, {GraphBuilder::batch()});
  const bool is_filter = std::string_view(transform) == "filter";
  b.set_result("x", is_filter ? b.op("less", {number, b.constant(1000, DType::f32)}) : b.add(number, number));
  data::TransformArguments arguments;
  arguments.graph = std::make_shared<const graph::Graph>(assert_ok_value(b.finish_graph()));
  return std::move(pipeline.apply(transform, {}, std::move(arguments)));
}

struct Transform {
  std::string name, stage;
  std::function<Pipeline(Pipeline)> apply;
};

std::vector<Transform> transforms_of_texts() {
  return {
      {"graph map", "map", [](Pipeline p) { return by_graph(std::move(p), "map"); }},
      {"routine map", "map", [](Pipeline p) { return by_routine(std::move(p), 1); }},
      {"routine map, threads", "map", [](Pipeline p) { return by_routine(std::move(p), 0); }},
      {"map_callback", "map_callback", [](Pipeline p) { return by_function(std::move(p), "map_callback"); }},
      {"map_callback, threads", "map_callback",
       [](Pipeline p) { return by_function(std::move(p), "map_callback", 4); }},
      {"filter", "filter", [](Pipeline p) { return by_graph(std::move(p), "filter"); }},
      {"filter_callback", "filter_callback", [](Pipeline p) { return by_function(std::move(p), "filter_callback"); }},
  };
}

std::vector<Transform> transforms_of_examples() {
  const auto parse = [](Pipeline p) { return std::move(p.apply("parse_example", {{"features", Strings{"x: i64"}}})); };
  return {{"parse_example", "parse_example", parse}};
}

// ---- what lies between ----

struct Layout {
  std::string name;
  std::function<Pipeline(Pipeline)> apply;
};

std::vector<Layout> layouts() {
  const auto add = [](const char *transform, graph::Attributes attributes = {}) {
    return [=](Pipeline p) { return std::move(p.apply(transform, attributes)); };
  };
  const auto twice = [](const char *transform, graph::Attributes attributes = {}) {
    return [=](Pipeline p) {
      data::TransformArguments others;
      others.others.push_back(assert_ok_value(Pipeline(p).apply("take", {{"count", int64_t{6}}}).build()));
      return std::move(p.apply(transform, attributes, std::move(others)));
    };
  };
  return {
      {"direct", [](Pipeline p) { return p; }},
      {"shuffle", [](Pipeline p) { return std::move(p.shuffle(4)); }},
      {"large shuffle", [](Pipeline p) { return std::move(p.shuffle(100)); }},
      {"interleave", twice("interleave", {{"parallelism", int64_t{2}}})},
      {"concatenate", twice("concatenate")},
      {"sample_from", twice("sample_from")},
      {"prefetch", add("prefetch")},
      {"ignore_errors", add("ignore_errors", {{"budget", int64_t{0}}})},
      {"enumerate", add("enumerate")},
      {"skip, take, shard, repeat",
       [](Pipeline p) {
         return std::move(p.apply("skip", {{"count", int64_t{1}}})
                              .apply("take", {{"count", int64_t{7}}})
                              .apply("shard", {{"num_shards", int64_t{2}}, {"index", int64_t{0}}})
                              .repeat(2));
       }},
  };
}

// ---- checks ----

data::IteratorContext context_with(int32_t threads) {
  data::IteratorContext context;
  context.seed = 3;
  context.threads = threads;
  const auto runner = std::make_shared<InterpretingRunner>();
  runner->refused = kBadNumber;
  context.graphs = runner;
  return context;
}

// The elements of the walk's errors; all of them come from `file` and fail in `stage`.
Strings failing(const Pipeline &pipeline, int32_t threads, const std::string &file, const std::string &stage,
                const std::string &name) {
  auto iterator = assert_ok_value(assert_ok_value(pipeline.build())->make_iterator(context_with(threads)));
  Strings elements;
  Element element;
  for (int calls = 0; calls < 100; ++calls) {
    const base::Result<bool> more = iterator->next(element);
    if (more.ok() && !*more) return elements;
    if (more.ok()) continue;
    const base::Error &error = *more.status().error();
    const std::string *const named = error.find_detail("file"), *const number = error.find_detail("element");
    const std::string *const at = error.find_detail("stage");
    // Beside the bad element's pipeline there may be another with the same stages.
    const bool is_named = named != nullptr && *named == file && number != nullptr &&
                          error.find_detail("epoch") != nullptr && at != nullptr &&
                          (*at == stage || at->starts_with(stage + " #"));
    if (!is_named) {
      fail_msg("%s: the error should name %s and %s: %s", name.c_str(), file.c_str(), stage.c_str(),
               error.to_string().c_str());
    }
    elements.push_back(base::concat(*error.find_detail("epoch"), ":", *number));
  }
  fail_msg("%s: the walk does not end", name.c_str());
  return {};
}

// Where the elements of a pipeline with the bad contents came from.
Strings expected_of(const Pipeline &pipeline, const std::string &bad) {
  auto iterator = assert_ok_value(assert_ok_value(pipeline.build())->make_iterator(context_with(1)));
  Strings elements;
  for (Element element; assert_ok_value(iterator->next(element));) {
    if (tensor::bytes_at(element.components[0], 0) != bad) continue;
    elements.push_back(base::concat(element.lineage.epoch, ":", element.lineage.index));
  }
  return elements;
}

void check_sources(const std::vector<Source> &sources, const std::vector<Transform> &transforms,
                   const std::string &bad) {
  for (const Source &source : sources) {
    for (const Layout &layout : layouts()) {
      const bool is_overdrawn = layout.name == "ignore_errors";
      const Strings expected = expected_of(layout.apply(source.begin()), bad);
      assert_true(!expected.empty());
      for (const Transform &transform : transforms) {
        for (const int32_t threads : {1, 4}) {
          const std::string name = base::concat(source.name, ", ", layout.name, ", ", transform.name, ", ", threads);
          const Strings before =
              failing(transform.apply(layout.apply(source.begin())), threads, source.file, transform.stage, name);
          if (before != expected) fail_msg("%s: %s", name.c_str(), base::join(before, " ").c_str());
          if (is_overdrawn) continue;
          const std::string after = name + ", behind";
          Pipeline behind = layout.apply(transform.apply(source.begin()));
          const Strings elements = failing(behind, threads, source.file, transform.stage, after);
          if (elements.empty() || elements[0] != base::concat("0:", kBad)) {
            fail_msg("%s: %s", after.c_str(), base::join(elements, " ").c_str());
          }
          const Strings batched =
              failing(std::move(behind.batch(2)), threads, source.file, transform.stage, after + ", batch");
          assert_true(!batched.empty() && batched[0] == elements[0]);
        }
      }
    }
  }
}

void errors_name_element_and_file(void **) {
  const Files numbers(number_of);
  check_sources(numbers.of_texts(), transforms_of_texts(), number_of(kBad));
  check_sources(numbers.of_any(), transforms_of_texts(), number_of(kBad));
  const Files examples(example_of);
  check_sources(examples.of_any(), transforms_of_examples(), example_of(kBad));
}

Pipeline doubled(Pipeline pipeline) {
  GraphBuilder b;
  const auto number = b.input("number", DType::f32, {GraphBuilder::batch()});
  b.set_result("number", b.add(number, number));
  data::TransformArguments arguments;
  arguments.graph = std::make_shared<const graph::Graph>(assert_ok_value(b.finish_graph()));
  return std::move(pipeline.apply("map", {}, std::move(arguments)));
}

// Rows that a graph computes together: the one that fails is found where rows have positions; else the error says which
// they were.
void rows_computed_together_are_told_apart(void **) {
  const TemporaryDirectory folder;
  for (int file = 0; file < 3; ++file) {
    std::vector<float> numbers(50);
    for (size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = static_cast<float>(50 * file + static_cast<int>(i));
    write_bytes(folder / base::concat("numbers", file),
                {reinterpret_cast<const char *>(numbers.data()), numbers.size() * sizeof(float)});
  }
  const auto begin = [&] {
    return begin_with("fixed_records", {{"paths", Strings{folder / "*"}}, {"fields", Strings{"number: f32"}}});
  };
  for (const int32_t threads : {1, 4}) {
    data::IteratorContext context = context_with(threads);
    std::static_pointer_cast<InterpretingRunner>(context.graphs)->refused = 123;
    const auto first_error = [&](Pipeline pipeline) {
      auto iterator = assert_ok_value(assert_ok_value(pipeline.batch(70).build())->make_iterator(context));
      for (Element element;;) {
        const auto more = iterator->next(element);
        if (!more.ok()) return more.status().to_string();
        assert_true(*more);
      }
    };
    const std::string found =
        "element 123 of epoch 0 [element=123, epoch=0, file=" + (folder / "numbers2") + ", stage=map]";
    assert_contains(first_error(doubled(begin())).c_str(), found.c_str());
    assert_contains(first_error(doubled(std::move(begin().shuffle(200)))).c_str(), found.c_str());
    assert_contains(first_error(std::move(doubled(begin()).shuffle(20))).c_str(), found.c_str());
    const std::string together = first_error(doubled(forward_only(begin())));
    assert_contains(together.c_str(), "one of the 70 elements up to element 139 of epoch 0");
    assert_contains(together.c_str(),
                    ("[element=139, epoch=0, file=" + (folder / "numbers2") + ", elements=70, stage=map]").c_str());
  }
}

// Paths are texts in memory, each of which names its own file.
void paths_are_files(void **) {
  const Files files(number_of);
  TemporaryDirectory folder;
  for (const char *name : {"a.x", "b.x", "c.x"})
    write_bytes(folder / name, name);
  const DatasetRef dataset = assert_ok_value(
      by_routine(std::move(begin_with("files", {{"paths", Strings{folder / "*.x"}}}).shuffle(2)), 0).build());
  auto iterator = assert_ok_value(dataset->make_iterator(context_with(4)));
  Element element;
  std::set<std::string> named;
  for (int i = 0; i < 3; ++i) {
    const auto more = iterator->next(element);
    const std::string file = *more.status().error()->find_detail("file");
    assert_string_equal(
        file.c_str(),
        (folder / (std::string(1, "abc"[std::stoi(*more.status().error()->find_detail("element"))]) + ".x")).c_str());
    named.insert(file);
  }
  assert_int_equal(named.size(), 3);
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(errors_name_element_and_file),
    cmocka_unit_test(rows_computed_together_are_told_apart),
    cmocka_unit_test(paths_are_files),
};
TEST_MAIN(tests)

}  // namespace element_origin_test
