// Files that all ranks read, or write, at places of their own.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "asterism/comm/communicator/communicator.hpp"

namespace asterism::la::io {

/// Open for reading. Errors are FileErrors with the path and the system's reason.
class InputFile {
 public:
  explicit InputFile(std::string path);
  ~InputFile();
  InputFile(InputFile const&) = delete;
  InputFile& operator=(InputFile const&) = delete;
  std::string const& path() const { return path_; }
  std::int64_t size() const { return size_; }
  /// All of `to`, or a FormatError: the file is shorter.
  void read_at(std::int64_t offset, std::span<std::byte> to) const;
  template <class T>
  void read_at(std::int64_t offset, std::span<T> to) const {
    read_at(offset, std::as_writable_bytes(to));
  }

 private:
  std::string path_;
  int descriptor_ = -1;
  std::int64_t size_ = 0;
};

/// Written beside `path`, or the file that it links to, by all ranks; takes its place in finish(), or is removed. The ranks must see the
/// same file system.
class OutputFile {
 public:
  /// Of so many bytes, zeros until they are written. Collective; an error on any rank is thrown on all.
  OutputFile(std::string path, comm::Communicator comm, std::int64_t bytes);
  ~OutputFile();
  OutputFile(OutputFile const&) = delete;
  OutputFile& operator=(OutputFile const&) = delete;
  /// By one rank.
  void write_at(std::int64_t offset, std::span<std::byte const> from) const;
  template <class T>
  void write_at(std::int64_t offset, std::span<T const> from) const {
    write_at(offset, std::as_bytes(from));
  }
  /// What was written by any rank before the last barrier.
  void read_at(std::int64_t offset, std::span<std::byte> to) const;
  /// When all ranks have written. Collective.
  void finish();

 private:
  std::string path_, target_, beside_;
  comm::Communicator comm_;
  int descriptor_ = -1;
  bool finished_ = false;
};

}  // namespace asterism::la::io
