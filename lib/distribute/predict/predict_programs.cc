// SPDX-License-Identifier: Apache-2.0
#include "distribute/predict/predict_programs.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "distribute/plan/step_graphs.h"
#include "distribute/train/train_programs.h"
#include "graph/serialize.h"

namespace tutti::impl::distribute {

using base::Result;

namespace {

Result<KindPrograms> programs_for(backend::Device &device, const PredictGraph &graphs, const PredictOptions &options) {
  KindPrograms of;
  TUTTI_ASSIGN(const auto layouts, propose_layouts(device, *graphs.forward, graphs.state, options.typical_rows,
                                                   options.level, options.threads_per_replica, options.precision));
  TUTTI_ASSIGN(of.plan, StatePlan::make(graphs.state, layouts, {}));
  of.source = {graph::to_json_text(*graphs.forward), of.plan.table(),   options.level,
               options.threads_per_replica,          options.precision, options.level == backend::Level::invariant};
  if (graphs.prepare != nullptr) {
    of.prepare =
        GraphSource{graph::to_json_text(*graphs.prepare), of.plan.table(), options.level, options.threads_per_replica};
  }
  of.executables = std::make_unique<ExecutableCache>(static_cast<size_t>(options.program_cache_size) * 2);
  of.rounds_rows = graphs.rows_stand_alone && !device.backend().has_host_memory();
  return of;
}

}  // namespace

Result<PredictPrograms> PredictPrograms::make(const graph::Model &model, const Strategy &strategy,
                                              const PredictOptions &options) {
  PredictPrograms programs;
  TUTTI_ASSIGN(programs.devices_, open_devices(strategy));
  programs.kinds_ = kinds_of(programs.devices_);
  TUTTI_TRY(check_level(options.level, programs.kinds_, programs.devices_));
  StepGraphOptions graph_options;
  graph_options.contributors = 2;  // rows are always free to be computed apart
  TUTTI_ASSIGN(const PredictGraph graphs, make_predict_graph(model, graph_options));
  programs.rows_stand_alone_ = graphs.rows_stand_alone;
  for (const size_t first : programs.kinds_.first_devices) {
    TUTTI_ASSIGN(KindPrograms of, programs_for(*programs.devices_[first], graphs, options));
    programs.by_kind_.push_back(std::move(of));
  }
  return programs;
}

int64_t PredictPrograms::built() const {
  int64_t built = 0;
  for (const KindPrograms &of : by_kind_)
    built += of.executables->built();
  return built;
}

base::JsonArray PredictPrograms::describe() const {
  base::JsonArray executables;
  for (const KindPrograms &of : by_kind_) {
    base::Json described = of.executables->describe();
    std::ranges::move(described.array(), std::back_inserter(executables));
  }
  return executables;
}

}  // namespace tutti::impl::distribute
