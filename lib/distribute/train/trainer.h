// SPDX-License-Identifier: Apache-2.0
//
// Trainer: the session form of training. It owns the mutable state of a model, one thread per replica and a reader that
// takes global batches from a data iterator ahead of the step. The caller starts a number of steps and sleeps.
//
//   TUTTI_ASSIGN(auto trainer, Trainer::open(train_model, strategy, {.seed = 7}));
//   TUTTI_TRY(trainer->initialize());                    // or restore(version)
//   TUTTI_TRY(trainer->attach_input(std::move(iterator)));
//   for (;;) {
//     TUTTI_ASSIGN(RunReport report, trainer->run(100, token));
//     if (report.reason != StopReason::steps_done) break;
//   }
//   TUTTI_ASSIGN(auto version, trainer->publish_weights());   // immutable, for savers and predictors
//
// Steps: `accumulation` batches of the iterator make one step (fewer when it ends); the rows of a batch are split so
// that replicas differ by at most one row. At every step boundary the replicas combine control words (rows, stop,
// error), so all of them finish at the same step. An error of one replica ends the group at once and comes back with
// rank and step.
//
// Workers: with a strategy of several processes each has a trainer, and all call open, initialize or restore,
// check_workers and run at the same points. A step begins when all are ready; any worker's limit, stop or bad input
// ends the run of all at the same step, the end of the input when all have reached it. Rows, examples, losses and
// metrics are those of all workers. After an error the workers meet again at the next run.
//
// Threads: one caller at a time; run() returns FAILED_PRECONDITION to a second one. request_stop() and the token may be
// used from anywhere. Steady steps allocate nothing and take no lock.
#ifndef TUTTI_DISTRIBUTE_TRAIN_TRAINER_H_
#define TUTTI_DISTRIBUTE_TRAIN_TRAINER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/executable.h"
#include "base/cancel.h"
#include "base/json.h"
#include "base/object.h"
#include "base/status.h"
#include "base/trace.h"
#include "checkpoint/weight_version.h"
#include "data/dataset/dataset.h"
#include "distribute/input/device_input_counters.h"
#include "distribute/plan/loss_scale.h"
#include "distribute/plan/state_plan.h"
#include "distribute/strategy/strategy.h"
#include "distribute/train/step_functions.h"
#include "distribute/train/step_history.h"
#include "distribute/train/step_times.h"
#include "distribute/weights/weight_share.h"
#include "graph/model.h"
#include "tensor/tensor.h"

