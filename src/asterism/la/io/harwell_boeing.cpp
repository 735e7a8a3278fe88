#include "asterism/la/io/harwell_boeing.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "asterism/base/profile.hpp"
#include "asterism/la/io/repeated_entries.hpp"
#include "asterism/la/io/text_source.hpp"

namespace asterism::la::io {
namespace {

using i64 = std::int64_t;

/// (1P,5E15.8), (16I5), (4(D20.12)): so many fields of so many characters a line.
struct Format {
  i64 per_line = 1, width = 0;
  int scale = 0;  // P: numbers without an exponent are read as 10^-scale times what stands there
};

class Reader {
 public:
  explicit Reader(std::string path) : path_(std::move(path)), in_(path_) {}

  std::string_view line(char const* what) {
    ASTERISM_REQUIRE(in_.next(line_), format, "'{}' ends in line {}, before {}.", path_, in_.line_number(), what);
    return line_;
  }
  std::string const& path() const { return path_; }
  template <class... A>
  [[noreturn]] void bad(std::string_view text, A const&... a) const {
    fail(ErrorKind::format, "'{}', line {}: {}", path_, in_.line_number(), asterism::format(text, a...));
  }
  /// Characters [from, from + width) of a line.
  static std::string_view part(std::string_view line, std::size_t from, std::size_t width) {
    return from >= line.size() ? std::string_view() : trimmed(line.substr(from, width));
  }
  i64 integer(std::string_view s, char const* what) const {
    i64 v = 0;
    s = trimmed(s);
    if (!s.empty() && s[0] == '+') s.remove_prefix(1);
    auto const r = std::from_chars(s.data(), s.data() + s.size(), v);
    if (s.empty() || r.ec != std::errc() || r.ptr != s.data() + s.size()) bad("'{}' should be {}.", s, what);
    return v;
  }
  double real(std::string_view s, Format const& f, char const* what) {
    s = trimmed(s);
    number_.clear();
    bool exponent = false, digits = false;
    for (char const c : s) {
      if (c == 'd' || c == 'D' || c == 'e' || c == 'E' || c == 'q' || c == 'Q') {
        number_ += 'e';
        exponent = true;
      } else if ((c == '+' || c == '-') && digits && !exponent) {  // 1.5-300
        number_ += 'e';
        exponent = true;
        if (c == '-') number_ += c;
      } else if (c != '+') {
        number_ += c;
      }
      digits = digits || (c >= '0' && c <= '9') || c == '.';
    }
    double v = 0;
    if (!real_from(number_, v, path_, in_.line_number())) bad("'{}' should be {}.", s, what);
    return exponent || f.scale == 0 ? v : v * std::pow(10.0, -f.scale);
  }
  Format format_of(std::string_view given, char const* what) const {
    std::string text(given);
    std::erase(text, ' ');  // they mean nothing in Fortran: (5E 16.8)
    Format f;
    i64 number = -1;
    bool found = false;
    std::size_t open = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      char const c = char(std::toupper(static_cast<unsigned char>(text[i])));
      if (c >= '0' && c <= '9') {
        number = (number < 0 ? 0 : number) * 10 + (c - '0');
        if (number > 1 << 20) break;
      } else if (c == 'P') {
        f.scale = int(number);
        number = -1;
      } else if (c == '(') {
        if (++open == 2 && number > 0) f.per_line = number;  // 4(1PD20.12)
        number = -1;
      } else if (c == 'I' || c == 'E' || c == 'D' || c == 'F' || c == 'G') {
        if (number > 0) f.per_line *= number;
        number = 0;
        for (++i; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i) number = std::min<i64>(number * 10 + (text[i] - '0'), 1 << 20);
        f.width = number;
        found = true;
        break;
      } else if (c == ',' || c == 'X' || c == ')') {
        number = -1;
      } else {
        break;
      }
    }
    if (!found || f.width < 1 || f.per_line < 1)
      bad("'{}' is no format of {} that is understood, as (16I5) or (1P,5E15.8).", trimmed(given), what);
    return f;
  }
  /// n fields, each given to take(text).
  template <class F>
  void fields(i64 n, Format const& f, char const* what, F const& take) {
    for (i64 i = 0; i < n;) {
      auto const l = line(what);
      for (i64 j = 0; j < f.per_line && i < n; ++j, ++i) take(part(l, std::size_t(j * f.width), std::size_t(f.width)));
    }
  }

