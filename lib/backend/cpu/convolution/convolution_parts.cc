// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/convolution/convolution_parts.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "backend/cpu/convolution/convolution_timing.h"
#include "backend/cpu/dnnl/layouts.h"
#include "backend/cpu/simd/simd_reduce.h"
#include "base/text.h"

namespace tutti::impl::backend::cpu {

using base::Result;
using base::Status;

namespace {

using PlanPointer = std::shared_ptr<const ConvolutionPlan>;

/// Work worth handing out: about 8 us.
constexpr int64_t kPartFlops = 1'000'000;
/// Two, so that who is held up leaves one to another.
constexpr int32_t kPartsPerThread = 2;
constexpr auto kFloatBytes = static_cast<int64_t>(sizeof(float));

/// One part: a convolution, and where its arrays begin in those of the whole, in floats.
struct Piece {
  Piece() = default;
  explicit Piece(const ConvolutionShape &shape) : shape(shape) {}

  ConvolutionShape shape;
  int64_t input = 0, kernel = 0, bias = 0, output = 0;
  PlanPointer plan;
};

constexpr int64_t kLine = 64;
int64_t round_up(int64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

int64_t part_flops_of(const ConvolutionShape &s) {
  return 2 * s.rows * s.out_height * s.out_width * s.out_channels * (s.in_channels / s.groups) * s.kernel_height *
         s.kernel_width;
}

// ---- how a convolution is cut --------------------------------------------------------------------------------------

std::vector<Piece> cut_images(const ConvolutionShape &s, const Parts &parts) {
  std::vector<Piece> pieces;
  for (int32_t i = 0; i < parts.count(); ++i) {
    const Range images = parts[i];
    Piece piece(s);
    piece.shape.rows = images.size();
    piece.input = images.begin * s.in_height * s.in_width * s.in_channels;
    piece.output = images.begin * s.out_height * s.out_width * s.out_channels;
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

/// Lines of the result of one image, with the lines of the input that they see; false when they see none.
bool cut_lines(const ConvolutionShape &s, int64_t image, Range lines, Piece &piece) {
  const int64_t reach = (s.kernel_height - 1) * s.dilation[0] + 1;
  const int64_t first = lines.begin * s.stride[0] - s.pad_low[0];
  const int64_t end = (lines.end - 1) * s.stride[0] - s.pad_low[0] + reach;
  const int64_t begin = std::clamp<int64_t>(first, 0, s.in_height);
  piece.shape = s;
  piece.shape.rows = 1;
  piece.shape.out_height = lines.size();
  piece.shape.in_height = std::clamp<int64_t>(end, 0, s.in_height) - begin;
  piece.shape.pad_low[0] = begin - first;
  piece.shape.pad_high[0] = std::max<int64_t>(0, end - s.in_height);
  piece.input = (image * s.in_height + begin) * s.in_width * s.in_channels;
  piece.output = (image * s.out_height + lines.begin) * s.out_width * s.out_channels;
  return piece.shape.in_height > 0;
}

/// Filters that lie together in a kernel's layout, when blocks of filters are its outermost axis; else 0.
int64_t filter_block(std::string_view layout) {
  constexpr std::string_view kPrefix = "conv/A";
  if (!layout.starts_with(kPrefix)) return 0;
  int64_t block = 1, number = 0;
  for (char c : layout.substr(kPrefix.size())) {
    if (c >= '0' && c <= '9') {
      number = number * 10 + (c - '0');
      continue;
    }
    if (c == 'a') block *= number;
    number = 0;
  }
  return block;
}

class Cutter {
 public:
  Cutter(const ConvolutionRequest &request, bool transforms_kernel, const ConvolutionMaker &make_one)
      : make_one_(make_one), request_(request), threads_(request.threads), transforms_kernel_(transforms_kernel) {
    request_.threads = 1;
  }

  /// One piece when the convolution stays whole.
  Result<std::vector<Piece>> run() {
    const ConvolutionShape &s = request_.shape;
    const std::string asked = request_.kernel_layout;
    std::vector<Piece> pieces = cut();
    if (pieces.size() > 1 && make_plans(pieces).ok()) return pieces;
    if (request_.image_parts > 0) return base::unimplemented("the convolution cannot be cut into parts of images");
    request_.kernel_layout = asked;
    pieces.assign(1, Piece(s));
    TUTTI_TRY(make_plans(pieces));
    return pieces;
  }

 private:
  std::vector<Piece> cut() {
    const ConvolutionShape &s = request_.shape;
    if (!can_share_images(s.in_channels, s.out_channels)) return {};
    if (request_.image_parts > 0) return cut_images(s, Parts::exactly(s.rows, request_.image_parts, threads_));
    if (request_.pass == ConvolutionPass::forward && s.rows < threads_) {
      std::vector<Piece> pieces = cut_inside_images();
      if (pieces.size() > 1 && sum_as_the_whole(pieces)) return pieces;
    }
    const int64_t grain = kPartFlops * s.rows / std::max<int64_t>(part_flops_of(s), 1) + 1;
    return cut_images(s, Parts(s.rows, grain, threads_, is_kernel_light() ? kPartsPerThread : 1));
  }

  /// Is what each part does for the kernel, once more than one thread would, little beside the rest? Partial gradients
  /// are added up, Winograd kernels transform their weights in each part.
  bool is_kernel_light() const {
    const ConvolutionShape &s = request_.shape;
    if (request_.pass != ConvolutionPass::kernel_gradient && !transforms_kernel_) return true;
    constexpr int64_t kPositionsPerChannel = 256;
    return s.rows * s.out_height * s.out_width >= kPositionsPerChannel * std::max(s.in_channels, s.out_channels);
  }

  /// Empty when that does not work.
  std::vector<Piece> cut_inside_images() {
    const ConvolutionShape &s = request_.shape;
    const int64_t wanted = Parts(part_flops_of(s), kPartFlops, threads_, 1).count();
    const auto per_image = static_cast<int32_t>((wanted + s.rows - 1) / s.rows);
    if (per_image < 2) return {};
    // Images of one block are row-major as well.
    const bool row_major = (!request_.blocked_input || s.in_channels == kBlockChannels) &&
                           (!request_.blocked_output || s.out_channels == kBlockChannels);
    if (!row_major) return cut_filters(per_image);
    std::vector<Piece> pieces;
    const Parts lines(s.out_height, 1, per_image, 1);
    for (int64_t image = 0; image < s.rows; ++image) {
      for (int32_t i = 0; i < lines.count(); ++i) {
        if (!cut_lines(s, image, lines[i], pieces.emplace_back())) return {};
      }
    }
    return pieces;
  }

  /// Is each element the same sum in a piece? Other implementations may have another order, and products of unfolded
  /// images choose theirs by how large they are.
  bool sum_as_the_whole(const std::vector<Piece> &pieces) const {
    const Result<PlanPointer> whole = make(request_.shape);
    if (!whole.ok() || (*whole)->implementation().find("gemm") != std::string::npos) return false;
    return std::all_of(pieces.begin(), pieces.end(), [&](const Piece &piece) {
      const Result<PlanPointer> plan = make(piece.shape);
      return plan.ok() && (*plan)->implementation() == (*whole)->implementation();
    });
  }

  /// Blocks of output channels of each image.
  std::vector<Piece> cut_filters(int32_t per_image) {
    const ConvolutionShape &s = request_.shape;
    if (!request_.blocked_output || s.groups != 1) return {};
    ConvolutionShape image = s;
    image.rows = 1;
    const Result<PlanPointer> whole = make(image);
    if (!whole.ok()) return {};
    const std::string &layout = (*whole)->kernel_layout();
    const int64_t block = filter_block(layout);
    if (block == 0 || block % kBlockChannels != 0 || s.out_channels % block != 0) return {};
    const Result<int64_t> bytes =
        kernel_storage_bytes(layout, {s.kernel_height, s.kernel_width, s.in_channels, s.out_channels});
    if (!bytes.ok()) return {};
    request_.kernel_layout = layout;
    const int64_t filter = *bytes / kFloatBytes / s.out_channels;
    const Parts blocks(s.out_channels / block, 1, per_image, 1);
    std::vector<Piece> pieces;
    for (int64_t row = 0; row < s.rows; ++row) {
      for (int32_t i = 0; i < blocks.count(); ++i) {
        const int64_t first = blocks[i].begin * block;
        Piece piece(image);
        piece.shape.out_channels = blocks[i].size() * block;
        piece.input = row * s.in_height * s.in_width * s.in_channels;
        piece.kernel = first * filter;
        piece.bias = first;
        piece.output = (row * s.out_channels + first) * s.out_height * s.out_width;
        pieces.push_back(std::move(piece));
      }
    }
    return pieces;
  }

  Result<PlanPointer> make(const ConvolutionShape &shape) const {
    ConvolutionRequest request = request_;
    request.shape = shape;
    return make_one_(request);
  }

  /// Pieces of one shape share a plan; all have the kernel in the layout that the first wants.
  Status make_plans(std::vector<Piece> &pieces) {
    std::map<ConvolutionShape, PlanPointer> known;
    for (Piece &piece : pieces) {
      PlanPointer &plan = known[piece.shape];
      if (plan == nullptr) {
        TUTTI_ASSIGN(plan, make(piece.shape));
        request_.kernel_layout = plan->kernel_layout();
      }
      piece.plan = plan;
    }
    return Status();
  }

  const ConvolutionMaker &make_one_;
  ConvolutionRequest request_;
  int32_t threads_ = 1;
  bool transforms_kernel_ = false;
};

// ---- running it ----------------------------------------------------------------------------------------------------

/// Numbers of the buffers within a part.
constexpr ConvolutionBuffers kPartBuffers = {0, 1, 2, 3, 4};

/// Where the scratch of a thread and the partial gradients lie in the scratch of the whole.
struct ScratchPlan {
  int32_t threads = 1;
  int64_t thread_bytes = 0;                  ///< of a library, and a gradient that is added to that of its group
  int64_t own_at = 0;                        ///< where that gradient lies in them
  int64_t kernel_bytes = 0, bias_bytes = 0;  ///< of one partial gradient; 0 = there are none
  int64_t partials = 0;                      ///< the sums of all groups but the first

  int64_t total() const { return threads * thread_bytes + partials * (kernel_bytes + bias_bytes); }
  /// Of group i = 1, 2, ...
  int64_t kernel_at(int64_t i) const { return threads * thread_bytes + (i - 1) * (kernel_bytes + bias_bytes); }
  int64_t bias_at(int64_t i) const { return kernel_at(i) + kernel_bytes; }
};

class PartsState final : public KernelState {
 public:
  std::vector<std::unique_ptr<KernelState>> pieces;
  std::vector<int32_t> codes;
};

class PartsKernel final : public ImageStage {
 public:
  PartsKernel(const Parts &parts, const Parts &groups, const std::vector<Piece> &pieces, const ScratchPlan &scratch,
              const ConvolutionBuffers &buffers, int64_t kernel_floats, int32_t threads)
      : ImageStage(parts, groups), pieces_(pieces), scratch_(scratch), buffers_(buffers) {
    ConvolutionBuffers own = kPartBuffers;
    if (buffers.bias < 0) own.bias = -1;
    for (const Piece &piece : pieces)
      kernels_.push_back(piece.plan->kernel(own));
    kernel_sums_ = Parts(kernel_floats, grain_of(2 * scratch.partials), threads);
  }

  Result<std::unique_ptr<KernelState>> make_state() const override {
    auto state = std::make_unique<PartsState>();
    for (const auto &kernel : kernels_) {
      TUTTI_ASSIGN(state->pieces.emplace_back(), kernel->make_state());
    }
    state->codes.resize(kernels_.size());
    return std::unique_ptr<KernelState>(std::move(state));
  }

  void run_part(const RunContext &context, KernelState *state, const ImagePart &part) const override {
    run_piece(context, static_cast<PartsState &>(*state), part);
    if (scratch_.own_at > 0 && !part.first) add_to_group(context, part);
  }
  int32_t end(const RunContext &context, KernelState *state) const override {
    for (int32_t code : static_cast<const PartsState &>(*state).codes) {
      if (code != 0) return context.fail(base::internal_error("a part of a convolution failed with code ", code));
    }
    if (scratch_.partials > 0) add_partials(context);
    return 0;
  }

 private:
  char *scratch(const RunContext &context) const {
    return buffers_.scratch < 0 ? nullptr : static_cast<char *>(context.buffers[buffers_.scratch]);
  }

  char *thread_scratch(const RunContext &context, int32_t thread) const {
    return buffers_.scratch < 0 ? nullptr : scratch(context) + thread * scratch_.thread_bytes;
  }
  /// Where the gradient of a group is summed up.
  float *group_kernel(const RunContext &context, int32_t group) const {
    if (group == 0 || scratch_.kernel_bytes == 0) return context.out(buffers_.kernel);
    return reinterpret_cast<float *>(scratch(context) + scratch_.kernel_at(group));
  }
  void add_to_group(const RunContext &context, const ImagePart &part) const {
    add_to(reinterpret_cast<const float *>(thread_scratch(context, part.thread) + scratch_.own_at),
           group_kernel(context, part.group), kernel_sums_.items());
  }

  void run_piece(const RunContext &context, PartsState &state, const ImagePart &part) const {
    const auto at = static_cast<size_t>(part.part);
    const Piece &piece = pieces_[at];
    const bool partial = scratch_.kernel_bytes > 0 && part.group > 0;
    const auto pointer = [&](BufferId id, int64_t floats) -> void * {
      return id < 0 ? nullptr : context.out(id) + floats;
    };
    void *kernel = group_kernel(context, part.group) + piece.kernel;
    if (scratch_.own_at > 0 && !part.first) kernel = thread_scratch(context, part.thread) + scratch_.own_at;
    void *buffers[] = {pointer(buffers_.input, piece.input), kernel,
                       partial ? scratch(context) + scratch_.bias_at(part.group) : pointer(buffers_.bias, piece.bias),
                       pointer(buffers_.output, piece.output), thread_scratch(context, part.thread)};
    RunContext own = context;
    own.buffers = buffers;
    own.host = &quiet_host();  // parts fail on several threads: the caller reports it once
    own.team = nullptr;
    own.threads = 1;
    state.codes[at] = kernels_[at]->run(own, state.pieces[at].get());
  }

  void add_partials(const RunContext &context) const {
    const char *from = scratch(context);
    context.for_parts(kernel_sums_, [&](Range range) {
      for (int64_t i = 1; i <= scratch_.partials; ++i) {
        add_to(reinterpret_cast<const float *>(from + scratch_.kernel_at(i)) + range.begin,
               context.out(buffers_.kernel) + range.begin, range.size());
      }
    });
    if (buffers_.bias < 0) return;
    for (int64_t i = 1; i <= scratch_.partials; ++i) {
      add_to(reinterpret_cast<const float *>(from + scratch_.bias_at(i)), context.out(buffers_.bias),
             pieces_[0].shape.out_channels);
    }
  }

  std::vector<Piece> pieces_;
  ScratchPlan scratch_;
  ConvolutionBuffers buffers_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
  Parts kernel_sums_;
};

class PartsPlan final : public ConvolutionPlan {
 public:
  static Result<PlanPointer> make(const ConvolutionRequest &request, std::vector<Piece> pieces) {
    auto plan = std::make_shared<PartsPlan>();
    plan->threads_ = request.threads;
    // Stages know their parts by images, others by number.
    const auto count = static_cast<int32_t>(pieces.size());
    plan->parts_ = Parts::exactly(request.image_parts > 0 ? request.shape.rows : count, count, request.threads);
    plan->is_stage_ = request.image_parts > 0;
    plan->groups_ = plan->is_stage_ ? groups_of(plan->parts_) : Parts::exactly(count, count, request.threads);
    plan->implementation_ = pieces[0].plan->implementation();
    if (!plan->is_stage_) plan->implementation_ += base::concat(":parts=", pieces.size());
    ScratchPlan &scratch = plan->scratch_;
    scratch.threads = std::min(request.threads, static_cast<int32_t>(pieces.size()));
    for (const Piece &piece : pieces)
      scratch.thread_bytes = std::max(scratch.thread_bytes, round_up(piece.plan->scratch_bytes()));
    if (request.pass == ConvolutionPass::kernel_gradient) {
      const ConvolutionShape &s = request.shape;
      TUTTI_ASSIGN(const int64_t bytes,
                   kernel_storage_bytes(pieces[0].plan->kernel_layout(),
                                        {s.kernel_height, s.kernel_width, s.in_channels / s.groups, s.out_channels}));
      scratch.partials = plan->groups_.count() - 1;
      scratch.kernel_bytes = round_up(bytes);
      if (plan->groups_.count() < count) {
        scratch.own_at = std::max<int64_t>(scratch.thread_bytes, kLine);
        scratch.thread_bytes = scratch.own_at + scratch.kernel_bytes;
      }
      scratch.bias_bytes = request.epilogue.bias ? round_up(s.out_channels * kFloatBytes) : 0;
      plan->kernel_floats_ = bytes / kFloatBytes;
    }
    plan->pieces_ = std::move(pieces);
    return PlanPointer(std::move(plan));
  }

  const std::string &implementation() const override { return implementation_; }
  const std::string &kernel_layout() const override { return pieces_[0].plan->kernel_layout(); }
  int64_t scratch_bytes() const override { return scratch_.total(); }
  std::unique_ptr<Kernel> kernel(const ConvolutionBuffers &buffers) const override { return make_kernel(buffers); }
  bool is_stage() const override { return is_stage_; }
  std::unique_ptr<ImageStage> stage(const ConvolutionBuffers &buffers) const override {
    return is_stage_ ? make_kernel(buffers) : nullptr;
  }

 private:
  std::unique_ptr<PartsKernel> make_kernel(const ConvolutionBuffers &buffers) const {
    return std::make_unique<PartsKernel>(parts_, groups_, pieces_, scratch_, buffers, kernel_floats_, threads_);
  }

  std::string implementation_;
  Parts parts_, groups_;
  bool is_stage_ = false;
  std::vector<Piece> pieces_;
  ScratchPlan scratch_;
  int64_t kernel_floats_ = 0;
  int32_t threads_ = 1;
};

}  // namespace

Result<std::shared_ptr<const ConvolutionPlan>> make_convolution_parts(const ConvolutionRequest &request,
                                                                      bool transforms_kernel,
                                                                      const ConvolutionMaker &make_one) {
  if (request.threads <= 1 && request.image_parts == 0) return make_one(request);
  TUTTI_ASSIGN(std::vector<Piece> pieces, Cutter(request, transforms_kernel, make_one).run());
  if (pieces.size() == 1) return pieces[0].plan;
  return PartsPlan::make(request, std::move(pieces));
}

}  // namespace tutti::impl::backend::cpu
