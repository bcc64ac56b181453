// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/cudnn_attention.h"

#include <limits>
#include <span>
#include <utility>

#include "backend/cuda/cudnn_operations.h"
#include "base/memory.h"

namespace tutti::impl::backend::cuda {

using base::Result;
using base::Status;
using tensor::DType;

namespace {

/// Names of tensors in memory, then of numbers.
enum Uid : int64_t {
  kQ = 1,
  kK,
  kV,
  kY,
  kStatistics,
  kDy,
  kDq,
  kDk,
  kDv,
  kSums,
  kAccumulator,
  kScale,
  kMasked,
  kOne,
  kKeyLength,
  kLength,
  kFirstFree
};

using Four = std::array<int64_t, 4>;

constexpr int64_t kScratchAlignment = 256;

int64_t padded(int64_t bytes) {
  return static_cast<int64_t>(base::round_up(static_cast<size_t>(bytes), size_t{kScratchAlignment}));
}

/// What no key is seen for: minus infinity, and for versions that make NaNs of that the least number.
float masked_score(const Cudnn &cudnn) {
  return cudnn.cudnnGetVersion() < 91000 ? std::numeric_limits<float>::lowest()
                                         : -std::numeric_limits<float>::infinity();
}

/// Can this version be trusted with it? Some take these graphs and compute them wrongly: those that NVIDIA's frontend
/// keeps from them (cudnn_frontend/node/sdpa_support_surface.h, scaled_dot_product_flash_attention.h).
bool is_trusted(size_t version, const AttentionShape &shape, AttentionPass pass) {
  if (version == 91000 || version == 91001) return false;
  const bool has_whole_tiles = shape.length % 64 == 0 && shape.key_length % 64 == 0;
  if (version < 90600 && shape.is_causal && shape.length != shape.key_length && !has_whole_tiles) return false;
  if (pass == AttentionPass::forward) return version > 90900 || !shape.is_causal || shape.length > 1;
  // Before 9.6 dq is added to what lies in the accumulator; up to 9.15 keys behind the last whole tile are not masked.
  if (version < 90600 || (shape.length == 1 && shape.key_length == 1)) return false;
  return version > 91500 || shape.key_length % 128 == 0;
}

/// The operations of both passes. cuDNN's dims are rows, heads, length, channels.
class AttentionGraphMaker {
 public:
  AttentionGraphMaker(const Cudnn &cudnn, const AttentionShape &shape)
      : shape_(shape), type_(cudnn_type(shape.dtype)), graph_(cudnn, kFirstFree) {}

  void add_forward() {
    const CudnnValue q = graph_.tensor(this->q(), kQ), keys = graph_.tensor(turned(k()), kK);
    const CudnnValue v = graph_.tensor(this->v(), kV);
    CudnnValue scores = scaled(product_of_scores(q, keys));
    if (shape_.is_causal) scores = masked(scores);
    const CudnnValue most = graph_.between(row_numbers());
    graph_.reduce(CUDNN_REDUCE_TENSOR_MAX, scores, most);
    const CudnnValue powers = exponential(pointwise(CUDNN_POINTWISE_SUB, scores, most));
    const CudnnValue sums = graph_.between(row_numbers());
    graph_.reduce(CUDNN_REDUCE_TENSOR_ADD, powers, sums);
    const CudnnValue logarithms = graph_.between(row_numbers());
    graph_.pointwise({CUDNN_POINTWISE_LOG, sums}, logarithms);
    graph_.pointwise({CUDNN_POINTWISE_ADD, most, logarithms}, graph_.tensor(row_numbers(), kStatistics));
    const CudnnValue shares = graph_.between(scores_of(type_));
    graph_.pointwise({CUDNN_POINTWISE_DIV, powers, sums}, shares);
    graph_.product(shares, v, graph_.tensor(queries(), kY));
  }