 private:
  std::string path_;
  TextSource in_;
  std::string_view line_;
  std::string number_;
};

struct Header {
  char values = 'r', symmetry = 'u';
  i64 rows = 0, cols = 0, entries = 0;
  i64 rhs = 0;  // right-hand sides in full
  Format pointers, indices, numbers, rhs_numbers;
  bool complex() const { return values == 'c'; }
};

Header read_header(Reader& in) {
  Header h;
  in.line("the title");
  auto const counts = std::string(in.line("the numbers of lines"));
  auto const value_lines = in.part(counts, 42, 14).empty() ? 0 : in.integer(in.part(counts, 42, 14), "a number of lines");
  auto const rhs_field = in.part(counts, 56, 14);
  auto const rhs_lines = rhs_field.empty() ? 0 : in.integer(rhs_field, "a number of lines");
  auto const sizes = std::string(in.line("the type and the sizes"));
  auto type = std::string(in.part(sizes, 0, 3));
  for (auto& c : type) c = char(std::tolower(static_cast<unsigned char>(c)));
  auto const one_of = [&](std::size_t at, std::string_view letters) { return letters.find(type[at]) != std::string_view::npos; };
  if (type.size() != 3 || !one_of(0, "rcpiq") || !one_of(1, "suhzr") || !one_of(2, "ae"))
    in.bad("'{}' is not the type of a Harwell-Boeing or Rutherford-Boeing matrix, as RUA.", in.part(sizes, 0, 3));
  if (type[2] == 'e')
    fail(ErrorKind::unsupported, "'{}': the matrix is given by elements ({}); only assembled ones are read.", in.path(), type);
  h.values = type[0] == 'q' || value_lines == 0 ? 'p' : type[0];
  h.symmetry = type[1];
  h.rows = in.integer(in.part(sizes, 14, 14), "the number of rows");
  h.cols = in.integer(in.part(sizes, 28, 14), "the number of columns");
  h.entries = in.integer(in.part(sizes, 42, 14), "the number of entries");
  if (h.rows < 0 || h.cols < 0 || h.entries < 0 || double(h.entries) > double(h.rows) * double(h.cols))
    in.bad("{} entries do not fit in a {} x {} matrix.", h.entries, h.rows, h.cols);
  if ((h.symmetry == 's' || h.symmetry == 'h' || h.symmetry == 'z') && h.rows != h.cols)
    in.bad("a symmetric matrix cannot be {} x {}.", h.rows, h.cols);
  auto const formats = std::string(in.line("the formats"));
  h.pointers = in.format_of(formats.substr(0, 16), "the pointers");
  h.indices = in.format_of(formats.size() > 16 ? formats.substr(16, 16) : "", "the row indices");
  if (h.values != 'p') h.numbers = in.format_of(formats.size() > 32 ? formats.substr(32, 20) : "", "the values");
  if (rhs_lines > 0) {
    auto const rhs = std::string(in.line("the type of the right-hand sides"));
    auto const form = in.part(rhs, 0, 3);
    if (!form.empty() && (form[0] == 'F' || form[0] == 'f')) {
      h.rhs = in.integer(in.part(rhs, 14, 14), "the number of right-hand sides");
      h.rhs_numbers = formats.size() > 52 ? in.format_of(formats.substr(52, 20), "the right-hand sides") : h.numbers;
    }
  }
  return h;
}

std::vector<i64> read_pointers(Reader& in, Header const& h) {
  std::vector<i64> pointers;
  in.fields(h.cols + 1, h.pointers, "the pointers", [&](std::string_view s) {
    auto const p = in.integer(s, "a pointer") - 1;
    if (p < 0 || p > h.entries || (!pointers.empty() && p < pointers.back()))
      in.bad("pointer {} of column {} is not between {} and {}.", p + 1, pointers.size() + 1, pointers.empty() ? 1 : pointers.back() + 1,
             h.entries + 1);
    pointers.push_back(p);
  });
  if (pointers.front() != 0 || pointers.back() != h.entries)
    in.bad("the pointers go from {} to {}, not from 1 to {}.", pointers.front() + 1, pointers.back() + 1, h.entries + 1);
  return pointers;
}

}  // namespace

i64 harwell_boeing_rows(std::string const& path) {
  Reader in(path);
  return read_header(in).rows;
}

