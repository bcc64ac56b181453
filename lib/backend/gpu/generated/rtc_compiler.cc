// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/generated/rtc_compiler.h"

#include <utility>

#include "backend/gpu/generated/generated_headers.h"
#include "backend/gpu/generated/rtc.h"

namespace tutti::impl::backend::gpu {

using base::Result;
using base::Status;

namespace {

/// A program of the library while it lives.
class Program {
 public:
  Program(const Rtc &rtc, const std::string &text) : rtc_(rtc) {
    std::vector<const char *> names, texts;
    for (const GeneratedHeader &header : generated_headers()) {
      names.push_back(header.name);
      texts.push_back(header.text);
    }
    result_ = rtc_.create_program(&program_, text.c_str(), "generated.cu", static_cast<int>(names.size()), texts.data(),
                                  names.data());
  }
  ~Program() {
    if (program_ != nullptr) (void)rtc_.destroy_program(&program_);
  }
  Program(const Program &) = delete;
  Program &operator=(const Program &) = delete;

  Status compile(const std::vector<std::string> &options) {
    TUTTI_TRY(status_of(rtc_, result_, "reading a text"));
    std::vector<const char *> words;
    for (const std::string &option : options)
      words.push_back(option.c_str());
    result_ = rtc_.compile_program(program_, static_cast<int>(words.size()), words.data());
    const Status status = status_of(rtc_, result_, "compiling kernels");
    return status.ok() ? Status() : status.wrap(log());
  }

  /// Errors and warnings; empty: there are none.
  std::string log() const {
    size_t bytes = 0;
    if (rtc_.get_program_log_size(program_, &bytes) != rtcSuccess || bytes <= 1) return "";
    std::string text(bytes, '\0');
    if (rtc_.get_program_log(program_, text.data()) != rtcSuccess) return "";
    text.resize(bytes - 1);
    return text;
  }

  Result<std::string> image() const {
    size_t bytes = 0;
    TUTTI_TRY(status_of(rtc_, rtc_.get_code_size(program_, &bytes), "asking for machine code"));
    std::string image(bytes, '\0');
    TUTTI_TRY(status_of(rtc_, rtc_.get_code(program_, image.data()), "asking for machine code"));
    return image;
  }

 private:
  const Rtc &rtc_;
  rtcProgram program_ = nullptr;
  rtcResult result_;
};

class RtcCompiler final : public RunTimeCompiler {
 public:
  RtcCompiler(const Rtc &rtc, RtcTarget target, std::string signature)
      : rtc_(rtc), target_(std::move(target)), signature_(std::move(signature)) {}

  std::string signature() const override { return signature_; }

  Result<std::string> compile(const std::string &text) const override {
    Program program(rtc_, text);
    TUTTI_TRY(program.compile(target_.options));
    if (target_.is_strict && !program.log().empty())
      return base::failed_precondition(TUTTI_RTC_NAME " warns: ", program.log());
    return program.image();
  }

  Result<std::vector<std::shared_ptr<const GeneratedKernel>>> load(const std::string &image,
                                                                   std::span<const std::string> names) const override {
    return platform::load_kernels(image, names);
  }

 private:
  const Rtc &rtc_;
  const RtcTarget target_;
  const std::string signature_;
};

}  // namespace

Result<std::shared_ptr<const RunTimeCompiler>> make_rtc_compiler(const Rtc &rtc, RtcTarget target) {
  int major = 0, minor = 0;
  TUTTI_TRY(status_of(rtc, rtc.version(&major, &minor), "asking for the version"));
  std::string signature = base::concat(TUTTI_RTC_NAME " ", major, ".", minor, ", ", target.name);
  return std::shared_ptr<const RunTimeCompiler>(
      std::make_shared<RtcCompiler>(rtc, std::move(target), std::move(signature)));
}

}  // namespace tutti::impl::backend::gpu
