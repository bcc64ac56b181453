// SPDX-License-Identifier: Apache-2.0
//
// Kernels that are written as text and compiled at run time against the interpreter that they stand for: the same bits,
// for every op, dtype and way of broadcasting. And what is kept of them on disk.
//
// usage: generated_kernels_test EMULATED-PLUG-IN [FOLDER]     with a folder: prints the report of a small graph
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "../../conformance/backend_cases.h"
#include "../../conformance/backend_under_test.h"
#include "../../conformance/bound_graph.h"
#include "backend/gpu/generated/kernel_cache.h"
#include "base/file.h"
#include "base/json.h"
#include "base/temporary_directory.h"
#include "runtime/backend_list.h"
#include "testing.h"

using namespace tutti::impl;
using backend::gpu::KernelCache;
using conformance::BuildFunction;
using conformance::OpCase;
using graph::GraphBuilder;
using tensor::DType;
using tensor::Tensor;
using tutti::testing::TemporaryDirectory;
using Values = GraphBuilder::Values;

namespace {

std::string program, plugin;

backend::DeviceRef open_device(const std::string &options) {
  backend::HostOptions host;
  host.log = [](int32_t severity, const std::string &message) {
    if (severity >= 2) std::fprintf(stderr, "%s\n", message.c_str());
  };
  const backend::BackendRef opened = assert_ok_value(runtime::open_backend(plugin, options, host));
  return assert_ok_value(opened->open_device(0));
}

// ---- bits ----

/// Of the suite: each op on each dtype once, and the pairs of shapes with one op.
std::vector<OpCase> chosen_cases() {
  const std::vector<std::vector<int64_t>> shapes = {{3, 5}, {33, 65}, {2, 3, 4}};
  std::vector<OpCase> chosen;
  std::vector<std::string> seen;
  for (OpCase &one : conformance::elementwise_cases()) {
    if (one.inputs.empty() || one.build) continue;
    const bool is_shape = std::find(shapes.begin(), shapes.end(), one.inputs[0].dims) != shapes.end();
    std::string kind = one.op;
    for (const auto &input : one.inputs)
      kind += base::concat(" ", input.dtype);
    for (const auto &[name, value] : one.attributes)
      kind += " " + name + "=" + graph::to_string(value);
    if (one.op == "add") {
      chosen.push_back(std::move(one));
    } else if (is_shape && std::find(seen.begin(), seen.end(), kind) == seen.end()) {
      seen.push_back(kind);
      chosen.push_back(std::move(one));
    }
  }
  return chosen;
}

/// Rows that are whole packs, rows that are not, and what is broadcast in the middle, for words of each size.
void add_broadcasts(std::vector<OpCase> &cases) {
  using Dims = std::vector<int64_t>;
  const std::pair<Dims, Dims> pairs[] = {{{6, 16}, {16}},       {{6, 16}, {6, 1}},         {{6, 16}, {1}},
                                         {{6, 16}, {6, 16}},    {{4, 3, 16}, {3, 1}},      {{4, 3, 16}, {4, 1, 16}},
                                         {{4, 3, 16}, {3, 16}}, {{2, 3, 2, 3}, {3, 1, 3}}, {{9, 11}, {11}}};
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::u8, DType::i32}) {
    for (const auto &[a, b] : pairs)
      cases.push_back({"maximum", {{dtype, a}, {dtype, b}}});
  }
}

void generated_kernels_give_the_bits_of_the_interpreter(void **) {
  std::vector<OpCase> cases = chosen_cases();
  assert_true(cases.size() > 200);
  add_broadcasts(cases);
  std::vector<Tensor> inputs;
  for (const OpCase &one : cases) {
    for (const auto &operand : one.inputs)
      inputs.push_back(assert_ok_value(conformance::make_operand(operand, inputs.size())));
  }
  const BuildFunction build = [&](GraphBuilder &builder, const Values &values) {
    Values results;
    size_t next = 0;
    for (const OpCase &one : cases) {
      const Values operands(values.begin() + static_cast<std::ptrdiff_t>(next),
                            values.begin() + static_cast<std::ptrdiff_t>(next + one.inputs.size()));
      next += one.inputs.size();
      results.push_back(builder.op(one.op, operands, one.attributes));
    }
    return results;
  };
  const auto interpreted =
      assert_ok_value(conformance::run_graph(open_device(R"({"generated_kernels": "never"})"), inputs, build));
  const auto generated = assert_ok_value(
      conformance::run_graph(open_device(R"({"generated_kernels": "always", "plan_cache": "off"})"), inputs, build));
  assert_int_equal(generated.size(), cases.size());
  for (size_t i = 0; i < cases.size(); ++i) {
    const size_t bytes = static_cast<size_t>(interpreted[i].elements()) * tensor::size_bytes(interpreted[i].dtype());
    if (bytes != 0 && std::memcmp(interpreted[i].data(), generated[i].data(), bytes) != 0)
      fail_msg("%s: other bits", cases[i].describe().c_str());
  }
}

