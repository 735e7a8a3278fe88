#include "asterism/la/io/text_source.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "asterism/base/error.hpp"
#include "asterism/la/io/zlib.hpp"

namespace asterism::la::io {
namespace {

constexpr std::size_t spare = 1 + TextSource::readable_behind;  // behind the last line: a newline, and those
constexpr std::size_t piece = std::size_t(512) << 10;           // parsed while it is in the second cache

}  // namespace

std::string_view trimmed(std::string_view s) {
  constexpr char const* blank = " \t\r";
  auto const first = s.find_first_not_of(blank);
  return first == s.npos ? std::string_view() : s.substr(first, s.find_last_not_of(blank) - first + 1);
}

bool real_from(std::string_view text, double& v, std::string const& path, std::int64_t line) {
  if (auto const r = std::from_chars(text.data(), text.data() + text.size(), v); r.ec == std::errc() && r.ptr == text.data() + text.size())
    return true;
  std::string copy(text);
  std::replace_if(copy.begin(), copy.end(), [](char c) { return c == 'd' || c == 'D'; }, 'e');
  auto const r = std::from_chars(copy.data(), copy.data() + copy.size(), v);
  if (r.ptr != copy.data() + copy.size() || r.ec == std::errc::invalid_argument) return false;
  if (r.ec == std::errc::result_out_of_range) v = std::strtod(copy.c_str(), nullptr);
  ASTERISM_REQUIRE(r.ec == std::errc() || !std::isinf(v), format, "'{}', line {}: {} is beyond 1.8e308, the largest number of float64.",
                   path, line, text.substr(0, 60));
  return true;
}

std::int64_t TextSource::file_size(std::string const& path) {
  struct stat s;
  ASTERISM_REQUIRE(::stat(path.c_str(), &s) == 0, file, "'{}' cannot be opened: {}.", path, std::strerror(errno));
  ASTERISM_REQUIRE(!S_ISDIR(s.st_mode), file, "'{}' is a folder, not a file.", path);
  return s.st_size;
}

TextSource::TextSource(std::string const& path) : path_(path) {
  auto const size = std::size_t(file_size(path));
  std::FILE* f = std::fopen(path.c_str(), "rb");
  ASTERISM_REQUIRE(f, file, "'{}' cannot be opened: {}.", path, std::strerror(errno));
  unsigned char magic[2] = {0, 0};
  gzip_ = std::fread(magic, 1, 2, f) == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
  buffer_.resize((gzip_ ? piece : std::min(piece, size + 1)) + spare);  // small files need little
  if (!gzip_) {
    std::rewind(f);
    file_ = f;
    return;
  }
  std::fclose(f);
  file_ = zlib().open(path.c_str(), "rb");
  ASTERISM_REQUIRE(file_, file, "'{}' cannot be opened as gzip.", path);
  zlib().buffer(file_, 1 << 18);
}

TextSource::~TextSource() {
  if (!file_) return;
  if (gzip_) zlib().close(file_);
  else std::fclose(static_cast<std::FILE*>(file_));
}

bool TextSource::fill() {
  if (end_) return false;
  std::memmove(buffer_.data(), buffer_.data() + begin_, filled_ - begin_);
  filled_ -= begin_;
  begin_ = 0;
  if (filled_ + spare == buffer_.size()) buffer_.resize(2 * buffer_.size());
  std::size_t const room = buffer_.size() - spare - filled_;
  std::int64_t got;
  if (gzip_) {
    got = zlib().read(file_, buffer_.data() + filled_, unsigned(std::min<std::size_t>(room, piece)));
    int code = 0;
    char const* text = zlib().error(file_, &code);
    // -5 (Z_BUF_ERROR) with data still expected: the stream ends too early
    ASTERISM_REQUIRE(got >= 0 && (code >= 0 || code == 1), format, "'{}' is a damaged or truncated gzip file after line {}: {}.", path_,
                     line_, text);
  } else {
    got = std::int64_t(std::fread(buffer_.data() + filled_, 1, room, static_cast<std::FILE*>(file_)));
    ASTERISM_REQUIRE(!std::ferror(static_cast<std::FILE*>(file_)), file, "'{}' cannot be read further after line {}.", path_, line_);
  }
  if (got == 0) end_ = true;
  filled_ += std::size_t(got);
  return got > 0;
}

bool TextSource::next(std::string_view& line) {
  for (;;) {
    auto const* start = buffer_.data() + begin_;
    auto const* nl = static_cast<char const*>(std::memchr(start, '\n', filled_ - begin_));
    if (!nl && fill()) continue;
    if (!nl) {
      if (begin_ == filled_) return false;
      nl = buffer_.data() + filled_;
      start = buffer_.data() + begin_;
    }
    line = {start, std::size_t(nl - start)};
    std::size_t const used = std::min(line.size() + 1, filled_ - begin_);
    begin_ += used;
    consumed_ += std::int64_t(used);
    ++line_;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    return true;
  }
}

bool TextSource::lines(std::string_view& text) {
  for (;;) {
    auto const* const start = buffer_.data() + begin_;
    auto const n = filled_ - begin_;
    if (auto const* const last = n ? static_cast<char const*>(memrchr(start, '\n', n)) : nullptr) {
      text = {start, std::size_t(last - start) + 1};
      return true;
    }
    if (fill()) continue;
    buffer_[filled_] = '\n';
    text = {buffer_.data() + begin_, filled_ - begin_};
    return filled_ > begin_;
  }
}

void TextSource::advance(std::size_t characters, std::int64_t lines) {
  characters = std::min(characters, filled_ - begin_);
  begin_ += characters;
  consumed_ += std::int64_t(characters);
  line_ += lines;
}

void TextSource::seek(std::int64_t offset) {
  ASTERISM_ASSERT(!gzip_);
  begin_ = filled_ = 0;
  end_ = false;
  line_ = 0;
  auto const at = offset > 0 ? offset - 1 : 0;
  ASTERISM_REQUIRE(fseeko(static_cast<std::FILE*>(file_), at, SEEK_SET) == 0, file, "'{}' cannot be read at byte {}.", path_, at);
  consumed_ = at;
  if (offset > 0) {  // the line that holds byte offset - 1 belongs to whoever came before
    std::string_view line;
    next(line);
    line_ = 0;
  }
}

}  // namespace asterism::la::io
