// SPDX-License-Identifier: Apache-2.0
#include "nccl_calls.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "tensor/half.h"

namespace tutti_gpu_emulator {

void give_up(const char *what) {
  std::fprintf(stderr, "emulated NCCL: %s\n", what);
  std::abort();
}

const char *name_of(Kind kind) {
  constexpr const char *kNames[] = {"all_reduce", "reduce", "broadcast", "reduce_scatter", "all_gather"};
  return kNames[static_cast<int>(kind)];
}

size_t bytes_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
      return 4;
    default:
      return 8;
  }
}

size_t to_count(const Meeting &meeting, size_t ranks) {
  const Call &call = meeting.calls.begin()->second;
  return call.kind == Kind::all_gather ? call.count * ranks : call.count;
}

namespace {

/// Each addition is rounded, as the library does it.
struct Bfloat16 {
  tutti::impl::tensor::BFloat16 number;
  friend Bfloat16 operator+(Bfloat16 a, Bfloat16 b) {
    return {tutti::impl::tensor::BFloat16(static_cast<float>(a.number) + static_cast<float>(b.number))};
  }
  friend bool operator>(Bfloat16 a, Bfloat16 b) { return static_cast<float>(a.number) > static_cast<float>(b.number); }
  friend bool operator!=(Bfloat16 a, Bfloat16 b) {
    return static_cast<float>(a.number) != static_cast<float>(b.number);
  }
};

template <typename T>
void reduce(const Meeting &meeting, size_t ranks, size_t total) {
  const Call &first = meeting.calls.begin()->second;
  std::vector<T> result(total);
  for (size_t i = 0; i < total; ++i) {
    const size_t start = i * ranks / total;  // each part of the ring begins somewhere else
    for (size_t step = 0; step < ranks; ++step) {
      const int rank = static_cast<int>((start + 1 + step) % ranks);
      const T value = static_cast<const T *>(meeting.calls.at(rank).from)[i];
      if (step == 0) {
        result[i] = value;
      } else if (first.reduction == ncclSum) {
        result[i] = static_cast<T>(result[i] + value);
      } else if (result[i] != result[i] || (first.reduction == ncclMax ? value > result[i] : result[i] > value)) {
        result[i] = value;  // a NaN is forgotten, as fmax and fmin do
      }
    }
  }
  for (const auto &[rank, call] : meeting.calls) {
    if (call.kind == Kind::reduce && rank != call.root) continue;
    const size_t begin = call.kind == Kind::reduce_scatter ? static_cast<size_t>(rank) * call.count : 0;
    std::memcpy(call.to, result.data() + begin, call.count * sizeof(T));
  }
}

void reduce_any(const Meeting &meeting, size_t ranks) {
  const Call &call = meeting.calls.begin()->second;
  const size_t total = call.kind == Kind::reduce_scatter ? call.count * ranks : call.count;
  switch (call.type) {
    case ncclFloat32:
      return reduce<float>(meeting, ranks, total);
    case ncclBfloat16:
      return reduce<Bfloat16>(meeting, ranks, total);
    case ncclFloat64:
      return reduce<double>(meeting, ranks, total);
    case ncclInt32:
      return reduce<int32_t>(meeting, ranks, total);
    case ncclInt64:
      return reduce<int64_t>(meeting, ranks, total);
    case ncclUint8:
      return reduce<uint8_t>(meeting, ranks, total);
    default:
      give_up("a reduction of a type that is not emulated");
  }
}

void copy(const Meeting &meeting) {
  const size_t bytes = meeting.calls.begin()->second.count * bytes_of(meeting.calls.begin()->second.type);
  std::map<int, std::vector<char>> sent;
  for (const auto &[rank, call] : meeting.calls)
    sent[rank].assign(static_cast<const char *>(call.from), static_cast<const char *>(call.from) + bytes);
  for (const auto &[rank, call] : meeting.calls) {
    if (call.kind == Kind::broadcast) {
      std::memcpy(call.to, sent[call.root].data(), bytes);
      continue;
    }
    for (const auto &[from, data] : sent)
      std::memcpy(static_cast<char *>(call.to) + static_cast<size_t>(from) * bytes, data.data(), bytes);
  }
}

}  // namespace

void carry_out(const Meeting &meeting, size_t ranks) {
  const Kind kind = meeting.calls.begin()->second.kind;
  if (kind == Kind::broadcast || kind == Kind::all_gather) {
    copy(meeting);
  } else {
    reduce_any(meeting, ranks);
  }
}

std::vector<char> header_of(const Call &call) {
  const int64_t words[] = {static_cast<int64_t>(call.kind),
                           static_cast<int64_t>(call.count),
                           call.type,
                           static_cast<int64_t>(call.reduction),
                           call.root,
                           call.captured,
                           call.place};
  std::vector<char> bytes(sizeof words);
  std::memcpy(bytes.data(), words, sizeof words);
  return bytes;
}

bool has_header(const std::vector<char> &brought, const std::vector<char> &header) {
  if (brought.size() < header.size()) return false;
  const auto other = std::mismatch(header.begin(), header.end(), brought.begin()).first;
  if (header.end() - other > 0 && header.end() - other <= static_cast<ptrdiff_t>(sizeof(Call::place)))
    give_up("memory that not all ranks have registered, or at different places there");
  return other == header.end();
}

}  // namespace tutti_gpu_emulator
