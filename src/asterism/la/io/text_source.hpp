// Lines of a text file, plain or gzip, with their numbers.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace asterism::la::io {

/// Without blanks, tabs and carriage returns around it.
std::string_view trimmed(std::string_view s);
/// The number that a text is: Fortran's 1.0D+00 too, and 0 where it is too small. False where it is none; one that is too large is a
/// FormatError, which names the path and the line.
bool real_from(std::string_view text, double& v, std::string const& path, std::int64_t line);

/// Streams a file in large pieces; lines are views into the piece at hand.
class TextSource {
 public:
  static constexpr std::size_t readable_behind = 96;
  /// gzip by its first two bytes, whatever the name. Throws FileError.
  explicit TextSource(std::string const& path);
  ~TextSource();
  TextSource(TextSource const&) = delete;
  TextSource& operator=(TextSource const&) = delete;

  /// The next line without its end; false at the end of the file. Throws FormatError for a damaged or
  /// cut-off gzip stream.
  bool next(std::string_view& line);
  /// The lines at hand: at least one, each with its newline, but for the last one of the file, which one stands behind. So many
  /// characters behind it can be read. False at the end.
  bool lines(std::string_view& text);
  /// So many characters, with so many lines, of what lines() gave were read.
  void advance(std::size_t characters, std::int64_t lines);
  std::int64_t line_number() const { return line_; }  ///< of the last line returned, from 1
  bool compressed() const { return gzip_; }
  /// Plain files: goes to the first line that starts at or after the byte offset. Line numbers then count from there.
  void seek(std::int64_t offset);
  /// Plain files: byte offset of the next line.
  std::int64_t position() const { return consumed_; }
  static std::int64_t file_size(std::string const& path);

 private:
  bool fill();
  std::string path_;
  bool gzip_ = false, end_ = false;
  void* file_ = nullptr;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, filled_ = 0;
  std::int64_t line_ = 0, consumed_ = 0;
};

}  // namespace asterism::la::io
