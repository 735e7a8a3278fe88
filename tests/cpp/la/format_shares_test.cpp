// However threads share a product, no number of them changes a bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "asterism/device/host/team.hpp"
#include "asterism/la/formats/format.hpp"
#include "asterism/la/vectors/vector.hpp"
#include "la/hashed_csr.hpp"

using namespace asterism;
using namespace asterism::la;

namespace {

/// Most rows are short, and those in the middle are long: the entries of half the rows are not half the entries. Columns are `apart`.
Csr uneven_rows(Dtype d, std::int32_t apart) {
  std::int32_t const n = 3000;
  std::vector<std::int64_t> ptr{0};
  std::vector<std::int32_t> col;
  for (std::int32_t i = 0; i < n; ++i) {
    std::int32_t const length = i % 41 == 0 ? 0 : i > 1400 && i < 1600 ? 90 + i % 3 : 2 + i / 250;
    for (std::int32_t l = 0; l < length; ++l) col.push_back((i + l * 31) % n * apart);
    std::sort(col.begin() + ptr.back(), col.end());
    ptr.push_back(std::int64_t(col.size()));
  }
  return test::hashed(d, n, n * apart, ptr, col);
}

class TeamOf {
 public:
  explicit TeamOf(int size) { device::host::set_team_size(size); }
  TeamOf(TeamOf const&) = delete;
  TeamOf& operator=(TeamOf const&) = delete;
  ~TeamOf() { device::host::set_team_size(before_); }

 private:
  int const before_ = device::host::team_size();
};

}  // namespace

TEST(SparseFormat, SharesOfThreadsChangeNoBits) {
  struct Case {
    Dtype dtype;
    std::int32_t apart = 1;  // columns: far apart they are stored in 32 bits
    bool bfloat16 = false;
  };
  for (auto const& of : {Case{Dtype::float32}, Case{Dtype::float64}, Case{Dtype::complex64}, Case{Dtype::complex128},
                         Case{Dtype::float32, 100}, Case{Dtype::float64, 100}, Case{Dtype::float32, 1, true}}) {
    auto const d = of.dtype;
    auto const plain = uneven_rows(d, of.apart), a = of.bfloat16 ? rounded_to_bfloat16(plain) : plain;
    auto const rows = Layout::from_offsets(comm::Communicator(), {0, a.rows}),
               columns = Layout::from_offsets(comm::Communicator(), {0, a.cols});
    for (auto const writes : {Writes::all_rows, Writes::rows_with_entries})
      for (auto const& format : formats()) {
        auto const made = format.make(a, writes, FormatChoice::wherever_possible);
        if (!made) continue;
        for (auto const e : {Epilogue::assign, Epilogue::residual, Epilogue::smooth, Epilogue::add, Epilogue::subtract_scaled})
          for (std::int64_t const k : {1, 3}) {
            if (written_by(e) != writes) continue;
            if (e == Epilogue::smooth && a.rows != a.cols) continue;
            Vector x(columns, d, k), b(rows, d, k), w(rows, d), y(rows, d, k), z(rows, d, k);
            fill_hashed(x, 1);
            fill_hashed(b, 2);
            fill_hashed(w, 3);
            auto const multiply = [&](int threads, Vector& to) {
              TeamOf const team(threads);
              fill(to, 1.0);
              made->run(device::Queue::host(), e, k, x.data(), to.data(), b.data(), w.data());
            };
            multiply(1, y);
            for (int const threads : {2, 3, 7}) {
              multiply(threads, z);
              EXPECT_EQ(std::memcmp(y.data().raw(), z.data().raw(), y.data().bytes()), 0)
                  << made->name() << " " << name_of(d) << " " << int(e) << " " << threads << " threads";
            }
          }
      }
  }
}
