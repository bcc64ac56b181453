// SPDX-License-Identifier: Apache-2.0
//
// Every source through every transform that fits what it gives. Looked at are the elements and errors (against a model
// of the transform on the elements and errors of the source alone), their spec and cardinality, walks with 1 to 8
// threads, walks saved and restored after every element, walks cancelled and left after every element, and that memory
// is given back.
#include "base/memory.h"
#include "conformance/dataset_conformance.h"
#include "data/format/arrow.h"
#include "data/format/encode_example.h"
#include "data/format/record.h"
#include "graph/builder.h"
#include "interpreting_runner.h"
#include "sample_data.h"
#include "sample_files.h"
#include "transform_model.h"

namespace source_transform_test {

using namespace tutti::impl;
using namespace tutti::testing;
using base::Status;
using data::DatasetRef;
using data::Element;
using data::Pipeline;
using tensor::Tensor;

namespace {

// ---- sources ----

struct Source {
  std::string name;
  std::function<Pipeline()> begin;
  bool fails = false;                      // for some elements
  std::function<void()> opened = nullptr;  // what must happen once a walk is open
};

class Files {
 public:
  Files() {
    write_bytes(folder_ / "a.txt", "one\ntwo\r\n\nfour");
    write_bytes(folder_ / "b.txt", "five\nsix\n");
    write_bytes(folder_ / "a.fixed", "abcdefghijklmnopqrstuvwxy0123456789");
    write_bytes(folder_ / "a.csv", "name,x\none,1\n\"t\nwo\",\nthree,3\nfour,-1\n");
    write_bytes(folder_ / "bad.csv", "name,x\none,1\ntwo\nthree,x\nfour,4\nfive,5\n");
    for (const char *name : {"one", "two"}) {
      assert_ok(base::make_directories(folder_ / "images/" + name));
      for (const char *image : {"/a.png", "/b.png", "/c.jpg"})
        write_bytes(folder_ / "images/" + name + image, name);
    }
    write_records();
  }
  std::string operator/(const std::string &name) const { return folder_ / name; }
  // A folder that nothing uses yet.
  std::string fresh() const { return folder_ / base::concat("fresh", count_++); }

 private:
  void write_records() {
    data::RecordWriter writer =
        assert_ok_value(data::RecordWriter::create(folder_ / "records", data::Compression::none));
    for (int i = 0; i < 7; ++i) {
      const Tensor x = assert_ok_value(Tensor::from_values<float>({2}, {static_cast<float>(i), -1.0f}));
      const Tensor words = assert_ok_value(tensor::make_bytes_tensor({i}, Strings(static_cast<size_t>(i), "word")));
      assert_ok(writer.write(assert_ok_value(data::encode_example({{"x", x}, {"words", words}}))));
    }
    assert_ok(writer.close());
    std::string damaged = assert_ok_value(base::read_file(folder_ / "records"));
    damaged[damaged.size() / 2] ^= 1;
    write_bytes(folder_ / "damaged", damaged);
  }

