// Queues, memory and kernels of a GPU, on the emulated one (gpu_emulation/cuda_runtime.h): the plug-in's own source runs.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "../../gpu_emulation/cuda_runtime.h"
#include "asterism/base/error.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/device/condition.hpp"
#include "asterism/device/gpu/api.hpp"
#include "asterism/device/gpu/gpu.hpp"
#include "asterism/device/scalar.hpp"
#include "asterism/la/formats/format.hpp"
#include "asterism/la/matrix.hpp"
#include "asterism/la/vectors/vector.hpp"
#include "harness/gpu.hpp"

using namespace asterism;
using namespace asterism::device;
using la::Vector;

namespace {

comm::Layout rows(std::int64_t n) { return comm::Layout::even(comm::Communicator(), n); }

template <class T>
T random_value(std::mt19937& random) {
  std::uniform_real_distribution<double> u(-1, 1);
  if constexpr (is_complex_v<T>) return T(real_t<T>(u(random)), real_t<T>(u(random)));
  else return T(u(random));
}

template <class T>
Vector random_vector(std::int64_t n, std::int64_t k, Queue const& queue, unsigned seed) {
  Vector v(rows(n), dtype_v<T>, k, queue);
  std::mt19937 random(seed);
  for (auto& x : v.host<T>()) x = random_value<T>(random);
  return v;
}

template <class T>
double distance(Vector const& a, Vector const& b) {
  double most = 0;
  auto const x = a.host<T>(), y = b.host<T>();
  for (std::size_t i = 0; i < x.size(); ++i) most = std::max(most, double(magnitude(x[i] - y[i])));
  return most;
}

template <class T>
double close() {
  return sizeof(real_t<T>) == 4 ? 1e-4 : 1e-12;
}

std::int64_t copies() {
  std::int64_t n = 0;
  for (auto const& c : copy_counts()) n += c.to_apart + c.to_host;
  return n;
}

std::int64_t on_the_host() {
  std::int64_t n = 0;
  for (auto const& w : gpu::without_form()) n += w.count;
  return n;
}

template <class F>
void for_dtypes(F const& f) {
  f(float());
  f(double());
  f(Complex<float>());
  f(Complex<double>());
}

}  // namespace

TEST(Gpu, VectorsAgreeWithTheHost) {
  auto const before = on_the_host();
  for_dtypes([](auto tag) {
    using T = decltype(tag);
    for (std::int64_t const n : {0, 1, 7, 1300})
      for (std::int64_t const k : {1, 3, 9}) {
        std::vector<Vector> results;
        std::vector<std::vector<Scalar::Value>> sums;
        for (auto const& queue : {Queue::host(), Queue::gpu("cuda")}) {
          auto x = random_vector<T>(n, k, queue, 1), y = random_vector<T>(n, k, queue, 2), z = x.like();
          auto d = random_vector<T>(n, 1, queue, 3);
          std::vector<Scalar::Value> values;
          for (std::int64_t j = 0; j < k; ++j) values.emplace_back(0.5 + 0.25 * double(j));
          Scalar const a(values);
          copy(x, z);
          scale(0.75, z);
          axpy(a, x, y);
          axpby(a, y, 0.0, z);
          axpby(-1.0, x, a, z);
          multiply(d, z, z);
          multiply_add(a, d, x, y);
          auto const xy = dot(x, y), sure = real_part(dot(x, x)) + 1.0;
          auto const ratio = select(less(sure, 0.0), 0.0, xy / sqrt(sure));  // a tape of many steps
          axpy(ratio, x, z);
          auto w = x.like();
          fill(w, ratio);
          chebyshev_step(0.5, 0.25, d, x, w, z);
          auto const norm2 = update_and_norm2(conj(ratio), x, y, w, z);
          auto const agree = [&](Scalar const& sum) {  // with a pass of its own
            auto const one = sum.values(), two = dot(z, w).values();
            for (std::size_t j = 0; j < one.size(); ++j) ASSERT_LT(std::abs(one[j] - two[j]), close<T>() * (1 + std::abs(two[j])) * 10);
          };
          auto const rz = multiply_and_dot(d, z, w);
          agree(rz);
          Vector other(x.space(), with_precision_of(x.dtype(), sizeof(real_t<T>) == 4 ? Dtype::float64 : Dtype::float32), k, queue);
          copy(w, other);
          scale(3.0, other);
          copy(other, w);
          auto const mixed = mixed_update_and_norm2(ratio, x, y, w, z, other);
          mixed_aypx(a, other, w);
          for (auto const& s : {xy, ratio, norm2, rz, mixed}) sums.push_back(s.values());
          axpy(1.0, w, z);
          results.push_back(z);
        }
        ASSERT_LT(distance<T>(results[0], results[1]), close<T>() * double(n + 1)) << n << " " << k;
        for (std::size_t i = 0; i < sums.size() / 2; ++i)
          for (std::size_t j = 0; j < sums[i].size(); ++j) {
            auto const one = sums[i][j], two = sums[i + sums.size() / 2][j];
            ASSERT_LT(std::abs(one - two), close<T>() * (1 + std::abs(one)) * 10) << n << " " << k << " " << i;
          }
      }
  });
  EXPECT_EQ(on_the_host(), before) << "each of them has a form";
}