Matrix read_harwell_boeing(std::string const& path, comm::Communicator const& comm, i64 block_size) {
  static int const event = profile::event("ReadMatrix");
  profile::Scope const scope(event);
  Header h;
  std::unique_ptr<Reader> in;
  comm::agree(comm, [&] {
    in = std::make_unique<Reader>(path);
    h = read_header(*in);
  });
  auto const rows = Layout::even(comm, h.rows, block_size), cols = h.rows == h.cols ? rows : Layout::even(comm, h.cols);
  std::vector<i64> i, j;
  std::vector<double> v;           // pairs where complex
  std::vector<i64> pointers, all;  // of the file
  comm::agree(comm, [&] {
    pointers = read_pointers(*in, h);
    all.reserve(std::size_t(std::min<i64>(h.entries, 1 << 24)));  // a header is somebody's claim
    in->fields(h.entries, h.indices, "the row indices", [&](std::string_view s) {
      auto const r = in->integer(s, "a row index") - 1;
      if (r < 0 || r >= h.rows) in->bad("row {} is outside the {} x {} matrix (indices start at 1).", r + 1, h.rows, h.cols);
      all.push_back(r);
    });
    int const parts = h.complex() ? 2 : 1;
    std::vector<double> numbers(std::size_t(h.entries * parts), 1.0);
    if (h.values != 'p') {
      std::size_t at = 0;
      in->fields(h.entries * parts, h.numbers, "the values",
                 [&](std::string_view s) { numbers[at++] = in->real(s, h.numbers, "a value"); });
    }
    auto const put = [&](i64 r, i64 c, i64 e, double re_sign, double im_sign) {
      if (!rows.owns(r)) return;
      i.push_back(r);
      j.push_back(c);
      v.push_back(re_sign * numbers[std::size_t(e * parts)]);
      if (parts == 2) v.push_back(im_sign * numbers[std::size_t(e * parts) + 1]);
    };
    for (i64 c = 0; c < h.cols; ++c)
      for (auto e = pointers[std::size_t(c)]; e < pointers[std::size_t(c) + 1]; ++e) {
        auto const r = all[std::size_t(e)];
        if (r == c && (h.symmetry == 'z' || h.symmetry == 'h')) {
          double const re = numbers[std::size_t(e * parts)], im = parts == 2 ? numbers[std::size_t(e * parts) + 1] : 0;
          ASTERISM_REQUIRE(h.symmetry == 'z' ? re == 0 && im == 0 : std::abs(im) <= 1e-8 * std::abs(re), format,
                           "'{}': the diagonal entry of row {} is {} + {} i, but the diagonal of {}.", path, r + 1, re, im,
                           h.symmetry == 'z' ? "a skew-symmetric matrix is zero" : "a Hermitian matrix is real");
        }
        put(r, c, e, 1, 1);
        if (r == c) continue;
        if (h.symmetry == 's') put(c, r, e, 1, 1);
        else if (h.symmetry == 'h') put(c, r, e, 1, -1);
        else if (h.symmetry == 'z') put(c, r, e, -1, -1);
      }
  });
  auto A = Matrix::from_coo<i64>(rows, cols, h.complex() ? Dtype::complex128 : Dtype::float64, i, j, v.data());
  bool const one_triangle = h.symmetry == 's' || h.symmetry == 'h' || h.symmetry == 'z';
  check_repeated_entries(path, A, i64(i.size()), one_triangle, [&](auto const& f) {
    for (i64 c = 0; c < h.cols && comm.rank() == 0; ++c)  // every rank has read them all
      for (auto e = pointers[std::size_t(c)]; e < pointers[std::size_t(c) + 1]; ++e) f(all[std::size_t(e)], c);
  });
  return A;
}

Vector read_harwell_boeing_rhs(std::string const& path, Layout const& layout) {
  Header h;
  std::vector<double> numbers;
  comm::agree(layout.comm(), [&] {
    Reader in(path);
    h = read_header(in);
    ASTERISM_REQUIRE(h.rhs > 0, format, "'{}' holds no right-hand sides in full.", path);
    ASTERISM_REQUIRE(h.rows == layout.global_size(), shape, "'{}' holds right-hand sides of {} where {} rows are needed.", path, h.rows,
                     layout.global_size());
    read_pointers(in, h);
    int const parts = h.complex() ? 2 : 1;
    in.fields(h.entries, h.indices, "the row indices", [](std::string_view) {});
    if (h.values != 'p') in.fields(h.entries * parts, h.numbers, "the values", [](std::string_view) {});
    in.fields(h.rows * h.rhs * parts, h.rhs_numbers, "the right-hand sides",
              [&](std::string_view s) { numbers.push_back(in.real(s, h.rhs_numbers, "a value")); });
  });
  int const parts = h.complex() ? 2 : 1;
  Vector x(layout, h.complex() ? Dtype::complex128 : Dtype::float64, h.rhs);
  auto* const out = reinterpret_cast<double*>(x.data().raw());
  for (i64 r = 0; r < layout.local_size(); ++r)
    for (i64 k = 0; k < h.rhs; ++k)
      for (int p = 0; p < parts; ++p)
        out[(r * h.rhs + k) * parts + p] = numbers[std::size_t((k * h.rows + layout.begin() + r) * parts + p)];
  return x;
}

}  // namespace asterism::la::io
