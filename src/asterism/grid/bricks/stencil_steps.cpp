// Several steps of a smoother, and the residual after them, in one pass over memory and for one exchange of bricks: temporal blocking on
// bricks, and communication-avoiding smoothing. Copies of other ranks' bricks are smoothed too; what is wrong in them, since no more is
// known around them, comes nearer by the reach of the stencil with each stage.
#include <algorithm>
#include <cmath>
#include <mutex>
#include <optional>
#include <utility>

#include "asterism/base/profile.hpp"
#include "asterism/comm/communicator/failures.hpp"
#include "asterism/device/host/team.hpp"
#include "asterism/device/parallel.hpp"
#include "asterism/grid/bricks/stencil_operator.hpp"

namespace asterism::grid {
namespace {

using i64 = std::int64_t;
using device::Array;
using la::Vector;

bool is_aligned_here(Vector const& v) { return reinterpret_cast<std::uintptr_t>(v.data().raw()) % 64 == 0; }

/// One step, or the residual.
struct Stage {
  StencilForm form = StencilForm::residual;
  Scales scales{};
  Vector w;  // of the form smooth, with its ghosts
};

/// Planes of points that stages follow each other by, at least: tables gather all that is around a brick in each call.
i64 planes_of(StencilState const& s) { return s.kernel(StencilForm::residual).program != nullptr ? s.domain.brick()[0] : s.reach[0]; }

StencilForm start_of(StencilForm step) { return step == StencilForm::coloured ? StencilForm::coloured_start : StencilForm::start; }

class StencilSteps final : public la::StepSequence {
 public:
  StencilSteps(std::shared_ptr<StencilState> state, std::vector<Stage> steps, bool vectors, int at_once)
      : s_(std::move(state)), steps_(std::move(steps)), vectors_(vectors), at_once_(at_once) {}
  std::string describe() const override { return at_once_ > 1 ? format(", {} at once", at_once_) : ""; }
  bool swaps(bool fresh, bool residual, bool on_gpu) const override {
    auto const steps = i64(steps_.size());
    if (on_gpu) return (steps - (fresh && steps > 0 ? 1 : 0)) % 2 == 1;
    i64 at = fresh && vectors_ && steps > 0 ? 1 : 0;
    bool out = false, from_zero = fresh && !vectors_ && steps > 0;
    while (at < steps) {
      auto const [now, with_r] = next_pass(steps - at, residual);
      out = out != (now == 1 && !(from_zero && at == 0));
      at += now;
    }
    return out;
  }
  void run(Vector const& b, Vector*& x, Vector*& other, bool fresh, Vector* r, Array& of_b) const override {
    auto const& space = s_->domain.space();
    comm::collective(space.comm(), "steps of a stencil", [&] {
      for (auto const* const v : {&b, static_cast<Vector const*>(x), static_cast<Vector const*>(other), static_cast<Vector const*>(r)})
        if (v) {
          la::require_layout(*v, space, s_->dtype, "steps of a stencil");
          ASTERISM_REQUIRE(v->columns() == b.columns(), shape, "steps of a stencil: vectors of {} and {} columns.", v->columns(),
                           b.columns());
        }
      bool const in_place =
          b.columns() == 1 && is_aligned_here(b) && is_aligned_here(*x) && is_aligned_here(*other) && (!r || is_aligned_here(*r));
      // each rank may copy as it likes: the messages are the same
      if (in_place) return run_column(b, x, other, fresh, r, of_b);
      for (i64 j = 0; j < b.columns(); ++j) {
        bool const one = b.columns() == 1;
        auto const fill_from = [&](Vector const& v) {
          Vector c(space, s_->dtype, 1, b.queue());
          copy(one ? v : column_of(v, j), c);
          return c;
        };
        Vector const of = fill_from(b);
        Vector now = fresh ? Vector(space, s_->dtype, 1, b.queue()) : fill_from(*x), next(space, s_->dtype, 1, b.queue()),
               rest(space, s_->dtype, 1, b.queue());
        Vector *px = &now, *po = &next;
        Array of_this;
        run_column(of, px, po, fresh, r ? &rest : nullptr, one ? of_b : of_this);
        bool const swapped = px != &now;
        Vector& to = swapped ? *other : *x;
        auto const put = [&](Vector const& from, Vector& into) { one ? copy(from, into) : set_column(from, j, into); };
        put(*px, to);
        if (r) put(rest, *r);
        if (j + 1 == b.columns() && swapped) std::swap(x, other);
      }
    });
  }

