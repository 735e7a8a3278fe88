#include "asterism/base/options.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <set>

#include "asterism/base/error.hpp"

namespace asterism {
namespace {

constexpr std::string_view no_value = " An option without a value is 'true'.";

std::string lower(std::string_view s) {
  std::string r(s);
  for (auto& c : r) c = char(std::tolower(static_cast<unsigned char>(c)));
  return r;
}

std::string joined(std::vector<std::string> const& words) {
  std::string r;
  for (auto const& w : words) r += (r.empty() ? "" : ", ") + w;
  return r;
}

/// "-5" and "-.5" are values, "-ksp_type" is a name.
bool is_option_name(std::string_view token) {
  return token.size() > 1 && token[0] == '-' && (std::isalpha(static_cast<unsigned char>(token[1])) || token[1] == '-');
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> tokens;
  std::size_t i = 0;
  while (i < text.size()) {
    while (i < text.size() && std::isspace(static_cast<unsigned char>(text[i]))) ++i;
    if (i < text.size() && text[i] == '#') {  // a comment, to the end of its line
      i = std::min(text.find('\n', i), text.size());
      continue;
    }
    std::size_t j = i;
    while (j < text.size() && !std::isspace(static_cast<unsigned char>(text[j]))) ++j;
    if (j > i) tokens.emplace_back(text.substr(i, j - i));
    i = j;
  }
  return tokens;
}

template <class T>
bool parse_number(std::string const& s, T& v) {
  auto const* b = s.data();
  if (!s.empty() && *b == '+') ++b;
  auto const r = std::from_chars(b, s.data() + s.size(), v);
  return r.ec == std::errc() && r.ptr == s.data() + s.size();
}

}  // namespace

std::string_view name_of(OptionLayer layer) {
  switch (layer) {
    case OptionLayer::file: return "options file";
    case OptionLayer::environment: return "environment";
    case OptionLayer::command_line: return "command line";
    case OptionLayer::dict: return "options dict";
    default: return "call";
  }
}

void Options::set(std::string_view name, std::string_view value, OptionLayer layer, std::string_view origin) {
  while (!name.empty() && name.front() == '-') name.remove_prefix(1);
  ASTERISM_REQUIRE(!name.empty(), option, "an option without a name ({}). Write -name value.", origin);
  auto& layers = values_[std::string(name)];
  if (auto const it = layers.find(layer); it != layers.end() && it->second.value != value)
    fail(ErrorKind::option, "option -{} is given twice in one place: '{}' ({}) and '{}' ({}). Keep one of them.", name, it->second.value,
         it->second.origin, value, origin);
  layers[layer] = {std::string(value), layer, std::string(origin)};
}

void Options::parse(std::string_view text, OptionLayer layer, std::string_view origin) {
  auto const tokens = split(text);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    ASTERISM_REQUIRE(is_option_name(tokens[i]), option, "'{}' is not an option ({}). Options are written -name value; found in \"{}\".",
                     tokens[i], origin, text);
    bool const has_value = i + 1 < tokens.size() && !is_option_name(tokens[i + 1]);
    set(tokens[i], has_value ? std::string_view(tokens[i + 1]) : "true", layer, origin);
    if (has_value) ++i;
  }
}

void Options::parse_file(std::string const& path) {
  std::error_code none;
  ASTERISM_REQUIRE(!std::filesystem::is_directory(path, none), file, "options file '{}' is a folder, not a file.", path);
  std::ifstream in(path);
  ASTERISM_REQUIRE(in.good(), file, "options file '{}' cannot be read.", path);
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    ASTERISM_REQUIRE(line.find('\0') == std::string::npos, file, "options file '{}', line {}: it is no text.", path, number);
    parse(line, OptionLayer::file, format("file {}, line {}", path, number));
  }
}

OptionValue const* Options::find(std::string_view name) const {
  auto const it = values_.find(name);
  return it == values_.end() || it->second.empty() ? nullptr : &it->second.rbegin()->second;
}