  /// With an accumulator of dq in memory where work on it need not be in order.
  void add_gradient(bool is_repeatable) {
    const CudnnValue q = graph_.tensor(this->q(), kQ), keys = graph_.tensor(turned(k()), kK);
    const CudnnValue values = graph_.tensor(turned(v()), kV), dy = graph_.tensor(queries(), kDy);
    const CudnnValue sums = add_sums(dy);
    // The shares again, of the statistics.
    CudnnValue scores = scaled(product_of_scores(q, keys));
    scores = pointwise(CUDNN_POINTWISE_SUB, scores, graph_.tensor(row_numbers(), kStatistics));
    if (shape_.is_causal) scores = masked(scores);
    const CudnnValue shares = exponential(scores);
    add_gradient_of_keys(shares, dy, kDv);
    const CudnnValue of_shares = graph_.between(scores_of(CUDNN_DATA_FLOAT));
    graph_.product(dy, values, of_shares);
    const CudnnValue less_sums = pointwise(CUDNN_POINTWISE_SUB, of_shares, sums);
    const CudnnValue of_scores = scaled(pointwise(CUDNN_POINTWISE_MUL, less_sums, shares));
    add_gradient_of_keys(of_scores, q, kDk);
    const CudnnValue rows_of_keys = graph_.between(k());
    graph_.reshape(keys, rows_of_keys);
    const CudnnValue dq = graph_.tensor(queries(), kDq);
    if (is_repeatable) {
      graph_.product(of_scores, rows_of_keys, dq);
      return;
    }
    const CudnnValue accumulator = graph_.tensor(dense_queries(CUDNN_DATA_FLOAT), kAccumulator);
    graph_.product(of_scores, rows_of_keys, accumulator);
    graph_.pointwise({CUDNN_POINTWISE_IDENTITY, accumulator}, dq);
  }

  CudnnGraphWriter &graph() { return graph_; }

 private:
  // ---- tensors ----

  /// `pitch` 0: dense.
  CudnnTensor lying(int64_t length, int64_t heads, int64_t pitch) const {
    const int64_t channels = shape_.channels;
    if (pitch == 0) pitch = heads * channels;
    return {type_, {shape_.rows, heads, length, channels}, {length * pitch, channels, pitch, 1}};
  }
  CudnnTensor queries() const { return lying(shape_.length, shape_.heads, 0); }
  CudnnTensor keys() const { return lying(shape_.key_length, shape_.key_heads, 0); }
  CudnnTensor q() const { return lying(shape_.length, shape_.heads, shape_.q_pitch); }
  CudnnTensor k() const { return lying(shape_.key_length, shape_.key_heads, shape_.k_pitch); }
  CudnnTensor v() const { return lying(shape_.key_length, shape_.key_heads, shape_.v_pitch); }
  static CudnnTensor turned(CudnnTensor tensor) {
    std::swap(tensor.dims[2], tensor.dims[3]);
    std::swap(tensor.strides[2], tensor.strides[3]);
    return tensor;
  }
  static CudnnTensor dense(cudnnDataType_t type, const Four &dims) {
    return {type, dims, {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1}};
  }
  CudnnTensor dense_queries(cudnnDataType_t type) const {
    return dense(type, {shape_.rows, shape_.heads, shape_.length, shape_.channels});
  }
  CudnnTensor scores_of(cudnnDataType_t type) const {
    return dense(type, {shape_.rows, shape_.heads, shape_.length, shape_.key_length});
  }
  /// A number for each row of scores.
  CudnnTensor row_numbers() const { return dense(CUDNN_DATA_FLOAT, {shape_.rows, shape_.heads, shape_.length, 1}); }

  // ---- operations ----

  CudnnValue pointwise(cudnnPointwiseMode_t mode, CudnnValue x, CudnnValue b) {
    const CudnnValue y = graph_.between(scores_of(CUDNN_DATA_FLOAT));
    graph_.pointwise({mode, x, b}, y);
    return y;
  }
  CudnnValue exponential(CudnnValue x) { return pointwise(CUDNN_POINTWISE_EXP, x, nullptr); }

