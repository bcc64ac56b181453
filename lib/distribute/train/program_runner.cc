// SPDX-License-Identifier: Apache-2.0
#include "distribute/train/program_runner.h"

namespace tutti::impl::distribute {

using base::Status;

Status ProgramRunner::accumulate(int32_t m, bool is_last) {
  return run({.finishes = false, .micro_batch = m, .is_last = is_last});
}

Status ProgramRunner::accumulate_all(int32_t micro_batches) {
  Contributor &contributor = contributors_.front();
  for (int32_t m = 0; m < micro_batches; ++m) {
    contributor.current = contributor.accumulate[rank_.programs().accumulate_position(m, micro_batches)];
    TUTTI_TRY(accumulate(m, m + 1 == micro_batches));
  }
  return Status();
}

Status ProgramRunner::run_together() {
  Contributor &contributor = contributors_.front();
  BoundProgram &program = *contributor.current;
  const Contributor::Arguments &with = contributors_.arguments(contributor, 0);
  const backend::RunArguments arguments{with.inputs.data(), with.results.data(), with.scalars.data()};
  TUTTI_TRY(program.program.run(0, arguments, rank_.stream()));
  // If all ranks have come the step happens, on all of them, though the group may have ended since.
  const Status met = clock_.wait_for_group([&] { return rank_.group().barrier("one program of all devices"); });
  const Status taken = program.program.run(1, arguments, rank_.stream());
  return met.ok() || taken.ok() ? taken : met;
}

Status ProgramRunner::finish(int32_t m) { return run({.finishes = true, .micro_batch = m, .is_last = true}); }

Status ProgramRunner::run(const Pass &pass) {
  const std::span<Contributor> parts = contributors_.all();
  if (rank_.programs().parts_alternate) return run_segments(parts, pass);
  // A bucket is complete when the last of them has come to its mark.
  for (size_t p = 0; p < parts.size(); ++p) {
    Pass of_part = pass;
    of_part.is_last = pass.is_last && p + 1 == parts.size();
    TUTTI_TRY(run_segments(parts.subspan(p, 1), of_part));
  }
  return Status();
}

Status ProgramRunner::run_segments(std::span<Contributor> parts, const Pass &pass) {
  const BoundProgram *const first = pass.program_of(parts.front());
  if (first == nullptr) return Status();
  const int32_t segments = first->description().segment_count();
  for (int32_t segment = 0; segment < segments; ++segment) {
    for (Contributor &contributor : parts) {
      BoundProgram *const program = pass.program_of(contributor);
      if (program == nullptr) continue;
      const Contributor::Arguments &with = contributors_.arguments(contributor, pass.micro_batch);
      const backend::RunArguments arguments{pass.finishes ? contributor.finish_inputs.data() : with.inputs.data(),
                                            pass.finishes ? nullptr : with.results.data(), with.scalars.data()};
      TUTTI_TRY(program->program.run(segment, arguments, rank_.stream()));
    }
    if (segment + 1 < segments) TUTTI_TRY(run_external(segment, pass));
  }
  return Status();
}

Status ProgramRunner::run_external(int32_t position, const Pass &pass) {
  const auto external_of = [&](const Contributor &contributor) -> const BoundExternal & {
    return pass.program_of(contributor)->externals[static_cast<size_t>(position)];
  };
  const BoundExternal &external = external_of(contributors_.front());
  if (external.bucket >= 0) return pass.is_last ? buckets_.begin_complete(external.bucket) : Status();
  external_buffers_.clear();
  for (const Contributor &contributor : contributors_.all())
    external_buffers_.push_back(external_of(contributor).pointer);
  collective::Operation operation;
  operation.kind = collective::Kind::all_reduce;
  operation.reduction = external.reduction;
  operation.dtype = external.dtype;
  operation.buffers = external_buffers_.data();
  operation.count = external.elements;
  operation.label = external.label.c_str();
  operation.stream = rank_.device_stream();
  if (operation.stream == nullptr) TUTTI_TRY(rank_.stream().synchronize());
  TUTTI_TRY(recording_.go_on());
  return clock_.wait_for_group([&]() -> Status {
    TUTTI_TRY(rank_.group().run(operation));
    return pass.finishes ? rank_.group().settle() : Status();  // updates come next
  });
}

}  // namespace tutti::impl::distribute
