#include "asterism/la/io/parallel_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>
#include <utility>

namespace asterism::la::io {
namespace {

constexpr std::size_t most = std::size_t(1) << 30;  // of one call: Linux takes 2 GiB at a time

void read_all(int descriptor, std::string const& path, std::int64_t offset, std::span<std::byte> to) {
  for (std::size_t done = 0; done < to.size();) {
    auto const n = pread(descriptor, to.data() + done, std::min(most, to.size() - done), off_t(offset + std::int64_t(done)));
    if (n < 0 && errno == EINTR) continue;
    ASTERISM_REQUIRE(n >= 0, file, "'{}' cannot be read: {}.", path, std::strerror(errno));
    ASTERISM_REQUIRE(n > 0, format, "'{}' ends at byte {}, where {} more are needed: it is truncated.", path, offset + std::int64_t(done),
                     to.size() - done);
    done += std::size_t(n);
  }
}

/// Where a file is to lie. An error where what lies there would be lost, such as /dev/null.
std::string behind_links(std::string const& path) {
  std::error_code error;
  auto const target = std::filesystem::weakly_canonical(path, error);
  ASTERISM_REQUIRE(!error, file, "'{}' cannot be written: {}.", path, error.message());
  auto const kind = std::filesystem::status(target, error).type();
  ASTERISM_REQUIRE(kind == std::filesystem::file_type::not_found || kind == std::filesystem::file_type::regular ||
                       kind == std::filesystem::file_type::directory,
                   file, "'{}' is a device or a pipe, which no file can replace. Give the name of a file.", path);
  return target;
}

/// Of a file in the target's folder that is nobody's: neither the user's nor that of another job that writes the same target.
std::string name_beside(std::string const& target) {
  std::random_device random;
  auto const number = std::uint64_t(random()) << 32 | random();
  return std::filesystem::path(target).replace_filename(format(".{}.part", number));
}

}  // namespace

InputFile::InputFile(std::string path) : path_(std::move(path)), descriptor_(open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {
  ASTERISM_REQUIRE(descriptor_ >= 0, file, "'{}' cannot be opened: {}.", path_, std::strerror(errno));
  struct stat s{};
  if (fstat(descriptor_, &s) != 0 || !S_ISREG(s.st_mode)) {
    close(std::exchange(descriptor_, -1));
    fail(ErrorKind::file, "'{}' is not a file.", path_);
  }
  size_ = s.st_size;
}
InputFile::~InputFile() {
  if (descriptor_ >= 0) close(descriptor_);
}
void InputFile::read_at(std::int64_t offset, std::span<std::byte> to) const { read_all(descriptor_, path_, offset, to); }

OutputFile::OutputFile(std::string path, comm::Communicator comm, std::int64_t bytes) : path_(std::move(path)), comm_(std::move(comm)) {
  comm::agree(comm_, [&] { target_ = behind_links(path_); });
  beside_ = comm_.bcast(comm_.rank() == 0 ? name_beside(target_) : std::string(), 0);
  auto const open_with = [&](int flags) {
    descriptor_ = open(beside_.c_str(), O_RDWR | O_CLOEXEC | flags, 0666);  // the umask decides who may read it
    ASTERISM_REQUIRE(descriptor_ >= 0, file, "'{}' cannot be written: {}.", path_, std::strerror(errno));
  };
  try {
    comm::agree(comm_, [&] {
      if (comm_.rank() != 0) return;
      open_with(O_CREAT | O_EXCL);
      ASTERISM_REQUIRE(ftruncate(descriptor_, off_t(bytes)) == 0, file, "'{}' cannot be written: {} bytes: {}.", path_, bytes,
                       std::strerror(errno));
    });
    comm::agree(comm_, [&] {
      if (comm_.rank() != 0) open_with(0);
    });
  } catch (...) {
    if (descriptor_ >= 0) {
      close(descriptor_);
      if (comm_.rank() == 0) unlink(beside_.c_str());
    }
    throw;
  }
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!finished_ && comm_.rank() == 0) unlink(beside_.c_str());
}

void OutputFile::write_at(std::int64_t offset, std::span<std::byte const> from) const {
  for (std::size_t done = 0; done < from.size();) {
    auto const n = pwrite(descriptor_, from.data() + done, std::min(most, from.size() - done), off_t(offset + std::int64_t(done)));
    if (n < 0 && errno == EINTR) continue;
    ASTERISM_REQUIRE(n > 0, file, "'{}' cannot be written: {}.", path_, std::strerror(errno));
    done += std::size_t(n);
  }
}

void OutputFile::read_at(std::int64_t offset, std::span<std::byte> to) const { read_all(descriptor_, beside_, offset, to); }

void OutputFile::finish() {
  comm::agree(comm_, [&] {
    ASTERISM_REQUIRE(fsync(descriptor_) == 0, file, "'{}' cannot be written: {}.", path_, std::strerror(errno));
    ASTERISM_REQUIRE(close(std::exchange(descriptor_, -1)) == 0, file, "'{}' cannot be written: {}.", path_, std::strerror(errno));
  });
  comm::agree(comm_, [&] {
    if (comm_.rank() == 0)
      ASTERISM_REQUIRE(std::rename(beside_.c_str(), target_.c_str()) == 0, file, "'{}' cannot be written: {}.", path_,
                       std::strerror(errno));
  });
  finished_ = true;
}

}  // namespace asterism::la::io