namespace tutti::impl::distribute {

enum class Lowering : int32_t {
  automatic = 0,  ///< shared where the devices use host memory, else replicated
  shared = 1,     ///< one copy of weights and slots; each contributor updates its slice
  replicated = 2  ///< a copy per device; each updates everything, but with Strategy::storage(): see central_storage.h
};

/// Steps that may be looked at ahead at most (TrainerOptions).
constexpr int32_t kMostDevicePrefetch = 16;

struct TrainerOptions {
  int64_t seed = 0;
  backend::Level level = backend::Level::fast;
  /// Micro-batches per step.
  int32_t accumulation = 1;
  /// Clip gradients by global norm; 0 = what the model says.
  double clip_norm = 0;
  Lowering lowering = Lowering::automatic;
  /// How gradients are added up over devices. Any choice but automatic makes the lowering replicated.
  AllReduceChoice all_reduce = AllReduceChoice::automatic;
  /// Level invariant: logical replicas, whatever the number of devices, which must divide it.
  int32_t logical_replicas = 4;
  int32_t threads_per_replica = 1;
  /// Other than f32 only at level fast.
  backend::Precision precision = backend::Precision::f32;
  /// Programs kept per replica, by shape.
  int32_t program_cache_size = 16;
  /// Rows that layouts are chosen for.
  int64_t typical_rows = 64;
  /// What f32 gradients are rounded to before they are added up over devices that do not share memory: f32, or at level
  /// fast bf16. The micro-batches of a step are added up in f32 before, in memory of their own, and rounded once.
  /// Without effect elsewhere.
  tensor::DType gradient_dtype = tensor::DType::f32;
  /// It is on, too, where precision is f16_where_faster and the devices have memory of their own; never for gradients
  /// that the model made, which f16 then is not used for.
  LossScaleOptions loss_scale;
  /// Replicas that share weights make gradients of at least so many elements of shared factors (shared_factors.h) where
  /// that moves less. Not at level invariant, where gradients are kept, nor with several micro-batches.
  int64_t shared_factor_elements = 16384;
  /// Keep the gradients of the last step readable (gradient()).
  bool keep_gradients = false;
  /// Keep the model's outputs for the rows of the last step readable (output()).
  bool keep_outputs = false;
  /// Steps can show the rows of the model's summaries (TrainerVariables::show_rows()).
  bool shows_rows = false;
  /// Copy batches into the memory of the devices ahead of the step also where these can read the host's.
  bool copies_input = false;
  /// Steps whose batches may be read, and be on their way to the devices, ahead of the step that runs, from 1 on. Each
  /// costs the memory of its batches, on the host and on devices that batches are copied to.
  int32_t device_prefetch = 1;
  /// How long a replica waits for the others.
  int64_t collective_timeout_ms = 600000;
  /// After a CANCEL: how long the step under way may take to end by itself before its replicas give up their waits.
  int64_t cancel_grace_ms = 10000;
  /// Gradients are reduced in pieces of about so many bytes while others are being computed.
  int64_t bucket_bytes = 25 << 20;
  /// Told the completed steps since the beginning after each step of a run; outlives the trainer. Null: nobody asks.
  std::atomic<int64_t> *completed_steps = nullptr;
  /// While it is enabled, kernels and steps are traced, from one step of all replicas on. Null: never.
  base::Ref<base::Tracer> tracer;
  /// Ends the wait for other workers in Trainer::open(), which alone uses it. Null: their limit does.
  const base::CancelToken *cancel = nullptr;
  /// Runs the initializers; null = the strategy's. The reference backend gives the same bits on every machine.
  backend::BackendRef initializer_backend;
};

/// INVALID_ARGUMENT for options that do not go together.
base::Status check(const TrainerOptions &options);

enum class StopReason : int32_t { steps_done = 1, end_of_input, stopped };

/// What one run() did.
struct RunReport {
  StopReason reason = StopReason::steps_done;
  int64_t steps = 0;          ///< in this run
  int64_t examples = 0;       ///< rows in this run
  int64_t skipped_steps = 0;  ///< of `steps`: changed nothing, for a gradient was not finite with the scale of the loss
  int64_t step = 0;           ///< completed steps since the beginning
  double loss = 0;            ///< of the last step
  /// Nanoseconds that replica 0 waited for input, and in all.
  int64_t input_wait_ns = 0, total_ns = 0;
  std::vector<StepTimes> times;  ///< of each replica in this process
};

struct TrainerCounters {
  int64_t programs_built = 0;  ///< programs bound, all replicas
  int64_t executables_built = 0;
  int64_t cache_evictions = 0;
  int64_t steps = 0, examples = 0;  ///< complete steps and their rows, those of runs that failed included
  int64_t skipped_steps = 0;        ///< of these: changed nothing but the scale of the loss
  int64_t late_steps = 0;           ///< steps whose batches had not been read when the step before was done
  DeviceInputCounters device_inputs;
};

/// The values of a trainer by name. Between runs, by one thread at a time.
class TrainerVariables {
 public:
  virtual ~TrainerVariables() = default;