TEST(Gpu, BasesAgreeWithTheHost) {
  for_dtypes([](auto tag) {
    using T = decltype(tag);
    for (std::int64_t const m : {1, 5, 30, 70}) {
      std::vector<Vector> results;
      std::vector<Scalar::Value> sums;
      for (auto const& queue : {Queue::host(), Queue::gpu("cuda")}) {
        auto w = random_vector<T>(700, 1, queue, 4);
        la::Basis const basis(w, m);
        for (std::int64_t j = 0; j < m; ++j) {
          auto v = basis[j];
          copy(random_vector<T>(700, 1, queue, 5 + unsigned(j)), v);
        }
        auto h = basis.dots(m, w);
        for (auto const& s : h) sums.push_back(s.value());
        for (auto& s : h) s = -s * (1.0 / 700);
        basis.add(m, h, w);
        results.push_back(w);
      }
      ASSERT_LT(distance<T>(results[0], results[1]), close<T>() * 100);
      for (std::size_t j = 0; j < std::size_t(m); ++j) ASSERT_LT(std::abs(sums[j] - sums[j + std::size_t(m)]), close<T>() * 100);
    }
  });
}

TEST(Gpu, ProductsAgreeWithTheHostInEachFormat) {
  for_dtypes([](auto tag) {
    using T = decltype(tag);
    using la::Epilogue;
    using la::Writes;
    std::mt19937 random(7);
    for (int const shape : {0, 1, 2, 3}) {  // a grid, the same with constant values, random rows of many lengths, empty
      std::int32_t const n = shape == 3 ? 0 : 37 * 13;
      std::vector<std::int64_t> offsets{0};
      std::vector<std::int32_t> columns;
      std::vector<T> values;
      for (std::int32_t i = 0; i < n; ++i) {
        if (shape < 2) {
          for (auto const c : {i - 37, i - 1, i, i + 1, i + 37})
            if (c >= 0 && c < n) columns.push_back(c), values.push_back(shape == 1 ? T(c == i ? 4 : -1) : random_value<T>(random));
        } else {
          auto const length = i % 97 == 0 ? 80 : std::int32_t(random() % 12);
          for (std::int32_t l = 0; l < length; ++l)
            if (auto const c = std::int32_t((l * n) / (length + 1) + std::int32_t(random() % 5)); c < n)
              columns.push_back(c), values.push_back(random_value<T>(random));
        }
        offsets.push_back(std::int64_t(columns.size()));
      }
      la::Csr a(dtype_v<T>, n, n, std::int64_t(columns.size()));
      std::copy(offsets.begin(), offsets.end(), a.row_offsets().begin());
      std::copy(columns.begin(), columns.end(), a.column_indices().begin());
      std::copy(values.begin(), values.end(), a.template entries<T>().begin());
      for (auto const& format : la::formats())
        for (auto const writes : {Writes::all_rows, Writes::rows_with_entries}) {
          auto const p = format.make(a, writes, la::FormatChoice::wherever_possible);
          if (!p) continue;
          for (std::int64_t const k : {1, 3})
            for (auto const e : writes == Writes::rows_with_entries
                                    ? std::vector{Epilogue::add, Epilogue::subtract, Epilogue::subtract_scaled}
                                    : std::vector{Epilogue::assign, Epilogue::residual, Epilogue::smooth}) {
              std::vector<Vector> results;
              for (auto const& queue : {Queue::host(), Queue::gpu("cuda")}) {
                auto x = random_vector<T>(n, k, queue, 1), y = random_vector<T>(n, k, queue, 2), b = random_vector<T>(n, k, queue, 3);
                auto w = random_vector<T>(n, 1, queue, 4);
                p->run(queue, e, k, x.data(), y.data(), b.data(), w.data());
                results.push_back(y);
              }
              ASSERT_LT(distance<T>(results[0], results[1]), close<T>() * 10) << "shape " << shape << " " << p->name();
            }
        }
    }
  });
}