  CudnnValue product_of_scores(CudnnValue q, CudnnValue keys) {
    const CudnnValue scores = graph_.between(scores_of(CUDNN_DATA_FLOAT));
    graph_.product(q, keys, scores);
    return scores;
  }

  CudnnValue scaled(CudnnValue scores) {
    if (scale_ == nullptr) scale_ = graph_.number(CUDNN_DATA_FLOAT, kScale);
    return pointwise(CUDNN_POINTWISE_MUL, scores, scale_);
  }

  /// Minus infinity for keys behind those that a query may see: the last query sees all.
  CudnnValue masked(CudnnValue scores) {
    CudnnValue row = places(scores, 2);
    if (shape_.length != shape_.key_length) {
      row = moved(row, CUDNN_POINTWISE_ADD, kKeyLength);
      row = moved(row, CUDNN_POINTWISE_SUB, kLength);
    }
    const CudnnValue column = places(scores, 3), is_seen = graph_.between(scores_of(CUDNN_DATA_BOOLEAN));
    graph_.pointwise({CUDNN_POINTWISE_CMP_GE, row, column, nullptr, CUDNN_DATA_BOOLEAN}, is_seen);
    const CudnnValue y = graph_.between(scores_of(CUDNN_DATA_FLOAT));
    graph_.pointwise({CUDNN_POINTWISE_BINARY_SELECT, scores, graph_.number(CUDNN_DATA_FLOAT, kMasked), is_seen}, y);
    return y;
  }
  CudnnValue places(CudnnValue scores, int64_t axis) {
    const CudnnValue y = graph_.between(scores_of(CUDNN_DATA_INT32));
    graph_.pointwise({CUDNN_POINTWISE_GEN_INDEX, scores, nullptr, nullptr, CUDNN_DATA_FLOAT, axis}, y);
    return y;
  }
  CudnnValue moved(CudnnValue places, cudnnPointwiseMode_t mode, int64_t uid) {
    const CudnnValue y = graph_.between(scores_of(CUDNN_DATA_INT32));
    graph_.pointwise({mode, places, graph_.number(CUDNN_DATA_INT32, uid), nullptr, CUDNN_DATA_INT32}, y);
    return y;
  }

  /// What is subtracted from the gradients of a row's shares: the sum of dy y. In memory, as the kernel needs it.
  CudnnValue add_sums(CudnnValue dy) {
    const CudnnValue products = graph_.between(queries_of(CUDNN_DATA_FLOAT));
    graph_.pointwise({CUDNN_POINTWISE_MUL, dy, graph_.tensor(queries(), kY)}, products);
    const CudnnValue added = graph_.between(row_numbers());
    graph_.reduce(CUDNN_REDUCE_TENSOR_ADD, products, added);
    const CudnnValue sums = graph_.tensor(row_numbers(), kSums);
    graph_.pointwise({CUDNN_POINTWISE_MUL, added, graph_.number(CUDNN_DATA_FLOAT, kOne)}, sums);
    return sums;
  }
  CudnnTensor queries_of(cudnnDataType_t type) const {
    CudnnTensor tensor = queries();
    tensor.type = type;
    return tensor;
  }

  /// dk or dv: the scores' rows, turned, by what the queries give; heads that share keys are added.
  void add_gradient_of_keys(CudnnValue scores, CudnnValue of_queries, int64_t uid) {
    const CudnnValue columns = graph_.between(turned(scores_of(type_)));
    graph_.reshape(scores, columns);
    const CudnnValue result = graph_.tensor(keys(), uid);
    if (shape_.heads == shape_.key_heads) {
      graph_.product(columns, of_queries, result);
      return;
    }
    const CudnnValue by_head =
        graph_.between(dense(type_, {shape_.rows, shape_.heads, shape_.key_length, shape_.channels}));
    graph_.product(columns, of_queries, by_head);
    graph_.reduce(CUDNN_REDUCE_TENSOR_ADD, by_head, result);
  }

