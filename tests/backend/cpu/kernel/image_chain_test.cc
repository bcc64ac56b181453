// SPDX-License-Identifier: Apache-2.0
//
// Stages that work image by image, and how they become chains: what a stage may join, what it may change places with,
// what takes no memory for all images; and a network whose chains compute what its kernels one by one compute.
#include <atomic>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "backend/cpu/kernel/call_chains.h"
#include "backend/cpu/kernel/image_stage.h"
#include "backend/cpu/step_models.h"
#include "runtime/backend_list.h"
#include "testing.h"

namespace image_chain_test {

namespace {

using namespace tutti::impl::backend::cpu;
namespace backend = tutti::impl::backend;
using backend::Location;
using backend::Place;
using tutti::testing::StepModel;
using tutti::testing::StepTrainer;

constexpr auto nothing = [](const RunContext &) {};
constexpr int64_t image_bytes = 64;

const Parts &five_parts() {
  static const Parts parts = Parts::exactly(10, 5, 1);
  return parts;
}

/// A list of calls whose workspace buffers are a, b, c, ...
struct List {
  CallList calls;

  explicit List(int32_t buffers) {
    for (int32_t i = 0; i < buffers; ++i)
      calls.buffers.push_back({{Place::workspace, 0, 0}, 10 * image_bytes});
  }
  void stage(const char *name, std::vector<BufferUse> uses, const Parts &parts = five_parts(), const char *op = "op") {
    Call call;
    call.node = call.kernel_name = name;
    call.op = op;
    call.uses = std::move(uses);
    const auto run = [](const RunContext &, Range, int32_t) {};
    using Stage = FunctionStage<decltype(nothing), decltype(run), decltype(nothing)>;
    calls.append_stage(std::move(call), std::make_unique<Stage>(parts, nothing, run, nothing));
  }
  void call(const char *name, std::vector<BufferUse> uses) {
    Call call;
    call.node = call.op = call.kernel_name = name;
    call.uses = std::move(uses);
    calls.append(std::move(call), std::make_unique<FunctionKernel<decltype(nothing)>>(nothing));
  }
  /// Names of the calls, chains in brackets.
  std::string order() const {
    std::string text;
    for (const Call &call : calls.calls)
      text += call.chain == nullptr ? call.kernel_name + " " : "[" + call.kernel_name + "] ";
    return text;
  }
};

BufferUse reads(BufferId buffer) { return {buffer, false, 0}; }
BufferUse writes(BufferId buffer) { return {buffer, true, 0}; }
BufferUse reads_images(BufferId buffer, int64_t bytes = image_bytes) { return {buffer, false, bytes}; }
BufferUse writes_images(BufferId buffer, int64_t bytes = image_bytes) { return {buffer, true, bytes}; }

void stages_join_chains(void **) {
  List list(4);
  list.stage("one", {reads_images(0), writes_images(1)});
  list.stage("two", {reads_images(1), writes_images(2)});
  list.stage("three", {reads_images(2), writes_images(2)});
  assert_string_equal(list.order().c_str(), "[one > two > three] ");
  list.stage("others", {reads_images(2)}, Parts::exactly(10, 2, 1));
  assert_string_equal(list.order().c_str(), "[one > two > three] [others] ");
}

/// Whoever adds up times by node finds a chain's with its convolution.
void chains_go_by_their_convolution(void **) {
  List list(5);
  const auto stage = [&](const char *node, const char *op, BufferId from) {
    list.stage(node, {reads_images(from), writes_images(from + 1)}, five_parts(), op);
  };
  stage("norm1/apply", "batch_norm_training", 0);
  assert_string_equal(list.calls.calls[0].node.c_str(), "norm1/apply");
  stage("conv1/conv2d", "conv2d", 1);
  stage("conv2/conv2d", "conv2d", 2);
  stage("norm2/sums", "batch_norm_training", 3);
  const Call &call = list.calls.calls[0];
  assert_string_equal(call.node.c_str(), "conv1/conv2d (norm1/apply > conv1/conv2d > conv2/conv2d > norm2/sums)");
  assert_string_equal(call.op.c_str(), "conv2d");
}

/// What is made behind all images is not there before.
void stages_wait_for_whole_results(void **) {
  List list(4);
  list.stage("sums", {reads_images(0), writes(1)});
  list.stage("apply", {reads_images(0), reads(1), writes_images(2)});
  assert_string_equal(list.order().c_str(), "[sums] [apply] ");
  list.stage("all images", {reads(2), writes_images(3)});
  assert_string_equal(list.order().c_str(), "[sums] [apply] [all images] ");
  // Images of another size: the same part of them lies elsewhere.
  list.stage("smaller images", {reads_images(3, image_bytes / 2)});
  assert_string_equal(list.order().c_str(), "[sums] [apply] [all images] [smaller images] ");
}

void stages_and_chains_pass_calls_between(void **) {
  List rises(6);
  rises.stage("one", {reads_images(0), reads(5), writes_images(1)});
  rises.call("changes what one reads", {writes(5)});
  rises.stage("two", {reads_images(1), writes_images(2)});
  assert_string_equal(rises.order().c_str(), "[one > two] changes what one reads ");
  List sinks(6);
  sinks.stage("one", {reads_images(0), writes_images(1)});
  sinks.call("makes what two reads", {writes(5)});
  sinks.stage("two", {reads_images(1), reads(5), writes_images(2)});
  sinks.stage("three", {reads_images(2)});
  assert_string_equal(sinks.order().c_str(), "makes what two reads [one > two > three] ");
  List stays(6);
  stays.stage("one", {reads_images(0), reads(5), writes_images(1)});
  stays.call("changes both", {writes(4), writes(5)});
  stays.stage("two", {reads_images(1), reads(4), writes_images(2)});
  assert_string_equal(stays.order().c_str(), "[one] changes both [two] ");
  List reading(6);
  reading.stage("one", {reads_images(0), writes_images(1)});
  reading.call("reads all images", {reads(1), writes(4)});
  reading.stage("two", {reads_images(1), writes_images(2)});
  assert_string_equal(reading.order().c_str(), "[one > two] reads all images ");
  reading.stage("writes over them", {writes_images(1)});
  assert_string_equal(reading.order().c_str(), "[one > two] reads all images [writes over them] ");
}

/// Two buffers may be the same memory of a variable.
void places_of_variables_are_known(void **) {
  const auto order = [](int64_t offset) {
    List list(5);
    list.calls.buffers[3] = {{Place::arena, 1, 128}, 64};
    list.calls.buffers[4] = {{Place::arena, 1, offset}, 64};
    list.stage("one", {reads_images(0), reads(3), writes_images(1)});
    list.call("update", {writes(4), writes(2)});
    list.stage("two", {reads_images(1), reads(2)});
    return list.order();
  };
  assert_string_equal(order(128).c_str(), "[one] update [two] ");
  assert_string_equal(order(191).c_str(), "[one] update [two] ");
  assert_string_equal(order(192).c_str(), "update [one > two] ");
}

void nothing_passes_an_external_node(void **) {
  List list(3);
  list.stage("one", {reads_images(0), writes_images(1)});
  Call external;
  external.kernel_name = "external";
  list.calls.append(std::move(external), nullptr);
  list.stage("two", {reads_images(1)});
  assert_string_equal(list.order().c_str(), "[one] external [two] ");
}

void what_one_chain_uses_takes_little_memory(void **) {
  List list(5);
  list.calls.buffers[4].location = {Place::output, 0, 0};
  list.stage("one", {reads_images(0), writes_images(1), writes_images(4), writes(3)});
  list.stage("two", {reads_images(1), writes_images(2)});
  list.call("reads the result", {reads(0), reads(2)});
  list.calls.finish();
  const int64_t expected[] = {640, 128, 640, 640, 640};
  for (size_t i = 0; i < 5; ++i)
    assert_int_equal(list.calls.buffers[i].bytes, expected[i]);
  assert_int_equal(list.calls.buffers[1].first, 0);
  assert_int_equal(list.calls.buffers[2].last, 1);
}

/// 7 images of 3 numbers, twice each: squares by way of a local buffer, and their sum.
void check_chain(int32_t count, int32_t threads) {
  constexpr int64_t images = 7, size = 3;
  const Parts parts = Parts::exactly(images, count, threads);
  std::vector<float> x(images * size), y(images * size);
  std::iota(x.begin(), x.end(), 1.0f);
  double total = -1;
  std::vector<double> sums(static_cast<size_t>(count), -1);
  ImageChain chain(parts);
  const auto stage = [&](auto begin, auto run, auto end) {
    using Stage = FunctionStage<decltype(begin), decltype(run), decltype(end)>;
    chain.add(std::make_unique<Stage>(parts, begin, run, end));
  };
  stage([&](const RunContext &) { total = 0; },
        [&](const RunContext &c, Range r, int32_t) {
          for (int64_t i = r.begin * size; i < r.end * size; ++i)
            c.out(1)[i] = 2 * c.in(0)[i];
        },
        nothing);
  stage(
      nothing,
      [&](const RunContext &c, Range r, int32_t part) {
        double &sum = sums[static_cast<size_t>(part)];
        sum = 0;
        for (int64_t i = r.begin * size; i < r.end * size; ++i) {
          c.out(2)[i] = c.in(1)[i] * c.in(1)[i];
          sum += static_cast<double>(c.in(1)[i]);
        }
      },
      [&](const RunContext &) { total = std::accumulate(sums.begin(), sums.end(), total); });
  std::vector<float> local(static_cast<size_t>(chain.local_bytes(size * 4)) / sizeof(float) + 1, -7.0f);
  assert_true(local.size() < images * size * static_cast<size_t>(threads) || count == 1);
  chain.set_locals({{1, size * 4}}, 3);
  void *buffers[] = {x.data(), local.data(), y.data()};
  const auto team = threads > 1 ? assert_ok_value(Team::of_device(&chain, 0, threads)) : nullptr;
  RunContext context;
  context.buffers = buffers;
  context.team = team.get();
  context.threads = threads;
  const auto state = assert_ok_value(chain.make_state());
  for (int run = 0; run < 3; ++run) {
    std::fill(y.begin(), y.end(), 0.0f);
    assert_int_equal(chain.run(context, state.get()), 0);
    for (size_t i = 0; i < y.size(); ++i)
      assert_true(y[i] == 4 * x[i] * x[i]);
    assert_true(total == 21 * 22);
    assert_true(local.back() == -7.0f);
  }
}

void chains_run(void **) {
  for (int32_t threads : {1, 2, 3}) {
    for (int32_t count : {1, 2, 3, 4, 7})
      check_chain(count, threads);
  }
}

StepTrainer trainer_of(const StepModel &model, int64_t batch, bool chained, int32_t threads) {
  cut_everything = chained;
  auto cpu = assert_ok_value(tutti::impl::runtime::open_backend("cpu", "{}", {}));
  StepTrainer trainer =
      assert_ok_value(StepTrainer::create(cpu, model, batch, backend::Level::repeatable, 0, threads, true));
  cut_everything = false;
  assert_ok(trainer.step());
  return trainer;
}

int count_of(const StepTrainer &trainer, const std::string &text) {
  int count = 0;
  for (const std::string &report : trainer.reports()) {
    for (size_t at = report.find(text); at != std::string::npos; at = report.find(text, at + 1))
      ++count;
  }
  return count;
}

double distance(const std::vector<float> &a, const std::vector<float> &b) {
  double difference = 0, norm = 1e-12;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    norm += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(difference / norm);
}

void networks_train_alike_in_chains(void **) {
  const StepModel model = assert_ok_value(tutti::testing::make_step_model("separable", 2));
  for (int64_t batch : {2, 9}) {
    const StepTrainer whole = trainer_of(model, batch, false, 1);
    assert_int_equal(count_of(whole, " > "), 0);
    for (int32_t threads : {1, 3}) {
      const StepTrainer chained = trainer_of(model, batch, true, threads);
      // 13 normalisations, 12 of them before a convolution; a library may want a kernel otherwise for few images, as
      // oneDNN 3.7 does on AVX2 for those of 1x1, six of them.
      assert_true(count_of(chained, "\"kernel\":\"simd:batch_norm_apply+relu > dnnl_direct") >= 6);
      assert_true(count_of(chained, " > simd:batch_norm_moments\"") >= 6);
      assert_true(count_of(chained, " > simd:batch_norm_again+relu > ") >= 8);
      assert_true(count_of(chained, ":kernel_gradient > simd:batch_norm_gradient_moments+relu\"") >= 8);
      if (threads == 1 && batch > 2) assert_true(chained.workspace_bytes() < whole.workspace_bytes() * 3 / 4);
      assert_true(std::fabs(chained.loss() - whole.loss()) < 1e-5);
      for (const auto &variable : model.variables) {
        const char *prefix = variable.trained ? "gradient/0/" : "weight/";
        const double off = distance(assert_ok_value(chained.values(prefix, variable.name)),
                                    assert_ok_value(whole.values(prefix, variable.name)));
        if (!(off < 5e-2)) fail_msg("batch %d: %s is off by %g", static_cast<int>(batch), variable.name.c_str(), off);
      }
    }
  }
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(stages_join_chains),
      cmocka_unit_test(chains_go_by_their_convolution),
      cmocka_unit_test(stages_wait_for_whole_results),
      cmocka_unit_test(stages_and_chains_pass_calls_between),
      cmocka_unit_test(places_of_variables_are_known),
      cmocka_unit_test(nothing_passes_an_external_node),
      cmocka_unit_test(what_one_chain_uses_takes_little_memory),
      cmocka_unit_test(chains_run),
      cmocka_unit_test(networks_train_alike_in_chains),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace image_chain_test