  /// Variables and slots ("<variable>/<slot>") in canonical layout.
  virtual base::Result<tensor::Tensor> get_variable(std::string_view name) = 0;
  virtual base::Status set_variable(std::string_view name, const tensor::Tensor &value) = 0;
  virtual base::Result<tensor::Tensor> get_slot(std::string_view variable, std::string_view slot) = 0;
  /// Gradient of the last step before clipping. FAILED_PRECONDITION unless keep_gradients.
  virtual base::Result<tensor::Tensor> gradient(std::string_view variable) = 0;
  /// What the model gave for each row of the last step, in the order of its batches, with the weights before it; of
  /// several workers for the rows of this one. FAILED_PRECONDITION unless keep_outputs, and after a run that failed.
  virtual base::Result<tensor::Tensor> output(std::string_view name) = 0;
  /// Of these the rows that one replica of this process had; none where it had none.
  virtual base::Result<tensor::Tensor> replica_output(std::string_view name, int32_t replica) {
    (void)name, (void)replica;
    return base::unimplemented("this trainer keeps no outputs");
  }
  /// Whether steps of the runs to come show the rows of the model's summaries. With several workers all say the same.
  /// Without effect unless TrainerOptions::shows_rows.
  virtual void show_rows(bool shows) { (void)shows; }
  /// What one of the model's summaries was in the last step: the value, for one that is known of a step that was to
  /// show its rows; or, where it has rows and these were to be shown, the pieces that parts of the batch had, in its
  /// order; of several workers those of this one.
  virtual base::Result<std::vector<tensor::Tensor>> summary(const graph::SummarySpec &summary) {
    (void)summary;
    return base::unimplemented("this trainer shows no summaries");
  }
  /// A named host scalar, such as a learning rate set by the host; takes effect with the next run.
  virtual base::Status set_host_scalar(std::string_view name, double value) = 0;
  virtual base::Result<double> host_scalar(std::string_view name) = 0;
};

/// Where a trainer stands and what it saw.
class TrainerProgress {
 public:
  virtual ~TrainerProgress() = default;

  /// Completed steps since the beginning.
  virtual int64_t step() const = 0;
  virtual void set_step(int64_t step) = 0;
  /// Micro-batches and rows so far; part of what a checkpoint keeps.
  virtual int64_t batch_counter() const = 0;
  virtual void set_batch_counter(int64_t counter) = 0;
  /// Scale of the loss and skipped steps so far; likewise. Scale 0: the loss is not scaled.
  virtual LossScaleState loss_scale() const = 0;
  /// Between runs. Without effect where either is without scale.
  virtual void set_loss_scale(const LossScaleState &state) = 0;

  /// Loss, learning rate and metrics of the last step, by name: "loss", "learning_rate", metric names. With a scale of
  /// the loss "loss_scale", that of the last step, and "skipped_steps", those so far. An error where the device's
  /// memory cannot be read.
  virtual base::Result<std::vector<NamedNumber>> report() const = 0;
  /// Losses of the steps of the last run, oldest first; the last 65,536 at most.
  virtual std::vector<double> loss_history() const = 0;
  /// Between runs: which steps are sampled, and what was. Null: this trainer takes none.
  virtual StepSamples *samples() { return nullptr; }

  virtual TrainerCounters counters() const = 0;
  /// Bytes of the memory of each device that has its own, whoever has taken them, by the device's name; without those
  /// of which it is not known.
  virtual std::vector<NamedNumber> memory_in_use() const { return {}; }
  /// Of each replica in this process, as "cpu:0".
  virtual std::vector<std::string> device_names() const = 0;
  /// Chosen kernels and bytes of the programs built so far, for people and tests.
  virtual base::Json describe() const = 0;
};

/// What a worker tells the others of its strategy; nothing for one worker alone. Between runs.
class TrainerWorkers {
 public:
  virtual ~TrainerWorkers() = default;

