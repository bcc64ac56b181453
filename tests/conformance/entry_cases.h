// SPDX-License-Identifier: Apache-2.0
//
// What the suites of entries of nn.yaml share: golden cases of entries by name, on the backend under test, in each
// instruction set; and that no entry and no attribute is without a case.
//
//   EntryCases entries;                                         // of the program
//   return run_entry_tests(argc, argv, "loss_entries.json", entries, "losses", tests);
#ifndef TUTTI_TESTS_CONFORMANCE_ENTRY_CASES_H_
#define TUTTI_TESTS_CONFORMANCE_ENTRY_CASES_H_

#include <cstddef>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "backend/executable.h"
#include "backend_under_test.h"
#include "golden_case.h"
#include "nn/registry.h"
#include "testing.h"

namespace tutti::impl::conformance {

struct EntryCases {
  BackendUnderTest *tested = nullptr;
  std::vector<GoldenCase> cases;
};

/// usage: PROGRAM BACKEND DIRECTORY. Opens the backend, reads DIRECTORY/file and runs the tests; what main() returns.
int run_entry_tests(int argc, char **argv, std::string_view file, EntryCases &entries, const char *name,
                    std::span<const CMUnitTest> tests);

/// One graph of several cases, since a compiler takes its time for each: what `build` makes of each case and its
/// inputs, one case after the other.
using BuildCase = std::function<graph::GraphBuilder::Values(graph::GraphBuilder &builder, const GoldenCase &golden,
                                                            const graph::GraphBuilder::Values &inputs)>;
base::Result<std::vector<tensor::Tensor>> run_together(const EntryCases &entries, std::span<const GoldenCase> some,
                                                       backend::Level level, const BuildCase &build);

/// The results and, behind them, the gradients for the inputs that the case differentiates.
graph::GraphBuilder::Values with_gradients(graph::GraphBuilder &builder, const GoldenCase &golden,
                                           const graph::GraphBuilder::Values &inputs,
                                           graph::GraphBuilder::Values results);

/// How many of some cases of `file`, the first of which is in line `line`, are wrong; says which. What `build` makes
/// are results and gradients as of with_gradients().
int count_wrong_results(const EntryCases &entries, const char *file, std::span<const GoldenCase> some, size_t line,
                        backend::Level level, const char *instructions, const BuildCase &build);

/// So many cases at a time, by turns at level fast and repeatable, in each instruction set. `count_wrong` is given
/// them, the line of the first in the file, the level and the instruction set; gives the sum of its results.
using CountWrong =
    std::function<int(std::span<const GoldenCase> some, size_t line, backend::Level level, const char *instructions)>;
int count_wrong_cases(const EntryCases &entries, size_t together, const CountWrong &count_wrong);

/// Fails where an entry of the registry that `belongs` has no case, or none with one of its attributes; but for the
/// attribute `name`, which is that of the result.
void assert_every_entry_has_cases(const EntryCases &entries,
                                  const std::function<bool(const nn::Definition &)> &belongs);

}  // namespace tutti::impl::conformance

#endif  // TUTTI_TESTS_CONFORMANCE_ENTRY_CASES_H_
