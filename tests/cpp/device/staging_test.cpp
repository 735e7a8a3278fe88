// Copies of long arrays between the host and the GPU, in pieces.
#include <gtest/gtest.h>

#include <random>
#include <thread>
#include <vector>

#include "asterism/device/gpu/gpu.hpp"
#include "harness/gpu.hpp"

using namespace asterism::device;

TEST(Staging, LongCopiesGoInPieces) {
  gpu::open("cuda");
  auto const there_and_back = [](unsigned seed, bool alone) {  // two arrays in a row, whose pieces follow each other without a wait
    gpu::OnDevice const here;
    auto* const stream = gpu::threads_stream();
    constexpr std::size_t piece = std::size_t(4) << 20;
    for (auto const bytes : {std::size_t(1), piece - 1, piece, piece + 1, 5 * piece, 9 * piece + 13}) {
      std::vector<unsigned char> sent[2], found(bytes);
      void* data[2];
      std::mt19937 random(seed + unsigned(bytes));
      for (int i = 0; i < 2; ++i) {
        sent[i].resize(bytes);
        for (std::size_t at = 0; at < bytes; at += 509) sent[i][at] = static_cast<unsigned char>(random());
        sent[i].back() = static_cast<unsigned char>(i + 1);
        data[i] = gpu::allocate(bytes, stream);
      }
      for (int i = 0; i < 2; ++i) {
        auto copy = sent[i];
        gpu::copy_in(data[i], copy.data(), bytes, stream);
        if (alone && bytes >= piece) std::fill(copy.begin(), copy.end(), static_cast<unsigned char>(255));  // it has been read
        else gpu::wait(stream);                                                                             // the emulated GPU reads later
      }
      for (int const i : {1, 0, 1}) {
        std::fill(found.begin(), found.end(), static_cast<unsigned char>(0));
        gpu::copy_out(found.data(), data[i], bytes, stream);
        EXPECT_TRUE(found == sent[i]) << bytes;
      }
      for (auto* const d : data) gpu::release(d, bytes);
    }
  };
  there_and_back(1, true);
  std::thread other([&] { there_and_back(2, false); });
  there_and_back(3, false);
  other.join();
}
