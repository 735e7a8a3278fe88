#include "asterism/la/io/archive.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "asterism/base/profile.hpp"
#include "asterism/la/io/parallel_file.hpp"
#include "asterism/la/io/zlib.hpp"

namespace asterism::la::io {
namespace {

using i64 = std::int64_t;
using u32 = std::uint32_t;
constexpr i64 block = i64(256) << 10, page = 4096;
constexpr char magic[8] = {'A', 'S', 'T', 'E', 'R', 'I', 'S', 'M'};
static_assert(std::endian::native == std::endian::little, "files are little-endian; another order needs swapping here");

enum class Type : u32 { float32, float64, complex64, complex128, int64, text };
/// What an array is of the thing with its name.
enum class Part : u32 {
  vector,
  text,
  matrix_sizes,
  matrix_offsets,
  matrix_columns,
  matrix_values,
  matrix_near_null_space,
  matrix_coordinates
};

i64 size_of(Type t) { return t == Type::int64 ? 8 : t == Type::text ? 1 : i64(asterism::size_of(Dtype(t))); }
static_assert(int(Dtype::float32) == 0 && int(Dtype::float64) == 1 && int(Dtype::complex64) == 2 && int(Dtype::complex128) == 3);

struct Header {
  char magic[8];
  u32 version, arrays;
  i64 file_bytes;
  u32 block_bytes;
  u32 crc;  // of the header, with a zero here, and the table
};
struct Record {
  char name[64];
  Type type;
  Part part;
  i64 rows, columns;
  i64 offset, checksums;  // bytes in the file
  i64 bytes() const { return rows * columns * size_of(type); }
  i64 blocks() const { return (bytes() + block - 1) / block; }
};
static_assert(sizeof(Header) == 32 && sizeof(Record) == 104);

u32 crc_of(std::span<std::byte const> bytes, u32 before = 0) {
  auto crc = (unsigned long)before;
  for (std::size_t at = 0; at < bytes.size(); at += std::size_t(1) << 30)
    crc = zlib().crc32(crc, bytes.data() + at, unsigned(std::min(bytes.size() - at, std::size_t(1) << 30)));
  return u32(crc);
}

u32 crc_of(Header h, std::vector<Record> const& table) {
  h.crc = 0;
  return crc_of(std::as_bytes(std::span<Record const>(table)), crc_of(std::as_bytes(std::span<Header const>(&h, 1))));
}

/// Gives the arrays their places; returns the length of the file.
i64 place(std::vector<Record>& table) {
  auto const aligned = [](i64 at) { return (at + page - 1) / page * page; };
  i64 at = i64(sizeof(Header) + table.size() * sizeof(Record));
  for (auto& r : table) {
    r.offset = aligned(at);
    r.checksums = r.offset + (r.bytes() + 7) / 8 * 8;
    at = r.checksums + r.blocks() * i64(sizeof(u32));
  }
  return at;
}

/// An array to be written, and my rows of it.
struct Source {
  Record record;
  i64 first_row;
  std::vector<std::byte> copy;  // if bytes do not lie elsewhere
  std::span<std::byte const> bytes;
};

Record record_of(std::string const& name, Type type, Part part, i64 rows, i64 columns) {
  Record r{};
  ASTERISM_REQUIRE(!name.empty() && name.size() < sizeof r.name, value, "the name '{}' of a thing in a file has {} characters; 1 to {}.",
                   name, name.size(), sizeof r.name - 1);
  std::copy(name.begin(), name.end(), r.name);
  r.type = type, r.part = part, r.rows = rows, r.columns = columns;
  return r;
}

std::vector<std::byte> bytes_of(void const* data, std::size_t n) {
  std::vector<std::byte> out(n);
  if (n) std::memcpy(out.data(), data, n);
  return out;
}

Source source_of(std::string const& name, Part part, Vector const& x) {
  x.data().settle(device::Access::read, "written to a file");
  auto const bytes = std::size_t(x.local_size() * x.columns()) * asterism::size_of(x.dtype());
  return {record_of(name, Type(x.dtype()), part, x.global_size(), x.columns()),
          x.layout().begin(),
          {},
          {static_cast<std::byte const*>(x.data().raw()), bytes}};
}

void add_matrix(std::vector<Source>& out, std::string const& name, Matrix const& A) {
  auto const rows = A.to_rows();
  auto const& comm = A.comm();
  auto const n = A.range().local_size(), first = comm.exclusive_sum(rows.offsets.back());
  bool const last = comm.rank() == comm.size() - 1;
  auto const integers = [](std::vector<i64> const& v) { return bytes_of(v.data(), v.size() * sizeof(i64)); };
  std::vector<i64> offsets(rows.offsets.begin(), rows.offsets.begin() + n + last);
  for (auto& o : offsets) o += first;
  std::vector<i64> const sizes{A.global_rows(), A.global_cols(), A.nnz(), A.range().block_size()};
  out.push_back(
      {record_of(name, Type::int64, Part::matrix_sizes, 4, 1), 0, comm.rank() == 0 ? integers(sizes) : std::vector<std::byte>(), {}});
  out.push_back({record_of(name, Type::int64, Part::matrix_offsets, A.global_rows() + 1, 1), A.range().begin(), integers(offsets), {}});
  out.push_back({record_of(name, Type::int64, Part::matrix_columns, A.nnz(), 1), first, integers(rows.columns), {}});
  out.push_back({record_of(name, Type(rows.dtype), Part::matrix_values, A.nnz(), 1),
                 first,
                 bytes_of(rows.values.raw(), rows.columns.size() * asterism::size_of(rows.dtype)),
                 {}});
  if (A.range().near_null_space().columns() > 0 && A.range().near_null_space().global_size() == A.global_rows() && A.global_rows() > 0)
    out.push_back(source_of(name, Part::matrix_near_null_space, A.range().near_null_space()));
  if (auto const& xyz = A.range().coordinates(); xyz.global_size() > 0) out.push_back(source_of(name, Part::matrix_coordinates, xyz));
}

class Contents {
 public:
  explicit Contents(std::string const& path) : file_(path) {
    Header h{};
    ASTERISM_REQUIRE(file_.size() >= i64(sizeof h), format, "'{}' has {} bytes: it is no file of asterism's, or truncated.", path,
                     file_.size());
    file_.read_at(0, std::as_writable_bytes(std::span<Header>(&h, 1)));
    ASTERISM_REQUIRE(std::equal(h.magic, h.magic + 8, magic), format, "'{}' is no file of asterism's: it does not begin with ASTERISM.",
                     path);
    ASTERISM_REQUIRE(h.version == 1, format, "'{}' has version {}, and this asterism reads version 1.", path, h.version);
    ASTERISM_REQUIRE(h.file_bytes == file_.size() && i64(sizeof h) + i64(h.arrays) * i64(sizeof(Record)) <= file_.size(), format,
                     "'{}' has {} bytes where its header says {}: it is truncated or damaged.", path, file_.size(), h.file_bytes);
    table.resize(h.arrays);
    file_.read_at(i64(sizeof h), std::as_writable_bytes(std::span<Record>(table)));
    ASTERISM_REQUIRE(crc_of(h, table) == h.crc && h.block_bytes == block, format,
                     "'{}': the table of contents is damaged (its checksum differs).", path);
    for (auto const& r : table)  // written by a program with another mind
      ASTERISM_REQUIRE(u32(r.type) <= u32(Type::text) && u32(r.part) <= u32(Part::matrix_coordinates) && r.rows >= 0 && r.columns >= 0 &&
                           r.name[63] == 0 && (r.columns == 0 || r.rows <= file_.size() / r.columns) && r.offset >= 0 &&
                           r.checksums >= r.offset + r.bytes() && r.checksums + r.blocks() * 4 <= file_.size(),
                       format, "'{}': an array in the table of contents lies outside the file.", path);
  }
  std::string const& path() const { return file_.path(); }
  Record const* find(std::string const& name, Part part) const {
    for (auto const& r : table)
      if (r.part == part && r.name == name) return &r;
    return nullptr;
  }
  Record const& get(std::string const& name, Part part, Type type, i64 rows) const {
    auto const* const r = find(name, part);
    ASTERISM_REQUIRE(r && r->type == type && r->rows == rows && r->columns == 1, format,
                     "'{}': a part of matrix '{}' is missing or has another size.", file_.path(), name);
    return *r;
  }
  /// Rows [first, first + n) to `to`; the blocks that they are in are checked.
  void read_rows(Record const& r, i64 first, i64 n, void* to) const {
    i64 const row = r.columns * size_of(r.type), begin = first * row, end = (first + n) * row;
    if (begin == end) return;
    auto const first_block = begin / block, last_block = (end + block - 1) / block;
    std::vector<u32> crcs(static_cast<std::size_t>(last_block - first_block));
    file_.read_at(r.checksums + first_block * 4, std::as_writable_bytes(std::span<u32>(crcs)));
    std::vector<std::byte> bytes;
    for (auto b = first_block; b < last_block; ++b) {
      auto const at = b * block, stop = std::min(at + block, r.bytes());
      bytes.resize(std::size_t(stop - at));
      file_.read_at(r.offset + at, std::span<std::byte>(bytes));
      ASTERISM_REQUIRE(crc_of(bytes) == crcs[std::size_t(b - first_block)], format,
                       "'{}' is damaged: the checksum of bytes {} to {}, in '{}', differs.", file_.path(), r.offset + at, r.offset + stop,
                       r.name);
      auto const from = std::max(at, begin), until = std::min(stop, end);
      std::memcpy(static_cast<std::byte*>(to) + (from - begin), bytes.data() + (from - at), std::size_t(until - from));
    }
  }
  template <class T>
  std::vector<T> read(Record const& r, i64 first, i64 n) const {
    std::vector<T> out(std::size_t(n * r.columns));
    read_rows(r, first, n, out.data());
    return out;
  }
  std::vector<Record> table;

