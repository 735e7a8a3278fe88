// Threads share the entries of a product, not its rows: no number of them changes a bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "asterism/device/host/team.hpp"
#include "asterism/la/formats/format.hpp"
#include "asterism/la/vectors/vector.hpp"
#include "harness/world.hpp"

using namespace asterism;
using namespace asterism::la;

namespace {

/// Most rows are short, and those in the middle are long: the entries of half the rows are not half the entries.
Csr uneven_rows(Dtype d) {
  std::int32_t const n = 3000;
  std::vector<std::int64_t> ptr{0};
  std::vector<std::int32_t> col;
  for (std::int32_t i = 0; i < n; ++i) {
    std::int32_t const length = i % 41 == 0 ? 0 : i > 1400 && i < 1600 ? 90 + i % 3 : 2 + i / 250;
    for (std::int32_t l = 0; l < length; ++l) col.push_back((i + l * 31) % n);
    std::sort(col.begin() + ptr.back(), col.end());
    ptr.push_back(std::int64_t(col.size()));
  }
  Csr a(d, n, n, std::int64_t(col.size()));
  std::copy(ptr.begin(), ptr.end(), a.row_offsets().begin());
  std::copy(col.begin(), col.end(), a.column_indices().begin());
  Vector values(Layout::from_offsets(comm::Communicator(), {0, std::int64_t(col.size())}), d);
  fill_hashed(values, 4);
  std::memcpy(a.values.raw(), values.data().raw(), a.values.bytes());
  return a;
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
  for (auto const d : {Dtype::float32, Dtype::float64, Dtype::complex64, Dtype::complex128}) {
    auto const a = uneven_rows(d);
    auto const layout = Layout::from_offsets(comm::Communicator(), {0, a.rows});
    for (auto const writes : {Writes::all_rows, Writes::rows_with_entries})
      for (auto const& format : formats()) {
        auto const made = format.make(a, writes, FormatChoice::wherever_possible);
        if (!made) continue;
        for (auto const e : {Epilogue::assign, Epilogue::residual, Epilogue::smooth, Epilogue::add, Epilogue::subtract_scaled})
          for (std::int64_t const k : {1, 3}) {
            if ((writes == Writes::all_rows) != (e == Epilogue::assign || e == Epilogue::residual || e == Epilogue::smooth)) continue;
            Vector x(layout, d, k), b(layout, d, k), w(layout, d), y(layout, d, k), z(layout, d, k);
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
