// SPDX-License-Identifier: Apache-2.0
#include "data/format/csv.h"

#include <utility>

namespace tutti::impl::data {

using base::Result;
using base::Status;

Status CsvReader::begin(ByteStream &stream) {
  next_line_ = record_line_ = 1;
  return stream.skip_byte_order_mark();
}

// A file whose lines end so is one long record, of which nothing would come. Where a walk goes on behind the first line
// nothing is looked at, as it would not have been from the beginning.
Status CsvReader::check_line_ends(const ByteStream &stream) const {
  for (const Place &place : places_) {
    if (place.quoted || here_.substr(place.begin, place.end - place.begin).find('\r') == std::string_view::npos)
      continue;
    return base::data_loss("corrupt CSV file ", base::quoted(stream.path(), 400), ":", record_line_,
                           ": a carriage return is not followed by a line feed; lines end in LF or CR LF");
  }
  return Status();
}

// Makes here_ reach beyond a position; false at the end of the contents or by an error.
bool CsvReader::more_at(ByteStream &stream, size_t position, Status &status) {
  if (position < here_.size()) return true;
  const Result<std::string_view> more = stream.peek(position + 1);
  if (!more.ok()) {
    status = more.status();
    return false;
  }
  here_ = *more;
  return position < here_.size();
}

// From behind the opening quote to behind the closing one.
Status CsvReader::find_quote_end(ByteStream &stream) {
  Place place{at_, 0, true, false};
  Status status;
  for (; more_at(stream, at_, status); ++at_) {
    if (here_[at_] == '\n') ++next_line_;
    if (here_[at_] != '"') continue;
    if (!more_at(stream, at_ + 1, status) || here_[at_ + 1] != '"') {
      TUTTI_TRY(status);
      place.end = at_++;
      places_.push_back(place);
      return Status();
    }
    place.doubled = true;
    ++at_;
  }
  TUTTI_TRY(status);
  return base::data_loss("corrupt CSV file ", base::quoted(stream.path(), 400), ":", record_line_, ": field ",
                         places_.size() + 1, " has an opening quote without a closing quote");
}

Status CsvReader::text_behind_quote(ByteStream &stream) {
  Status status;
  while (more_at(stream, at_, status) && here_[at_] != '\n')
    ++at_;
  if (status.ok() && at_ < here_.size()) ++at_;
  ++next_line_;
  TUTTI_TRY(status);
  return base::data_loss("corrupt CSV file ", base::quoted(stream.path(), 400), ":", record_line_, ": field ",
                         places_.size(), " has characters after its closing quote");
}

// One field and what ends it; false when the contents end before it.
Result<bool> CsvReader::find_field(ByteStream &stream, bool &record_ends) {
  Status status;
  record_ends = true;
  if (more_at(stream, at_, status) && here_[at_] == '"') {
    ++at_;
    TUTTI_TRY(find_quote_end(stream));
  } else {
    TUTTI_TRY(status);
    const size_t begin = at_;
    while (more_at(stream, at_, status) && here_[at_] != delimiter_ && here_[at_] != '\n')
      ++at_;
    TUTTI_TRY(status);
    const bool before_line_end = at_ < here_.size() && here_[at_] == '\n' && at_ > begin && here_[at_ - 1] == '\r';
    places_.push_back({begin, before_line_end ? at_ - 1 : at_, false, false});
  }
  if (!more_at(stream, at_, status)) {
    TUTTI_TRY(status);
    return true;
  }
  if (places_.back().quoted && here_[at_] == '\r' && more_at(stream, at_ + 1, status) && here_[at_ + 1] == '\n') ++at_;
  TUTTI_TRY(status);
  record_ends = here_[at_] == '\n';
  if (!record_ends && here_[at_] != delimiter_) {
    record_ends = true;
    TUTTI_TRY(text_behind_quote(stream));
  }
  ++at_;
  if (record_ends) ++next_line_;
  return true;
}

Result<bool> CsvReader::find_fields(ByteStream &stream) {
  places_.clear();
  record_line_ = next_line_;
  for (bool record_ends = false; !record_ends;)
    TUTTI_TRY(find_field(stream, record_ends));
  return true;
}

Result<bool> CsvReader::read(ByteStream &stream) {
  for (;;) {
    TUTTI_ASSIGN(here_, stream.peek(1));
    if (here_.empty()) return false;
    at_ = 0;
    Result<bool> found = find_fields(stream);
    if (found.ok() && record_line_ == 1) {
      if (Status status = check_line_ends(stream); !status.ok()) found = std::move(status);
    }
    if (found.ok()) {
      if (Status status = stream.check_record(at_); !status.ok()) found = std::move(status);
    }
    if (!found.ok()) {
      if (!stream.has_failed()) stream.consume(std::min(at_, here_.size()));
      return found;
    }
    const bool is_empty_line = places_.size() == 1 && !places_[0].quoted && places_[0].begin == places_[0].end;
    if (!is_empty_line) break;
    stream.consume(at_);
  }
  values_.clear();
  unquoted_.clear();
  unquoted_.reserve(at_);  // so that the views into it stay
  for (const Place &place : places_) {
    std::string_view text = here_.substr(place.begin, place.end - place.begin);
    if (place.doubled) {
      const size_t begin = unquoted_.size();
      for (size_t i = 0; i < text.size(); ++i) {
        unquoted_.push_back(text[i]);
        if (text[i] == '"') ++i;
      }
      text = std::string_view(unquoted_).substr(begin);
    }
    values_.push_back({text, place.quoted});
  }
  stream.consume(at_);  // the buffer stays as it is until more is read
  return true;
}

}  // namespace tutti::impl::data
