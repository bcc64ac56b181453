// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <vector>

#include "data/call/ordered_calls.h"
#include "data/dataset/walk_report.h"
#include "data/process/process_elements.h"
#include "data/process/worker_process.h"
#include "data/thread/worker_threads.h"
#include "data/transform_parameters.h"

namespace tutti::impl::data {

using base::CancelToken;
using base::Ref;
using base::Result;
using base::Status;

namespace {

// Elements that lie in the ring for each process.
constexpr int64_t kSlotsPerProcess = 4;

// What the calls of a walk share.
struct Work {
  std::shared_ptr<const WorkerProgram> program;
  std::shared_ptr<WorkerProcesses> processes;
  Ref<CancelToken> token;
};

Status map_element(const Work &work, const Element &input, Element &output) {
  output.components.clear();
  output.lineage = input.lineage;
  Result<std::unique_ptr<WorkerProcess>> process = work.processes->take(work.program, work.token.get());
  Status status = process.status();
  if (process.ok()) {
    status = (*process)->map(input, output, work.token.get());
    work.processes->give_back(process.take());
  }
  output.lineage = input.lineage;
  return base::is_interrupt(status) ? status : in_element(status, input.lineage);
}

class MapProcessDataset : public Dataset {
 public:
  MapProcessDataset(const DatasetRef &input, ElementSpec spec, std::vector<std::string> command, int64_t processes)
      : Dataset("map_process", std::move(spec), input->cardinality(), {input}),
        command_(std::move(command)),
        processes_(processes) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    const int32_t processes = context.workers->resolve(processes_);
    IteratorContext own = context;
    own.cancel = CancelToken::create_worker(context.cancel);
    TUTTI_ASSIGN(std::unique_ptr<Stage> input, inputs()[0]->walk(own));
    const ElementSpec &given = inputs()[0]->spec();
    auto program = std::make_shared<const WorkerProgram>(
        WorkerProgram{command_, given, spec(), greeting(given, spec(), context.seed)});
    const Work work{std::move(program), context.processes, own.cancel};
    const auto one = [work](Element &from, Element &to) { return map_element(work, from, to); };
    std::vector<OrderedCallsStage::Call> calls(static_cast<size_t>(processes), one);
    const OrderedCallsStage::Limits limits{kSlotsPerProcess, 0, context.keeps_order, nullptr};
    return std::unique_ptr<Stage>(std::make_unique<OrderedCallsStage>("map_process", std::move(input), std::move(calls),
                                                                      limits, context.cancel, std::move(own.cancel),
                                                                      counters_in(context, *this)));
  }

 private:
  std::vector<std::string> command_;
  int64_t processes_;
};

}  // namespace

Result<DatasetRef> apply_map_process(const DatasetRef &input, const MapProcessParameters &parameters,
                                     TransformArguments &arguments) {
  if (parameters.command.empty() || parameters.command[0].empty())
    return base::invalid_argument("parameter 'command': expected a program and its arguments, got none");
  ElementSpec spec = arguments.output_spec.value_or(input->spec());
  TUTTI_TRY(check(spec));
  return DatasetRef(
      base::make_ref<MapProcessDataset>(input, std::move(spec), parameters.command, parameters.processes));
}

}  // namespace tutti::impl::data
