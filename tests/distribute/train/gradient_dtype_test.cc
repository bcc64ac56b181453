// SPDX-License-Identifier: Apache-2.0
//
// Gradients that are rounded to bfloat16 before they are added up over devices: how far off they are, what is sent for
// them, that replicas stay equal, how several batches make a step, and where the option has no effect or is refused.
// And memory that is registered with the devices' library, on emulated GPUs.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <utility>

#include "base/file.h"
#include "base/temporary_directory.h"
#include "data/pipeline/pipeline.h"
#include "distribute/input/input_binding.h"
#include "distribute/training_case.h"
#include "testing.h"

namespace tutti::testing::gradient_dtype_test {

namespace base = impl::base;
using impl::backend::Level;
using impl::distribute::Lowering;

constexpr int64_t kRows = 48;

static NetworkCase wide_network() {
  NetworkCase network;
  network.features = 24;
  network.hidden = 40;
  return network;
}

static TrainerOptions rounded() {
  TrainerOptions options;
  options.gradient_dtype = DType::bf16;
  options.lowering = Lowering::replicated;
  return options;
}

/// Over the batches of `batch` rows of kRows.
static std::unique_ptr<Trainer> open_trainer(const NetworkCase &network, int32_t replicas, int64_t batch,
                                             const TrainerOptions &options) {
  const Model model = assert_ok_value(build_network(network));
  auto trainer = assert_ok_value(Trainer::open(model, assert_ok_value(make_test_strategy(replicas)), options));
  assert_ok(trainer->initialize());
  const auto rows = make_rows(kRows, network.features, network.classes, network.dtype, batch);
  assert_ok(trainer->attach_input(assert_ok_value(rows->make_iterator({}))));
  return trainer;
}

static std::vector<double> gradient_of(Trainer &trainer, const char *variable) {
  const Tensor gradient = assert_ok_value(trainer.gradient(variable));
  const float *const values = gradient.data_as<float>();
  return std::vector<double>(values, values + gradient.elements());
}

static int64_t bytes_in(const Trainer &trainer, const char *dtype) {
  const base::Json description = trainer.describe();
  const base::Json *const bytes = description.find("bucket_bytes")->find(dtype);
  return bytes == nullptr ? 0 : bytes->integer();
}

/// Each replica's gradient is rounded once and each sum of two once: with u = 2^-8, |error| <= n u sum |g_c|, where the
/// gradient g_c of a replica's rows is what one device computes of them in f32.
static void test_gradients_are_off_by_what_rounding_loses(void **) {
  NetworkCase network = wide_network();
  network.learning_rate = 0;
  TrainerOptions kept;
  kept.keep_gradients = true;
  for (const int32_t replicas : {2, 3, 4}) {
    TrainerOptions options = rounded();
    options.keep_gradients = true;
    const auto trainer = open_trainer(network, replicas, kRows, options);
    assert_ok(trainer->run(1, nullptr));
    assert_true(assert_ok_value(trainer->replicas_are_identical()));
    for (const char *variable : {"first/kernel", "first/bias", "second/kernel", "second/bias"}) {
      const std::vector<double> got = gradient_of(*trainer, variable);
      std::vector<double> sums(got.size(), 0), sizes(got.size(), 0);
      const auto alone = open_trainer(network, 1, kRows / replicas, kept);
      for (int32_t c = 0; c < replicas; ++c) {
        assert_ok(alone->run(1, nullptr));
        const std::vector<double> part = gradient_of(*alone, variable);
        for (size_t i = 0; i < part.size(); ++i) {
          sums[i] += part[i] / replicas;
          sizes[i] += std::fabs(part[i]) / replicas;
        }
      }
      double worst = 0, difference = 0;
      for (size_t i = 0; i < got.size(); ++i) {
        worst = std::max(worst, std::fabs(got[i] - sums[i]) / (replicas * 0x1p-8 * sizes[i] + 1e-6));
        difference += std::fabs(got[i] - sums[i]);
      }
      if (!(worst <= 1)) fail_msg("%d replicas, %s: off by %g of the bound", replicas, variable, worst);
      assert_true(difference > 0);  // they were rounded
    }
  }
}

// ---- several batches to a step ----

using impl::distribute::RowRange;
using impl::distribute::share_of_rows;
using impl::tensor::BFloat16;

/// The rows [begin, end) of make_rows(), as batches of `batch`.
static impl::data::DatasetRef rows_between(const NetworkCase &network, int64_t begin, int64_t end, int64_t batch) {
  impl::data::Pipeline pipeline(make_rows(end, network.features, network.classes, network.dtype, end));
  pipeline.apply("unbatch").apply("skip", {{"count", begin}}).batch(batch);
  return assert_ok_value(pipeline.build());
}

/// Gradients of the sum of the losses of rows, as a device alone computes them in f32 of one batch.
class Parts {
 public:
  explicit Parts(const NetworkCase &network) : network_(network) {
    TrainerOptions options;
    options.keep_gradients = true;
    trainer_ = open_trainer(network, 1, kRows, options);
  }
  std::vector<double> gradient(const char *variable, RowRange rows) {
    const auto dataset = rows_between(network_, rows.begin, rows.end, rows.rows());
    assert_ok(trainer_->attach_input(assert_ok_value(dataset->make_iterator({}))));
    assert_ok(trainer_->run(1, nullptr));
    return gradient_of(*trainer_, variable);
  }