 private:
  void run_column(Vector const& b, Vector*& x, Vector*& other, bool fresh, Vector* r, Array& of_b) const {
    auto const steps = i64(steps_.size());
    // a GPU's cache holds no column of bricks: a pass over memory for each stage
    bool const on_gpu = b.queue().memory() == device::Memory::gpu;
    i64 at = 0;
    if (fresh && steps == 0) fill(*x, 0.0);
    if (fresh && steps > 0 && vectors_) {
      multiply(steps_[0].w, b, *x), at = 1;
      if (double const by = steps_[0].scales[0].real(); by != 1) scale(by, *x);
    }
    bool const from_zero = fresh && !vectors_ && steps > 0;
    if (on_gpu) {
      for (; at < steps; ++at) {
        auto const& [form, scales, w] = steps_[std::size_t(at)];
        auto const* const weights = form == StencilForm::smooth ? &w : nullptr;
        if (from_zero && at == 0) {
          run_form(s_, start_of(form), nullptr, *x, &b, nullptr, scales);
        } else {
          run_form(s_, form, x, *other, &b, weights, scales);
          std::swap(x, other);
        }
      }
      if (r) run_form(s_, StencilForm::residual, x, *r, &b, nullptr, {1.0});
      return;
    }
    for (bool done = false; !done;) {
      auto const [now, with_r] = next_pass(steps - at, r != nullptr);
      if (now > 0 || with_r) pass(b, x, other, at, now, from_zero && at == 0, with_r ? r : nullptr, of_b);
      at += now;
      done = with_r || (at == steps && !r);
    }
  }
  /// How many of the steps that are left, and whether the residual too.
  std::pair<i64, bool> next_pass(i64 steps, bool residual) const {
    i64 const left = steps + (residual ? 1 : 0), now = std::min<i64>(left, at_once_);
    bool const with_r = residual && now == left;
    return {now - (with_r ? 1 : 0), with_r};
  }

  std::shared_ptr<BrickSchedule const> schedule(int stages, int vectors, int held) const {
    std::array<i64, 4> const key{stages, device::host::team_size(), vectors, held};
    std::lock_guard const lock(s_->mutex);
    auto& found = s_->schedules[key];
    if (!found) {
      i64 const bytes = s_->domain.points_of_brick() * i64(size_of(s_->dtype));
      found = std::make_shared<BrickSchedule const>(s_->domain, stages, int(key[1]), bytes, vectors, planes_of(*s_), held);
    }
    return found;
  }

