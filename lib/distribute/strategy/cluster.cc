// SPDX-License-Identifier: Apache-2.0
#include "distribute/strategy/cluster.h"

#include <stdlib.h>

#include <algorithm>
#include <utility>

#include "base/name_suggestions.h"
#include "base/text.h"
#include "distribute/strategy/tpu_cluster.h"

namespace tutti::impl::distribute {

using base::Json;
using base::JsonReader;
using base::Result;
using base::Status;

namespace {

constexpr std::string_view kWhyNoParameterServers =
    "not supported, because their asynchronous updates make the model depend on the number and speed of workers";

Status check_address(std::string_view address) {
  const size_t colon = address.rfind(':');
  const bool has_host = colon != std::string_view::npos && colon > 0;
  const int64_t port = has_host ? base::parse_integer(address.substr(colon + 1)).value_or(0) : 0;
  const bool is_bracketed = has_host && address.front() == '[' && address[colon - 1] == ']' && colon > 2;
  const bool is_plain = has_host && address.substr(0, colon).find_first_of(":[] /") == std::string_view::npos;
  if (port >= 1 && port <= 65535 && (is_bracketed || is_plain)) return Status();
  return base::invalid_argument("the address of a worker is ", base::quoted(address),
                                ", expected \"host:port\" with a port of 1 to 65535");
}

Status check_index(int64_t index, int64_t count, std::string_view what) {
  if (count < 1 || count > Cluster::kMostWorkers) {
    return base::invalid_argument("a cluster has 1 to ", Cluster::kMostWorkers, " workers, got ", count);
  }
  if (index >= 0 && index < count) return Status();
  return base::invalid_argument(what, " is ", index, ", expected 0 to ", count - 1, ": there are ", count, " workers");
}

Result<int64_t> get_number(const Cluster::Variables &variables, const char *key) {
  const char *const text = variables(key);
  if (text == nullptr) return base::invalid_argument("the environment variable ", key, " is not set");
  const auto number = base::parse_integer(text);
  if (number) return *number;
  return base::invalid_argument("the environment variable ", key, " is ", base::quoted(text),
                                ", expected a whole number");
}

Result<int64_t> get_port(const Cluster::Variables &variables) {
  if (variables("MASTER_PORT") == nullptr) return Cluster::kDefaultPort;
  return get_number(variables, "MASTER_PORT");
}

/// One bracketed part of a host list: "01-03,7" behind `prefix`.
Status expand_ranges(std::string_view prefix, std::string_view ranges, std::string_view suffix,
                     std::vector<std::string> &hosts) {
  for (const std::string &range : base::split(ranges, ',')) {
    const size_t dash = range.find('-');
    const std::string first = range.substr(0, dash), last = dash == std::string::npos ? first : range.substr(dash + 1);
    const auto begin = base::parse_integer(first), end = base::parse_integer(last);
    if (!begin || !end || *begin < 0 || *end < *begin || *end - *begin >= Cluster::kMostWorkers) {
      return base::invalid_argument("the host list has the range ", base::quoted(range),
                                    ", expected \"01-03\" or \"7\"");
    }
    for (int64_t i = *begin; i <= *end; ++i) {
      std::string number = std::to_string(i);
      if (number.size() < first.size()) number.insert(0, first.size() - number.size(), '0');
      hosts.push_back(base::concat(prefix, number, suffix));
      if (hosts.size() > static_cast<size_t>(Cluster::kMostWorkers)) {
        return base::invalid_argument("the host list has more than ", Cluster::kMostWorkers, " hosts");
      }
    }
  }
  return Status();
}

}  // namespace

std::string with_port(const std::string &host, int64_t port) {
  const bool is_ipv6 = host.find(':') != std::string::npos && host.front() != '[';
  return is_ipv6 ? base::concat("[", host, "]:", port) : base::concat(host, ":", port);
}

const char *name(TaskType type) {
  switch (type) {
    case TaskType::worker:
      return "worker";
    case TaskType::chief:
      return "chief";
    case TaskType::evaluator:
      return "evaluator";
  }
  return "unknown";
}

Result<std::vector<std::string>> expand_host_list(std::string_view text) {
  std::vector<std::string> hosts;
  while (!text.empty()) {
    const size_t comma = text.find(','), open = text.find('[');
    if (open == std::string_view::npos || comma < open) {
      hosts.emplace_back(text.substr(0, comma));
      text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    } else {
      const size_t close = text.find(']', open);
      if (close == std::string_view::npos)
        return base::invalid_argument("the host list lacks a ']': ", base::quoted(text));
      const size_t end = std::min(text.find(',', close), text.size());
      TUTTI_TRY(expand_ranges(text.substr(0, open), text.substr(open + 1, close - open - 1),
                              text.substr(close + 1, end - close - 1), hosts));
      text = text.substr(std::min(end + 1, text.size()));
    }
    if (!hosts.empty() && hosts.back().empty()) return base::invalid_argument("the host list has an empty name");
    if (hosts.size() > static_cast<size_t>(Cluster::kMostWorkers)) {
      return base::invalid_argument("the host list has more than ", Cluster::kMostWorkers, " hosts");
    }
  }
  return hosts;
}

Result<std::vector<int32_t>> expand_task_counts(std::string_view text) {
  std::vector<int32_t> counts;
  for (const std::string &part : base::split(text, ',')) {
    const size_t open = part.find("(x");
    const auto tasks = base::parse_integer(part.substr(0, open));
    auto nodes = std::optional<int64_t>(1);
    if (open != std::string::npos) {
      nodes = part.back() == ')' ? base::parse_integer(part.substr(open + 2, part.size() - open - 3)) : std::nullopt;
    }
    const int64_t most = Cluster::kMostWorkers;
    if (!tasks || !nodes || *tasks < 1 || *tasks > most || *nodes < 1 ||
        *nodes > most - static_cast<int64_t>(counts.size())) {
      return base::invalid_argument("the tasks per node are ", base::quoted(text),
                                    ", expected counts such as \"2(x3),1\"");
    }
    counts.insert(counts.end(), static_cast<size_t>(*nodes), static_cast<int32_t>(*tasks));
  }
  return counts;
}

Result<Cluster> Cluster::make(std::vector<std::string> addresses, int32_t index) {
  TUTTI_TRY(check_index(index, static_cast<int64_t>(addresses.size()), "the index of this worker"));
  for (size_t i = 0; i < addresses.size(); ++i) {
    TUTTI_TRY(check_address(addresses[i]));
    if (std::find(addresses.begin(), addresses.begin() + static_cast<int64_t>(i), addresses[i]) !=
        addresses.begin() + static_cast<int64_t>(i)) {
      return base::invalid_argument("the address ", base::quoted(addresses[i]), " is listed twice");
    }
  }
  return Cluster(std::move(addresses), index, TaskType::worker, "explicit");
}

Result<Cluster> Cluster::with_leader(const std::string &leader_address, int32_t count, int32_t index) {
  TUTTI_TRY(check_index(index, count, "the index of this worker"));
  TUTTI_TRY(check_address(leader_address));
  std::vector<std::string> addresses(static_cast<size_t>(count));
  addresses.front() = leader_address;
  return Cluster(std::move(addresses), index, TaskType::worker, "explicit");
}

// ---- TF_CONFIG ----

namespace {

/// TensorFlow takes the index as a number and as the text of one.
Result<int64_t> read_index(const JsonReader &task) {
  if (!task.has("index"))
    return base::invalid_argument(task.path(), ".index is missing, expected a number of at least 0");
  TUTTI_ASSIGN(const JsonReader index, task.get("index"));
  if (!index.json().is_string()) return index.as_integer();
  const auto number = base::parse_integer(index.json().string());
  if (number) return *number;
  return index.wrong("a whole number");
}

struct TfTasks {
  std::vector<std::string> chiefs, workers;
  size_t evaluators = 0;
};

Result<TfTasks> read_tasks(const JsonReader &cluster) {
  TfTasks tasks;
  TUTTI_ASSIGN(const auto members, cluster.members());
  for (const auto &[job, list] : members) {
    TUTTI_ASSIGN(std::vector<std::string> addresses, list.as_strings());
    for (const std::string &address : addresses) {
      if (const Status bad = check_address(address); !bad.ok())
        return base::invalid_argument(list.path(), ": ", bad.message());
    }
    if (job == "chief" || job == "master") {
      tasks.chiefs.insert(tasks.chiefs.end(), addresses.begin(), addresses.end());
    } else if (job == "worker") {
      tasks.workers = std::move(addresses);
    } else if (job == "evaluator") {
      tasks.evaluators = addresses.size();
    } else if (job == "ps") {
      if (addresses.empty()) continue;
      return base::unimplemented(list.path(), " lists parameter servers, which are ", kWhyNoParameterServers,
                                 ": leave \"ps\" out, and start workers alone");
    } else {
      return base::invalid_argument(list.path(),
                                    " is not a task type, expected \"chief\", \"worker\" or \"evaluator\"");
    }
  }
  if (tasks.chiefs.size() > 1) {
    return base::invalid_argument(cluster.path(), ".chief lists ", tasks.chiefs.size(), " tasks, expected at most one");
  }
  if (tasks.evaluators > 1) {
    return base::invalid_argument(cluster.path(), ".evaluator lists ", tasks.evaluators,
                                  " tasks, expected at most one");
  }
  if (tasks.chiefs.empty() && tasks.workers.empty()) {
    return base::invalid_argument(cluster.path(), " lists neither \"chief\" nor \"worker\"");
  }
  return tasks;
}

Result<TaskType> read_type(const JsonReader &task) {
  if (!task.has("type"))
    return base::invalid_argument(task.path(), ".type is missing, expected a type such as \"worker\"");
  TUTTI_ASSIGN(const std::string type, task.get_string("type"));
  if (type == "worker") return TaskType::worker;
  if (type == "chief" || type == "master") return TaskType::chief;
  if (type == "evaluator") return TaskType::evaluator;
  if (type == "ps")
    return base::unimplemented(task.path(), ".type is \"ps\", but parameter servers are ", kWhyNoParameterServers,
                               ": start workers alone");
  return base::invalid_argument(task.path(), ".type is ", base::quoted(type),
                                ", expected \"chief\", \"worker\" or \"evaluator\"");
}

Status check_task(const JsonReader &task, TaskType type, int64_t index, size_t count) {
  if (index >= 0 && index < static_cast<int64_t>(count)) return Status();
  return base::invalid_argument(task.path(), ".index is ", index, ", but the cluster lists ", count, " of type \"",
                                name(type), "\"");
}

/// A process alone may be described by what TensorFlow and its launchers write beside a cluster. Anything else is taken
/// for one, which the process would train without: operators have "sparseCluster" for workers that come and go.
Status check_alone(const JsonReader &root) {
  static constexpr std::string_view kBeside[] = {"cluster", "task", "environment", "job", "rpc_layer", "model_dir"};
  TUTTI_ASSIGN(const auto members, root.members());
  for (const auto &[key, value] : members) {
    if (std::find(std::begin(kBeside), std::end(kBeside), key) != std::end(kBeside)) continue;
    return base::invalid_argument(value.path(),
                                  " is not known and there is no TF_CONFIG.cluster: this process would train alone. "
                                  "Workers are listed as {\"cluster\": {\"worker\": [\"host:port\", ...]}, ...}");
  }
  return Status();
}

}  // namespace

Result<Cluster> Cluster::from_tf_config(std::string_view text) {
  const Result<Json> parsed = Json::parse(text, {.max_bytes = 1 << 20, .max_depth = 16});
  if (!parsed.ok()) return parsed.status().wrap("TF_CONFIG is not JSON");
  const JsonReader root(*parsed, "TF_CONFIG");
  const std::string origin = "TF_CONFIG";
  if (!root.json().is_object()) return root.wrong("an object");
  TaskType type = TaskType::worker;
  int64_t index = 0;
  const bool has_task = root.has("task");
  if (has_task) {
    TUTTI_ASSIGN(const JsonReader task, root.get("task"));
    TUTTI_ASSIGN(type, read_type(task));
    TUTTI_ASSIGN(index, read_index(task));
  }
  const Json nothing = base::JsonObject();
  const JsonReader task(has_task ? *root.json().find("task") : nothing, "TF_CONFIG.task");
  if (!root.has("cluster") || root.json().find("cluster")->size() == 0) {
    // A process alone, as TensorFlow has it; nobody meets at the address.
    TUTTI_TRY(check_alone(root));
    TUTTI_TRY(check_task(task, type, index, 1));
    return Cluster({base::concat("localhost:", kDefaultPort)}, 0, type, origin);
  }
  TUTTI_ASSIGN(const JsonReader cluster, root.get("cluster"));
  TUTTI_ASSIGN(TfTasks tasks, read_tasks(cluster));
  if (!has_task)
    return base::invalid_argument("TF_CONFIG.task is missing: which of the cluster's tasks is this process?");
  const size_t chiefs = tasks.chiefs.size();
  if (type == TaskType::chief) TUTTI_TRY(check_task(task, type, index, chiefs));
  if (type == TaskType::worker) TUTTI_TRY(check_task(task, type, index, tasks.workers.size()));
  if (type == TaskType::evaluator) TUTTI_TRY(check_task(task, type, index, 1));
  if (type == TaskType::worker) index += static_cast<int64_t>(chiefs);
  std::vector<std::string> addresses = std::move(tasks.chiefs);
  addresses.insert(addresses.end(), tasks.workers.begin(), tasks.workers.end());
  TUTTI_ASSIGN(Cluster made, make(std::move(addresses), type == TaskType::evaluator ? 0 : static_cast<int32_t>(index)));
  made.type_ = type;
  made.origin_ = origin;
  return made;
}

// ---- other launchers ----

Result<Cluster> Cluster::from_torchrun(const Variables &variables) {
  TUTTI_ASSIGN(const int64_t rank, get_number(variables, "RANK"));
  TUTTI_ASSIGN(const int64_t size, get_number(variables, "WORLD_SIZE"));
  TUTTI_TRY(check_index(rank, size, "the environment variable RANK"));
  if (variables("MASTER_ADDR") == nullptr)
    return base::invalid_argument("the environment variable MASTER_ADDR is not set");
  TUTTI_ASSIGN(int64_t port, get_port(variables));
  // torchrun listens at MASTER_PORT itself, and says so.
  const char *const agent = variables("TORCHELASTIC_USE_AGENT_STORE");
  if (agent != nullptr && std::string_view(agent) == "True") ++port;
  TUTTI_ASSIGN(Cluster made, with_leader(with_port(variables("MASTER_ADDR"), port), static_cast<int32_t>(size),
                                         static_cast<int32_t>(rank)));
  made.origin_ = "torchrun";
  return made;
}

Result<Cluster> Cluster::from_open_mpi(const Variables &variables) {
  TUTTI_ASSIGN(const int64_t rank, get_number(variables, "OMPI_COMM_WORLD_RANK"));
  TUTTI_ASSIGN(const int64_t size, get_number(variables, "OMPI_COMM_WORLD_SIZE"));
  TUTTI_TRY(check_index(rank, size, "the environment variable OMPI_COMM_WORLD_RANK"));
  std::string host = "127.0.0.1";
  if (const char *leader = variables("MASTER_ADDR"); leader != nullptr) {
    host = leader;
  } else {
    TUTTI_ASSIGN(const int64_t local, get_number(variables, "OMPI_COMM_WORLD_LOCAL_SIZE"));
    if (local != size) {
      return base::invalid_argument(
          "mpirun runs this on several machines, but the environment variable MASTER_ADDR, the host name of rank 0, ",
          "is not set: mpirun -x MASTER_ADDR=host ...");
    }
  }
  TUTTI_ASSIGN(const int64_t port, get_port(variables));
  TUTTI_ASSIGN(Cluster made,
               with_leader(with_port(host, port), static_cast<int32_t>(size), static_cast<int32_t>(rank)));
  made.origin_ = "mpirun";
  return made;
}

Result<Cluster> Cluster::from_slurm(const Variables &variables) {
  TUTTI_ASSIGN(const int64_t rank, get_number(variables, "SLURM_PROCID"));
  const auto either = [&](const char *step, const char *job) { return variables(step) != nullptr ? step : job; };
  const char *const nodes_key = either("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST");
  const char *const tasks_key = either("SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE");
  for (const char *key : {nodes_key, tasks_key}) {
    if (variables(key) == nullptr) return base::invalid_argument("the environment variable ", key, " is not set");
  }
  const auto hosts = expand_host_list(variables(nodes_key));
  if (!hosts.ok()) return hosts.status().wrap(base::concat("the environment variable ", nodes_key, " cannot be read"));
  const auto tasks = expand_task_counts(variables(tasks_key));
  if (!tasks.ok()) return tasks.status().wrap(base::concat("the environment variable ", tasks_key, " cannot be read"));
  if (hosts->size() != tasks->size()) {
    return base::invalid_argument(nodes_key, " has ", hosts->size(), " nodes and ", tasks_key, " ", tasks->size());
  }
  TUTTI_ASSIGN(const int64_t port, get_port(variables));
  std::vector<std::string> addresses;
  for (size_t node = 0; node < hosts->size(); ++node) {
    for (int32_t task = 0; task < (*tasks)[node]; ++task)
      addresses.push_back(with_port((*hosts)[node], port + task));
    if (addresses.size() > static_cast<size_t>(kMostWorkers)) break;
  }
  TUTTI_TRY(check_index(rank, static_cast<int64_t>(addresses.size()), "the environment variable SLURM_PROCID"));
  TUTTI_ASSIGN(Cluster made, make(std::move(addresses), static_cast<int32_t>(rank)));
  made.origin_ = "Slurm";
  return made;
}

Result<Cluster> Cluster::of_tpus(std::vector<std::string> addresses, int32_t index, std::string origin,
                                 std::string accelerator_type, int32_t chips_per_worker) {
  TUTTI_ASSIGN(Cluster made, make(std::move(addresses), index));
  made.origin_ = std::move(origin);
  made.accelerator_type_ = std::move(accelerator_type);
  made.chips_per_worker_ = chips_per_worker;
  return made;
}

namespace {

bool has_variable(const Cluster::Variables &variables, const char *key) {
  const char *const text = variables(key);
  return text != nullptr && *text != '\0';
}

}  // namespace

struct Cluster::Launcher {
  std::string_view name;
  bool (*is_there)(const Variables &variables);
  Result<Cluster> (*read)(const Variables &variables);
};

std::span<const Cluster::Launcher> Cluster::launchers() {
  static constexpr Launcher kList[] = {
      {"TF_CONFIG", [](const Variables &variables) { return has_variable(variables, "TF_CONFIG"); },
       [](const Variables &variables) { return from_tf_config(variables("TF_CONFIG")); }},
      {"torchrun",
       [](const Variables &variables) { return variables("RANK") != nullptr && variables("WORLD_SIZE") != nullptr; },
       from_torchrun},
      {"mpirun", [](const Variables &variables) { return variables("OMPI_COMM_WORLD_RANK") != nullptr; },
       from_open_mpi},
      {"Slurm", [](const Variables &variables) { return variables("SLURM_PROCID") != nullptr; }, from_slurm},
      {"GKE",
       [](const Variables &variables) {
         return has_variable(variables, "TPU_WORKER_HOSTNAMES") || has_variable(variables, "TPU_PROCESS_ADDRESSES");
       },
       tpu_cluster_from_variables},
  };
  return kList;
}

Result<Cluster> Cluster::from_variables(const Variables &variables) {
  for (const Launcher &launcher : launchers()) {
    if (launcher.is_there(variables)) return launcher.read(variables);
  }
  return base::not_found(
      "the environment describes no cluster: none of TF_CONFIG, RANK with WORLD_SIZE, OMPI_COMM_WORLD_RANK, ",
      "SLURM_PROCID, TPU_WORKER_HOSTNAMES and TPU_PROCESS_ADDRESSES is set");
}

Result<Cluster> Cluster::from_launcher(std::string_view name, const Variables &variables) {
  std::vector<std::string> known;
  for (const Launcher &launcher : launchers()) {
    known.emplace_back(launcher.name);
    if (launcher.name != name) continue;
    if (launcher.is_there(variables)) return launcher.read(variables);
    return base::not_found("the environment has no variables of ", name, " that describe a cluster");
  }
  return base::invalid_argument("no launcher is called ", base::quoted(name), base::but_there_are(name, known));
}

Cluster::Variables variables_from_environment() {
  return [](const char *key) { return secure_getenv(key); };
}

Result<Cluster> Cluster::from_environment() { return from_variables(variables_from_environment()); }

Json Cluster::describe() const {
  base::JsonArray workers(addresses_.begin(), addresses_.end());
  Json described(
      base::JsonObject{{"workers", std::move(workers)}, {"index", index_}, {"task", name(type_)}, {"origin", origin_}});
  if (!accelerator_type_.empty()) described.set("accelerator_type", accelerator_type_);
  if (chips_per_worker_ > 0) described.set("chips_per_worker", chips_per_worker_);
  return described;
}

}  // namespace tutti::impl::distribute
