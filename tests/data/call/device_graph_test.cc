// SPDX-License-Identifier: Apache-2.0
//
// Maps as graphs for devices: on any part of a batch they give, bit for bit, what the map gives on the host, whatever
// is drawn; and what cannot be done there is refused with its reason.
#include "data/call/device_graph.h"

#include <cstring>

#include "backend/reference/reference_backend.h"
#include "data/graph/backend_graph_runner.h"
#include "data/pipeline/pipeline.h"
#include "data/pipeline/sources.h"
#include "graph/builder.h"
#include "testing.h"

namespace device_graph_test {

using namespace tutti::impl;
using namespace tutti::testing;
using data::DatasetRef;
using data::Element;
using data::Pipeline;
using graph::Attributes;
using graph::Dims;
using graph::GraphBuilder;
using graph::ValueId;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

namespace {

constexpr int64_t kExamples = 11, kBatch = 5, kClasses = 3;

/// What a test maps: images "x" and targets "t" to some values, by name.
struct MapCase {
  std::string name;
  DType dtype = DType::u8;
  int64_t height = 7, width = 9, channels = 3;
  std::function<std::vector<std::pair<std::string, ValueId>>(GraphBuilder &, ValueId x, ValueId t)> build;
};

Tensor images(const MapCase &of) {
  const Shape shape{kExamples, of.height, of.width, of.channels};
  base::RandomStream random(base::RandomKey::of(3, 5, 7));
  std::vector<uint8_t> bytes;
  std::vector<float> floats;
  for (int64_t i = 0; i < shape.elements(); ++i) {
    bytes.push_back(static_cast<uint8_t>(random.next()));
    floats.push_back(base::uniform_float(random.next()) * 3 - 1);
  }
  return of.dtype == DType::u8 ? Tensor::from_values<uint8_t>(shape, bytes).value()
                               : Tensor::from_values<float>(shape, floats).value();
}

Tensor targets() {
  std::vector<float> values;
  for (int64_t i = 0; i < kExamples * kClasses; ++i)
    values.push_back(static_cast<float>(i % 7) / 7);
  return Tensor::from_values<float>({kExamples, kClasses}, values).value();
}

graph::SealedGraph graph_of(const MapCase &of) {
  GraphBuilder b;
  const ValueId x = b.input("x", of.dtype, {GraphBuilder::batch(), of.height, of.width, of.channels});
  const ValueId t = b.input("t", DType::f32, {GraphBuilder::batch(), kClasses});
  for (const auto &[name, value] : of.build(b, x, t))
    b.set_result(name, value);
  return std::make_shared<const graph::Graph>(assert_ok_value(b.finish_graph()));
}

DatasetRef dataset_of(const MapCase &of, bool on_device = true) {
  data::TransformArguments arguments;
  arguments.graph = graph_of(of);
  Pipeline pipeline(data::from_slices({{"x", images(of)}, {"t", targets(), data::Role::label}}));
  pipeline.shuffle(4).batch(kBatch);
  pipeline.apply("map", {{"on_device", on_device}}, std::move(arguments)).prefetch(2);
  return assert_ok_value(pipeline.build());
}

std::shared_ptr<data::BackendGraphRunner> make_runner() {
  const auto backend = assert_ok_value(backend::Backend::create(backend::reference::entry, "{}", {}));
  return data::BackendGraphRunner::create(assert_ok_value(backend->open_device(0)));
}

std::vector<int32_t> all_components(const data::Dataset &dataset) {
  std::vector<int32_t> all;
  for (size_t i = 0; i < dataset.spec().components.size(); ++i)
    all.push_back(static_cast<int32_t>(i));
  return all;
}

/// Copies of rows, aligned as backends want them: (first + i) % rows of the tensor.
Tensor rows_of(const Tensor &tensor, int64_t first, int64_t count) {
  std::vector<int64_t> extents(tensor.shape().begin(), tensor.shape().end());
  const int64_t rows = extents[0];
  extents[0] = count;
  Tensor copy = assert_ok_value(Tensor::allocate(tensor.dtype(), Shape::make(extents).value()));
  const auto bytes = static_cast<size_t>(tensor.size_bytes() / rows);
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(copy.mutable_data_as<char>() + static_cast<size_t>(i) * bytes,
                tensor.data_as<char>() + static_cast<size_t>((first + i) % rows) * bytes, bytes);
  return copy;
}

/// Runs the device graph as a device would, on rows [begin, end) of a batch that was left, and compares.
void assert_part(const data::DeviceGraph &made, const Element &raw, const Element &mapped, int64_t seed, int64_t begin,
                 int64_t end, data::GraphRunner &runner) {
  const data::GraphScalars whole{seed, raw.lineage.epoch, raw.lineage.index, raw.rows()};
  const int64_t rows = end - begin, rotation = made.rotation(whole);
  const auto function = assert_ok_value(runner.prepare(made.graph, {{"batch", rows}}));
  std::vector<Tensor> inputs, outputs;
  std::vector<const void *> input_pointers;
  std::vector<void *> output_pointers;
  for (const data::GraphPort &port : function->inputs()) {
    const auto input = std::ranges::find(made.inputs, port.name, &data::DeviceGraph::Input::name);
    assert_true(input != made.inputs.end());
    const int64_t away = input->of_partner ? rotation : 0;
    if (input->component >= 0) {
      inputs.push_back(rows_of(raw.components[static_cast<size_t>(input->component)], begin + away, rows));
    } else {
      inputs.push_back(assert_ok_value(Tensor::allocate(port.dtype, Shape::make(port.dims).value())));
      data::DeviceGraph::fill(made.draws[static_cast<size_t>(input->draw)], whole, begin, end, away,
                              inputs.back().mutable_data());
    }
    input_pointers.push_back(inputs.back().data());
  }
  for (const data::GraphPort &port : function->outputs()) {
    outputs.push_back(assert_ok_value(Tensor::allocate(port.dtype, Shape::make(port.dims).value())));
    output_pointers.push_back(outputs.back().mutable_data());
  }
  assert_ok(function->run(input_pointers, output_pointers, {seed, whole.epoch, whole.row_offset + begin, rows}));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto result = std::ranges::find(made.results, function->outputs()[i].name, &data::DeviceGraph::Result::name);
    const Tensor wanted = rows_of(mapped.components[static_cast<size_t>(result->component)], begin, rows);
    if (!identical(wanted, outputs[i])) {
      print_error("'%s' rows %d to %d: %s\n", result->name.c_str(), static_cast<int>(begin), static_cast<int>(end),
                  compare_close(outputs[i], wanted, 0, 0).to_string().c_str());
    }
    assert_true(identical(wanted, outputs[i]));
  }
}

/// Walks with the map left and with it on the host, with the states of both at every element.
void assert_same_walks(const MapCase &of, int64_t seed) {
  print_message("%s\n", of.name.c_str());
  const DatasetRef dataset = dataset_of(of);
  const data::Dataset *const map = data::trailing_device_map(*dataset);
  assert_non_null(map);
  const auto runner = make_runner();
  data::IteratorContext context;
  context.seed = seed;
  context.epoch = 2;
  context.graphs = runner;
  const auto on_host = assert_ok_value(dataset->make_iterator(context));
  context.left_map = map;
  const auto left = assert_ok_value(dataset->make_iterator(context));
  const data::DeviceGraph made = assert_ok_value(data::make_device_graph(*map, all_components(*dataset)));
  for (Element mapped, raw;;) {
    const bool more = assert_ok_value(on_host->next(mapped));
    assert_true(assert_ok_value(left->next(raw)) == more);
    assert_string_equal(on_host->save().dump().c_str(), left->save().dump().c_str());
    if (!more) break;
    const int64_t rows = raw.rows();
    assert_part(made, raw, mapped, seed, 0, rows, *runner);
    for (int64_t row = 0; row < rows; ++row)
      assert_part(made, raw, mapped, seed, row, row + 1, *runner);
    if (rows > 3) assert_part(made, raw, mapped, seed, 1, 3, *runner);
  }
}

MapCase image_case(std::string name, Attributes attributes, DType dtype = DType::u8) {
  MapCase of;
  of.name = name;
  of.dtype = dtype;
  of.build = [=](GraphBuilder &b, ValueId x, ValueId) {
    return std::vector<std::pair<std::string, ValueId>>{{"x", b.op(name, {x}, attributes)}};
  };
  return of;
}

using Ints = std::vector<int64_t>;
using Doubles = std::vector<double>;

void image_ops_agree(void **) {
  const std::vector<std::pair<std::string, Attributes>> cases = {
      {"flip", {{"direction", "horizontal"}}},
      {"flip", {{"direction", "vertical"}}},
      {"crop", {{"size", Ints{4, 5}}, {"offset", Ints{2, 3}}}},
      {"crop", {{"size", Ints{4, 6}}, {"centered", true}}},
      {"pad_image", {{"pads", Ints{1, 2, 3, 0}}, {"value", 2.6}}},
      {"pad_image", {{"pads", Ints{1, 2, 3, 0}}, {"mode", "edge"}}},
      {"pad_image", {{"pads", Ints{1, 2, 3, 4}}, {"mode", "reflect"}}},
      {"rotate90", {{"turns", int64_t{0}}}},
      {"rotate90", {{"turns", int64_t{1}}}},
      {"rotate90", {{"turns", int64_t{2}}}},
      {"rotate90", {{"turns", int64_t{3}}}},
      {"normalize_image", {{"mean", Doubles{0.4, 0.5, 0.6}}, {"stddev", Doubles{0.2}}, {"scale", 1 / 255.0}}},
      {"normalize_image", {{"mean", Doubles{3}}, {"stddev", Doubles{0.7, 0.8, 0.9}}}},
      {"convert_image_dtype", {{"dtype", DType::f32}}},
      {"convert_image_dtype", {{"dtype", DType::u8}}},
      {"adjust_brightness", {{"delta", 0.2}}},
      {"random_flip", {{"key", int64_t{9}}}},
      {"random_flip", {{"direction", "vertical"}, {"probability", 0.3}}},
      {"random_crop", {{"size", Ints{5, 4}}}},
      {"random_crop", {{"size", Ints{7, 9}}, {"padding", int64_t{2}}, {"value", 7.5}}},
      {"random_cutout", {{"size", Ints{3, 4}}, {"value", 1.5}}},
  };
  for (const auto &[name, attributes] : cases) {
    for (const DType dtype : {DType::u8, DType::f32})
      assert_same_walks(image_case(name, attributes, dtype), 42);
  }
}

void resizes_agree(void **) {
  for (const char *const method : {"nearest", "bilinear", "area"}) {
    for (const Ints &size : {Ints{3, 4}, Ints{7, 9}, Ints{1, 1}, Ints{15, 5}, Ints{6, 20}}) {
      for (const bool antialias : {false, true}) {
        if (antialias && std::string(method) != "bilinear") continue;
        for (const char *const output : {"same", "f32"}) {
          const Attributes attributes = {
              {"size", size}, {"method", method}, {"antialias", antialias}, {"output", output}};
          assert_same_walks(image_case("resize", attributes), 1);
          assert_same_walks(image_case("resize", attributes, DType::f32), 1);
        }
      }
    }
  }
}

/// The usual augmentation: several ops and others, and rows that are mixed.
void chains_agree(void **) {
  for (const bool cuts : {false, true}) {
    MapCase of;
    of.name = cuts ? "chain with cutmix" : "chain with mixup";
    of.build = [cuts](GraphBuilder &b, ValueId x, ValueId t) {
      x = b.op("random_crop", {x}, {{"size", Ints{6, 6}}, {"padding", int64_t{1}}});
      x = b.op("random_flip", {x});
      x = b.op("resize", {x}, {{"size", Ints{5, 8}}});
      x = b.op("normalize_image", {x}, {{"mean", Doubles{0.4, 0.5, 0.6}}, {"scale", 1 / 255.0}});
      const auto mixed = b.op_n(cuts ? "cutmix" : "mixup", {b.scale(x, 0.5), b.add(t, t)}, {{"alpha", 0.4}}, 2);
      return std::vector<std::pair<std::string, ValueId>>{{"x", b.unary("relu", mixed[0])}, {"t", mixed[1]}};
    };
    for (const int64_t seed : {0, 1, 2, 3})
      assert_same_walks(of, seed);
  }
}

/// Random ops in program form are keyed by row, too; what the map leaves alone passes through.
void programs_agree(void **) {
  MapCase of;
  of.name = "noise";
  of.dtype = DType::f32;
  of.build = [](GraphBuilder &b, ValueId x, ValueId t) {
    const ValueId noise = b.op("random_uniform", GraphBuilder::Values{},
                               {{"dims", Dims{GraphBuilder::batch(), 1, 1, 3}}, {"low", -1.0}, {"high", 1.0}});
    return std::vector<std::pair<std::string, ValueId>>{{"x", b.add(b.op("random_flip", {x}), noise)},
                                                        {"sum", b.reduce_sum(t, {1})}};
  };
  assert_same_walks(of, 5);
}

std::string refusal(const MapCase &of) {
  const DatasetRef dataset = dataset_of(of);
  const auto made = data::make_device_graph(*data::trailing_device_map(*dataset), all_components(*dataset));
  assert_true(made.status().code() == base::Code::unimplemented);
  const auto warnings = assert_ok_value(data::lint(*dataset));
  assert_int_equal(warnings.size(), 1);
  assert_string_equal(warnings[0].c_str(), data::refusal_of_device_map(made.status()).c_str());
  return warnings[0];
}

void what_devices_cannot_do_is_said(void **) {
  const auto says = [](const MapCase &of, const char *text) {
    const std::string message = refusal(of);
    if (message.find(text) == std::string::npos) print_error("%s\n", message.c_str());
    assert_true(message.find(text) != std::string::npos);
  };
  says(image_case("random_rotate", {{"degrees", 10.0}}), "op 'random_rotate' is not supported on devices");
  MapCase large = image_case("resize", {{"size", Ints{1, 1}}, {"method", "area"}});
  large.height = 40;
  says(large, "up to 40 pixels");
  MapCase mean;
  mean.build = [](GraphBuilder &b, ValueId x, ValueId t) {
    return std::vector<std::pair<std::string, ValueId>>{{"x", b.op("convert_image_dtype", {x})},
                                                        {"t", b.sub(t, b.reduce("reduce_max", t, {0}, true))}};
  };
  says(mean, "not independent of each other");
  MapCase twice;
  twice.dtype = DType::f32;
  twice.build = [](GraphBuilder &b, ValueId x, ValueId t) {
    const auto once = b.op_n("mixup", {x, t}, {}, 2);
    const auto again = b.op_n("mixup", {once[0], once[1]}, {}, 2);
    return std::vector<std::pair<std::string, ValueId>>{{"x", again[0]}, {"t", again[1]}};
  };
  says(twice, "another op mixes rows");
}

void places_in_the_pipeline(void **) {
  const MapCase of = image_case("flip", {});
  assert_null(data::trailing_device_map(*dataset_of(of, false)));
  // Behind it only prefetch and options.
  Pipeline more(dataset_of(of));
  const DatasetRef taken = assert_ok_value(more.apply("take", {{"count", int64_t{1}}}).build());
  assert_null(data::trailing_device_map(*taken));
  assert_true(data::refused_device_maps(*taken)[0].find("put it last") != std::string::npos);
  Pipeline options(dataset_of(of));
  options.apply("options", {{"threads", int64_t{1}}});
  assert_non_null(data::trailing_device_map(*assert_ok_value(options.build())));
  // Single examples.
  data::TransformArguments arguments;
  arguments.graph = graph_of(of);
  Pipeline single(data::from_slices({{"x", images(of)}, {"t", targets()}}));
  single.apply("map", {{"on_device", true}}, std::move(arguments)).prefetch(1);
  const DatasetRef examples = assert_ok_value(single.build());
  assert_error_contains(data::make_device_graph(*data::trailing_device_map(*examples), {0}), "put the map after batch");
}

/// A walk that has left its map goes on from the state of one that has not, and the other way round.
void states_are_the_same(void **) {
  const DatasetRef dataset = dataset_of(image_case("random_flip", {}));
  data::IteratorContext host;
  host.graphs = make_runner();
  data::IteratorContext left = host;
  left.left_map = data::trailing_device_map(*dataset);
  const auto first = assert_ok_value(dataset->make_iterator(left));
  Element raw, mapped;
  assert_true(assert_ok_value(first->next(raw)));
  const auto second = assert_ok_value(dataset->make_iterator(host));
  assert_ok(second->restore(first->save()));
  assert_true(assert_ok_value(second->next(mapped)));
  const auto third = assert_ok_value(dataset->make_iterator(left));
  assert_ok(third->restore(second->save()));
  assert_true(assert_ok_value(third->next(raw)));
  assert_int_equal(raw.rows(), kExamples - 2 * kBatch);
  assert_false(assert_ok_value(third->next(raw)));
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(image_ops_agree),
    cmocka_unit_test(resizes_agree),
    cmocka_unit_test(chains_agree),
    cmocka_unit_test(programs_agree),
    cmocka_unit_test(what_devices_cannot_do_is_said),
    cmocka_unit_test(places_in_the_pipeline),
    cmocka_unit_test(states_are_the_same),
};
TEST_MAIN(tests)

}  // namespace device_graph_test