  /// Steps from number `first` on, and the residual if there is an r. A single step swaps x and other, if it reads x; several end in x.
  void pass(Vector const& b, Vector*& x, Vector*& other, i64 first, i64 count, bool from_zero, Vector* r, Array& of_b) const {
    static int const event = profile::event("StencilSteps");
    auto const& queue = b.queue();
    auto const& space = s_->domain.space();
    int const stages = int(count) + (r ? 1 : 0), vectors = 3 + (vectors_ ? 1 : 0) + (r ? 1 : 0);
    double flops = 0;
    for (i64 n = first; n < first + count; ++n)
      flops += s_->kernel(from_zero && n == first ? start_of(steps_[std::size_t(n)].form) : steps_[std::size_t(n)].form).flops;
    profile::Scope const scope(event, double(size_of(s_->dtype)) * double(b.local_size()) * vectors, flops * double(b.local_size()));
    bool const around = space.has_local_form();
    auto const exchange = [&](Vector const& v) {
      auto const ghosts = la::room_for_ghosts(v, space, queue);
      space.ghost_forest().bcast_begin(queue, s_->dtype, 1, v.data(), ghosts).end();
      return ghosts;
    };
    auto const plan = schedule(stages, 2 + (vectors_ ? 1 : 0), int(std::max<i64>(count - 1, 0)));
    bool const swaps = count == 1 && !from_zero, slots = plan->interleaved() && count > 1;
    // else iterates alternate between x and other, an odd number of them with another one
    bool const third = !slots && count > 1 && count % 2 == 1 && !from_zero;
    Array ghosts_x, ghosts_other;
    if (around && !from_zero) ghosts_x = exchange(*x);
    if (around && stages > 1) {
      if (!of_b) of_b = exchange(b);
      if (from_zero) ghosts_x = la::room_for_ghosts(*x, space, queue);
      if (!slots) ghosts_other = la::room_for_ghosts(*other, space, queue);
    }
    auto const brick = std::size_t(s_->domain.points_of_brick()) * size_of(s_->dtype);
    i64 const more = slots ? plan->slot_count() : third ? s_->domain.bricks() + s_->domain.ghost_bricks() + 1 : 0;
    Array const scratch = more > 0 ? Array::fresh(queue, std::size_t(more) * brick) : Array();
    std::vector<Stage> stages_now;
    for (i64 n = first; n < first + count; ++n) stages_now.push_back(steps_[std::size_t(n)]);
    if (from_zero) stages_now[0].form = start_of(stages_now[0].form);
    if (r) stages_now.push_back({});
    auto const run = [s = s_, plan, stages_now, count, swaps, slots, third, brick](
                         device::Executor& executor, std::byte const* pb, std::byte* gb, std::byte* px, std::byte* gx, std::byte* po,
                         std::byte* go, std::byte* pr, std::byte* ps) {
      using Place = StencilCall::Place;
      for (auto* const g : {gb, gx, go})
        if (g) clear_beyond(*s, g);
      Place const b{const_cast<std::byte*>(pb), gb}, in_x{px, gx}, in_other{po, go};
      Place in_third;
      if (third) {
        in_third = {ps, ps + std::size_t(s->domain.bricks()) * brick};
        clear_beyond(*s, in_third.ghosts);
      }
      if (slots) std::memset(ps, 0, brick);
      Place now = in_x;
      std::vector<std::unique_ptr<StencilCall const>> calls;
      for (std::size_t n = 0; n < stages_now.size(); ++n) {
        auto const& stage = stages_now[n];
        Place w{};
        if (stage.form == StencilForm::smooth)
          w = {stage.w.data().template as<std::byte>(), stage.w.has_ghosts() ? stage.w.ghosts().template as<std::byte>() : nullptr};
        auto const to = [&]() -> Place {
          i64 const left = count - 1 - i64(n);  // steps after this one
          if (left < 0) return {pr};
          if (left == 0) return swaps ? in_other : in_x;
          if (slots) return {ps, nullptr, plan->slots(int(n))};
          if (third && n < 2) return n == 0 ? in_other : in_third;
          return left % 2 == 0 ? in_x : in_other;
        }();
        calls.push_back(std::make_unique<StencilCall const>(*s, s->kernel(stage.form), StencilCall::Places{{now, to, b, w}}, stage.scales));
        now = to;
      }
      // what goes to another vector; the lines of x are in the cache already
      bool const streams = (swaps || stages_now.back().form == StencilForm::residual) && is_past_caches(s->domain, s->dtype);
      i64 const serial = s->domain.bricks() * s->domain.points_of_brick() < serial_points ? i64(1) << 40 : 1;
      for (auto const& phase : plan->phases())
        device::parallel_ranges(
            executor, i64(phase.size()),
            [&](i64 begin, i64 end) {
              for (auto part = begin; part < end; ++part)
                for (auto const& batch : phase[std::size_t(part)])
                  (*calls[std::size_t(batch.stage)])(plan->numbers() + batch.begin, batch.count, batch.first, batch.last,
                                                     streams && batch.stage + 1 == std::int64_t(calls.size()));
            },
            serial);
    };
    device::submit_without_form(queue, run, device::read<std::byte>(b.data()), device::update<std::byte>(of_b),
                                device::update<std::byte>(x->data()), device::update<std::byte>(ghosts_x),
                                device::update<std::byte>(other->data()), device::update<std::byte>(ghosts_other),
                                device::update<std::byte>(r ? r->data() : Array()), device::update<std::byte>(scratch));
    if (swaps) std::swap(x, other);
  }