// ---- reductions of trees ----

/// A number of what the emulator runs, along rows and columns, in one pass and in two, packs and single elements.
struct ReducedCase {
  DType dtype;
  std::vector<int64_t> dims, axes;
  const char *op;
};

std::vector<ReducedCase> reduced_cases() {
  std::vector<ReducedCase> cases;
  const struct {
    std::vector<int64_t> dims, axes;
  } shapes[] = {{{5, 24}, {1}},         {{5, 24}, {0}},   {{5, 7}, {1}},        {{5, 7}, {0}},
                {{3, 4000}, {1}},       {{4100, 8}, {0}}, {{2, 3, 16}, {0, 2}}, {{2, 3, 4, 8}, {1, 3}},
                {{2, 3, 4, 5}, {0, 2}}, {{6000}, {}},     {{16, 24}, {}}};
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const auto &[dims, axes] : shapes) {
      for (const char *op : {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min"})
        cases.push_back({dtype, dims, axes, op});
    }
  }
  return cases;
}

void reductions_of_trees_give_the_bits_of_two_kernels(void **) {
  const std::vector<ReducedCase> cases = reduced_cases();
  std::vector<Tensor> inputs;
  for (const ReducedCase &one : cases) {
    inputs.push_back(assert_ok_value(conformance::make_operand({one.dtype, one.dims}, inputs.size())));
    inputs.push_back(assert_ok_value(conformance::make_operand({one.dtype, {one.dims.back()}}, inputs.size())));
  }
  const BuildFunction build = [&](GraphBuilder &b, const Values &values) {
    Values results;
    for (size_t i = 0; i < cases.size(); ++i) {
      const auto x = values[2 * i], y = values[2 * i + 1];
      // Of one node and of several, in turn.
      const auto tree = i % 3 == 0 ? b.op("square", {x}) : b.op("mul", {b.op("sub", {x, y}), b.op("tanh", {x})});
      results.push_back(b.reduce(cases[i].op, tree, cases[i].axes));
    }
    return results;
  };
  const auto expected =
      assert_ok_value(conformance::run_graph(open_device(R"({"generated_kernels": "never"})"), inputs, build));
  const backend::DeviceRef device = open_device(R"({"generated_kernels": "always", "plan_cache": "off"})");
  const auto results = assert_ok_value(conformance::run_graph(device, inputs, build));
  for (size_t i = 0; i < cases.size(); ++i) {
    const size_t bytes = static_cast<size_t>(expected[i].elements()) * tensor::size_bytes(expected[i].dtype());
    assert_true(bytes > 0);
    if (std::memcmp(expected[i].data(), results[i].data(), bytes) != 0)
      fail_msg("case %zu, %s: other bits", i, cases[i].op);
  }
  const graph::Graph graph = assert_ok_value(conformance::build_graph(inputs, build));
  const auto bound = assert_ok_value(conformance::BoundGraph::make(device, graph));
  const base::Json report = assert_ok_value(base::Json::parse(bound->description().report_json));
  assert_int_equal(report.find("kernels")->array().size(), cases.size());
  for (const base::Json &kernel : report.find("kernels")->array())
    assert_true(kernel.find("kernel")->string().starts_with("generated reduction("));
}

// ---- what is kept ----

/// Two kernels; both are trees.
base::Json report_of(const std::string &options) {
  const Tensor x = assert_ok_value(conformance::make_operand({DType::f32, {4, 8}}, 1));
  const BuildFunction build = [](GraphBuilder &b, const Values &values) {
    const auto scaled = b.op("mul", {values[0], b.constant(0.5, DType::f32)});
    return Values{b.op("tanh", {b.op("add", {scaled, values[0]})}), b.op("relu", {b.op("neg", {values[0]})})};
  };
  const graph::Graph graph = assert_ok_value(conformance::build_graph({x}, build));
  const auto bound = assert_ok_value(conformance::BoundGraph::make(open_device(options), graph));
  return assert_ok_value(base::Json::parse(bound->description().report_json));
}

/// The report of another process.
base::Json report_of_a_process(const std::string &folder) {
  const std::string file = folder + ".report";
  const std::string command = base::concat("'", program, "' '", plugin, "' '", folder, "' >'", file, "' 2>/dev/null");
  assert_int_equal(std::system(command.c_str()), 0);
  return assert_ok_value(base::Json::parse(assert_ok_value(base::read_file(file))));
}

int64_t count_in(const base::Json &report, const char *key) {
  const base::Json *const generated = report.find("generated_kernels");
  assert_non_null(generated);
  const base::Json *const count = generated->find(key);
  assert_non_null(count);
  return count->integer();
}

