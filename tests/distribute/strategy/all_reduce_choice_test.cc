// SPDX-License-Identifier: Apache-2.0
//
// What a run asks of how gradients are added up, what topologies make of it, and what is said of it.
#include "distribute/strategy/all_reduce_choice.h"

#include "distribute/training_case.h"
#include "testing.h"

namespace tutti::testing::all_reduce_choice_test {

namespace backend = impl::backend;
namespace base = impl::base;
using impl::distribute::AllReduceChoice;
using impl::distribute::Lowering;
using impl::distribute::nodes_of;

namespace {

backend::DeviceDescription device(const std::string &name, const std::string &memory,
                                  std::vector<std::string> reaches = {}) {
  backend::DeviceDescription description;
  description.name = name;
  description.memory = memory;
  description.reaches = std::move(reaches);
  return description;
}

void nodes_follow_the_topology(void **) {
  const std::vector<backend::DeviceDescription> pairs = {device("gpu:0", "a", {"gpu:2"}), device("gpu:1", "b"),
                                                         device("gpu:2", "c"), device("gpu:3", "d", {"gpu:1"})};
  assert_true(nodes_of(pairs) == (std::vector<int32_t>{0, 1, 0, 1}));
  // By way of a third, and of a common memory.
  const std::vector<backend::DeviceDescription> chain = {device("gpu:0", "a", {"gpu:1"}),
                                                         device("gpu:1", "b", {"gpu:2"}), device("gpu:2", "c"),
                                                         device("gpu:3", "d"), device("gpu:4", "c")};
  assert_true(nodes_of(chain) == (std::vector<int32_t>{0, 0, 0, 1, 0}));
  // All alike: groups of neighbours.
  std::vector<backend::DeviceDescription> alone, together;
  for (int32_t d = 0; d < 7; ++d) {
    alone.push_back(device("gpu:" + std::to_string(d), std::to_string(d)));
    together.push_back(device("cpu:" + std::to_string(d), "host"));
  }
  assert_true(nodes_of(alone) == (std::vector<int32_t>{0, 0, 0, 1, 1, 1, 2}));
  assert_true(nodes_of(together) == nodes_of(alone));
}

Result<std::unique_ptr<Trainer>> open(int32_t replicas, const TrainerOptions &options) {
  TUTTI_ASSIGN(const Model model, build_network({}));
  TUTTI_ASSIGN(const StrategyRef strategy, make_test_strategy(replicas));
  return Trainer::open(model, strategy, options);
}

std::string text_of(int32_t replicas, const TrainerOptions &options) {
  return assert_ok_value(open(replicas, options))->describe().find("gradients")->string();
}

void what_is_done_is_said(void **) {
  const bool on_host = assert_ok_value(open_test_backend(1))->has_host_memory();
  TrainerOptions options;
  assert_string_equal(text_of(1, options).c_str(), "there is one replica");
  if (on_host) assert_contains(text_of(2, options).c_str(), "in the updates, which read those of all replicas");
  for (const char *text : {"host", "ring", "hierarchical", "reduce_to_one"}) {
    options.all_reduce = assert_ok_value(impl::distribute::all_reduce_choice(text));
    assert_string_equal(std::string(name(options.all_reduce)).c_str(), text);
    const std::string said = text_of(3, options);
    assert_contains(said.c_str(), on_host ? "host memory: " : "copies on the host: ");
    assert_contains(said.c_str(), text);
    assert_contains(said.c_str(), "as all_reduce asks");
    assert_false(assert_ok_value(open(3, options))->describe().find("shared_weights")->boolean());
    assert_string_equal(text_of(1, options).c_str(), "there is one replica");
  }
  options.all_reduce = AllReduceChoice::hierarchical;
  assert_contains(text_of(4, options).c_str(), "hierarchical, nodes ");
  assert_contains(text_of(4, options).c_str(), " | ");
}

void what_cannot_be_had_is_an_error(void **) {
  assert_error_contains(impl::distribute::all_reduce_choice("tree"),
                        "all_reduce is 'tree', expected automatic, device, host, ring, hierarchical, reduce_to_one");
  TrainerOptions options;
  for (const AllReduceChoice choice : {AllReduceChoice::device, AllReduceChoice::ring, AllReduceChoice::hierarchical}) {
    options.level = backend::Level::invariant;
    options.all_reduce = choice;
    assert_error_contains(open(2, options), "expected automatic, host or reduce_to_one");
  }
  options.all_reduce = AllReduceChoice::reduce_to_one;
  assert_ok(open(2, options));
  options.level = backend::Level::fast;
  options.lowering = Lowering::shared;
  assert_error_contains(open(2, options), "reduce_to_one, which needs weights for each device");
  if (!assert_ok_value(open_test_backend(1))->has_host_memory()) return;
  options.lowering = Lowering::automatic;
  options.all_reduce = AllReduceChoice::device;
  assert_error_contains(open(2, options), "automatic, host, ring, hierarchical and reduce_to_one do not need them");
  assert_ok(open(1, options));  // there is nothing to connect
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(nodes_follow_the_topology),
    cmocka_unit_test(what_is_done_is_said),
    cmocka_unit_test(what_cannot_be_had_is_an_error),
};
TEST_MAIN(tests)

}  // namespace tutti::testing::all_reduce_choice_test