  std::shared_ptr<StencilState> s_;
  std::vector<Stage> steps_;
  bool vectors_;
  int at_once_;
};

/// Of w times the diagonal: the value at even sums of indices, and what the one at odd ones is more, if these are all that there is up to
/// rounding; the same on all ranks.
template <class T>
std::optional<Scales> two_values(BrickDomain const& domain, Vector const& w, Vector const& diagonal) {
  auto const* const weights = w.host<T>().data();
  auto const* const entries = diagonal.host<T>().data();
  auto const low = domain.owned().low;
  auto const& comm = domain.space().comm();
  std::array<double, 4> most, least;  // real and imaginary parts; least: of the negative
  most.fill(-INFINITY), least.fill(-INFINITY);
  std::mutex mutex;
  device::Executor executor;
  device::parallel_ranges(
      executor, domain.lines(),
      [&](i64 begin, i64 end) {
        std::array<double, 4> here, here_least;
        here.fill(-INFINITY), here_least.fill(-INFINITY);
        domain.each_row(begin, end, [&](Triple const& point, i64 place, i64 count) {
          for (i64 k = 0; k < count; ++k) {
            auto const value = weights[place + k] * entries[place + k];
            Triple const at{low[0] + point[0], low[1] + point[1], low[2] + point[2] + k};
            auto const p = 2 * std::size_t(colour_of(at, Colouring::red_black));
            double const parts[2] = {double(real(value)), double(imag(value))};
            for (std::size_t q = 0; q < (is_complex_v<T> ? 2 : 1); ++q)
              here[p + q] = std::max(here[p + q], parts[q]), here_least[p + q] = std::max(here_least[p + q], -parts[q]);
          }
          if (!is_complex_v<T> && count > 0) here[1] = here[3] = here_least[1] = here_least[3] = 0;
        });
        std::lock_guard const lock(mutex);
        for (std::size_t p = 0; p < 4; ++p) most[p] = std::max(most[p], here[p]), least[p] = std::max(least[p], here_least[p]);
      },
      domain.serial_lines());
  double size = 0;
  for (std::size_t p = 0; p < 4; ++p) {
    most[p] = comm.max(most[p]), least[p] = -comm.max(least[p]);
    if (most[p] < least[p]) most[p] = least[p] = most[p - 2 * (p / 2)];  // no such points
    size = std::max({size, std::abs(most[p]), std::abs(least[p])});
  }
  for (std::size_t p = 0; p < 4; ++p)
    if (!(most[p] - least[p] <= 4 * epsilon_of(w.dtype()) * size)) return std::nullopt;
  Scales const out{std::complex<double>(most[0], most[1]), std::complex<double>(most[2] - most[0], most[3] - most[1])};
  return std::abs(out[1]) <= 4 * epsilon_of(w.dtype()) * size ? Scales{out[0]} : out;
}

}  // namespace

std::shared_ptr<la::StepSequence const> StencilOperator::steps(std::vector<la::Step> const& steps, i64 at_once) const {
  if (!make_kernels_) return nullptr;
  auto const& domain = s_->domain;
  // of copies that are one brick deep, as many stages are right as the stencil's reach fits into them; one is in any case
  for (std::size_t d = 0; d < 3; ++d)
    if (domain.cut()[d] && s_->reach[d] > 0) at_once = std::min<i64>(at_once, std::max(1, int(domain.brick()[d]) / s_->reach[d]));
  std::vector<Stage> stages;
  bool vectors = !diagonal_, coloured = false;
  // the first step with the same weights; where a rank has no points, all vectors look the same
  std::vector<std::size_t> first;
  for (std::size_t n = 0; n < steps.size(); ++n) {
    std::size_t m = 0;
    while (range().comm().min(std::int64_t(steps[m].w.data().raw() == steps[n].w.data().raw())) == 0) ++m;
    first.push_back(m);
  }
  for (std::size_t n = 0; n < steps.size(); ++n) {
    auto const& [w, scale] = steps[n];
    la::require_layout(w, range(), dtype(), "weights of steps");
    if (vectors) break;
    std::optional<Scales> found;
    if (auto const m = first[n]; m < n) {
      found = Scales{stages[m].scales[0] / steps[m].scale, stages[m].scales[1] / steps[m].scale};
    } else {
      found = with_dtype(dtype(), [&](auto tag) { return two_values<typename decltype(tag)::type>(domain, w, diagonal_); });
    }
    vectors = !found;
    if (!found) break;
    stages.push_back({StencilForm::step, {(*found)[0] * scale, (*found)[1] * scale}, {}});
    coloured = coloured || (*found)[1] != 0.0;
  }
  if (vectors) {
    stages.clear();
    for (std::size_t n = 0; n < steps.size(); ++n) {
      Vector own;
      if (first[n] < n) {
        own = stages[first[n]].w;
      } else {
        own = Vector(range(), dtype());
        copy(steps[n].w, own);
        if (own.has_ghosts()) {
          auto const ghosts = own.ghosts();
          ghosts.settle(device::Access::write, "weights of steps");
          std::memset(ghosts.raw(), 0, ghosts.bytes());
          range().ghost_forest().bcast_begin(own.queue(), dtype(), 1, own.data(), ghosts).end();
          ghosts.settle(device::Access::read, "weights of steps");
        }
      }
      stages.push_back({StencilForm::smooth, {steps[n].scale}, own});
    }
  }
  auto const form = coloured ? StencilForm::coloured : StencilForm::step;
  if (vectors) {
    need({StencilForm::residual, StencilForm::smooth});
  } else {
    for (auto& stage : stages) stage.form = form;
    need({StencilForm::residual, form, start_of(form)});
  }
  // of all ranks, whose caches may differ
  at_once = range().comm().min(BrickSchedule::stages_at_once(domain, at_once, domain.points_of_brick() * i64(size_of(dtype())),
                                                             2 + (vectors ? 1 : 0), planes_of(*s_)));
  return std::make_shared<StencilSteps>(s_, std::move(stages), vectors, int(at_once));
}

}  // namespace asterism::grid
