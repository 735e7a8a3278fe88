#include "asterism/la/io/matrix_market.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "asterism/base/limits.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/la/io/entry_lines.hpp"
#include "asterism/la/io/parallel_file.hpp"
#include "asterism/la/io/repeated_entries.hpp"
#include "asterism/la/io/text_source.hpp"

namespace asterism::la::io {
namespace {

using Field = MatrixMarketHeader::Field;
using Symmetry = MatrixMarketHeader::Symmetry;

bool take_integer(std::string_view& s, std::int64_t& v) {
  s = trimmed(s);
  if (!s.empty() && s[0] == '+') s.remove_prefix(1);
  auto const r = std::from_chars(s.data(), s.data() + s.size(), v);
  if (r.ec != std::errc()) return false;
  s.remove_prefix(std::size_t(r.ptr - s.data()));
  return s.empty() || s[0] == ' ' || s[0] == '\t';
}

bool take_real(std::string_view& s, double& v, std::string const& path, std::int64_t line) {
  s = trimmed(s);
  auto const field = s.substr(0, s.find_first_of(" \t"));
  s.remove_prefix(field.size());
  return real_from(field.substr(!field.empty() && field[0] == '+'), v, path, line);
}

struct BannerWord {
  char const* what;
  std::vector<std::string> names;
};
std::array<BannerWord, 4> const names_of = {{{"object", {"matrix"}},
                                             {"format", {"coordinate", "array"}},
                                             {"field", {"real", "complex", "integer", "pattern"}},
                                             {"symmetry", {"general", "symmetric", "skew-symmetric", "hermitian"}}}};
auto constexpr banner =
    "The line is %%MatrixMarket matrix FORMAT FIELD SYMMETRY: coordinate or array; real, complex, integer or pattern; general where the "
    "file lists "
    "all entries, symmetric, skew-symmetric or hermitian where it lists one triangle. Look which it is: one triangle read as general is a "
    "triangular matrix.";

bool one_of(std::string const& word, std::vector<std::string> const& names) {
  return std::find(names.begin(), names.end(), word) != names.end();
}

std::string joined(std::vector<std::string> const& names) {
  std::string out;
  for (auto const& n : names) out += (out.empty() ? "" : ", ") + n;
  return out;
}

/// Reads banner, comments and sizes; the source then stands at the first data line.
MatrixMarketHeader parse_header(TextSource& in, std::string const& path) {
  std::string_view line;
  ASTERISM_REQUIRE(in.next(line), format, "'{}' is empty; a Matrix Market file begins with %%MatrixMarket.", path);
  std::vector<std::string> words;
  std::string word;
  for (char const c : std::string(line) + " ") {
    if (c == ' ' || c == '\t') {
      if (!word.empty()) words.push_back(word);
      word.clear();
    } else {
      word += char(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  ASTERISM_REQUIRE(
      !words.empty() && words[0] == "%%matrixmarket", format,
      "'{}', line 1: '{}' is no Matrix Market banner, and nothing else says whether the file lists all entries or one triangle of "
      "a symmetric matrix. {}",
      path, line.substr(0, 40), banner);
  for (std::size_t i = 1; i < 5; ++i) {
    // a word of a later place here: what belongs here was left out
    auto const& at = names_of[i - 1];
    bool const later =
        i < words.size() && !one_of(words[i], at.names) &&
        std::any_of(names_of.begin() + std::ptrdiff_t(i), names_of.end(), [&](auto const& n) { return one_of(words[i], n.names); });
    ASTERISM_REQUIRE(i < words.size() && !later, format, "'{}', line 1: the banner '{}' lacks its {} ({}). {}", path, line, at.what,
                     joined(at.names), banner);
  }
  ASTERISM_REQUIRE(words[1] == "matrix", format, "'{}', line 1: '{}' is not 'matrix', and nothing else is read.", path, words[1]);
  MatrixMarketHeader h;
  auto const pick = [&](std::size_t i) {
    auto const& [what, names] = names_of[i - 1];
    auto const at = std::find(names.begin(), names.end(), words[i]);
    ASTERISM_REQUIRE(at != names.end(), format, "'{}', line 1: {} '{}' is not one of {}.", path, what, words[i], joined(names));
    return int(at - names.begin());
  };
  if (words[3] == "double") words[3] = "real";
  h.coordinate = pick(2) == 0;
  h.field = Field(pick(3));
  h.symmetry = Symmetry(pick(4));
  for (;;) {
    ASTERISM_REQUIRE(in.next(line), format, "'{}' ends before the line with the sizes.", path);
    line = trimmed(line);
    if (!line.empty() && line[0] != '%') break;
  }
  auto rest = line;
  bool ok = take_integer(rest, h.rows) && take_integer(rest, h.cols);
  if (h.coordinate) ok = ok && take_integer(rest, h.entries);
  ASTERISM_REQUIRE(ok && trimmed(rest).empty() && h.rows >= 0 && h.cols >= 0 && h.entries >= 0, format, "'{}', line {}: '{}' should be {}.",
                   path, in.line_number(), line, h.coordinate ? "rows, columns, entries" : "rows, columns");
  if (h.symmetry != Symmetry::general)
    ASTERISM_REQUIRE(h.rows == h.cols, format, "'{}', line {}: a symmetric matrix cannot be {} x {}.", path, in.line_number(), h.rows,
                     h.cols);
  if (!h.coordinate) {
    auto const n = h.rows;
    h.entries = h.symmetry == Symmetry::general ? checked_product(n, h.cols, "array file")
                : h.symmetry == Symmetry::skew  ? checked_product(n, n, "array file") / 2 - n / 2
                                                : (checked_product(n, n, "array file") + n) / 2;
  } else if (h.rows > 0 && h.cols > 0) {
    ASTERISM_REQUIRE(double(h.entries) <= double(h.rows) * double(h.cols) * 4, format,
                     "'{}', line {}: {} entries do not fit in a {} x {} matrix.", path, in.line_number(), h.entries, h.rows, h.cols);
  }
  return h;
}

/// My share of the data lines: fast(p, stop, most) reads lines from p on in their usual form and returns how many; f(line, line number)
/// reads any other, and words the error. Returns the data lines of all ranks; blank lines and comments do not count. Collective through
/// `comm` only for plain files.
template <class Fast, class F>
std::int64_t my_lines(TextSource& in, std::string const& path, MatrixMarketHeader const& h, comm::Communicator const& comm,
                      std::optional<Error>& error, Fast const& fast, F const& f) {
  auto const header_lines = in.line_number();
  auto const is_data = [](std::string_view s) { return !s.empty() && s[0] != '%'; };
  std::string_view text;
  std::int64_t seen = 0, lines = 0;
  // the line at p, of text; p goes on to the next
  auto const line_at = [&](char const*& p) {
    auto const* const stop = text.data() + text.size();
    auto const* const nl = static_cast<char const*>(std::memchr(p, '\n', std::size_t(stop - p)));
    std::string_view line(p, std::size_t((nl ? nl : stop) - p));
    p = nl ? nl + 1 : stop;
    return trimmed(line);
  };
  if (in.compressed() || comm.size() == 1) {
    auto const first = h.entries / comm.size() * comm.rank() + std::min<std::int64_t>(comm.rank(), h.entries % comm.size());
    auto const last = h.entries / comm.size() * (comm.rank() + 1) + std::min<std::int64_t>(comm.rank() + 1, h.entries % comm.size());
    try {
      // every rank reads to the end, so that a cut-off file is seen by all
      while (in.lines(text)) {
        auto const* p = text.data();
        auto const* const stop = p + text.size();
        for (lines = 0; p < stop;) {
          bool const mine = seen >= first && seen < last;
          if (auto const read = mine ? fast(p, stop, last - seen) : 0) {
            seen += read;
            lines += read;
            continue;
          }
          auto const line = line_at(p);
          ++lines;
          if (!is_data(line)) continue;
          if (mine) f(line, in.line_number() + lines);
          ++seen;
        }
        in.advance(text.size(), lines);
      }
    } catch (Error const& e) {
      error = e;
    }
    return seen;
  }
  auto const data = in.position(), size = TextSource::file_size(path);
  auto const cut = [&](std::int64_t r) { return data + (size - data) / comm.size() * r; };
  auto const begin = comm.rank() == 0 ? data : cut(comm.rank());
  auto const end = comm.rank() + 1 == comm.size() ? size : cut(comm.rank() + 1);
  std::vector<std::pair<std::int64_t, std::string>> wrong;  // lines that failed, by their place in my share
  in.seek(begin);
  while (in.position() < end && in.lines(text)) {
    auto const* p = text.data();
    auto const* const stop = p + std::min(std::int64_t(text.size()), end - in.position());
    while (p < stop) {
      if (auto const read = wrong.empty() ? fast(p, stop, EntryLines::most) : 0) {
        seen += read;
        lines += read;
        continue;
      }
      auto const line = line_at(p);
      ++lines;
      if (!is_data(line)) continue;
      ++seen;
      if (wrong.empty()) {
        try {
          f(line, -1);
        } catch (Error const& e) {
          wrong.emplace_back(lines, std::string(line));
        }
      }
    }
    in.advance(std::size_t(p - text.data()), 0);
  }
  auto const before = comm.exclusive_sum(lines);
  if (!wrong.empty()) {
    try {
      f(wrong[0].second, header_lines + before + wrong[0].first);
    } catch (Error const& e) {
      error = e;
    }
  }
  return comm.sum(seen);
}

template <class I>
struct Coordinates {
  std::vector<I> i, j;
  std::vector<double> values;  // real
  std::vector<Complex<double>> complex_values;
};

template <class I>
Coordinates<I> read_coordinates(std::string const& path, comm::Communicator const& comm, MatrixMarketHeader& h) {
  Coordinates<I> out;
  std::optional<Error> error;
  std::unique_ptr<TextSource> in;
  comm::agree(comm, [&] {
    in = std::make_unique<TextSource>(path);
    h = parse_header(*in, path);
  });
  // a header is somebody's claim: memory is reserved for what the file can hold at most
  auto const expected = std::min(h.entries, in->compressed() ? h.entries : TextSource::file_size(path) / 4) / comm.size() + 1;
  auto const reserve = std::min<std::int64_t>(expected, 1 << 26) * (h.symmetry == Symmetry::general ? 1 : 2);
  out.i.reserve(std::size_t(reserve));
  out.j.reserve(std::size_t(reserve));
  bool const is_complex_field = h.field == Field::complex, is_pattern = h.field == Field::pattern;
  if (is_complex_field) out.complex_values.reserve(std::size_t(reserve));
  else out.values.reserve(std::size_t(reserve));
  auto const put = [&](std::int64_t i, std::int64_t j, double re, double im) {
    out.i.push_back(I(i));
    out.j.push_back(I(j));
    if (is_complex_field) out.complex_values.push_back({re, im});
    else out.values.push_back(re);
  };
  // entry (i, j), counted from 1, and what symmetry makes of it
  auto const put_all = [&](std::int64_t i, std::int64_t j, double re, double im) {
    put(i - 1, j - 1, re, im);
    if (h.symmetry != Symmetry::general && i != j)
      put(j - 1, i - 1, h.symmetry == Symmetry::skew ? -re : re,
          h.symmetry == Symmetry::hermitian || h.symmetry == Symmetry::skew ? -im : im);
  };
  // a diagonal that the symmetry forbids; rounding of one that was computed is not meant
  auto const contradicts = [&](std::int64_t i, std::int64_t j, double re, double im) {
    if (i != j) return false;
    return h.symmetry == Symmetry::skew ? re != 0 || im != 0 : h.symmetry == Symmetry::hermitian && std::abs(im) > 1e-8 * std::abs(re);
  };
  EntryLines found;
  auto const fast = [&, values = is_complex_field ? 2
                                 : is_pattern     ? 0
                                                  : 1](char const*& p, char const* stop, std::int64_t most) {
    auto const* const start = p;
    p = read_entry_lines(start, stop, values, most, found);
    bool const general = h.symmetry == Symmetry::general;
    auto const bad = [&](std::int64_t e) {
      return std::uint64_t(found.i[e] - 1) >= std::uint64_t(h.rows) || std::uint64_t(found.j[e] - 1) >= std::uint64_t(h.cols) ||
             (!general && contradicts(found.i[e], found.j[e], found.re[e], is_complex_field ? found.im[e] : 0));
    };
    std::int64_t inside = 0;
    while (inside < found.count && !bad(inside)) ++inside;
    if (inside < found.count) p = read_entry_lines(start, stop, values, inside, found);  // the next one is an error
    if (general && !is_complex_field) {                                                  // all at once
      auto const before = out.i.size(), after = before + std::size_t(inside);
      out.i.resize(after);
      out.j.resize(after);
      out.values.resize(after);
      std::transform(found.i, found.i + inside, out.i.data() + before, [](std::int64_t i) { return I(i - 1); });
      std::transform(found.j, found.j + inside, out.j.data() + before, [](std::int64_t j) { return I(j - 1); });
      std::copy(found.re, found.re + inside, out.values.data() + before);
    } else {
      for (std::int64_t e = 0; e < inside; ++e) put_all(found.i[e], found.j[e], found.re[e], found.im[e]);
    }
    return inside;
  };
  auto const parse = [&](std::string_view line, std::int64_t number) {
    auto rest = line;
    std::int64_t i = 0, j = 0;
    double re = 1, im = 0;
    bool ok = take_integer(rest, i) && take_integer(rest, j);
    if (ok && h.field != Field::pattern) ok = take_real(rest, re, path, number);
    if (ok && is_complex_field) ok = take_real(rest, im, path, number);
    ASTERISM_REQUIRE(ok && trimmed(rest).empty(), format, "'{}', line {}: '{}' should be {}.", path, number, line.substr(0, 60),
                     h.field == Field::pattern ? "row, column"
                     : is_complex_field        ? "row, column, real part, imaginary part"
                                               : "row, column, value");
    ASTERISM_REQUIRE(i >= 1 && i <= h.rows && j >= 1 && j <= h.cols, format,
                     "'{}', line {}: entry ({}, {}) is outside the {} x {} matrix (indices start at 1).", path, number, i, j, h.rows,
                     h.cols);
    ASTERISM_REQUIRE(!contradicts(i, j, re, im), format, "'{}', line {}: '{}' is on the diagonal, which {}.", path, number,
                     line.substr(0, 60),
                     h.symmetry == Symmetry::skew ? "is zero in a skew-symmetric matrix" : "is real in a Hermitian matrix");
    put_all(i, j, re, im);
  };
  auto const lines = my_lines(*in, path, h, comm, error, fast, parse);
  if (!error && lines != h.entries)
    error = Error(ErrorKind::format, format("'{}' announces {} entries but holds {}: the file is {}.", path, h.entries, lines,
                                            lines < h.entries ? "truncated" : "longer than its header says"));
  comm::agree_on(comm, error);
  return out;
}

/// An array file's values in file order (column by column), on every rank.
std::vector<Complex<double>> read_array(std::string const& path, comm::Communicator const& comm, MatrixMarketHeader& h) {
  std::vector<Complex<double>> values;
  comm::agree(comm, [&] {
    TextSource in(path);
    h = parse_header(in, path);
    std::string_view line;
    while (in.next(line)) {
      line = trimmed(line);
      if (line.empty() || line[0] == '%') continue;
      auto rest = line;
      double re = 0, im = 0;
      auto const number = in.line_number();
      bool const ok = take_real(rest, re, path, number) && (h.field != Field::complex || take_real(rest, im, path, number));
      ASTERISM_REQUIRE(ok && trimmed(rest).empty(), format, "'{}', line {}: '{}' should be one value.", path, number, line.substr(0, 60));
      values.push_back({re, im});
    }
    ASTERISM_REQUIRE(std::int64_t(values.size()) == h.entries, format, "'{}' announces {} x {} values but holds {}.", path, h.rows, h.cols,
                     values.size());
  });
  return values;
}

/// (row, column) of every value of an array file.
template <class F>
void each_of_array(MatrixMarketHeader const& h, std::vector<Complex<double>> const& values, F const& f) {
  std::size_t at = 0;
  for (std::int64_t j = 0; j < h.cols; ++j)
    for (std::int64_t i = h.symmetry == Symmetry::general ? 0 : h.symmetry == Symmetry::skew ? j + 1 : j; i < h.rows; ++i) {
      auto const v = values[at++];
      f(i, j, v);
      if (h.symmetry != Symmetry::general && i != j)
        f(j, i, h.symmetry == Symmetry::symmetric ? v : h.symmetry == Symmetry::skew ? -v : conj(v));
    }
}

}  // namespace

MatrixMarketHeader read_matrix_market_header(std::string const& path) {
  TextSource in(path);
  return parse_header(in, path);
}

Matrix read_matrix_market(std::string const& path, comm::Communicator const& comm, std::int64_t block_size) {
  static int const event = profile::event("ReadMatrix");
  profile::Scope const scope(event);
  MatrixMarketHeader h;
  comm::agree(comm, [&] { h = read_matrix_market_header(path); });
  auto const rows = Layout::even(comm, h.rows, block_size);
  auto const cols = h.rows == h.cols ? rows : Layout::even(comm, h.cols);
  if (!h.coordinate) {
    auto const values = read_array(path, comm, h);
    std::vector<std::int64_t> i, j;
    std::vector<Complex<double>> v;
    if (comm.rank() == 0)
      each_of_array(h, values, [&](std::int64_t r, std::int64_t c, Complex<double> x) { i.push_back(r), j.push_back(c), v.push_back(x); });
    if (h.dtype() == Dtype::complex128) return Matrix::from_coo<std::int64_t>(rows, cols, h.dtype(), i, j, v.data());
    std::vector<double> re;
    for (auto const& x : v) re.push_back(x.re);
    return Matrix::from_coo<std::int64_t>(rows, cols, h.dtype(), i, j, re.data());
  }
  auto const assembled = [&](auto const& c) {
    void const* v = c.values.data();
    if (h.field == Field::complex) v = c.complex_values.data();
    auto A = Matrix::from_coo<typename decltype(c.i)::value_type>(rows, cols, h.dtype(), c.i, c.j, v);
    bool const general = h.symmetry == Symmetry::general;
    check_repeated_entries(path, A, std::int64_t(c.i.size()), !general, [&](auto const& f) {
      for (std::size_t e = 0; e < c.i.size(); ++e) {
        f(c.i[e], c.j[e]);
        if (!general && c.i[e] != c.j[e]) ++e;  // what comes next is its mirror image
      }
    });
    return A;
  };
  bool const narrow = std::max(h.rows, h.cols) <= limits().narrow_index;  // less memory to be filled
  return narrow ? assembled(read_coordinates<std::int32_t>(path, comm, h)) : assembled(read_coordinates<std::int64_t>(path, comm, h));
}

Vector read_matrix_market_vector(std::string const& path, Layout const& layout) {
  MatrixMarketHeader h;
  comm::agree(layout.comm(), [&] { h = read_matrix_market_header(path); });
  std::vector<std::int64_t> i, j;
  std::vector<Complex<double>> v;
  bool const row_vector = h.rows == 1 && h.cols == layout.global_size() && h.cols > 1;
  auto const n = row_vector ? h.cols : h.rows, k = row_vector ? 1 : h.cols;
  ASTERISM_REQUIRE(n == layout.global_size(), shape, "'{}' holds {} x {} values where {} rows are needed.", path, h.rows, h.cols,
                   layout.global_size());
  ASTERISM_REQUIRE(k >= 1, shape, "'{}' holds no columns.", path);
  if (h.coordinate) {
    auto const c = read_coordinates<std::int64_t>(path, comm::Communicator(), h);
    i = c.i, j = c.j;
    for (std::size_t e = 0; e < i.size(); ++e) v.push_back(h.field == Field::complex ? c.complex_values[e] : Complex<double>(c.values[e]));
  } else {
    auto const values = read_array(path, layout.comm(), h);
    each_of_array(h, values, [&](std::int64_t r, std::int64_t c, Complex<double> x) { i.push_back(r), j.push_back(c), v.push_back(x); });
  }
  if (row_vector) std::swap(i, j);
  Vector x(layout, h.dtype(), k);
  fill(x, 0.0);
  with_dtype(h.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (std::size_t e = 0; e < i.size(); ++e)
      if (layout.owns(i[e])) x.host<T>()[std::size_t((i[e] - layout.begin()) * k + j[e])] += from_complex<T>({v[e].re, v[e].im});
  });
  return x;
}

namespace {
/// The header, then one text of all ranks, in their order, after the other.
void write_texts(std::string const& path, comm::Communicator const& comm, std::string const& header, std::vector<std::string> const& mine) {
  auto end = std::int64_t(header.size());
  std::vector<std::int64_t> places;
  for (auto const& text : mine) {
    auto const n = std::int64_t(text.size());
    places.push_back(end + comm.exclusive_sum(n));
    end += comm.sum(n);
  }
  OutputFile file(path, comm, end);
  comm::agree(comm, [&] {
    if (comm.rank() == 0) file.write_at(0, std::span<char const>(header));
    for (std::size_t t = 0; t < mine.size(); ++t) file.write_at(places[t], std::span<char const>(mine[t]));
  });
  file.finish();
}

void put_number(std::string& out, double v) {
  char b[40];
  auto const r = std::to_chars(b, b + sizeof b, v);
  out.append(b, r.ptr);
}
template <class T>
void put_value(std::string& out, T v) {
  put_number(out, double(real(v)));
  if constexpr (is_complex_v<T>) {
    out += ' ';
    put_number(out, double(imag(v)));
  }
}
}  // namespace

void write_matrix_market(std::string const& path, Vector const& x) {
  auto const k = x.columns();
  std::string const field = is_complex(x.dtype()) ? "complex" : "real";
  std::vector<std::string> columns(static_cast<std::size_t>(k));  // the array format goes column by column
  with_dtype(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto const v = x.host<T>();
    for (std::int64_t j = 0; j < k; ++j)
      for (std::int64_t i = 0; i < x.local_size(); ++i) {
        put_value(columns[std::size_t(j)], v[std::size_t(i * k + j)]);
        columns[std::size_t(j)] += '\n';
      }
  });
  write_texts(path, x.comm(), format("%%MatrixMarket matrix array {} general\n{} {}\n", field, x.global_size(), k), columns);
}

void write_matrix_market(std::string const& path, Matrix const& A) {
  auto const rows = A.to_rows();
  std::string mine;
  with_dtype(A.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (std::size_t r = 0; r + 1 < rows.offsets.size(); ++r)
      for (auto p = rows.offsets[r]; p < rows.offsets[r + 1]; ++p) {
        mine += std::to_string(A.range().begin() + std::int64_t(r) + 1) + ' ' + std::to_string(rows.columns[std::size_t(p)] + 1) + ' ';
        put_value(mine, rows.values.as<T>()[p]);
        mine += '\n';
      }
  });
  write_texts(path, A.comm(),
              format("%%MatrixMarket matrix coordinate {} general\n{} {} {}\n", is_complex(A.dtype()) ? "complex" : "real", A.global_rows(),
                     A.global_cols(), A.nnz()),
              {mine});
}

}  // namespace asterism::la::io
