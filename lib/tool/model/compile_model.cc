// SPDX-License-Identifier: Apache-2.0
//
// Whether a trained model compiles for devices that are not here, and what it takes there.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <tutti/tutti.hpp>

#include "tool/command/command_list.h"
#include "tool/console/table.h"
#include "tool/console/usage_error.h"

namespace tutti::tool {

namespace {

using json = nlohmann::ordered_json;

struct CompileModelRequest {
  std::string path;
  std::string topology, library;
  int64_t rows = 64;
  bool as_json = false;
};

/// What describe_plan() says of it, on the first of these devices.
json compiled_plan(const CompileModelRequest &request) {
  Options devices("context");
  devices.set("backend", "pjrt").set("pjrt_topology", request.topology);
  devices.set("pjrt_plugin", std::filesystem::absolute(request.library).string());
  const Context context(devices);
  const Strategy strategy = Strategy::one_device(context);
  const std::string plan = Predictor(request.path, strategy, context).plan(request.rows);
  json described = json::parse(plan);
  described["description"] = json::parse(context.describe_device(0))["description"];
  return described;
}

/// "-" where the library does not tell.
std::string bytes_of(const json &program, const char *key) {
  const auto bytes = program.value(key, int64_t{-1});
  return bytes < 0 ? "-" : readable_bytes(static_cast<double>(bytes));
}

void print_compiled(const CompileModelRequest &request, const json &plan) {
  std::printf("step %s, %lld rows: compiles for %s (%s)\n", plan["step"].dump().c_str(),
              static_cast<long long>(request.rows), request.topology.c_str(),
              plan["description"].get<std::string>().c_str());
  Table table({"program", ">code", ">arguments", ">results", ">temporary", ">operations"});
  for (const json &program : plan["programs"]) {
    const double operations = program.value("operations", -1.0);
    table.add({program["node"].get<std::string>(), bytes_of(program, "code_bytes"), bytes_of(program, "argument_bytes"),
               bytes_of(program, "result_bytes"), bytes_of(program, "temporary_bytes"),
               operations < 0 ? "-" : readable(operations)});
  }
  table.print();
}

int compile_model(const CompileModelRequest &request) {
  const json plan = compiled_plan(request);
  if (request.as_json) {
    std::printf("%s\n", plan.dump(1).c_str());
  } else {
    print_compiled(request, plan);
  }
  return EXIT_SUCCESS;
}

}  // namespace

Command compile_command() {
  const auto request = std::make_shared<CompileModelRequest>();
  Command command("compile", "compiles a trained model for TPUs that need not be here");
  command.set_details(
      "The predictions of the model are compiled for a topology, as a PJRT library names it, on any machine. Shown is "
      "what each program takes: code, arguments, results and temporary memory, and the floating-point operations of a "
      "run. A model that does not compile, or does not fit into the memory of the devices, is an error with the "
      "library's reason.");
  command.add_argument({"PATH", "a checkpoint, or a directory of checkpoints (the newest is used)"});
  command.add_option(request->topology, {"--for", "TOPOLOGY", "the devices, such as v5e:1x1"});
  command.add_option(request->library,
                     {"--pjrt-plugin", "FILE", "the library that compiles for them, such as libtpu.so"});
  command.add_option(request->rows, {"--rows", "N", "rows of a batch"});
  command.add_flag(request->as_json, {"--json", "", "print the whole plan as JSON instead of a table"});
  command.set_example("tutti compile model/ --for v5e:1x1 --pjrt-plugin /opt/libtpu.so --rows 256");
  command.set_run([request](const std::vector<std::string> &words) {
    if (words.empty()) throw UsageError{"no checkpoint or model directory given"};
    if (request->topology.empty()) throw UsageError{"no --for given: the devices to compile for"};
    if (request->library.empty()) throw UsageError{"no --pjrt-plugin given: the library that compiles"};
    request->path = words.front();
    return compile_model(*request);
  });
  return command;
}

}  // namespace tutti::tool