std::vector<std::pair<std::string, OptionValue>> Options::shadowed() const {
  std::vector<std::pair<std::string, OptionValue>> out;
  for (auto const& [name, layers] : values_)
    for (auto it = layers.begin(); it != layers.end() && std::next(it) != layers.end(); ++it)
      if (it->second.value != layers.rbegin()->second.value) out.emplace_back(name, it->second);
  return out;
}

std::vector<std::string> Options::names() const {
  std::vector<std::string> out;
  for (auto const& [name, layers] : values_) out.push_back(name);
  return out;
}

OptionSpec flag_option(std::string name, bool fallback, std::string help) {
  return {std::move(name), OptionSpec::Kind::flag, fallback ? "true" : "false", std::move(help)};
}
OptionSpec integer_option(std::string name, std::int64_t fallback, std::string help, double lo, double hi) {
  return {std::move(name), OptionSpec::Kind::integer, std::to_string(fallback), std::move(help), {}, lo, hi};
}
OptionSpec real_option(std::string name, double fallback, std::string help, double lo, double hi) {
  return {std::move(name), OptionSpec::Kind::real, format("{}", fallback), std::move(help), {}, lo, hi};
}
OptionSpec choice_option(std::string name, std::string fallback, std::vector<std::string> choices, std::string help) {
  return {std::move(name), OptionSpec::Kind::choice, std::move(fallback), std::move(help), std::move(choices)};
}
OptionSpec text_option(std::string name, std::string fallback, std::string help) {
  return {std::move(name), OptionSpec::Kind::text, std::move(fallback), std::move(help)};
}

std::string OptionReader::raw(std::string_view name, OptionSpec const** spec) {
  auto const it = std::find_if(table_.begin(), table_.end(), [&](auto const& s) { return s.name == name; });
  ASTERISM_ASSERT(it != table_.end());
  *spec = &*it;
  auto const full = prefix_ + std::string(name);
  auto const* v = options_.find(full);
  std::string value = v ? v->value : it->fallback;
  if (it->kind == OptionSpec::Kind::choice) {
    value = lower(value);
    if (std::find(it->choices.begin(), it->choices.end(), value) == it->choices.end()) {
      auto const near = nearest(value, it->choices);
      auto const known = it->elsewhere.find(value);
      fail(ErrorKind::option, "option -{} ({}): '{}' is not one of {}.{}", full, v ? v->origin : "default", value, joined(it->choices),
           known != it->elsewhere.end() ? " " + known->second
           : value == "true"            ? std::string(no_value)
           : near.empty()               ? ""
                                        : format(" Did you mean '{}'?", near));
    }
  }
  record_.push_back({full, value, v ? v->origin : "default", it->help});
  return value;
}

bool OptionReader::flag(std::string_view name) {
  OptionSpec const* spec;
  auto const v = lower(raw(name, &spec));
  if (v == "true" || v == "1" || v == "yes" || v == "on") return true;
  if (v == "false" || v == "0" || v == "no" || v == "off") return false;
  fail(ErrorKind::option, "option -{} ({}): '{}' is not true or false.", prefix_ + spec->name, record_.back().origin, v);
}

std::int64_t OptionReader::integer(std::string_view name) {
  OptionSpec const* spec;
  auto const s = raw(name, &spec);
  std::int64_t v = 0;
  double d = 0;
  if (!parse_number(s, v)) {
    ASTERISM_REQUIRE(parse_number(s, d) && d == double(std::int64_t(d)), option, "option -{} ({}): '{}' is not an integer.{}",
                     prefix_ + spec->name, record_.back().origin, s, s == "true" ? no_value : "");
    v = std::int64_t(d);
  }
  ASTERISM_REQUIRE(double(v) >= spec->lo && double(v) <= spec->hi, option, "option -{} ({}): {} is outside [{}, {}].", prefix_ + spec->name,
                   record_.back().origin, v, spec->lo, spec->hi);
  return v;
}

