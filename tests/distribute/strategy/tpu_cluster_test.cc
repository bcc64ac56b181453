// SPDX-License-Identifier: Apache-2.0
#include "distribute/strategy/tpu_cluster.h"

#include <map>
#include <string>

#include "testing.h"

namespace tutti::testing::tpu_cluster_test {

using impl::distribute::Cluster;
using impl::distribute::tpu_cluster;

using Environment = std::map<std::string, std::string>;

static impl::base::Result<Cluster> from(const Environment &environment) {
  return Cluster::from_variables([&](const char *key) -> const char * {
    const auto found = environment.find(key);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

// What GKE sets in the pods of a slice: libtpu's ports are not those of the workers.
static void test_variables_of_machines(void **) {
  const Cluster two = assert_ok_value(from({{"TPU_WORKER_HOSTNAMES", "tpu-0.svc,tpu-1.svc"},
                                            {"TPU_WORKER_ID", "1"},
                                            {"TPU_ACCELERATOR_TYPE", "v5litepod-8"},
                                            {"TPU_CHIPS_PER_HOST_BOUNDS", "2,2,1"}}));
  assert_string_equal(two.describe().dump().c_str(),
                      R"({"workers":["tpu-0.svc:8482","tpu-1.svc:8482"],"index":1,"task":"worker","origin":"GKE",)"
                      R"("accelerator_type":"v5litepod-8","chips_per_worker":4})");
  assert_int_equal(assert_ok_value(from({{"TPU_WORKER_HOSTNAMES", "localhost"}})).worker_index(), 0);
  assert_string_equal(
      assert_ok_value(from({{"TPU_WORKER_HOSTNAMES", "a,b"}, {"TPU_WORKER_ID", "0"}, {"MASTER_PORT", "99"}}))
          .address(1)
          .c_str(),
      "b:99");
  assert_error_contains(from({{"TPU_WORKER_HOSTNAMES", "a,b"}}), "TPU_WORKER_ID is not set");
  assert_error_contains(from({{"TPU_WORKER_HOSTNAMES", "a,b"}, {"TPU_WORKER_ID", "2"}}), "expected 0 to 1");
  assert_error_contains(from({{"TPU_WORKER_HOSTNAMES", "a,b"}, {"TPU_WORKER_ID", "x"}}), "expected a whole number");
  assert_error_contains(from({{"TPU_WORKER_HOSTNAMES", "a,,b"}, {"TPU_WORKER_ID", "0"}}),
                        "TPU_WORKER_HOSTNAMES cannot be used");
  assert_error_contains(from({{"TPU_WORKER_HOSTNAMES", "a"}, {"TPU_CHIPS_PER_HOST_BOUNDS", "2,0"}}),
                        "expected bounds such as");
  assert_error_contains(from({{"TPU_WORKER_HOSTNAMES", ""}}), "describes no cluster");
}

// Several processes, some on one machine: each has a port of its own.
static void test_variables_of_processes(void **) {
  const Cluster four = assert_ok_value(from({{"TPU_PROCESS_ADDRESSES", "a:8476,a:8477,[::1]:8476,192.0.2.2:8476"},
                                             {"CLOUD_TPU_TASK_ID", "2"},
                                             {"TPU_WORKER_HOSTNAMES", "a,b"},
                                             {"TPU_WORKER_ID", "1"}}));
  assert_int_equal(four.worker_count(), 4);
  assert_int_equal(four.worker_index(), 2);
  const char *const expected[] = {"a:8482", "a:8483", "[::1]:8482", "192.0.2.2:8482"};
  for (int32_t w = 0; w < 4; ++w)
    assert_string_equal(four.address(w).c_str(), expected[w]);
  assert_error_contains(from({{"TPU_PROCESS_ADDRESSES", "a:1,b:1"}, {"TPU_WORKER_ID", "0"}}),
                        "CLOUD_TPU_TASK_ID is not set");
}

static void test_the_first_launcher_counts(void **) {
  const Environment both = {{"TPU_WORKER_HOSTNAMES", "a"}, {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "m"}};
  assert_string_equal(assert_ok_value(from(both)).origin().c_str(), "torchrun");
}

static void test_addresses(void **) {
  const Cluster one = assert_ok_value(tpu_cluster("grpc://192.0.2.7:8470", ""));
  assert_string_equal(one.address(0).c_str(), "192.0.2.7:8470");
  const Cluster two = assert_ok_value(tpu_cluster("192.0.2.2:8470, grpc://192.0.2.3:8470", "WORKER_ID=1"));
  assert_int_equal(two.worker_index(), 1);
  assert_string_equal(two.address(1).c_str(), "192.0.2.3:8470");
  assert_error_contains(tpu_cluster("192.0.2.2:1,192.0.2.3:1", ""), "WORKER_ID is not set");
  assert_error_contains(tpu_cluster("grpc://host", ""), "expected \"host:port\"");
  assert_error_contains(tpu_cluster("", ""), "no TPU is named");
}

// The attributes of a machine of a slice of two, as its metadata server tells them.
static void test_metadata(void **) {
  const std::string text =
      "ACCELERATOR_TYPE: 'v5litepod-8'\nCHIPS_PER_HOST_BOUNDS: '2,2,1'\nHOST_BOUNDS: '1,2,1'\nNODE_ID: 'my-tpu'\n"
      "TPU_TOPOLOGY_WRAP: ''\nWORKER_ID: '0'\nZONE: 'us-west4-a'\n\n"
      "worker-network-endpoints: unknown:unknown:192.0.2.5,unknown:unknown:192.0.2.4\n";
  const Cluster two = assert_ok_value(tpu_cluster("my-tpu", text));
  assert_string_equal(two.describe().dump().c_str(),
                      R"({"workers":["192.0.2.5:8482","192.0.2.4:8482"],"index":0,"task":"worker",)"
                      R"("origin":"metadata","accelerator_type":"v5litepod-8","chips_per_worker":4})");
  assert_error_contains(tpu_cluster("another", text), "belongs to the TPU 'my-tpu', not to 'another'");
  assert_error_contains(tpu_cluster("my-tpu", "HOST_BOUNDS: '1,2,1'\nWORKER_ID: '0'"),
                        "worker-network-endpoints is missing");
  assert_error_contains(tpu_cluster("my-tpu", "worker-network-endpoints: a,b"), "WORKER_ID is not set");
  assert_error_contains(tpu_cluster("my-tpu", "WORKER_ID: '0'\nnonsense"), "line 2 of the metadata is 'nonsense'");
  assert_error_contains(tpu_cluster("my-tpu", std::string(2 << 20, 'x')), "expected 1048576 at most");
  const Cluster names = assert_ok_value(tpu_cluster("t", "worker-network-endpoints: h0,h1\nagent-worker-number: 1"));
  assert_string_equal(names.address(names.worker_index()).c_str(), "h1:8482");
  assert_string_equal(assert_ok_value(tpu_cluster("t", "WORKER_ID: '0'")).address(0).c_str(), "localhost:8482");
  assert_string_equal(assert_ok_value(tpu_cluster("local", "")).origin().c_str(), "local");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_variables_of_machines),
    cmocka_unit_test(test_variables_of_processes),
    cmocka_unit_test(test_the_first_launcher_counts),
    cmocka_unit_test(test_addresses),
    cmocka_unit_test(test_metadata),
};
TEST_MAIN(tests)

}  // namespace tutti::testing::tpu_cluster_test
