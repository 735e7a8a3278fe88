#include "asterism/la/io/petsc_binary.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <limits>

#include "asterism/base/limits.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/la/io/parallel_file.hpp"
#include "asterism/la/io/repeated_entries.hpp"

namespace asterism::la::io {
namespace {

using i64 = std::int64_t;
constexpr i64 matrix_id = 1211216, vector_id = 1211214, index_set_id = 1211218;
constexpr i64 dense = -1;  // where the number of entries stands

template <class T>
T from_big_endian(std::byte const* p) {
  std::make_unsigned_t<T> v = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) v = std::make_unsigned_t<T>(v << 8) | std::make_unsigned_t<T>(p[i]);
  return T(v);
}

/// n integers of `width` bytes.
std::vector<i64> read_integers(InputFile const& file, i64 offset, i64 n, int width) {
  std::vector<std::byte> bytes(std::size_t(n * width));
  file.read_at(offset, std::span<std::byte>(bytes));
  std::vector<i64> out(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = width == 4 ? i64(from_big_endian<std::int32_t>(bytes.data() + 4 * i)) : from_big_endian<i64>(bytes.data() + 8 * i);
  return out;
}

/// n real numbers of `width` bytes, to `out`.
void read_reals(InputFile const& file, i64 offset, i64 n, int width, double* out) {
  std::vector<std::byte> bytes(std::size_t(n * width));
  file.read_at(offset, std::span<std::byte>(bytes));
  for (std::size_t i = 0; i < std::size_t(n); ++i)
    out[i] = width == 4 ? double(std::bit_cast<float>(from_big_endian<std::int32_t>(bytes.data() + 4 * i)))
                        : std::bit_cast<double>(from_big_endian<i64>(bytes.data() + 8 * i));
}

struct Object {
  i64 id, at;  // where its data begin, behind the sizes
  i64 rows = 0, cols = 0, entries = 0;
};

struct Contents {
  int index = 4;   // bytes
  int scalar = 8;  // 4: float, 8: double, 16: two doubles
  std::vector<Object> objects;
  bool is_complex() const { return scalar == 16; }
  int real() const { return is_complex() ? 8 : scalar; }
};

/// Whether the file is a row of whole objects if indices and values have so many bytes; which.
bool walk(InputFile const& file, int index, int scalar, std::vector<Object>& objects) {
  objects.clear();
  for (i64 at = 0; at < file.size();) {
    if (at + 2 * index > file.size()) return false;
    auto const head = read_integers(file, at, 2, index);
    Object o{head[0], at + 2 * index, head[1], 1, 0};
    if (o.rows < 0) return false;
    i64 bytes = 0;
    if (o.id == matrix_id) {
      if (at + 4 * index > file.size()) return false;
      auto const rest = read_integers(file, o.at, 2, index);
      o.cols = rest[0], o.entries = rest[1];
      o.at += 2 * index;
      if (o.cols < 0 || o.entries < dense) return false;
      if (o.entries == dense ? o.cols > 0 && o.rows > file.size() / o.cols : o.entries > file.size() || o.rows > file.size()) return false;
      bytes = o.entries == dense ? o.rows * o.cols * scalar : o.rows * index + o.entries * (index + scalar);
    } else if (o.id == vector_id || o.id == index_set_id) {
      if (o.rows > file.size()) return false;
      bytes = o.rows * (o.id == vector_id ? scalar : index);
    } else {
      return false;
    }
    if (bytes > file.size() - o.at) return false;
    at = o.at + bytes;
    objects.push_back(o);
  }
  return true;
}

/// 4 or 8; 0: not such a file.
int index_bytes(InputFile const& file) {
  for (int const width : {4, 8})
    if (file.size() >= 2 * width) {
      auto const id = read_integers(file, 0, 1, width)[0];
      if (id == matrix_id || id == vector_id || id == index_set_id) return width;
    }
  return 0;
}

Contents contents_of(InputFile const& file) {
  Contents c;
  c.index = index_bytes(file);
  ASTERISM_REQUIRE(c.index, format, "'{}' does not begin with the class id of a matrix or vector in PETSc's binary format.", file.path());
  for (int const scalar : {8, 16, 4})
    if (walk(file, c.index, scalar, c.objects)) {
      c.scalar = scalar;
      return c;
    }
  fail(ErrorKind::format,
       "'{}' is a PETSc binary file with {}-bit indices, but its {} bytes do not fit the sizes that it announces, with real or complex "
       "values: it is truncated or damaged.",
       file.path(), 8 * c.index, file.size());
}

Object const& first_of(Contents const& c, i64 id, InputFile const& file) {
  auto const o = std::find_if(c.objects.begin(), c.objects.end(), [&](Object const& x) { return x.id == id; });
  ASTERISM_REQUIRE(o != c.objects.end(), format, "'{}' holds no {}.", file.path(), id == matrix_id ? "matrix" : "vector");
  return *o;
}

i64 block_size_beside(std::string const& path) {
  std::ifstream info(path + ".info");
  std::string word;
  i64 found = 1;
  while (info >> word)
    if (word == "-matload_block_size" || word == "-vecload_block_size") info >> found;
  return std::max<i64>(found, 1);
}

/// Big-endian bytes, collected.
class Bytes {
 public:
  void integer(i64 v, int width) {
    for (int i = width - 1; i >= 0; --i) bytes_.push_back(std::byte(std::uint64_t(v) >> (8 * i)));
  }
  void real(double v) { integer(std::bit_cast<i64>(v), 8); }
  template <class T>
  void value(T v) {
    real(double(asterism::real(v)));
    if constexpr (is_complex_v<T>) real(double(imag(v)));
  }
  std::span<std::byte const> all() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace

bool is_petsc_binary(std::string const& path) { return index_bytes(InputFile(path)) != 0; }

i64 petsc_vector_size(std::string const& path) {
  InputFile const file(path);
  auto const c = contents_of(file);
  return first_of(c, vector_id, file).rows;
}

Matrix read_petsc_matrix(std::string const& path, comm::Communicator const& comm, i64 block_size) {
  static int const event = profile::event("ReadMatrix");
  profile::Scope const scope(event);
  std::unique_ptr<InputFile> file;
  Contents c;
  Object o{};
  comm::agree(comm, [&] {
    file = std::make_unique<InputFile>(path);
    c = contents_of(*file);
    o = first_of(c, matrix_id, *file);
    if (block_size == 0) {
      block_size = block_size_beside(path);
      if (o.rows % block_size) block_size = 1;
    }
  });
  auto const rows = Layout::even(comm, o.rows, block_size), cols = o.rows == o.cols ? rows : Layout::even(comm, o.cols);
  auto const n = rows.local_size();
  std::vector<i64> offsets(std::size_t(n) + 1, 0), columns;
  std::vector<double> values;  // pairs where complex
  int const parts = c.is_complex() ? 2 : 1;
  if (o.entries != dense) {
    comm::agree(comm, [&] {
      auto const lengths = read_integers(*file, o.at + rows.begin() * c.index, n, c.index);
      for (std::size_t i = 0; i < std::size_t(n); ++i) {
        ASTERISM_REQUIRE(lengths[i] >= 0 && lengths[i] <= o.entries, format, "'{}': row {} has {} of the {} entries.", path,
                         rows.begin() + i64(i), lengths[i], o.entries);
        offsets[i + 1] = offsets[i] + lengths[i];
      }
    });
    auto const mine = offsets.back(), first = comm.exclusive_sum(mine), all = comm.sum(mine);
    ASTERISM_REQUIRE(all == o.entries, format, "'{}': the rows have {} entries, but the header says {}.", path, all, o.entries);
    comm::agree(comm, [&] {
      auto const at = o.at + o.rows * c.index;
      columns = read_integers(*file, at + first * c.index, mine, c.index);
      for (std::size_t e = 0; e < columns.size(); ++e)
        ASTERISM_REQUIRE(columns[e] >= 0 && columns[e] < o.cols, format, "'{}': entry {} is in column {} of {}.", path, first + i64(e),
                         columns[e], o.cols);
      values.resize(std::size_t(mine * parts));
      read_reals(*file, at + o.entries * c.index + first * c.scalar, mine * parts, c.real(), values.data());
    });
  } else {
    comm::agree(comm, [&] {
      values.resize(std::size_t(checked_product(n * parts, o.cols, "dense matrix")));
      read_reals(*file, o.at + rows.begin() * o.cols * c.scalar, n * o.cols * parts, c.real(), values.data());
      for (std::size_t i = 0; i < std::size_t(n); ++i) offsets[i + 1] = offsets[i] + o.cols;
      for (i64 e = 0; e < n * o.cols; ++e) columns.push_back(e % o.cols);
    });
  }
  auto A = Matrix::from_rows<i64>(rows, cols, c.is_complex() ? Dtype::complex128 : Dtype::float64, offsets, columns, values.data());
  check_repeated_entries(path, A, i64(columns.size()), false, [&](auto const& f) {
    for (i64 r = 0; r < n; ++r)
      for (auto e = offsets[std::size_t(r)]; e < offsets[std::size_t(r) + 1]; ++e) f(rows.begin() + r, columns[std::size_t(e)]);
  });
  if (block_size > 1) A.set_space(A.range().with_block_size(block_size));
  return c.scalar == 4 ? A.converted(Dtype::float32) : A;
}

Vector read_petsc_vector(std::string const& path, Layout const& layout) {
  std::unique_ptr<InputFile> file;
  Contents c;
  std::vector<Object> found;
  comm::agree(layout.comm(), [&] {
    file = std::make_unique<InputFile>(path);
    c = contents_of(*file);
    auto const* o = &first_of(c, vector_id, *file);
    ASTERISM_REQUIRE(o->rows == layout.global_size(), shape, "'{}' holds a vector of {} where {} are needed.", path, o->rows,
                     layout.global_size());
    for (; o != c.objects.data() + c.objects.size() && o->id == vector_id && o->rows == layout.global_size(); ++o) found.push_back(*o);
  });
  auto const k = i64(found.size()), n = layout.local_size();
  int const parts = c.is_complex() ? 2 : 1;
  Vector x(layout, c.is_complex() ? Dtype::complex128 : Dtype::float64, k);
  comm::agree(layout.comm(), [&] {
    std::vector<double> column(std::size_t(n * parts));
    auto* const out = reinterpret_cast<double*>(x.data().raw());
    for (i64 j = 0; j < k; ++j) {
      read_reals(*file, found[std::size_t(j)].at + layout.begin() * c.scalar, n * parts, c.real(), column.data());
      for (i64 i = 0; i < n; ++i)
        for (int p = 0; p < parts; ++p) out[(i * k + j) * parts + p] = column[std::size_t(i * parts + p)];
    }
  });
  if (c.scalar != 4) return x;
  Vector low(layout, Dtype::float32, k);
  copy(x, low);
  return low;
}

void write_petsc_binary(std::string const& path, Matrix const& A) {
  auto const rows = A.to_rows();
  auto const n = A.global_rows(), m = A.global_cols(), nnz = A.nnz();
  int const index = std::max({n, m, nnz}) > limits().narrow_index ? 8 : 4;
  int const scalar = is_complex(A.dtype()) ? 16 : 8;
  OutputFile file(path, A.comm(), (4 + n + nnz) * index + nnz * scalar);
  auto const mine = rows.offsets.back(), first = A.comm().exclusive_sum(mine);
  comm::agree(A.comm(), [&] {
    Bytes head, lengths, columns, values;
    for (auto const v : {matrix_id, n, m, nnz}) head.integer(v, index);
    if (A.comm().rank() == 0) file.write_at(0, head.all());
    for (std::size_t i = 0; i + 1 < rows.offsets.size(); ++i) lengths.integer(rows.offsets[i + 1] - rows.offsets[i], index);
    for (auto const c : rows.columns) columns.integer(c, index);
    with_dtype(rows.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (i64 p = 0; p < mine; ++p) values.value(rows.values.as<T>()[p]);
    });
    file.write_at((4 + A.range().begin()) * index, lengths.all());
    file.write_at((4 + n + first) * index, columns.all());
    file.write_at((4 + n + nnz) * index + first * scalar, values.all());
  });
  if (A.comm().max(std::max(A.range().block_size(), block_size_beside(path))) > 1) {  // also in place of an older one
    auto const text = format("-matload_block_size {}\n", A.range().block_size());
    OutputFile info(path + ".info", A.comm(), i64(text.size()));
    comm::agree(A.comm(), [&] {
      if (A.comm().rank() == 0) info.write_at(0, std::as_bytes(std::span<char const>(text.data(), text.size())));
    });
    info.finish();
  }
  file.finish();
}

void write_petsc_binary(std::string const& path, Vector const& x) {
  auto const n = x.global_size(), k = x.columns();
  int const index = n > limits().narrow_index ? 8 : 4;
  i64 const scalar = is_complex(x.dtype()) ? 16 : 8;
  OutputFile file(path, x.comm(), k * (2 * index + n * scalar));
  comm::agree(x.comm(), [&] {
    for (i64 j = 0; j < k; ++j) {
      auto const at = j * (2 * index + n * scalar);
      Bytes head, values;
      for (auto const v : {vector_id, n}) head.integer(v, index);
      if (x.comm().rank() == 0) file.write_at(at, head.all());
      with_dtype(x.dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        auto const v = x.host<T>();
        for (i64 i = 0; i < x.local_size(); ++i) values.value(v[std::size_t(i * k + j)]);
      });
      file.write_at(at + 2 * index + x.layout().begin() * scalar, values.all());
    }
  });
  file.finish();
}

}  // namespace asterism::la::io