TEST(Gpu, NothingIsCopiedBetweenOperations) {
  auto const queue = Queue::gpu("cuda");
  auto x = random_vector<double>(1000, 1, queue, 1), y = random_vector<double>(1000, 1, queue, 2);
  axpy(0.5, x, y);  // brings both there
  reset_copy_counts();
  for (int i = 0; i < 50; ++i) {
    auto const s = dot(x, y);
    axpy(s / (s + 1.0), x, y);
  }
  EXPECT_EQ(copies(), 0);
  (void)y.host<double>();
  EXPECT_EQ(copies(), 1);
  scale(2.0, x);
  set_forbid_copies(true);
  EXPECT_THROW(submit_on_host(queue, [](Executor&, double const*) {}, read<double>(x.data())), Error);
  set_forbid_copies(false);
}

TEST(Gpu, WhatHasNoFormRunsOnTheHostAndIsCounted) {
  auto const queue = Queue::gpu("cuda");
  auto const before = on_the_host();
  auto x = random_vector<double>(10, 1, queue, 1);
  scale(2.0, x);
  auto const expected = x.host<double>()[3] + 1;
  {
    profile::Scope const scope(profile::event("NoSuchForm"));
    submit(
        queue,
        [](Executor& executor, double* v) {
          ASSERT_TRUE(executor.stream() != nullptr);  // a lambda: no form
          v[3] += 1;
        },
        update<double>(x.data()));
  }
  scale(2.0, x);
  EXPECT_EQ(x.host<double>()[3], 2 * expected);
  EXPECT_EQ(on_the_host(), before + 1);
  bool named = false;
  for (auto const& w : gpu::without_form()) named = named || w.event == "NoSuchForm";
  EXPECT_TRUE(named);
}

TEST(Gpu, LongExpressionsAndWideValues) {
  auto const queue = Queue::gpu("cuda");
  Array r(3 * sizeof(Number));
  submit_on_host(queue, [](Executor&, Number* v) { v[0] = Number(2.0), v[1] = Number(-3.0), v[2] = Number(0.5, 1.0); }, write<Number>(r));
  auto const x = Scalar::pending(queue, r, 0, 1), y = Scalar::pending(queue, r, 1, 1), z = Scalar::pending(queue, r, 2, 1),
             all = Scalar::pending(queue, r, 0, 3);
  auto const at = [&](Scalar const& s) {  // as a kernel there sees it
    Array out(std::size_t(s.width()) * sizeof(Number));
    Vector v = Vector::wrap(rows(1), Dtype::complex128, s.width(), out, queue);
    fill(v, s);
    out.settle(Access::read, "test");
    return to_complex(out.as<Number>()[s.width() - 1]);
  };
  Scalar sum = 0.0, product = 1.0;
  std::complex<double> expected = 0.0, of_product = 1.0;
  for (int i = 1; i <= 40; ++i) {
    sum = sum + x * double(i) - y / double(i);
    expected += 2.0 * i + 3.0 / i;
    if (i <= 10) product = product * z, of_product *= std::complex<double>(0.5, 1.0);
  }
  EXPECT_LT(std::abs(at(sum) - expected), 1e-9 * std::abs(expected));
  EXPECT_LT(std::abs(at(product) - of_product), 1e-12 * std::abs(of_product));
  EXPECT_LT(std::abs(at(sqrt(y)) - std::sqrt(std::complex<double>(-3))), 1e-15);
  EXPECT_LT(std::abs(at(sqrt(z)) - std::sqrt(std::complex<double>(0.5, 1))), 1e-15);
  EXPECT_LT(std::abs(at(sqrt(-z)) - std::sqrt(std::complex<double>(-0.5, -1))), 1e-15);
  EXPECT_EQ(at(min(x, y) + 10.0 * max(x, y)), 17.0);
  EXPECT_EQ(at(any(less(all, -2.5))), 1.0);
  EXPECT_EQ(at(any(less(all, -3.5))), 0.0);
  EXPECT_EQ(at(all + Scalar(std::vector<Scalar::Value>{1.0, 2.0, 3.0})), std::complex<double>(3.5, 1));
  EXPECT_EQ(at(all + x), std::complex<double>(2.5, 1));  // the same place, once for all columns and once for each
  EXPECT_EQ(at(select(less(x, y), z, conj(z))), std::complex<double>(0.5, -1));
  EXPECT_EQ(at(abs(y) + abs(real_part(z))), 3.5);
  auto carried = x;
  for (int i = 0; i < 1000; ++i) carried = (carried + y * 0.0 + 1.0).stored(queue);
  EXPECT_EQ(carried.real(), 1002);
}