 private:
  const NetworkCase network_;
  std::unique_ptr<Trainer> trainer_;
};

/// What each contributor adds up of the batches of a step, in f32 and in their order.
static std::vector<std::vector<float>> sums_of_batches(Parts &parts, const char *variable, int32_t contributors,
                                                       const std::vector<RowRange> &batches) {
  std::vector<std::vector<float>> sums(static_cast<size_t>(contributors));
  for (int32_t c = 0; c < contributors; ++c) {
    std::vector<float> &sum = sums[static_cast<size_t>(c)];
    for (const RowRange &batch : batches) {
      const RowRange share = share_of_rows(batch.rows(), c, contributors);
      const auto part = parts.gradient(variable, {batch.begin + share.begin, batch.begin + share.end});
      sum.resize(part.size());
      for (size_t i = 0; i < part.size(); ++i)
        sum[i] = &batch == &batches.front() ? static_cast<float>(part[i]) : sum[i] + static_cast<float>(part[i]);
    }
  }
  return sums;
}

static float round(float value) { return static_cast<float>(BFloat16(value)); }

/// As for one batch: |error| <= n u sum |g_c|.
static bool is_within_roundings(float got, const std::vector<float> &sums) {
  double sum = 0, size = 0;
  for (const float one : sums) {
    sum += static_cast<double>(one);
    size += std::fabs(static_cast<double>(one));
  }
  return std::fabs(static_cast<double>(got) - sum) <= static_cast<double>(sums.size()) * 0x1p-8 * size + 1e-6;
}

/// Is it the sum of what was rounded once each, added up in some order, in bf16 or in f32? Where a library computes,
/// the program that is compared with may add up in another order than the one that is tested.
static bool is_rounded_sum(float got, const std::vector<float> &sums) {
  if (has_test_backend_libraries()) return is_within_roundings(got, sums);
  std::vector<float> terms;
  for (const float sum : sums)
    terms.push_back(round(sum));
  std::sort(terms.begin(), terms.end());
  do {
    float narrow = terms[0], wide = terms[0];
    for (size_t i = 1; i < terms.size(); ++i) {
      narrow = round(narrow + terms[i]);
      wide += terms[i];
    }
    if (got == narrow || got == round(wide)) return true;
  } while (std::next_permutation(terms.begin(), terms.end()));
  return false;
}

/// The gradients of the last step over these batches.
static void check_step(Parts &parts, Trainer &trainer, int32_t replicas, const std::vector<RowRange> &batches) {
  assert_true(assert_ok_value(trainer.replicas_are_identical()));
  for (const char *variable : {"first/kernel", "first/bias", "second/kernel", "second/bias"}) {
    const auto sums = sums_of_batches(parts, variable, replicas, batches);
    const std::vector<double> got = gradient_of(trainer, variable);
    size_t lost = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      std::vector<float> terms;
      for (const auto &sum : sums)
        terms.push_back(sum[i]);
      const auto gradient = static_cast<float>(got[i]);
      const bool is_alone = replicas == 1 && !has_test_backend_libraries();
      const bool is_right = is_alone ? gradient == terms[0] : is_rounded_sum(gradient, terms);
      if (!is_right) fail_msg("%d replicas, %s[%zu] is %.9g", replicas, variable, i, got[i]);
      lost += round(terms[0]) != terms[0] ? 1 : 0;
    }
    assert_true(lost > 0);  // there is something to round
  }
}