  /// Where others are in a run, or about to be: ends it at this step, with reason stopped, as had this worker begun one
  /// and been stopped at once.
  virtual base::Status stop_workers(const base::CancelToken *cancel) {
    (void)cancel;
    return base::Status();
  }
  /// Called by all before the first run and after weights have been set: FAILED_PRECONDITION on all, naming a worker
  /// that differs and in what, unless the model, weights, slots, step and `settings`, a text each, are the same
  /// everywhere, and devices of one backend. None goes on before all have come.
  virtual base::Status check_workers(const std::vector<std::string> &settings, const base::CancelToken *cancel) {
    (void)settings, (void)cancel;
    return base::Status();
  }
  /// Called by all at the same point between runs: the bytes of each worker, in order.
  virtual base::Result<std::vector<std::vector<std::byte>>> exchange_with_workers(std::span<const std::byte> own,
                                                                                  const base::CancelToken *cancel) {
    (void)cancel;
    return std::vector<std::vector<std::byte>>{{own.begin(), own.end()}};
  }
  /// This worker does not go on: a run of the others ends with that cause.
  virtual void leave_workers(const base::Status &cause) { (void)cause; }
};

class Trainer : public TrainerVariables, public TrainerProgress, public TrainerWorkers, public StepFunctions {
 public:
  /// `share`: the weights to train; null: its own. With shared ones initialize() and restore() are about its slots,
  /// publish_weights(true) gives these alone.
  static base::Result<std::unique_ptr<Trainer>> open(const graph::Model &train_model, StrategyRef strategy,
                                                     const TrainerOptions &options, const WeightShare *share = nullptr);

  /// Gives every variable its initial value (a function of seed and variable name only), zeroes slots, step = 0.
  virtual base::Status initialize() = 0;
  /// Sets weights by name, slots where the version has them, and the step. A variable of the model that the version
  /// lacks, or has with other dims or dtype, is an error naming it, and nothing changes.
  virtual base::Status restore(const checkpoint::WeightVersion &version) = 0;

  /// Before a walk over `dataset` is made with `context`: lets it leave the dataset's last map to the devices, where
  /// the map asks for them (on_device) and they have memory of their own; such a walk is for attach_input() of this
  /// trainer. Says why the map stays on the host where devices cannot do it; else nothing.
  virtual std::string leave_map(const data::Dataset &dataset, data::IteratorContext &context) = 0;
  /// Where batches come from. Elements must have the model's features and labels by name or, when the specs carry no
  /// names, in order. Replaces the former input; batches read ahead of it are dropped. Null: none any more.
  virtual base::Status attach_input(std::unique_ptr<data::Iterator> iterator) = 0;
  /// Position of the input after the last completed step, for attach_input + restore. Batches that were read ahead do
  /// not count.
  virtual base::Result<base::Json> input_state() = 0;
  /// What the walk over the input has cost (data::Iterator::report); null without input.
  virtual base::Json input_report() const = 0;

  /// Up to `steps` steps (negative = until the input ends or a stop). CANCELLED leaves the trainer usable: the step
  /// under way is finished, unless it waits longer than cancel_grace_ms for another replica; then it is given up.
  /// After a failure weights and slots keep the values of the last complete step. The batches of the step that was not
  /// completed come again, unless they are why: bad data (INVALID_ARGUMENT) and those with which the loss or a gradient
  /// is not finite (OUT_OF_RANGE naming the step) are passed over. No step begins before all of its batches are there.
  /// After an error of the input, which names its step, the batches of that step are passed over up to the one that
  /// could not be read. With a scale of the loss above 1 such a gradient makes a
  /// skipped step: it counts as step, but not in the optimizer's iterations.
  virtual base::Result<RunReport> run(int64_t steps, const base::CancelToken *cancel) = 0;
  /// Ends a run in progress at its next step boundary, with reason stopped. Any thread.
  virtual void request_stop() = 0;

  /// Everything at the current step as an immutable version; without slots: weights and their moving averages. Copies
  /// once; packing or unpacking falls on the readers.
  virtual base::Result<base::Ref<checkpoint::WeightVersion>> publish_weights(bool with_slots = false) = 0;

  virtual const graph::Model &model() const = 0;
  virtual const StatePlan &plan() const = 0;
  /// Whether all copies of the weights on all devices have equal bytes (there is only one when shared).
  virtual base::Result<bool> replicas_are_identical() = 0;
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_TRAIN_TRAINER_H_