 private:
  InputFile file_;
};

Vector read_vector(Contents const& in, Record const& r, Layout const& layout) {
  Vector x(layout, Dtype(r.type), r.columns);
  comm::agree(layout.comm(), [&] { in.read_rows(r, layout.begin(), layout.local_size(), x.data().raw()); });
  return x;
}

Matrix read_matrix(Contents const& in, std::string const& name, comm::Communicator const& comm) {
  std::vector<i64> sizes;
  comm::agree(comm, [&] {
    sizes = in.read<i64>(in.get(name, Part::matrix_sizes, Type::int64, 4), 0, 4);
    auto const* const v = in.find(name, Part::matrix_values);
    ASTERISM_REQUIRE(
        v && u32(v->type) <= u32(Type::complex128) && sizes[0] >= 0 && sizes[1] >= 0 && sizes[3] >= 1 && sizes[0] % sizes[3] == 0, format,
        "'{}': matrix '{}' has sizes {} x {} in blocks of {}, or no values.", in.path(), name, sizes[0], sizes[1], sizes[3]);
  });
  auto const& values = *in.find(name, Part::matrix_values);
  auto const rows = Layout::even(comm, sizes[0], sizes[3]), cols = sizes[0] == sizes[1] ? rows : Layout::even(comm, sizes[1]);
  std::vector<i64> offsets, columns;
  std::vector<std::byte> entries;
  comm::agree(comm, [&] {
    offsets = in.read<i64>(in.get(name, Part::matrix_offsets, Type::int64, sizes[0] + 1), rows.begin(), rows.local_size() + 1);
    auto const first = offsets.front(), n = offsets.back() - first;
    ASTERISM_REQUIRE(std::is_sorted(offsets.begin(), offsets.end()) && first >= 0 && offsets.back() <= sizes[2], format,
                     "'{}': the row offsets of matrix '{}' do not ascend from 0 to {}.", in.path(), name, sizes[2]);
    for (auto& o : offsets) o -= first;
    columns = in.read<i64>(in.get(name, Part::matrix_columns, Type::int64, sizes[2]), first, n);
    ASTERISM_REQUIRE(values.rows == sizes[2] && values.columns == 1, format, "'{}': matrix '{}' has {} values for {} entries.", in.path(),
                     name, values.rows, sizes[2]);
    entries.resize(std::size_t(n * size_of(values.type)));
    in.read_rows(values, first, n, entries.data());
  });
  auto A = Matrix::from_rows<i64>(rows, cols, Dtype(values.type), offsets, columns, entries.data());
  if (sizes[3] > 1) A.set_space(A.range().with_block_size(sizes[3]));
  if (auto const* const B = in.find(name, Part::matrix_near_null_space); B && B->rows == sizes[0] && u32(B->type) <= u32(Type::complex128))
    A.set_space(A.range().with_near_null_space(read_vector(in, *B, rows)));
  if (auto const* const X = in.find(name, Part::matrix_coordinates);
      X && X->rows * sizes[3] == sizes[0] && X->type == Type::float64 && X->columns >= 1 && X->columns <= 3)
    A.set_space(A.range().with_coordinates(read_vector(in, *X, A.range().nodes())));
  return A;
}

}  // namespace

void write_archive(std::string const& path, comm::Communicator const& comm, Archive const& things) {
  static int const event = profile::event("WriteArchive");
  profile::Scope const scope(event);
  std::vector<Source> sources;
  for (auto const& [name, text] : things.texts)
    sources.push_back({record_of(name, Type::text, Part::text, i64(text.size()), 1),
                       0,
                       comm.rank() == 0 ? bytes_of(text.data(), text.size()) : std::vector<std::byte>(),
                       {}});
  for (auto const& [name, x] : things.vectors) sources.push_back(source_of(name, Part::vector, x));
  for (auto const& [name, A] : things.matrices) add_matrix(sources, name, A);
  std::vector<Record> table;
  for (auto const& s : sources) table.push_back(s.record);
  // what the ranks give must be the same things, or they would write over each other
  std::string mine;
  for (auto const& r : table) mine += format("{} ({} x {}, part {}, type {}) ", r.name, r.rows, r.columns, u32(r.part), u32(r.type));
  auto const first = comm.bcast(mine, 0);
  comm::agree(comm, [&] { ASTERISM_REQUIRE(mine == first, value, "this rank writes '{}', and rank 0 '{}'.", mine, first); });
  auto const end = place(table);
  OutputFile file(path, comm, end);
  comm::agree(comm, [&] {
    for (std::size_t a = 0; a < sources.size(); ++a) {
      auto const& s = sources[a];
      file.write_at(table[a].offset + s.first_row * table[a].columns * size_of(table[a].type), s.copy.empty() ? s.bytes : s.copy);
    }
  });
  comm.barrier();
  comm::agree(comm, [&] {  // each rank sums its share of the blocks, as they are in the file
    std::vector<std::byte> bytes;
    for (auto const& r : table)
      for (i64 b = comm.rank(); b < r.blocks(); b += comm.size()) {
        bytes.resize(std::size_t(std::min(block, r.bytes() - b * block)));
        file.read_at(r.offset + b * block, bytes);
        u32 const crc = crc_of(bytes);
        file.write_at(r.checksums + b * 4, std::as_bytes(std::span<u32 const>(&crc, 1)));
      }
    if (comm.rank() == 0) {
      Header h{{}, 1, u32(table.size()), end, u32(block), 0};
      std::copy_n(magic, 8, h.magic);
      h.crc = crc_of(h, table);
      file.write_at(0, std::as_bytes(std::span<Header const>(&h, 1)));
      file.write_at(i64(sizeof h), std::as_bytes(std::span<Record const>(table)));
    }
  });
  file.finish();
}

namespace {
std::unique_ptr<Contents> opened(std::string const& path, comm::Communicator const& comm) {
  std::unique_ptr<Contents> in;
  comm::agree(comm, [&] { in = std::make_unique<Contents>(path); });
  return in;
}

void check_vector(Record const& r, std::string const& path) {
  ASTERISM_REQUIRE(u32(r.type) <= u32(Type::complex128) && r.columns >= 1, format, "'{}': vector '{}' has {} columns, or another type.",
                   path, r.name, r.columns);
}
}  // namespace

ArchiveNames archive_names(std::string const& path) {
  Contents const in(path);
  ArchiveNames names;
  for (auto const& r : in.table) {
    if (r.part == Part::matrix_sizes) names.matrices.emplace_back(r.name);
    if (r.part == Part::vector) names.vectors[r.name] = r.rows;
  }
  return names;
}

Matrix read_archive_matrix(std::string const& path, std::string const& name, comm::Communicator const& comm) {
  return read_matrix(*opened(path, comm), name, comm);
}

Vector read_archive_vector(std::string const& path, std::string const& name, Layout const& layout) {
  auto const in = opened(path, layout.comm());
  auto const* const r = in->find(name, Part::vector);
  ASTERISM_REQUIRE(r, format, "'{}' holds no vector '{}'.", path, name);
  check_vector(*r, path);
  ASTERISM_REQUIRE(r->rows == layout.global_size(), shape, "'{}': vector '{}' has {} rows where {} are needed.", path, name, r->rows,
                   layout.global_size());
  return read_vector(*in, *r, layout);
}

Archive read_archive(std::string const& path, comm::Communicator const& comm) {
  static int const event = profile::event("ReadArchive");
  profile::Scope const scope(event);
  auto const in = opened(path, comm);
  Archive out;
  for (auto const& r : in->table)
    if (r.part == Part::matrix_sizes) out.matrices[r.name] = read_matrix(*in, r.name, comm);
  for (auto const& r : in->table) {
    if (r.part == Part::text) {
      comm::agree(comm, [&] {
        ASTERISM_REQUIRE(r.type == Type::text && r.columns == 1, format, "'{}': the text '{}' has {} columns, or another type.", path,
                         r.name, r.columns);
        auto const bytes = in->read<char>(r, 0, r.rows);
        out.texts[r.name] = std::string(bytes.begin(), bytes.end());
      });
    } else if (r.part == Part::vector) {
      check_vector(r, path);
      auto layout = Layout::even(comm, r.rows);
      for (auto const& [name, A] : out.matrices)
        if (A.global_rows() == r.rows) layout = A.range();
      out.vectors[r.name] = read_vector(*in, r, layout);
    }
  }
  return out;
}

}  // namespace asterism::la::io
