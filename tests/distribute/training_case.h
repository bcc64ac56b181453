// SPDX-License-Identifier: Apache-2.0
//
// What tests of distribute/ share: small models over a batch of rows, their data, and a run of a trainer.
#ifndef TUTTI_TESTS_DISTRIBUTE_TRAINING_CASE_H_
#define TUTTI_TESTS_DISTRIBUTE_TRAINING_CASE_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "data/dataset/dataset.h"
#include "distribute/train/trainer.h"
#include "graph/builder.h"
#include "graph/model.h"

namespace tutti::testing {

using impl::base::Result;
using impl::base::Status;
using impl::distribute::StrategyRef;
using impl::distribute::Trainer;
using impl::distribute::TrainerOptions;
using impl::graph::GraphBuilder;
using impl::graph::Model;
using impl::graph::ValueId;
using impl::tensor::DType;
using impl::tensor::Tensor;

/// The backend under test ("reference", or what TUTTI_TEST_BACKEND says) with that many logical devices: a name, the
/// absolute path of a plug-in, or one of lazy_backend.h without host memory: "deferred" (everything is late),
/// "separate" (nothing is); or "lowering:" and the path of a plug-in (lowering_backend.h).
Result<impl::backend::BackendRef> open_test_backend(int32_t devices, const impl::backend::HostOptions &host = {});
/// Its products may be a vendor's, who chooses for each shape in what order to add: a plug-in for real GPUs.
bool has_test_backend_libraries();
/// It takes so long for each case that fewer must do: a plug-in. Emulated devices are slow, and on real ones programs
/// are compiled and tried.
bool is_test_backend_slow();
/// Its programs promise no equal bits for other shapes: level invariant is an error.
bool is_invariant_refused();
/// One device for count 1, else mirrored over `count` devices.
Result<StrategyRef> make_test_strategy(int32_t count);

/// x: [rows, features], y: [rows] labels, w: [rows] sample weights, t: [rows] targets; a fixed pseudo-random function.
impl::data::DatasetRef make_rows(int64_t rows, int64_t features, int64_t classes, DType dtype, int64_t batch_size);
/// Those of these numbers, in this order.
impl::data::DatasetRef make_listed_rows(const std::vector<int64_t> &rows, int64_t features, int64_t classes,
                                        DType dtype, int64_t batch_size);
/// One batch of those rows, again and again.
impl::data::DatasetRef make_endless_batch(int64_t rows, int64_t features, int64_t classes, DType dtype);
/// The same numbers for tests that compute by hand.
double row_feature(int64_t row, int64_t feature);
int64_t row_label(int64_t row, int64_t classes);
double row_weight(int64_t row);
double row_target(int64_t row);

enum class Loss { mean, sum, weighted_mean, root_mean, mean_with_penalty, weighted_mean_with_penalty, class_means };
enum class Optimizer { sgd, momentum, adam };

/// A two-layer network with options.
struct NetworkCase {
  DType dtype = DType::f32;
  int64_t features = 5, hidden = 7, classes = 3;
  Loss loss = Loss::mean;
  Optimizer optimizer = Optimizer::sgd;
  std::string entry = {};  ///< "optimizer_lamb", in place of `optimizer`
  impl::graph::Attributes attributes = {};
  double learning_rate = 0.1;
  bool batch_norm = false;
  bool relu = false;            ///< instead of tanh
  bool own_statistics = false;  ///< of each replica, for batch_norm
  bool dropout = false;
  double clip = 0;  ///< of the global norm
  impl::graph::ClipSpec limits = {};
  impl::graph::AverageSpec average = {};
};
Result<Model> build_network(const NetworkCase &network);

/// What a run leaves; averages of variables under "<variable>/average".
struct Trained {
  std::vector<double> losses;
  std::map<std::string, std::vector<double>> variables;
  bool replicas_identical = false;
  int64_t examples = 0;
};

struct RunCase {
  int32_t replicas = 1;
  int64_t rows = 64, batch = 64;
  int64_t steps = -1;  ///< one pass
  int32_t passes = 1;
  TrainerOptions options;
};
Result<Trained> train(const Model &model, const RunCase &run, const NetworkCase &network);
Result<Trained> train(const Model &model, const StrategyRef &strategy, const RunCase &run, const NetworkCase &network);

std::vector<double> to_doubles(const Tensor &tensor);

/// max |a - b| / max(max |b|, tiny) over all variables.
double relative_difference(const Trained &a, const Trained &b);
double relative_difference(const std::vector<double> &a, const std::vector<double> &b);

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_DISTRIBUTE_TRAINING_CASE_H_
