#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <numeric>

#include "asterism/base/error.hpp"
#include "asterism/base/interrupt.hpp"
#include "asterism/la/ordering/graph.hpp"
#include "asterism/la/ordering/ordering.hpp"

namespace asterism::la {
namespace {

/// METIS 5, with whichever integers it was compiled with.
struct Metis {
  int (*node_nd)(void* n, void* offsets, void* neighbours, void* weights, void* options, void* order, void* place) = nullptr;
  int (*set_default_options)(void* options) = nullptr;
  bool wide = false;
  std::string path, why_not;
};

std::string& given_path() {
  static auto* const path = new std::string;
  return *path;
}

Metis open_metis() {
  Metis out;
  std::vector<std::string> paths;
  if (auto const* const named = std::getenv("ASTERISM_METIS"); named && *named) {
    if (std::string_view(named) == "none") {
      out.why_not = "ASTERISM_METIS is none";
      return out;
    }
    paths = {named};
  } else {
    if (!given_path().empty()) paths.push_back(given_path());
    paths.insert(paths.end(), {"libmetis.so.5", "libmetis.so"});
  }
  for (auto const& path : paths) {
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      if (out.why_not.empty()) out.why_not = dlerror();
      continue;
    }
    out.node_nd = reinterpret_cast<decltype(out.node_nd)>(dlsym(library, "METIS_NodeND"));
    out.set_default_options = reinterpret_cast<decltype(out.set_default_options)>(dlsym(library, "METIS_SetDefaultOptions"));
    if (!out.node_nd || !out.set_default_options) {
      out.why_not = format("'{}' has no METIS_NodeND", path);
      continue;
    }
    // It sets 40 integers to -1: so many bytes say how wide they are.
    std::array<std::int32_t, 160> probe{};
    out.set_default_options(probe.data());
    auto const set = std::find_if(probe.begin(), probe.end(), [](std::int32_t v) { return v != -1; }) - probe.begin();
    if (set != 40 && set != 80) {
      out.why_not = format("'{}' is not METIS 5", path);
      continue;
    }
    out.wide = set == 80;
    out.path = path;
    return out;
  }
  return out;
}

Metis const& metis() {
  static auto const* const m = new Metis(open_metis());
  return *m;
}

template <class Index>
std::vector<std::int32_t> dissect(Graph const& g) {
  ASTERISM_REQUIRE(g.neighbours.size() <= std::size_t(std::numeric_limits<Index>::max()), unsupported,
                   "'{}' has 32-bit integers, and the block has {} couplings, more than 2^31. Order it by amd "
                   "(-pc_factor_mat_ordering_type amd), or name a METIS with 64-bit integers in ASTERISM_METIS.",
                   metis().path, g.neighbours.size());
  Index n = g.size();
  std::vector<Index> offsets(g.offsets.begin(), g.offsets.end()), neighbours(g.neighbours.begin(), g.neighbours.end());
  std::vector<Index> order(std::size_t(n), 0), place(std::size_t(n), 0);
  std::array<Index, 40> options{};
  int code = 0;
  {
    // it draws random numbers from the C library, which all threads share: with a lock the order is the same each time
    static auto* const alone = new std::mutex;
    std::lock_guard const lock(*alone);
    metis().set_default_options(options.data());
    code = metis().node_nd(&n, offsets.data(), neighbours.data(), nullptr, options.data(), order.data(), place.data());
  }
  constexpr int no_memory = -3;
  if (code == no_memory) throw std::bad_alloc();
  ASTERISM_REQUIRE(code == 1, unsupported,
                   "METIS_NodeND of '{}' failed with code {}. Order by amd instead (-pc_factor_mat_ordering_type amd).", metis().path,
                   code);
  return {order.begin(), order.end()};
}

}  // namespace

void set_metis(std::string path) { given_path() = std::move(path); }

std::string metis_library() { return metis().path; }

std::vector<std::int32_t> nested_dissection(Graph const& g) {
  ASTERISM_REQUIRE(!metis().path.empty(), unsupported,
                   "nested dissection needs METIS, which was not found: {}. `pip install pymetis` has it, or Debian's libmetis5, or "
                   "ASTERISM_METIS names its file. Without it amd is the order with little fill (-pc_factor_mat_ordering_type amd).",
                   metis().why_not);
  if (g.neighbours.empty()) {  // which METIS does not take
    std::vector<std::int32_t> natural(std::size_t(g.size()));
    std::iota(natural.begin(), natural.end(), 0);
    return natural;
  }
  constexpr double seconds_of_coupling = 1.5e-6;
  require_time(seconds_of_coupling * double(g.neighbours.size()), format("nested dissection of {} rows", g.size()));
  return metis().wide ? dissect<std::int64_t>(g) : dissect<std::int32_t>(g);
}

}  // namespace asterism::la
