// SPDX-License-Identifier: Apache-2.0
//
// Runs the networks of step_networks.h on one device, as one replica would: training steps and predictions, on made-up
// images and labels that are the same for every backend.
//
//   TUTTI_ASSIGN(StepModel model, make_step_model("C"));
//   TUTTI_ASSIGN(StepTrainer trainer, StepTrainer::create(backend, model, 64));
//   TUTTI_TRY(trainer.step());
//   double loss = trainer.loss();
//   TUTTI_ASSIGN(StepPredictor predictor, StepPredictor::create(backend, model, 64));
//   TUTTI_TRY(predictor.predict());
//   predictor.logits()[0];
//
// Threads: each object is used by one thread at a time; it may have threads of its own when it is told so.
#ifndef TUTTI_TESTS_BACKEND_CPU_STEP_MODELS_H_
#define TUTTI_TESTS_BACKEND_CPU_STEP_MODELS_H_

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/step_networks.h"
#include "backend/executable.h"
#include "backend/state_table.h"
#include "base/status.h"
#include "graph/rewrite/rewrites.h"

namespace tutti::testing {

/// Variables, and with them gradients and slots where there is training, in the layouts that the backend asks for.
class StepState {
 public:
  enum class Form { training, prediction };

  /// What a run is compiled for.
  struct Setup {
    impl::backend::BackendRef backend;
    impl::backend::DeviceRef device;
    Form form = Form::training;
    /// The first graph, that names the layouts.
    const std::string *graph_text = nullptr;
    impl::graph::SymbolBindings bindings;
    impl::backend::Level level = impl::backend::Level::fast;
    int32_t threads = 1;
    int32_t flags = 0;  ///< TUTTI_COMPILE_*
    bool keep_gradients = false;
    /// What a prediction computes of the weights beforehand.
    std::vector<impl::graph::rewrite::PrecomputedGraph::Entry> derived;
    /// Seconds of processor time for layouts, programs and their binding; filling memory is not among them.
    double build_seconds = 0;
  };

  /// Plans and allocates; the variables get their initial values. Adds the sizes of flat slices to setup.bindings.
  impl::base::Status create(Setup &setup, const StepModel &model);

  const impl::backend::StateTable &table() const { return table_; }
  std::vector<void *> pointers() const;
  /// An entry in row-major order.
  impl::base::Result<std::vector<float>> values(const impl::backend::Backend &backend, const std::string &entry) const;
  /// The loss of the last step.
  double loss() const;
  int64_t arena_bytes() const;

 private:
  impl::base::Status plan(Setup &setup, const StepModel &model,
                          const std::vector<impl::backend::LayoutProposal> &layouts);
  impl::base::Status add_entry(Setup &setup, std::string name, int32_t arena, const StepVariable &variable,
                               const impl::backend::LayoutProposal *layout);
  impl::base::Status fill(const impl::backend::Backend &backend, const StepModel &model);

  impl::backend::StateTable table_;
  std::vector<int64_t> sizes_;
  std::vector<impl::backend::Buffer> arenas_;
};

/// One replica on one device: one program, or two when gradients are kept.
class StepTrainer {
 public:
  static impl::base::Result<StepTrainer> create(impl::backend::BackendRef backend, const StepModel &model,
                                                int64_t batch, impl::backend::Level level = impl::backend::Level::fast,
                                                int32_t flags = 0, int32_t threads = 1, bool keep_gradients = false);

  impl::base::Status step();
  /// Waits until the steps so far are done, with their errors.
  impl::base::Status synchronize() const { return stream_.synchronize(); }
  /// The loss of the last step, NaN when it failed.
  double loss() const { return synchronize().ok() ? state_.loss() : std::nan(""); }
  /// A variable in row-major order, of what lies at "weight/"; or its gradient, at "gradient/0/", where it is kept.
  impl::base::Result<std::vector<float>> values(const std::string &prefix, const std::string &name) const {
    TUTTI_TRY(synchronize());
    return state_.values(*setup_.backend, prefix + name);
  }
  /// One of each program.
  std::vector<std::string> reports() const;
  int64_t workspace_bytes() const { return workspace_.size_bytes(); }
  double build_seconds() const { return setup_.build_seconds; }
  /// Weights, gradients and slots.
  int64_t state_bytes() const { return state_.arena_bytes(); }
  /// All that was allocated on the device.
  int64_t device_bytes() const {
    return state_bytes() + workspace_.size_bytes() + images_.size_bytes() + labels_.size_bytes();
  }
  /// What the device has free, -1 where it cannot tell.
  int64_t available_bytes() const { return setup_.device->available_bytes().value_or(-1); }
  std::vector<float> images() const;
  std::vector<int64_t> labels() const;

 private:
  StepState::Setup setup_;
  std::vector<std::string> texts_;
  StepState state_;
  impl::backend::Buffer workspace_, images_, labels_;
  mutable impl::backend::Stream stream_;
  std::vector<impl::backend::ExecutableRef> executables_;
  std::vector<impl::backend::Program> programs_;
  impl::backend::RunScalars scalars_;
};

/// Predictions on one device; `folded`: normalisations go into the weights, as PredictEngine does it.
class StepPredictor {
 public:
  static impl::base::Result<StepPredictor> create(impl::backend::BackendRef backend, const StepModel &model,
                                                  int64_t batch,
                                                  impl::backend::Level level = impl::backend::Level::fast,
                                                  int32_t flags = 0, int32_t threads = 1, bool folded = true);

  impl::base::Status predict();
  /// Waits until the predictions so far are done, with their errors.
  impl::base::Status synchronize() const { return stream_.synchronize(); }
  /// Of the last prediction: [batch, classes], or those of each label, in row-major order.
  std::vector<float> logits() const;
  std::string report() const { return executable_->description().report_json; }
  int64_t workspace_bytes() const { return workspace_.size_bytes(); }
  double build_seconds() const { return setup_.build_seconds; }
  int64_t state_bytes() const { return state_.arena_bytes(); }
  /// All that was allocated on the device.
  int64_t device_bytes() const {
    return state_bytes() + workspace_.size_bytes() + images_.size_bytes() + logits_.size_bytes();
  }
  int64_t available_bytes() const { return setup_.device->available_bytes().value_or(-1); }

 private:
  /// Runs the graph that makes derived entries, once.
  impl::base::Status prepare(const impl::graph::Graph &graph);

  StepState::Setup setup_;
  std::string text_;
  StepState state_;
  impl::backend::Buffer workspace_, images_, logits_;
  mutable impl::backend::Stream stream_;
  impl::backend::ExecutableRef executable_;
  impl::backend::Program program_;
  impl::backend::RunScalars scalars_;
};

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_BACKEND_CPU_STEP_MODELS_H_