  TemporaryDirectory folder_;
  mutable int count_ = 0;
};

Source of_files(const char *source, graph::Attributes attributes, bool fails = false) {
  return {base::concat(source, fails ? ", damaged" : ""), [=] { return begin_with(source, attributes); }, fails};
}

Source fed() {
  const auto feed = std::make_shared<base::Ref<data::Feed>>();
  constexpr int64_t kCount = 7;
  return {"feed",
          [feed] {
            const data::ElementSpec spec{{{"value", data::Role::feature, tensor::DType::i64, {}}}};
            *feed = data::Feed::create(spec, kCount + 1).value();
            return Pipeline((*feed)->dataset());
          },
          false,
          [feed] {
            for (int64_t i = (*feed)->resume_position(); i < kCount; ++i) {
              Element element;
              element.components.push_back(Tensor::scalar(i).value());
              (void)(*feed)->push(std::move(element), nullptr, base::Deadline::after_ms(10000));
            }
            (void)(*feed)->end();
          }};
}

Pipeline generated(bool fails) {
  return Pipeline(data::from_generator(data::ElementSpec{{{"value", data::Role::feature, tensor::DType::i64, {}}}},
                                       [fails](int64_t, int64_t index, Element &element) -> base::Result<bool> {
                                         if (index >= 8) return false;
                                         if (fails && index % 4 == 1)
                                           return base::out_of_range("number ", index, " is not to be had");
                                         TUTTI_ASSIGN(Tensor value, Tensor::scalar(index * index));
                                         element.components.push_back(std::move(value));
                                         return true;
                                       }));
}

Pipeline arrow_stream(const Pipeline &rows) {
  ArrowArrayStream stream;
  assert_ok(data::write_arrow(assert_ok_value(rows.build()), {}, 4, &stream));
  Pipeline pipeline(data::SourceServices{nullptr, data::ArrowStream::take(&stream)});
  return std::move(pipeline.apply("arrow"));
}

// Lists of 0 to 4 words.
Pipeline lists(int64_t rows) {
  auto ranges = std::make_shared<data::RowRanges>();
  for (int64_t i = 0; i < rows; ++i)
    ranges->push_back({i, (2 * i) % 5});
  const Tensor words =
      assert_ok_value(tensor::make_bytes_tensor({rows + 4}, Strings(static_cast<size_t>(rows + 4), "word")));
  return Pipeline(data::from_slices({{"words", words, data::Role::feature, ranges}, {"y", counted(rows)}}));
}

std::vector<Source> sources(const Files &files) {
  const auto paths = [&files](const char *pattern) { return Strings{files / pattern}; };
  const auto golden = [](const char *name) { return std::string(GOLDEN_FOLDER "/") + name; };
  const Tensor texts = assert_ok_value(tensor::make_bytes_tensor({5}, Strings{"a", "", "ccc", "a", "e"}));
  const auto parsed = [=](const char *name, const char *records, Strings features, bool fails = false) {
    return Source{
        name,
        [=] {
          return std::move(
              begin_with("tfrecord", {{"paths", paths(records)}}).apply("parse_example", {{"features", features}}));
        },
        fails};
  };
  return {
      {"slices", [] { return sample(11); }},
      {"slices of bytes",
       [=] {
         return Pipeline(data::from_slices({{"text", texts}}));
       }},
      {"slices of nothing", [] { return sample(0); }},
      {"tensors",
       [] {
         return Pipeline(data::from_tensors({{"x", numbered(4, 2)}}));
       }},
      {"range", [] { return range(10); }},
      {"range, forward only", [] { return forward_only(range(10)); }},
      {"generator", [] { return generated(false); }},
      {"generator, failing", [] { return generated(true); }, true},
      {"arrow", [] { return arrow_stream(sample(9)); }},
      {"arrow, lists", [] { return arrow_stream(lists(7)); }},
      fed(),
      of_files("text_lines", {{"paths", paths("*.txt")}}),
      of_files("csv", {{"paths", paths("a.csv")}, {"columns", Strings{"name: bytes", "x: f32 = 0"}}}),
      of_files("csv", {{"paths", paths("bad.csv")}, {"columns", Strings{"name: bytes", "x: f32 = 0"}}}, true),
      of_files("fixed_records", {{"paths", paths("a.fixed")}, {"fields", Strings{"a: u8", "b: i16[2]"}}}),
      of_files("files", {{"paths", paths("a.*")}}),
      of_files("image_folder", {{"path", files / "images"}}),
      of_files("tar", {{"paths", Strings{golden("ustar.tar")}}, {"parts", Strings{"__key__: bytes", "cls: i64"}}}),
      of_files("npz", {{"path", golden("both.npz")}}),
      of_files("element_files", {{"paths", Strings{golden("rows.elements")}}}),
      of_files("tfrecord", {{"paths", paths("records")}}),
      of_files("tfrecord", {{"paths", paths("damaged")}}, true),
      parsed("parse_example, rows", "records", {"x: f32[2]"}),
      parsed("parse_example", "records", {"words: bytes[?]", "x: f32[2]"}),
      parsed("parse_example, missing", "records", {"words: bytes[3]"}, true),
      parsed("parse_example, damaged", "damaged", {"words: bytes[?]", "x: f32[2]"}, true),
  };
}

// ---- transforms ----

struct Transform {
  const char *name;
  std::function<void(Pipeline &, const Source &)> apply;
  // What comes of the source's elements and failures; each is the beginning of an element that comes, or a failure.
  std::function<Strings(const Strings &)> expected;
  bool in_any_order = false;
  // Does it fit such elements? Nothing: any.
  std::function<bool(const data::Dataset &)> fits = nullptr;
  bool begins_again = false;  // opens its source more than once
};

data::TransformArguments others(const Source &source) {
  data::TransformArguments arguments;
  arguments.others.push_back(assert_ok_value(source.begin().build()));
  return arguments;
}

data::TransformArguments keeping(std::function<bool(int64_t index)> keeps) {
  data::TransformArguments arguments;
  arguments.filter = [keeps](const Element &input, bool &keep) {
    keep = keeps(input.lineage.index);
    return Status();
  };
  return arguments;
}

data::TransformArguments copying() {
  data::TransformArguments arguments;
  arguments.map = [](const Element &input, Element &output) {
    for (const Tensor &component : input.components) {
      TUTTI_ASSIGN(Tensor copy, component.clone());
      output.components.push_back(std::move(copy));
    }
    return Status();
  };
  return arguments;
}

// Counts the elements on the way.
data::TransformArguments counting() {
  data::TransformArguments arguments;
  arguments.state.push_back({"count", Tensor::scalar(int64_t{0}).value()});
  arguments.scan = [](const Element &state, const Element &input, Element &new_state, Element &output) {
    TUTTI_ASSIGN(const int64_t count, state.components[0].scalar_value<int64_t>());
    TUTTI_ASSIGN(new_state.components[0], Tensor::scalar(count + 1));
    output.components = input.components;
    return Status();
  };
  return arguments;
}

// Two numbers for each element.
data::TransformArguments expanding() {
  data::TransformArguments arguments;
  arguments.expand = [](const Element &) { return data::from_range(0, 2); };
  arguments.output_spec = data::ElementSpec{{{"value", data::Role::feature, tensor::DType::i64, {}}}};
  return arguments;
}

bool has_known_shapes(const data::Dataset &dataset) {
  for (const data::ComponentSpec &component : dataset.spec().components) {
    if (!graph::constant_shape(component.dims)) return false;
  }
  return true;
}

bool begins_with_numbers(const data::Dataset &dataset) {
  const tensor::DType first = dataset.spec().components[0].dtype;
  return (first == tensor::DType::f32 || first == tensor::DType::i64) && has_known_shapes(dataset);
}

bool has_length(const data::Dataset &dataset) { return dataset.cardinality().is_exact(); }

bool begins_with_a_text(const data::Dataset &dataset) {
  const data::ComponentSpec &first = dataset.spec().components[0];
  return first.dtype == tensor::DType::bytes && first.dims.empty();
}

bool has_unknown_length(const data::Dataset &dataset) {
  return dataset.spec().find("words") >= 0 && !has_known_shapes(dataset);
}

// The component of whole numbers that comes first; the number of components when there is none.
size_t numbers_of(const data::ElementSpec &spec) {
  const auto is_number = [](const data::ComponentSpec &component) {
    return tensor::is_integer(component.dtype) && component.dims.empty();
  };
  return static_cast<size_t>(std::find_if(spec.components.begin(), spec.components.end(), is_number) -
                             spec.components.begin());
}

// Those of the tar file are below 0.
bool has_classes(const data::Dataset &dataset) {
  return numbers_of(dataset.spec()) < dataset.spec().components.size() && dataset.kind() != "tar";
}

// Twice the first component.
data::TransformArguments doubling(const data::ElementSpec &spec) {
  const data::ComponentSpec &component = spec.components[0];
  graph::GraphBuilder b;
  const graph::ValueId x = b.input(component.name, component.dtype, component.dims);
  b.set_result(component.name, b.add(x, x));
  data::TransformArguments arguments;
  arguments.graph = std::make_shared<const graph::Graph>(b.finish_graph().value());
  return arguments;
}

using Attributes = graph::Attributes;

Transform plain(const char *name, const char *transform, Attributes attributes,
                std::function<Strings(const Strings &)> expected) {
  return {name, [=](Pipeline &p, const Source &) { p.apply(transform, attributes); }, std::move(expected)};
}

std::vector<Transform> choosing() {
  const auto split = [](const char *name, const char *part, std::function<Strings(const Strings &)> expected) {
    Transform one = plain(name, "split", {{"part", std::string(part)}, {"count", int64_t{0}}}, std::move(expected));
    one.fits = has_length;
    return one;
  };
  return {
      plain("take", "take", {{"count", int64_t{4}}}, [](const Strings &all) { return first(all, 4); }),
      plain("skip", "skip", {{"count", int64_t{3}}}, [](const Strings &all) { return behind(all, 3); }),
      plain("shard", "shard", {{"num_shards", int64_t{3}}, {"index", int64_t{1}}},
            [](const Strings &all) { return each(all, 1, 3); }),
      split("split, first", "first", [](const Strings &) { return Strings(); }),
      split("split, second", "second", same),
      {"filter_callback",
       [](Pipeline &p, const Source &) {
         p.apply("filter_callback", {}, keeping([](int64_t index) { return index % 2 == 0; }));
       },
       [](const Strings &all) { return chosen(all, [](size_t position) { return position % 2 == 0; }); }},
      {"take_while_callback",
       [](Pipeline &p, const Source &) {
         p.apply("take_while_callback", {}, keeping([](int64_t index) { return index < 5; }));
       },
       [](const Strings &all) {
         const auto behind = std::find_if(all.begin() + static_cast<int64_t>(std::min<size_t>(5, all.size())),
                                          all.end(), [](const std::string &one) { return !is_failure(one); });
         return Strings(all.begin(), behind);
       }},
      {"unique",
       [](Pipeline &p, const Source &) {
         p.apply("unique", {{"component", p.spec()->components[0].name}});
       },
       [](const Strings &all) {
         Strings seen;
         for (const std::string &one : all) {
           if (is_failure(one) || std::find(seen.begin(), seen.end(), one) == seen.end()) seen.push_back(one);
         }
         return seen;
       },
       false, begins_with_a_text},
      plain("ignore_errors", "ignore_errors", {},
            [](Strings all) {
              all.erase(std::remove_if(all.begin(), all.end(), is_failure), all.end());
              return all;
            }),
  };
}

std::vector<Transform> ordering() {
  const auto shuffle = [](const char *name, int64_t buffer) {
    Transform one = plain(name, "shuffle", {{"buffer_size", buffer}}, same);
    one.in_any_order = true;
    return one;
  };
  return {
      shuffle("shuffle", 3),
      shuffle("shuffle, all", 100),
      {"shuffle, one at a time", [](Pipeline &p, const Source &) { p.shuffle(1); }, same},
      {"repeat", [](Pipeline &p, const Source &) { p.repeat(2); }, twice, false, nullptr, true},
      {"concatenate", [](Pipeline &p, const Source &source) { p.apply("concatenate", {}, others(source)); },
       one_after_the_other, false, nullptr, true},
      {"interleave", [](Pipeline &p, const Source &source) { p.apply("interleave", {}, others(source)); }, by_turns,
       false, nullptr, true},
      {"interleave, parallel",
       [](Pipeline &p, const Source &source) {
         p.apply("interleave", {{"parallelism", int64_t{2}}}, others(source));
       },
       by_turns, false, nullptr, true},
      {"sample_from",
       [](Pipeline &p, const Source &source) {
         p.apply("sample_from", {{"weights", std::vector<double>{0.25, 0.75}}}, others(source));
       },
       one_after_the_other, true, nullptr, true},
      {"zip",
       [](Pipeline &p, const Source &) {
         data::TransformArguments arguments;
         arguments.others.push_back(data::from_tensors({{"beside", Tensor::scalar(1.5F).value()}}).value());
         arguments.others[0] = assert_ok_value(Pipeline(arguments.others[0]).repeat(6).build());
         p.apply("zip", {}, std::move(arguments));
       },
       [](const Strings &all) { return first(all, 6); }},
      plain("enumerate", "enumerate", {{"name", std::string("number")}}, same),
      {"class_weights",
       [](Pipeline &p, const Source &) {
         const std::string label = p.spec()->components[numbers_of(*p.spec())].name;
         p.apply("class_weights", {{"component", label}, {"counts", std::vector<int64_t>(256, 2)}});
       },
       same, false, has_classes},
      {"select",
       [](Pipeline &p, const Source &) {
         const Strings first{p.spec()->components[0].name};
         p.apply("select", {{"features", first}, {"labels", Strings{"again = " + first[0]}}});
       },
       any},
      {"select behind a batch",
       [](Pipeline &p, const Source &) {
         const Strings last{p.spec()->components.back().name};
         p.batch(2).apply("select", {{"features", last}}).apply("unbatch");
       },
       [](const Strings &all) { return any(batched_and_unbatched(all, 2)); }, false, has_known_shapes},
  };
}

std::vector<Transform> buffering(const Files &files) {
  // The first walk that comes to its end fills one file, which the others read; or each walk fills one of its own.
  const auto in_files = [&files](const char *name, const char *transform, bool shared) {
    return Transform{name,
                     [=, &files](Pipeline &p, const Source &source) {
                       const std::string path = shared ? files / (source.name + name) : files.fresh();
                       p.apply(transform, {{"path", path}, {"key", std::string("1")}});
                     },
                     same};
  };
  const auto copied = [](const char *name, int64_t parallelism) {
    return Transform{name,
                     [=](Pipeline &p, const Source &) {
                       p.apply("map_callback", {{"parallelism", parallelism}}, copying());
                     },
                     same};
  };
  return {
      plain("cache", "cache", {}, same),
      in_files("cache in a file", "cache", true),
      in_files("cache in files", "cache", false),
      in_files("snapshot", "snapshot", true),
      in_files("snapshots", "snapshot", false),
      plain("prefetch", "prefetch", {{"buffer_size", int64_t{2}}}, same),
      plain("prefetch, automatic", "prefetch", {}, same),
      plain("options", "options", {{"threads", int64_t{2}}, {"memory_bytes", int64_t{1} << 20}}, same),
      copied("map_callback", 1),
      copied("map_callback, parallel", 3),
      copied("map_callback, automatic", 0),
      {"map",
       [](Pipeline &p, const Source &) {
         p.apply("map", {{"parallelism", int64_t{2}}}, doubling(*p.spec()));
       },
       any, false, begins_with_numbers},
      {"scan_callback", [](Pipeline &p, const Source &) { p.apply("scan_callback", {}, counting()); }, same},
      {"flat_map", [](Pipeline &p, const Source &) { p.apply("flat_map", {}, expanding()); }, expanded},
      {"interleave_callback",
       [](Pipeline &p, const Source &) {
         p.apply("interleave_callback", {{"cycle_length", int64_t{3}}, {"parallelism", int64_t{2}}}, expanding());
       },
       expanded_by_turns},
  };
}

// What starts processes for each walk, which takes a minute for all sources.
std::vector<Transform> starting_processes() {
  const Attributes copy{{"command", Strings{MAP_WORKER, "copy"}}, {"processes", int64_t{2}}};
  return {plain("map_process", "map_process", copy, same)};
}

std::vector<Transform> grouping() {
  const auto threes = [](const Strings &all) { return batches(all, 3, true); };
  return {
      {"batch", [](Pipeline &p, const Source &) { p.batch(3); }, threes, false, has_known_shapes},
      {"batch, remainder dropped", [](Pipeline &p, const Source &) { p.batch(3, true); },
       [](const Strings &all) { return batches(all, 3, false); }, false, has_known_shapes},
      {"padded_batch",
       [](Pipeline &p, const Source &) {
         p.apply("padded_batch", {{"batch_size", int64_t{3}}});
       },
       threes},
      {"bucket_by_length",
       [](Pipeline &p, const Source &) {
         p.apply("bucket_by_length", {{"component", std::string("words")},
                                      {"boundaries", std::vector<int64_t>{3}},
                                      {"batch_sizes", std::vector<int64_t>{2, 2}}});
       },
       bucketed, false, has_unknown_length},
      {"unbatch", [](Pipeline &p, const Source &) { p.batch(3).apply("unbatch"); },
       [](const Strings &all) { return batched_and_unbatched(all, 3); }, false, has_known_shapes},
      {"rebatch",
       [](Pipeline &p, const Source &) {
         p.batch(4).apply("rebatch", {{"batch_size", int64_t{3}}}).apply("unbatch");
       },
       [](const Strings &all) { return batched_and_unbatched(batched_and_unbatched(all, 4), 3); }, false,
       has_known_shapes},
      {"window",
       [](Pipeline &p, const Source &) {
         p.apply("window", {{"size", int64_t{3}}, {"shift", int64_t{2}}, {"drop_remainder", true}});
       },
       [](const Strings &all) { return windows(all, 3, 2); }, false, has_known_shapes},
  };
}

// ---- what is checked ----

// What an element holds, without where it came from.
std::string contents(const std::string &fingerprint) {
  return fingerprint.compare(0, 8, "lineage ") == 0 ? fingerprint.substr(fingerprint.find('\n') + 1) : fingerprint;
}

Strings contents_of(const DatasetCase &one) {
  const DatasetWalk walk = open_walk(one, context_of(one));
  Strings all;
  for (const std::string &element : take(one, *walk.iterator, one.limit))
    all.push_back(contents(element));
  assert_false(all.empty());
  assert_string_equal(all.back().c_str(), "end");
  all.pop_back();
  return all;
}

void check_model(const DatasetCase &one, const Transform &transform, const Strings &of_source) {
  Strings expected = transform.expected(of_source), got = contents_of(one);
  if (transform.in_any_order) {
    std::sort(expected.begin(), expected.end());
    std::sort(got.begin(), got.end());
  }
  if (expected.size() != got.size())
    fail_case(one, base::concat(expected.size(), " elements expected, ", got.size(), " came"));
  for (size_t i = 0; i < got.size(); ++i) {
    const bool may_go_on = !is_failure(expected[i]) && !is_failure(got[i]);
    if (may_go_on ? got[i].compare(0, expected[i].size(), expected[i]) != 0 : got[i] != expected[i])
      fail_case(one, base::concat("element ", i, " is ", got[i], ", expected ", expected[i]));
  }
}

// The same elements with any number of threads, and from any place where a walk was left and taken up again.
void check_walks(const DatasetCase &one) {
  const DatasetWalk whole = open_walk(one, context_of(one));
  const Strings expected = take(one, *whole.iterator, one.limit);
  for (int32_t threads = 2; threads <= 8; ++threads) {
    const DatasetWalk walk = open_walk(one, context_of(one, 0, threads));
    check_equal(one, expected, take(one, *walk.iterator, one.limit), base::concat(threads, " threads").c_str());
  }
  for (size_t at = 0; at <= expected.size(); ++at)
    check_resume(one, context_of(one, 0, at % 2 == 0 ? 1 : 4), expected, static_cast<int64_t>(at));
}

// After any number of elements: left there, and cancelled there.
void check_ends(const DatasetCase &one, int64_t count) {
  for (int64_t at = 0; at < count; ++at) {
    data::IteratorContext context = context_of(one, 0, 4);
    context.cancel = base::CancelToken::create();
    const DatasetWalk walk = open_walk(one, context);
    take(one, *walk.iterator, at);
    context.cancel->cancel();
    Element element;
    if (walk.iterator->next(element).code() != base::Code::cancelled)
      fail_case(one, base::concat("went on after it was cancelled behind element ", at));
    const DatasetWalk left = open_walk(one, context_of(one, 0, 4));
    take(one, *left.iterator, at);
  }
}

void check_pair(const Source &source, const Transform &transform) {
  const DatasetCase alone{source.name,
                          [&] {
                            return DatasetInstance{source.begin().build(), source.opened};
                          },
                          64, std::make_shared<InterpretingRunner>(), source.fails};
  if (source.opened != nullptr && transform.begins_again) return;  // it can be read once
  {
    const DatasetRef dataset = assert_ok_value(source.begin().build());
    if (transform.fits != nullptr && !transform.fits(*dataset)) return;
  }
  DatasetCase pair = alone;
  pair.name += base::concat(" -> ", transform.name);
  pair.make = [&] {
    Pipeline pipeline = source.begin();
    transform.apply(pipeline, source);
    return DatasetInstance{pipeline.build(), source.opened};
  };
  check_model(pair, transform, contents_of(alone));
  const int64_t before = base::allocation_count().live_bytes;
  check_dataset_case(pair);
  check_walks(pair);
  check_ends(pair, static_cast<int64_t>(contents_of(pair).size()));
  if (source.opened == nullptr && base::allocation_count().live_bytes != before) {
    fail_case(pair, base::concat(base::allocation_count().live_bytes - before, " bytes are held for ever"));
  }
}

void check_all(const std::vector<Transform> &transforms, const Files &files) {
  for (const Source &source : sources(files)) {
    for (const Transform &transform : transforms)
      check_pair(source, transform);
  }
}

void every_source_goes_through_choices(void **) { check_all(choosing(), Files()); }
void every_source_goes_through_orders(void **) { check_all(ordering(), Files()); }
void every_source_goes_through_groups(void **) { check_all(grouping(), Files()); }
void every_source_goes_through_buffers(void **) {
  const Files files;
  check_all(buffering(files), files);
}
void every_source_goes_through_processes(void **) { check_all(starting_processes(), Files()); }
}  // namespace
static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_source_goes_through_choices),
    cmocka_unit_test(every_source_goes_through_orders),
    cmocka_unit_test(every_source_goes_through_groups),
    cmocka_unit_test(every_source_goes_through_buffers),
};
static const struct CMUnitTest long_tests[] = {cmocka_unit_test(every_source_goes_through_processes)};
static int run_all(int count, char **arguments) {
  const bool is_long = count > 1 && std::string_view(arguments[1]) == "processes";
  return is_long ? cmocka_run_group_tests(long_tests, nullptr, nullptr)
                 : cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace source_transform_test
