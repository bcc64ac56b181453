// SPDX-License-Identifier: Apache-2.0
#include "distribute/strategy/cluster.h"

#include <map>
#include <string>

#include "testing.h"

namespace tutti::testing::cluster_test {

using impl::distribute::Cluster;
using impl::distribute::expand_host_list;
using impl::distribute::expand_task_counts;
using impl::distribute::TaskType;

using Environment = std::map<std::string, std::string>;

static impl::base::Result<Cluster> from(const Environment &environment) {
  return Cluster::from_variables([&](const char *key) -> const char * {
    const auto found = environment.find(key);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

static void test_explicit_addresses(void **) {
  const Cluster cluster = assert_ok_value(Cluster::make({"a:2222", "[::1]:2223"}, 1));
  assert_int_equal(cluster.worker_count(), 2);
  assert_int_equal(cluster.worker_index(), 1);
  assert_string_equal(cluster.leader_address().c_str(), "a:2222");
  assert_string_equal(cluster.describe().dump().c_str(),
                      R"({"workers":["a:2222","[::1]:2223"],"index":1,"task":"worker","origin":"explicit"})");
  assert_error_contains(Cluster::make({}, 0), "1 to 1024 workers, got 0");
  assert_error_contains(Cluster::make({"a:1", "b:1"}, 2), "is 2, expected 0 to 1");
  assert_error_contains(Cluster::make({"a:1", "b:1", "a:1"}, 0), "'a:1' is listed twice");
  for (const char *bad : {"a", "a:", ":1", "a:0", "a:65536", "a:b", "::1:22", "[]:1", "a/b:1", ""})
    assert_error_contains(Cluster::make({bad}, 0), "expected \"host:port\"");
}

// The example of TensorFlow's multi-worker tutorial, and what the training operator of Kubernetes sets.
static void test_tf_config(void **) {
  const char *const tutorial =
      R"({"cluster": {"worker": ["host1:2222", "host2:2222"]}, "task": {"type": "worker", "index": 1}})";
  const Cluster two = assert_ok_value(from({{"TF_CONFIG", tutorial}, {"RANK", "7"}, {"WORLD_SIZE", "8"}}));
  assert_int_equal(two.worker_count(), 2);
  assert_int_equal(two.worker_index(), 1);
  assert_string_equal(two.address(0).c_str(), "host1:2222");
  assert_string_equal(two.origin().c_str(), "TF_CONFIG");

  const char *const operated =
      R"({"cluster":{"chief":["dist-chief-0.kubeflow.svc:2222"],"worker":["dist-worker-0.kubeflow.svc:2222",)"
      R"("dist-worker-1.kubeflow.svc:2222"]},"task":{"type":"worker","index":0},"environment":"cloud"})";
  const Cluster three = assert_ok_value(Cluster::from_tf_config(operated));
  assert_int_equal(three.worker_count(), 3);
  assert_int_equal(three.worker_index(), 1);
  assert_string_equal(three.leader_address().c_str(), "dist-chief-0.kubeflow.svc:2222");

  const Cluster chief = assert_ok_value(
      Cluster::from_tf_config(R"({"cluster":{"worker":["w:1"],"chief":["c:1"]},"task":{"type":"chief","index":"0"}})"));
  assert_int_equal(chief.worker_index(), 0);
  assert_int_equal(static_cast<int>(chief.task_type()), static_cast<int>(TaskType::chief));
  assert_string_equal(chief.leader_address().c_str(), "c:1");

  const Cluster evaluator = assert_ok_value(
      Cluster::from_tf_config(R"({"cluster":{"worker":["w:1","v:1"]},"task":{"type":"evaluator","index":0}})"));
  assert_int_equal(static_cast<int>(evaluator.task_type()), static_cast<int>(TaskType::evaluator));
  assert_int_equal(evaluator.worker_count(), 2);

  assert_int_equal(assert_ok_value(Cluster::from_tf_config("{}")).worker_count(), 1);
  const char *const alone = R"({"environment":"cloud","job":{},"rpc_layer":"grpc","task":{"type":"chief","index":0}})";
  assert_int_equal(assert_ok_value(Cluster::from_tf_config(alone)).worker_count(), 1);
  assert_int_equal(assert_ok_value(Cluster::from_tf_config(R"({"task":{"type":"worker","index":0}})")).worker_count(),
                   1);
}

static void test_tf_config_errors_name_the_key(void **) {
  const struct {
    const char *text, *expected;
  } cases[] = {
      {"{", "TF_CONFIG is not JSON"},
      {"[]", "TF_CONFIG: expected an object, got array"},
      {R"({"cluster":{"worker":["a:1"]}})", "TF_CONFIG.task is missing"},
      {R"({"cluster":{"worker":["a:1"]},"task":{"type":"worker"}})", "TF_CONFIG.task.index is missing"},
      {R"({"cluster":{"worker":["a:1"]},"task":{"index":0}})", "TF_CONFIG.task.type is missing"},
      {R"({"cluster":{"worker":["a:1"]},"task":{"type":"boss","index":0}})", "TF_CONFIG.task.type is 'boss'"},
      {R"({"cluster":{"worker":["a:1"]},"task":{"type":"worker","index":1}})", "TF_CONFIG.task.index is 1"},
      {R"({"cluster":{"worker":["a:1"]},"task":{"type":"worker","index":"x"}})", "TF_CONFIG.task.index"},
      {R"({"cluster":{"worker":["a:1"]},"task":{"type":"worker","index":1.5}})", "TF_CONFIG.task.index"},
      {R"({"cluster":{"worker":["a:1"]},"task":{"type":"chief","index":0}})", "lists 0 of type \"chief\""},
      {R"({"cluster":{"worker":["a"]},"task":{"type":"worker","index":0}})", "TF_CONFIG.cluster.worker"},
      {R"({"cluster":{"worker":"a:1"},"task":{"type":"worker","index":0}})", "TF_CONFIG.cluster.worker"},
      {R"({"cluster":{"worker":["a:1","a:1"]},"task":{"type":"worker","index":0}})", "listed twice"},
      {R"({"sparseCluster":{"worker":{"0":"h0:2222"},"ps":[]},"task":{"type":"worker","index":0}})",
       "TF_CONFIG.sparseCluster is not known and there is no TF_CONFIG.cluster: this process would train alone"},
      {R"({"sparseCluster":{"worker":{},"ps":[]},"task":{"type":"chief","index":0}})", "TF_CONFIG.sparseCluster"},
      {R"({"cluster":{},"workers":["a:1"],"task":{"type":"worker","index":0}})", "TF_CONFIG.workers is not known"},
      {R"({"cluster":{"worker":{"0":"a:1","1":"b:1"}},"task":{"type":"worker","index":1}})",
       "TF_CONFIG.cluster.worker"},
      {R"({"cluster":{"worker":["grpc://a:2222"]},"task":{"type":"worker","index":0}})", "grpc://a:2222"},
      {R"({"cluster":{"robot":["a:1"]},"task":{"type":"worker","index":0}})",
       "TF_CONFIG.cluster.robot is not a task type"},
      {R"({"cluster":{"ps":["a:1"],"worker":["b:1"]},"task":{"type":"worker","index":0}})",
       "TF_CONFIG.cluster.ps lists parameter servers, which are not supported, because their asynchronous updates make "
       "the model depend on the number and speed of workers: leave \"ps\" out, and start workers alone"},
      {R"({"cluster":{"worker":["b:1"]},"task":{"type":"ps","index":0}})",
       "TF_CONFIG.task.type is \"ps\", but parameter servers are not supported, because their asynchronous updates "
       "make "
       "the model depend on the number and speed of workers: start workers alone"},
      {R"({"cluster":{"chief":["a:1","b:1"]},"task":{"type":"chief","index":0}})", "TF_CONFIG.cluster.chief lists 2"},
      {R"({"cluster":{"evaluator":["a:1"]},"task":{"type":"evaluator","index":0}})", "lists neither"},
  };
  for (const auto &bad : cases)
    assert_error_contains(Cluster::from_tf_config(bad.text), bad.expected);
}

static void test_torchrun(void **) {
  const Environment good = {
      {"MASTER_ADDR", "node7"}, {"MASTER_PORT", "29500"}, {"RANK", "2"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "0"}};
  const Cluster cluster = assert_ok_value(from(good));
  assert_int_equal(cluster.worker_count(), 4);
  assert_int_equal(cluster.worker_index(), 2);
  assert_string_equal(cluster.leader_address().c_str(), "node7:29500");
  assert_string_equal(cluster.address(2).c_str(), "");
  assert_string_equal(cluster.origin().c_str(), "torchrun");
  Environment beside = good;
  beside["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  assert_string_equal(assert_ok_value(from(beside)).leader_address().c_str(), "node7:29501");
  beside["TORCHELASTIC_USE_AGENT_STORE"] = "False";
  assert_string_equal(assert_ok_value(from(beside)).leader_address().c_str(), "node7:29500");
  Environment bad = good;
  bad["MASTER_ADDR"] = "fe80::1";
  assert_string_equal(assert_ok_value(from(bad)).leader_address().c_str(), "[fe80::1]:29500");
  bad = good;
  bad["RANK"] = "4";
  assert_error_contains(from(bad), "RANK is 4, expected 0 to 3");
  bad["RANK"] = "two";
  assert_error_contains(from(bad), "RANK is 'two', expected a whole number");
  bad = good;
  bad.erase("MASTER_ADDR");
  assert_error_contains(from(bad), "variable MASTER_ADDR is not set");
  bad = good;
  bad["MASTER_PORT"] = "70000";
  assert_error_contains(from(bad), "port of 1 to 65535");
  bad["WORLD_SIZE"] = "1000000";
  assert_error_contains(from(bad), "1 to 1024 workers");
}

static void test_open_mpi(void **) {
  Environment run = {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
  assert_string_equal(assert_ok_value(from(run)).leader_address().c_str(), "127.0.0.1:8888");
  assert_int_equal(assert_ok_value(from(run)).worker_index(), 1);
  run["OMPI_COMM_WORLD_LOCAL_SIZE"] = "1";
  assert_error_contains(from(run), "variable MASTER_ADDR, the host name of rank 0");
  run["MASTER_ADDR"] = "head";
  run["MASTER_PORT"] = "4000";
  assert_string_equal(assert_ok_value(from(run)).leader_address().c_str(), "head:4000");
  assert_string_equal(assert_ok_value(from(run)).origin().c_str(), "mpirun");
}

// What srun sets for `srun -N 3 -n 5`.
static void test_slurm(void **) {
  Environment run = {{"SLURM_PROCID", "3"},
                     {"SLURM_STEP_NODELIST", "c[1-2],gpu07"},
                     {"SLURM_STEP_TASKS_PER_NODE", "2(x2),1"},
                     {"SLURM_JOB_NODELIST", "c[1-9]"}};
  const Cluster cluster = assert_ok_value(from(run));
  assert_int_equal(cluster.worker_count(), 5);
  assert_int_equal(cluster.worker_index(), 3);
  assert_string_equal(cluster.leader_address().c_str(), "c1:8888");
  assert_string_equal(cluster.address(3).c_str(), "c2:8889");
  assert_string_equal(cluster.address(4).c_str(), "gpu07:8888");
  run["SLURM_PROCID"] = "5";
  assert_error_contains(from(run), "SLURM_PROCID is 5");
  run["SLURM_STEP_TASKS_PER_NODE"] = "2";
  assert_error_contains(from(run), "has 3 nodes");
  run["SLURM_STEP_TASKS_PER_NODE"] = "2(y3)";
  assert_error_contains(from(run), "SLURM_STEP_TASKS_PER_NODE cannot be read");
  run.erase("SLURM_STEP_TASKS_PER_NODE");
  assert_error_contains(from(run), "variable SLURM_TASKS_PER_NODE is not set");
  assert_error_contains(from({{"HOME", "/"}}), "describes no cluster");
}

static void test_lists_of_slurm(void **) {
  using Hosts = std::vector<std::string>;
  assert_true(assert_ok_value(expand_host_list("gpu[01-03,7],login")) ==
              (Hosts{"gpu01", "gpu02", "gpu03", "gpu7", "login"}));
  assert_true(assert_ok_value(expand_host_list("a[9-11]-ib,b")) == (Hosts{"a9-ib", "a10-ib", "a11-ib", "b"}));
  for (const char *bad : {"a[", "a[1-", "a[3-1]", "a[x]", "a,,b", "a[0-9999999]", "a[-1]"})
    assert_false(expand_host_list(bad).ok());
  assert_true(assert_ok_value(expand_task_counts("2(x3),1")) == (std::vector<int32_t>{2, 2, 2, 1}));
  for (const char *bad : {"", "0", "2(x", "2(x0)", "2x3", "1(x99999999)", "-1"})
    assert_false(expand_task_counts(bad).ok());
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_explicit_addresses),
    cmocka_unit_test(test_tf_config),
    cmocka_unit_test(test_tf_config_errors_name_the_key),
    cmocka_unit_test(test_torchrun),
    cmocka_unit_test(test_open_mpi),
    cmocka_unit_test(test_slurm),
    cmocka_unit_test(test_lists_of_slurm),
};
TEST_MAIN(tests)

}  // namespace tutti::testing::cluster_test
