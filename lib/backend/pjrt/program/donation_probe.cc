// SPDX-License-Identifier: Apache-2.0
#include "backend/pjrt/program/donation_probe.h"

#include <array>
#include <cmath>
#include <vector>

#include "backend/pjrt/emit/program_text.h"

namespace tutti::impl::backend::pjrt {

using base::Result;
using tensor::DType;

namespace {

constexpr int64_t kRows = 64, kInputs = 784, kOutputs = 512;
constexpr int kSteps = 3;

/// y = x · w, then w + 1 in the place of w.
std::string probe_module() {
  ProgramText text(true);  // the least exact products, which take the most short cuts
  const Value w = text.argument(DType::f32, {kInputs, kOutputs});
  const Value x = text.argument(DType::f32, {kRows, kInputs});
  text.donate(0, 0);
  const Value y = text.product(x, w, {{}, {}, {1}, {0}});
  return text.finish(std::vector{text.add(w, 1), y});
}

}  // namespace

Result<bool> donation_works(const ClientRef &client, size_t device) {
  if (client->only_compiles()) return true;
  TUTTI_ASSIGN(const auto program, client->compile(probe_module(), std::span(&device, 1)));
  const std::vector<float> first(static_cast<size_t>(kInputs * kOutputs), 1),
      rows(static_cast<size_t>(kRows * kInputs), 1);
  TUTTI_ASSIGN(DeviceArray w, client->upload(device, DType::f32, std::array{kInputs, kOutputs}, first.data()));
  TUTTI_ASSIGN(const DeviceArray x, client->upload(device, DType::f32, std::array{kRows, kInputs}, rows.data()));
  std::vector<float> y(static_cast<size_t>(kRows * kOutputs));
  for (int step = 0; step < kSteps; ++step) {
    DeviceRun run{{w.get(), x.get()}, {nullptr, nullptr}, {}};
    TUTTI_TRY(program->execute(run));
    w = DeviceArray(client, run.results[0]);
    const DeviceArray product(client, run.results[1]);
    TUTTI_TRY(run.done.wait());
    TUTTI_ASSIGN(Completion copied,
                 client->download(product, 2, y.data(), static_cast<int64_t>(y.size() * sizeof(float))));
    TUTTI_TRY(copied.wait());
    const auto expected = static_cast<float>(kInputs * (step + 1));
    for (const float value : y) {
      if (!(std::abs(value - expected) <= 0.01f * expected)) return false;
    }
  }
  return true;
}

}  // namespace tutti::impl::backend::pjrt