/// Batches are added up in f32 and their sum is rounded once, in whole steps and in those that the end of the input
/// cuts short; one device rounds nothing.
static void test_batches_are_added_up_before_they_are_rounded(void **) {
  NetworkCase network = wide_network();
  network.loss = Loss::sum;
  network.learning_rate = 0;
  Parts parts(network);
  for (const int32_t replicas : {1, 2, 3}) {
    for (const int32_t accumulation : {2, 3}) {
      TrainerOptions options = rounded();
      options.keep_gradients = true;
      options.accumulation = accumulation;
      const auto trainer = open_trainer(network, replicas, kRows, options);
      // A whole step, whose last batch is smaller; one of a single batch; one of all batches but one.
      const std::vector<int64_t> steps[] = {
          accumulation == 2 ? std::vector<int64_t>{7, 5} : std::vector<int64_t>{7, 7, 5},
          {7},
          accumulation == 2 ? std::vector<int64_t>{5} : std::vector<int64_t>{7, 5}};
      for (const std::vector<int64_t> &sizes : steps) {
        std::vector<RowRange> batches;
        int64_t end = 0;
        for (const int64_t size : sizes) {
          batches.push_back({end, end + size});
          end += size;
        }
        const auto rows = rows_between(network, 0, end, 7);
        assert_ok(trainer->attach_input(assert_ok_value(rows->make_iterator({}))));
        assert_int_equal(assert_ok_value(trainer->run(-1, nullptr)).steps, 1);
        check_step(parts, *trainer, replicas, batches);
      }
    }
  }
}

/// No more bytes than with one batch to a step; what the batches add up to lies in memory of its own.
static void test_what_is_accumulated_is_not_sent(void **) {
  const NetworkCase network = wide_network();
  TrainerOptions options = rounded();
  const auto one = open_trainer(network, 2, kRows, options);
  options.accumulation = 3;
  const auto three = open_trainer(network, 2, kRows, options);
  for (const char *dtype : {"bf16", "f32"})
    assert_int_equal(bytes_in(*one, dtype), bytes_in(*three, dtype));
  const auto accumulated = [](const Trainer &trainer) {
    const base::Json description = trainer.describe();
    for (const base::Json &arena : description.find("arenas")->array()) {
      if (arena.find("arena")->string() == "accumulated") return arena.find("bytes")->integer();
    }
    return int64_t{-1};
  };
  assert_int_equal(accumulated(*one), 0);
  assert_true(accumulated(*three) >= (24 * 40 + 40 + 40 * 3 + 3) * 4);
  options.gradient_dtype = DType::f32;
  assert_int_equal(accumulated(*open_trainer(network, 2, kRows, options)), 0);
}