  const AttentionShape &shape_;
  const cudnnDataType_t type_;
  CudnnGraphWriter graph_;
  CudnnValue scale_ = nullptr;
};

}  // namespace

Result<std::vector<CudnnAttention>> CudnnAttention::find(const Cudnn &cudnn, const CudnnDevice &device,
                                                         const AttentionShape &shape, AttentionPass pass,
                                                         const CudnnLimits &limits, const CudnnWish &wish) {
  std::vector<CudnnAttention> found;
  if (!is_trusted(cudnn.cudnnGetVersion(), shape, pass)) return found;
  AttentionGraphMaker maker(cudnn, shape);
  if (pass == AttentionPass::forward)
    maker.add_forward();
  else
    maker.add_gradient(limits.must_repeat);
  TUTTI_ASSIGN(const bool is_taken, maker.graph().finish());
  if (!is_taken) return found;
  TUTTI_ASSIGN(std::vector<CudnnPlan> plans,
               CudnnPlan::find(cudnn, device, maker.graph().take(), limits,
                               {wish.most, wish.name, false, describe(shape, pass, limits)}));
  for (CudnnPlan &plan : plans)
    found.push_back(CudnnAttention(shape, pass, limits.must_repeat, masked_score(cudnn), std::move(plan)));
  return found;
}

int64_t CudnnAttention::sums_bytes() const {
  return pass_ == AttentionPass::gradient ? padded(shape_.score_rows() * 4) : 0;
}

int64_t CudnnAttention::accumulator_bytes() const {
  return pass_ == AttentionPass::gradient && !is_repeatable_ ? padded(shape_.score_rows() * shape_.channels * 4) : 0;
}

int64_t CudnnAttention::scratch_bytes() const { return sums_bytes() + accumulator_bytes() + plan_.scratch_bytes(); }

Status CudnnAttention::execute(cudnnHandle_t handle, const AttentionTensors &tensors, void *scratch) const {
  char *const sums = static_cast<char *>(scratch);
  char *const accumulator = sums + sums_bytes();
  float scale = shape_.scale, one = 1, masked = masked_;
  auto length = static_cast<int32_t>(shape_.length), key_length = static_cast<int32_t>(shape_.key_length);
  std::vector<int64_t> uids;
  std::vector<void *> pointers;
  const auto add = [&](int64_t uid, const void *pointer) {
    uids.push_back(uid);
    pointers.push_back(const_cast<void *>(pointer));
  };
  add(kQ, tensors.q);
  add(kK, tensors.k);
  add(kV, tensors.v);
  add(kY, tensors.y);
  add(kStatistics, tensors.statistics);
  add(kScale, &scale);
  if (shape_.is_causal) {
    add(kMasked, &masked);
    if (shape_.length != shape_.key_length) {
      add(kKeyLength, &key_length);
      add(kLength, &length);
    }
  }
  if (pass_ == AttentionPass::gradient) {
    add(kDy, tensors.dy);
    add(kDq, tensors.dq);
    add(kDk, tensors.dk);
    add(kDv, tensors.dv);
    add(kSums, sums);
    add(kOne, &one);
    if (!is_repeatable_) add(kAccumulator, accumulator);
  }
  return plan_.execute(handle, uids, pointers, accumulator + accumulator_bytes());
}

std::string describe(const AttentionShape &shape, AttentionPass pass, const CudnnLimits &limits) {
  const bool is_dense = shape.q_pitch + shape.k_pitch + shape.v_pitch == 0;
  const std::string pitches =
      is_dense ? std::string() : base::concat(" pitches ", shape.q_pitch, "+", shape.k_pitch, "+", shape.v_pitch);
  return base::concat(pass == AttentionPass::forward ? "attention " : "attention gradient ", name(shape.dtype), " ",
                      shape.rows, "x", shape.length, "x", shape.heads, "x", shape.channels, " of ", shape.key_length,
                      "x", shape.key_heads, pitches, shape.is_causal ? " causal" : "", " within ", limits.most_scratch,
                      limits.must_repeat ? " repeatable" : "");
}

}  // namespace tutti::impl::backend::cuda