void kernels_outlive_the_process(void **) {
  const TemporaryDirectory directory;
  const std::string folder = directory / "cache";
  const base::Json first = report_of_a_process(folder);
  assert_int_equal(count_in(first, "compiled"), 2);
  assert_int_equal(count_in(first, "from_cache"), 0);
  assert_string_equal(first.find("kernels")->array()[0].find("kernel")->string().c_str(), "generated elementwise(3)");
  struct stat information {};
  assert_int_equal(stat(folder.c_str(), &information), 0);
  assert_int_equal(information.st_mode & 0777, 0700);
  assert_int_equal(count_in(report_of_a_process(folder), "from_cache"), 2);

  // A damaged file is compiled anew, and replaced.
  const auto files = assert_ok_value(base::list_directory(folder));
  assert_int_equal(files.size(), 1);
  const std::string file = folder + "/" + files[0];
  std::string bytes = assert_ok_value(base::read_file(file));
  bytes[bytes.size() / 2] ^= 1;
  assert_ok(base::write_file_atomically(file, bytes));
  assert_int_equal(count_in(report_of_a_process(folder), "compiled"), 2);
  assert_int_equal(count_in(report_of_a_process(folder), "from_cache"), 2);
}

void kernels_are_known_in_the_process(void **) {
  const char *const options = R"({"generated_kernels": "always", "plan_cache": "off"})";
  const base::Json first = report_of(options), second = report_of(options);
  assert_int_equal(count_in(first, "compiled"), 2);
  assert_int_equal(count_in(second, "compiled"), 0);
  assert_int_equal(count_in(second, "known"), 2);
}

void small_work_is_interpreted_unless_asked_for(void **) {
  const base::Json report = report_of("{}");
  assert_null(report.find("generated_kernels"));
  assert_string_equal(report.find("kernels")->array()[0].find("kernel")->string().c_str(), "elementwise(3)");
  const auto refused = runtime::open_backend(plugin, R"({"generated_kernels": "often"})", {});
  assert_error_contains(refused, "often");
}

void the_cache_gives_back_what_is_whole_and_its_own(void **) {
  const TemporaryDirectory directory;
  const KernelCache cache(directory / "a");
  const std::string image("\0machine\ncode\0", 14);
  assert_int_equal(cache.load("version 1").status().code(), base::Code::not_found);
  assert_ok(cache.store("version 1", image));
  assert_true(assert_ok_value(cache.load("version 1")) == image);
  // Another version has a file of its own; a file that has another's name is not taken for it.
  assert_int_equal(cache.load("version 2").status().code(), base::Code::not_found);
  assert_ok(base::rename_synced(cache.path("version 1"), cache.path("version 2")));
  assert_int_equal(cache.load("version 2").status().code(), base::Code::not_found);
  assert_ok(base::rename_synced(cache.path("version 2"), cache.path("version 1")));
  const std::string whole = assert_ok_value(base::read_file(cache.path("version 1")));
  const auto load_of = [&](const std::string &bytes) {
    assert_ok(base::write_file_atomically(cache.path("version 1"), bytes));
    return cache.load("version 1");
  };
  assert_error_contains(load_of(whole.substr(0, whole.size() - 1)), "bytes");
  assert_error_contains(load_of("kernels"), "first line");
  std::string damaged = whole;
  damaged.back() ^= 1;
  assert_error_contains(load_of(damaged), "checksum");
  std::string newer = whole;
  newer.replace(newer.find("\"format\":1"), 10, "\"format\":9");
  assert_error_contains(load_of(newer), base::concat("'", cache.path("version 1"), "' has format 9, expected 1"));
  assert_true(assert_ok_value(load_of(whole)) == image);
  assert_int_equal(chmod(cache.path("version 1").c_str(), 0666), 0);
  assert_error_contains(cache.load("version 1"), "others may write");
  assert_int_equal(KernelCache("").load("version 1").status().code(), base::Code::not_found);
}

const CMUnitTest kTests[] = {
    cmocka_unit_test(generated_kernels_give_the_bits_of_the_interpreter),
    cmocka_unit_test(reductions_of_trees_give_the_bits_of_two_kernels),
    cmocka_unit_test(kernels_outlive_the_process),
    cmocka_unit_test(kernels_are_known_in_the_process),
    cmocka_unit_test(small_work_is_interpreted_unless_asked_for),
    cmocka_unit_test(the_cache_gives_back_what_is_whole_and_its_own),
};

}  // namespace

int main(int argc, char **argv) {
  if (argc < 2) return EXIT_FAILURE;
  program = argv[0];
  plugin = argv[1];
  if (std::system(TUTTI_HOST_COMPILER " --version >/dev/null 2>&1") != 0) {
    std::fprintf(stderr, "skipped: there is no C++ compiler " TUTTI_HOST_COMPILER " to compile kernels with\n");
    return 77;
  }
  if (argc == 2) return cmocka_run_group_tests(kTests, nullptr, nullptr);
  base::Json options = base::JsonObject{{"generated_kernels", "always"}, {"plan_cache", argv[2]}};
  std::printf("%s\n", report_of(options.dump()).dump().c_str());
  return EXIT_SUCCESS;
}