/// Twenty steps in bf16 stay near those in f32, whatever is done with the sums.
static void test_training_stays_near(void **) {
  const Loss losses[] = {Loss::mean, Loss::weighted_mean_with_penalty, Loss::class_means};
  const Optimizer optimizers[] = {Optimizer::sgd, Optimizer::momentum, Optimizer::adam};
  for (const Loss loss : losses) {
    for (const Optimizer optimizer : optimizers) {
      const auto same = std::find(losses, std::end(losses), loss) - losses;
      if (is_test_backend_slow() && optimizers[same] != optimizer) continue;
      NetworkCase network = wide_network();
      network.loss = loss;
      network.optimizer = optimizer;
      network.learning_rate = optimizer == Optimizer::sgd ? 0.1 : 0.01;
      network.batch_norm = optimizer == Optimizer::momentum;
      network.clip = loss == Loss::class_means ? 0.5 : 0;
      RunCase run;
      run.replicas = 3;
      run.rows = 20 * 25;
      run.batch = 25;
      const Model model = assert_ok_value(build_network(network));
      // Where nothing needs the whole batch in the middle of a step, two batches make one.
      run.options.accumulation = network.batch_norm || loss == Loss::class_means ? 1 : 2;
      run.options.lowering = Lowering::replicated;
      const Trained exact = assert_ok_value(train(model, run, network));
      run.options.gradient_dtype = DType::bf16;
      const Trained near = assert_ok_value(train(model, run, network));
      assert_true(near.replicas_identical);
      assert_true(near.variables != exact.variables);
      const double off = relative_difference(near.losses, exact.losses);
      if (!(off < 0.02)) fail_msg("losses are off by %g", off);
    }
  }
}

static void test_half_the_bytes(void **) {
  const NetworkCase network = wide_network();
  TrainerOptions options = rounded();
  const auto half = open_trainer(network, 2, kRows, options);
  options.gradient_dtype = DType::f32;
  const auto whole = open_trainer(network, 2, kRows, options);
  assert_int_equal(bytes_in(*whole, "bf16"), 0);
  const int64_t gradients = (24 * 40 + 40 + 40 * 3 + 3) * 4;
  const int64_t sums = bytes_in(*half, "f32");
  assert_true(bytes_in(*whole, "f32") >= gradients + sums);
  assert_true(bytes_in(*half, "bf16") >= gradients / 2);
  assert_true(bytes_in(*half, "bf16") <= gradients / 2 + 4 * 64);  // each entry begins on a line
  assert_true(sums < 512);
}

static void test_no_effect_where_nothing_is_sent(void **) {
  const NetworkCase network = wide_network();
  const Model model = assert_ok_value(build_network(network));
  RunCase run;
  run.rows = 100;
  run.batch = 25;
  const Trained expected = assert_ok_value(train(model, run, network));
  run.options = rounded();
  assert_true(assert_ok_value(train(model, run, network)).variables == expected.variables);
  // Numbers of other types are sent as they are.
  NetworkCase wide = network;
  wide.dtype = DType::f64;
  const Model doubles = assert_ok_value(build_network(wide));
  run.replicas = 2;
  const Trained rounds = assert_ok_value(train(doubles, run, wide));
  run.options.gradient_dtype = DType::f32;
  assert_true(assert_ok_value(train(doubles, run, wide)).variables == rounds.variables);
  // Weights in shared memory are updated from all gradients where these lie.
  TrainerOptions options = rounded();
  options.lowering = Lowering::automatic;
  const auto trainer = open_trainer(network, 2, kRows, options);
  const bool is_shared = trainer->describe().find("shared_weights")->boolean();
  assert_true((bytes_in(*trainer, "bf16") == 0) == is_shared);
}

