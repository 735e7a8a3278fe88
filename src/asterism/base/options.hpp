// Options by name, as PETSc users write them, but owned by a solver and with an origin for every value.
//
// A component declares its options as a table of OptionSpec (name, kind, default, meaning, range);
// reading, checking, explain() and --help all come from that table.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace asterism {

/// Who said it; later layers win.
enum class OptionLayer : std::uint8_t { file, environment, command_line, dict, call };
std::string_view name_of(OptionLayer layer);

struct OptionValue {
  std::string value;
  OptionLayer layer;
  std::string origin;  ///< for people: "command line", "file opts.txt, line 3"
};

class Options {
 public:
  /// Two different values for one name in one layer are an error. The name has no leading '-'.
  void set(std::string_view name, std::string_view value, OptionLayer layer, std::string_view origin);
  /// "-ksp_type cg -pc_amg_threshold 0.1 -ksp_monitor"; a flag without value means "true".
  /// A word that begins with '#' starts a comment, to the end of its line.
  void parse(std::string_view text, OptionLayer layer, std::string_view origin);
  /// One option per line, '#' starts a comment. A line that does not parse is an error with its number.
  void parse_file(std::string const& path);
  /// The winning value, or nullptr.
  OptionValue const* find(std::string_view name) const;
  /// Values of a lower layer that another layer overrides, e.g. for a warning.
  std::vector<std::pair<std::string, OptionValue>> shadowed() const;
  std::vector<std::string> names() const;
  /// What these options are for is made later, from the same options: nobody warns that they have no effect.
  void set_read_elsewhere(std::vector<std::string> const& names) { read_elsewhere_.insert(names.begin(), names.end()); }
  bool is_read_elsewhere(std::string_view name) const { return read_elsewhere_.contains(name); }
  /// Solvers of these prefixes read options too.
  void set_prefixes(std::vector<std::string> prefixes) { prefixes_ = std::move(prefixes); }
  /// The name without the prefix of another solver than the one of this prefix; nullopt: it has none.
  std::optional<std::string_view> of_other_solver(std::string_view name, std::string_view own) const;

 private:
  std::vector<std::string> prefixes_;
  std::set<std::string, std::less<>> read_elsewhere_;
  std::map<std::string, std::map<OptionLayer, OptionValue>, std::less<>> values_;
};

struct OptionSpec {
  enum class Kind : std::uint8_t { flag, integer, real, text, choice };
  std::string name;
  Kind kind = Kind::text;
  std::string fallback;  ///< the default, as text
  std::string help;
  std::vector<std::string> choices = {};
  double lo = -1e300, hi = 1e300;
  std::map<std::string, std::string> elsewhere = {};  ///< of a choice: words that users of other libraries know, and what to do instead
};
using OptionTable = std::vector<OptionSpec>;

OptionSpec flag_option(std::string name, bool fallback, std::string help);
OptionSpec integer_option(std::string name, std::int64_t fallback, std::string help, double lo = -1e300, double hi = 1e300);
OptionSpec real_option(std::string name, double fallback, std::string help, double lo = -1e300, double hi = 1e300);
OptionSpec choice_option(std::string name, std::string fallback, std::vector<std::string> choices, std::string help);
OptionSpec text_option(std::string name, std::string fallback, std::string help);

/// A value in force, and where it came from.
struct EffectiveOption {
  std::string name, value, origin, help;
};

/// Reads the options of one component under one prefix and records what was in force.
class OptionReader {
 public:
  OptionReader(Options const& options, std::string prefix, OptionTable const& table, std::vector<EffectiveOption>& record)
      : options_(options), prefix_(std::move(prefix)), table_(table), record_(record) {}
  bool flag(std::string_view name);
  std::int64_t integer(std::string_view name);
  double real(std::string_view name);
  std::string text(std::string_view name);
  bool given(std::string_view name) const;

 private:
  std::string raw(std::string_view name, OptionSpec const** spec);
  Options const& options_;
  std::string prefix_;
  OptionTable const& table_;
  std::vector<EffectiveOption>& record_;
};

/// What a component is configured from: the options, its prefix, and where to note the values in force.
struct Configuration {
  Options const* options;
  std::string prefix;
  std::vector<EffectiveOption>* record;
  OptionReader reader(OptionTable const& table) const { return {*options, prefix, table, *record}; }
  Configuration nested(std::string_view more) const { return {options, prefix + std::string(more), record}; }
};

/// Throws an OptionError for the first name that is in none of the tables under the prefix, followed by any of `nested`, one behind the
/// other as often as one likes, nor under that of another solver; the text names the nearest valid option and the origin of the wrong one,
/// or says what `instead` has for it.
void check_known(Options const& options, std::vector<OptionTable const*> const& tables, std::string const& prefix,
                 std::vector<std::string> const& nested, std::map<std::string, std::string> const& instead = {});
/// The candidate nearest to name by edit distance; empty if none is near.
std::string nearest(std::string_view name, std::vector<std::string> const& candidates);

}  // namespace asterism