double OptionReader::real(std::string_view name) {
  OptionSpec const* spec;
  auto const s = raw(name, &spec);
  double v = 0;
  ASTERISM_REQUIRE(parse_number(s, v), option, "option -{} ({}): '{}' is not a number.{}", prefix_ + spec->name, record_.back().origin, s,
                   s == "true" ? no_value : "");
  ASTERISM_REQUIRE(v >= spec->lo && v <= spec->hi, option, "option -{} ({}): {} is outside [{}, {}].", prefix_ + spec->name,
                   record_.back().origin, v, spec->lo, spec->hi);
  return v;
}

std::string OptionReader::text(std::string_view name) {
  OptionSpec const* spec;
  return raw(name, &spec);
}

std::optional<std::string_view> Options::of_other_solver(std::string_view name, std::string_view own) const {
  std::optional<std::string_view> whose;  // the longest prefix that it begins with
  auto const take = [&](std::string_view prefix) {
    if (name.starts_with(prefix) && (!whose || prefix.size() > whose->size())) whose = prefix;
  };
  take(own);
  for (auto const& prefix : prefixes_) take(prefix);
  return !whose || *whose == own ? std::nullopt : std::optional(name.substr(whose->size()));
}

bool OptionReader::given(std::string_view name) const { return options_.find(prefix_ + std::string(name)) != nullptr; }

std::string nearest(std::string_view name, std::vector<std::string> const& candidates) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(3, name.size() / 3) + 1;
  for (auto const& c : candidates) {
    std::vector<std::size_t> row(c.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t(0));
    for (std::size_t i = 1; i <= name.size(); ++i) {
      auto diagonal = row[0];
      row[0] = i;
      for (std::size_t j = 1; j <= c.size(); ++j) {
        auto const up = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (name[i - 1] == c[j - 1] ? 0 : 1)});
        diagonal = up;
      }
    }
    if (row[c.size()] < best_distance) best_distance = row[c.size()], best = c;
  }
  return best;
}

void check_known(Options const& options, std::vector<OptionTable const*> const& tables, std::string const& prefix,
                 std::vector<std::string> const& nested, std::map<std::string, std::string> const& instead) {
  std::set<std::string, std::less<>> known;
  for (auto const* table : tables)
    for (auto const& spec : *table) known.insert(spec.name);
  std::function<bool(std::string_view)> const is_known = [&](std::string_view name) {
    return known.contains(name) || std::any_of(nested.begin(), nested.end(), [&](auto const& more) {
             return name.starts_with(more) && is_known(name.substr(more.size()));
           });
  };
  for (auto const& name : options.names()) {
    if (name.starts_with(prefix) && is_known(std::string_view(name).substr(prefix.size()))) continue;
    if (auto const other = options.of_other_solver(name, prefix); other && is_known(*other)) continue;
    for (auto const& [other, advice] : instead)
      if (name == other || name.ends_with("_" + other))
        fail(ErrorKind::option, "unknown option -{} ({}). {}", name, options.find(name)->origin, advice);
    std::vector<std::string> candidates;
    for (auto const& option : known) {
      candidates.push_back(prefix + option);
      for (auto const& more : nested) candidates.push_back(prefix + more + option);
    }
    auto const near = nearest(name, candidates);
    bool const prefixed = std::ranges::any_of(known, [&](auto const& option) { return name.ends_with("_" + option); });
    fail(ErrorKind::option, "unknown option -{} ({}).{}{} `asterism solve --help-options` lists all of them.", name,
         options.find(name)->origin, near.empty() ? "" : format(" Did you mean -{}?", near),
         prefixed && options.find(name)->layer < OptionLayer::dict
             ? " asterism.use_argv(prefixes=[...]) names the prefixes of other solvers."
             : "");
  }
}

}  // namespace asterism