static void test_refusals(void **) {
  const Model model = assert_ok_value(build_network(wide_network()));
  const auto open = [&](const TrainerOptions &options) {
    return Trainer::open(model, assert_ok_value(make_test_strategy(2)), options).status();
  };
  for (const Level level : {Level::repeatable, Level::invariant}) {
    TrainerOptions options = rounded();
    options.level = level;
    assert_error_contains(open(options), "gradient_dtype is bf16, which needs determinism fast");
  }
  TrainerOptions options = rounded();
  options.gradient_dtype = DType::f16;
  assert_error_contains(open(options), "gradient_dtype is f16, expected f32 or bf16");
}

// ---- what the emulated library was asked for ----

static bool has_connected_devices() { return std::getenv("TUTTI_EMULATED_GPUS") != nullptr; }

struct Journal {
  int64_t calls = 0, bytes = 0;
};

static Journal read_journal(const std::string &path, const std::string &what) {
  const Result<std::string> text = base::read_file(path);
  std::istringstream lines(text.ok() ? *text : std::string());
  Journal journal;
  std::string name;
  for (int64_t bytes = 0; lines >> name >> bytes;) {
    if (name != what) continue;
    ++journal.calls;
    journal.bytes += bytes;
  }
  return journal;
}

/// What the library sums is what the buckets hold.
static void test_bytes_on_the_wire(void **) {
  if (!has_connected_devices()) test_skip();
  const TemporaryDirectory directory;
  int64_t sent[2] = {};
  for (const bool is_rounded : {false, true}) {
    const std::string path = directory / (is_rounded ? "bf16" : "f32");
    setenv("TUTTI_EMULATED_NCCL_JOURNAL", path.c_str(), 1);
    TrainerOptions options = rounded();
    if (!is_rounded) options.gradient_dtype = DType::f32;
    const auto trainer = open_trainer(wide_network(), 4, 12, options);
    assert_ok(trainer->run(3, nullptr));
    unsetenv("TUTTI_EMULATED_NCCL_JOURNAL");
    sent[is_rounded ? 1 : 0] = read_journal(path, "all_reduce").bytes;
    assert_int_equal(sent[is_rounded ? 1 : 0], 4 * 3 * (bytes_in(*trainer, "bf16") + bytes_in(*trainer, "f32")));
  }
  assert_true(static_cast<double>(sent[1]) < 0.55 * static_cast<double>(sent[0]));
}

static std::string registration_of(Trainer &trainer) { return trainer.describe().find("registration")->string(); }

/// Gradients lie where the devices reach them: windows to the memory of all are made once, and closed before it is
/// freed, else the emulated GPU ends the process.
static void test_windows_are_made_once(void **) {
  if (!has_connected_devices()) test_skip();
  const TemporaryDirectory directory;
  const std::string path = directory / "journal";
  setenv("TUTTI_EMULATED_NCCL_JOURNAL", path.c_str(), 1);
  {
    const auto trainer = open_trainer(wide_network(), 3, 12, {});
    const int64_t registered = trainer->describe().find("registered_bytes")->integer();
    assert_int_equal(registered, 3 * bytes_in(*trainer, "f32"));
    assert_contains(registration_of(*trainer).c_str(), "windows: ");
    assert_ok(trainer->run(3, nullptr));
    const Journal journal = read_journal(path, "window");
    assert_int_equal(journal.calls, 3);
    assert_int_equal(journal.bytes, registered);
    assert_int_equal(read_journal(path, "register").calls, 0);
    assert_int_equal(read_journal(path, "window_end").calls, 0);
  }
  assert_int_equal(read_journal(path, "window_end").calls, 3);
  unsetenv("TUTTI_EMULATED_NCCL_JOURNAL");
}