TEST(Gpu, ConditionsAreDecidedThere) {
  auto const queue = Queue::gpu("cuda");
  auto x = random_vector<double>(100, 1, queue, 1), y = x.like();
  auto const norm2 = real_part(dot(x, x));
  auto const waits = [&] {
    std::int64_t n = 0;
    for (auto const& w : queue.waits()) n += w.count;
    return n;
  };
  auto const before = waits();
  for (bool const wanted : {true, false}) {
    fill(y, 0.0);
    Array host_too(8);
    submit_on_host(queue, [](Executor&, double* v) { *v = 0; }, write<double>(host_too));
    if (Condition const c{queue, less(norm2, 0.0), wanted}; c) {
      fill(y, 1.0);
      submit_on_host(queue, [](Executor&, double* v) { *v = 1; }, update<double>(host_too));
      if (Condition const within{queue, less(0.0, norm2)}; within) axpy(1.0, y, y);
    }
    axpby(4.0, y, 1.0, y);
    if (wanted) {
      EXPECT_EQ(waits(), before) << "the host has not waited";
    }
    EXPECT_EQ(y.host<double>()[50], wanted ? 0 : 10);
    host_too.settle(Access::read, "test");
    EXPECT_EQ(*host_too.as<double>(), wanted ? 0 : 1);
  }
}

TEST(Gpu, TheCallersStreamKeepsItsOrder) {
  if (!on_the_emulated_gpu()) GTEST_SKIP() << "on the emulated GPU alone";  // the user's work is a function of the host
  emulated::Stream users;
  auto const queue = Queue::gpu_on(&users);
  EXPECT_EQ(queue.stream(), &users);
  auto x = random_vector<double>(8, 1, queue, 1);
  fill(x, 1.0);
  std::vector<double> seen;
  for (int i = 0; i < 20; ++i) {
    scale(2.0, x);
    // the user's own work in between, without a word to us
    users.add([v = x.data().as<double>(Memory::gpu), &seen] { seen.push_back(v[7]), v[7] += 1; });
  }
  queue.wait("test");
  double expected = 1;
  for (int i = 0; i < 20; ++i) {
    expected *= 2;
    EXPECT_EQ(seen.at(std::size_t(i)), expected);
    expected += 1;
  }
}

TEST(Gpu, TheDefaultStreamIsACallersStream) {
  gpu::open("auto");
  auto const in_default_stream = Queue::gpu_on(nullptr);
  auto y = random_vector<double>(8, 1, in_default_stream, 1);
  fill(y, 3.0);
  EXPECT_EQ(dot(y, y).real(), 72);
}

TEST(Gpu, FourKindsOfStreams) {
  auto const one = Queue::gpu("cuda", StreamKind::shared), same = Queue::gpu("cuda", StreamKind::shared_with_barrier),
             other = Queue::gpu("cuda", StreamKind::own_with_barrier);
  EXPECT_EQ(one.stream(), same.stream());
  EXPECT_NE(one.stream(), other.stream());
  auto const barriers = [](Queue const& queue) {
    std::int64_t n = 0;
    for (auto const& w : queue.waits()) n += w.reason == "barrier" ? w.count : 0;
    return n;
  };
  for (auto const& queue : {one, same, other}) {
    auto const before = barriers(queue);
    auto x = random_vector<double>(8, 1, queue, 1);
    fill(x, 4.0);
    EXPECT_EQ(barriers(queue) - before, queue == one ? 0 : 1);
    EXPECT_EQ(x.host<double>()[7], 4);
  }
}

TEST(Gpu, TaskQueuesAreOpenedAgainInBothForms) {
  gpu::open("auto");
  void* users = nullptr;
  ASSERT_EQ(gpu::api()->stream_new(&users), 0);
  for (int i = 0; i < 6; ++i) {
    auto const queue = i % 2 ? Queue::gpu("cuda") : Queue::gpu_on(users);
    auto x = random_vector<double>(8, 1, queue, 1);
    for (int k = 0; k < 100; ++k) fill(x, double(k));
    EXPECT_TRUE(queue.stream() != nullptr);
    EXPECT_EQ(x.host<double>()[0], 99);
  }
  EXPECT_EQ(gpu::api()->stream_free(users), 0);
}

TEST(Gpu, MemoryIsCountedCappedAndMayBeTheUsers) {
  auto const queue = Queue::gpu("cuda");
  auto const before = gpu::memory_use().now;
  {
    Vector x(rows(1000), Dtype::float64, 1, queue);
    fill(x, 1.0);
    EXPECT_EQ(gpu::memory_use().now, before + 8000);
    gpu::set_memory_cap(before + 10'000);
    Vector y = x.like();
    try {
      fill(y, 1.0);
      FAIL() << "above the cap";
    } catch (Error const& e) {
      EXPECT_NE(std::string(e.what()).find("cap"), std::string::npos) << e.what();
    }
    for (int i = 0; i < 3; ++i) EXPECT_THROW(Queue::gpu("cuda"), Error) << "its scratch memory is above the cap too";
    gpu::set_memory_cap(0);
    fill(y, 2.0);
    EXPECT_EQ(y.host<double>()[999], 2);
  }
  queue.wait("test");
  static std::atomic<int> given{0}, returned{0};
  gpu::set_allocator({[](std::size_t bytes, void* stream, void*) -> void* {
                        void* data = nullptr;
                        return ++given, stream && gpu::api()->allocate(&data, bytes, stream) == 0 ? data : nullptr;
                      },
                      [](void* data, std::size_t, void*, void*) { ++returned, gpu::api()->release(data, nullptr); }, nullptr});
  {
    Vector x(rows(10), Dtype::float64, 1, queue);
    fill(x, 3.0);
    EXPECT_EQ(x.host<double>()[9], 3);
  }
  gpu::set_allocator({});
  EXPECT_EQ(given, 1);
  for (int i = 0; i < 200 && returned == 0; ++i) {  // with the work that held it
    Vector x(rows(10), Dtype::float64, 1, queue);
    fill(x, 3.0);
    queue.wait("test");
  }
  EXPECT_EQ(returned, 1);
  EXPECT_EQ(gpu::memory_use().now, before);
}

namespace {
void fails(Executor&, double*) { fail(ErrorKind::value, "planted"); }
void fails_there(Executor&, double*) { fail(ErrorKind::value, "planted"); }
void set_form_that_fails() { gpu::set_form(reinterpret_cast<void*>(&fails), reinterpret_cast<void*>(&fails_there)); }
}  // namespace

TEST(Gpu, ErrorsOfQueuedWorkComeOnce) {
  auto const queue = Queue::gpu("cuda");
  Array a(8);
  submit(queue, [](Executor&, double*) { fail(ErrorKind::value, "planted"); }, write<double>(a));
  EXPECT_THROW(queue.wait("test"), Error);
  EXPECT_NO_THROW(queue.wait("test"));
  {  // under a condition, which does not stay behind
    auto x = random_vector<double>(4, 1, queue, 1);
    auto const norm2 = real_part(dot(x, x));
    set_form_that_fails();
    if (Condition const never{queue, less(norm2, 0.0)}; never) submit(queue, fails, write<double>(a));
    EXPECT_THROW(queue.wait("test"), Error);
    fill(x, 7.0);
    EXPECT_EQ(x.host<double>()[0], 7);
  }
  Array big(std::size_t(3) << 30);
  if (!on_the_emulated_gpu()) gpu::set_memory_cap(std::size_t(1) << 30);  // real ones have more
  EXPECT_THROW(
      {
        Vector v = Vector::wrap(rows(1), Dtype::float64, 1, big, queue);
        fill(v, 1.0);
      },
      Error);
  gpu::set_memory_cap(0);
}

TEST(Gpu, ManyQueuesComeAndGo) {
  auto const before = gpu::memory_use().now;
  for (int i = 0; i < 60; ++i) {
    auto const a = Queue::gpu("cuda"), b = a.fork();
    auto x = random_vector<double>(50, 1, a, 1);
    Vector const y = Vector::wrap(x.layout(), x.dtype(), 1, x.data(), b);
    scale(2.0, x);
    EXPECT_NEAR(norm(y).real(), std::sqrt(dot(x, x).real()), 1e-12);
  }
  EXPECT_EQ(gpu::memory_use().now, before);
}