/// Of groups that were given up nothing is left; the next make their own.
static void test_windows_are_made_anew(void **) {
  if (!has_connected_devices()) test_skip();
  const TemporaryDirectory directory;
  const std::string path = directory / "journal";
  setenv("TUTTI_EMULATED_NCCL_JOURNAL", path.c_str(), 1);
  setenv("TUTTI_EMULATED_NCCL", "error 1 3", 1);
  {
    const auto trainer = open_trainer(wide_network(), 2, 12, {});
    unsetenv("TUTTI_EMULATED_NCCL");
    assert_false(trainer->run(4, nullptr).ok());
    const auto rows = make_rows(kRows, 24, 3, DType::f32, 12);
    assert_ok(trainer->attach_input(assert_ok_value(rows->make_iterator({}))));
    assert_ok(trainer->run(2, nullptr));
    assert_int_equal(read_journal(path, "window").calls, 4);
    assert_contains(registration_of(*trainer).c_str(), "windows: ");
  }
  assert_int_equal(read_journal(path, "window_end").calls, 2);
  unsetenv("TUTTI_EMULATED_NCCL_JOURNAL");
}

/// Where there are no windows, or making them fails, memory is registered; training goes on either way.
static void test_memory_is_registered_without_windows(void **) {
  if (!has_connected_devices()) test_skip();
  const std::pair<const char *, const char *> libraries[] = {
      {"nowindows", "registered, without windows: this NCCL has no windows: they need NCCL 2.27"},
      {"windowless", "registered, without windows: NCCL does not support windows between these GPUs"},
      {"badwindow", "registered, without windows: making windows to memory: NCCL says an emulated error"},
  };
  for (const auto &[fault, text] : libraries) {
    const TemporaryDirectory directory;
    const std::string path = directory / "journal";
    setenv("TUTTI_EMULATED_NCCL_JOURNAL", path.c_str(), 1);
    setenv("TUTTI_EMULATED_NCCL", fault, 1);
    {
      const auto trainer = open_trainer(wide_network(), 3, 12, {});
      unsetenv("TUTTI_EMULATED_NCCL");
      const int64_t registered = trainer->describe().find("registered_bytes")->integer();
      assert_int_equal(registered, 3 * bytes_in(*trainer, "f32"));
      assert_contains(registration_of(*trainer).c_str(), text);
      assert_ok(trainer->run(3, nullptr));
      const Journal journal = read_journal(path, "register");
      assert_int_equal(journal.calls, 3);
      assert_int_equal(journal.bytes, registered);
      assert_int_equal(read_journal(path, "deregister").calls, 0);
    }
    assert_int_equal(read_journal(path, "deregister").calls, 3);
    assert_int_equal(read_journal(path, "register").calls, 3);
    unsetenv("TUTTI_EMULATED_NCCL_JOURNAL");
  }
}

static void test_a_library_that_registers_nothing(void **) {
  if (!has_connected_devices()) test_skip();
  setenv("TUTTI_EMULATED_NCCL", "older", 1);
  const auto trainer = open_trainer(wide_network(), 2, 12, {});
  unsetenv("TUTTI_EMULATED_NCCL");
  assert_string_equal(trainer->describe().find("group")->string().c_str(), "connected devices");
  assert_int_equal(trainer->describe().find("registered_bytes")->integer(), 0);
  assert_contains(registration_of(*trainer).c_str(), "not registered: this NCCL has no windows");
  assert_ok(trainer->run(2, nullptr));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_gradients_are_off_by_what_rounding_loses),
    cmocka_unit_test(test_batches_are_added_up_before_they_are_rounded),
    cmocka_unit_test(test_what_is_accumulated_is_not_sent),
    cmocka_unit_test(test_training_stays_near),
    cmocka_unit_test(test_half_the_bytes),
    cmocka_unit_test(test_no_effect_where_nothing_is_sent),
    cmocka_unit_test(test_refusals),
    cmocka_unit_test(test_bytes_on_the_wire),
    cmocka_unit_test(test_windows_are_made_once),
    cmocka_unit_test(test_windows_are_made_anew),
    cmocka_unit_test(test_memory_is_registered_without_windows),
    cmocka_unit_test(test_a_library_that_registers_nothing),
};
TEST_MAIN(tests)

}  // namespace tutti::testing::gradient_dtype_test
