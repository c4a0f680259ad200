// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/config.hpp"

#include <fmt/core.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <set>
#include <string_view>

#include "core/base/parse.hpp"

namespace npushmem {

bool has_gained_privileges() { return ::getauxval(AT_SECURE) != 0; }

std::optional<std::string> ProcessEnvironment::get(const std::string& name) const {
    const char* value = privileged_ ? nullptr : std::getenv(name.c_str());
    return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

std::map<std::string, std::string> ProcessEnvironment::npushmem_variables() const {
    std::map<std::string, std::string> found;
    for (char** entry = privileged_ ? nullptr : environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string_view text(*entry);
        const auto equals = text.find('=');
        if (text.starts_with("NPUSHMEM_") && equals != std::string_view::npos)
            found.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
    return found;
}

namespace {

constexpr double max_bytes = 9.0e18;  // 64 bits, minus room for rounding to pages

// Returns 0 for an unknown suffix. Beyond the standard, "kb" and "kib" mean "k", as in NPUSHMEM_SYMMETRIC_SIZE.
double factor_of(std::string_view suffix) {
    const std::string_view after_letter = suffix.substr(1);
    if (!after_letter.empty() && after_letter != "b" && after_letter != "ib") return 0;
    switch (suffix.front()) {
        case 'k': return 0x1p10;
        case 'm': return 0x1p20;
        case 'g': return 0x1p30;
        case 't': return 0x1p40;
        default: return 0;
    }
}

// Accepts a decimal number, possibly with a fraction, and one suffix. The heap gets at least the ceiling of the product
// and at least one byte, rounded up to pages.
Result<std::string> translate_size(std::string_view text) {
    const std::string word = lowercase(trimmed(text));
    double number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number, std::chars_format::fixed);
    const auto suffix = std::string_view(word).substr(static_cast<std::size_t>(end - word.data()));
    const double factor = suffix.empty() ? 1 : factor_of(suffix);
    const Status refused{Code::config, fmt::format("'{}' is not a number of bytes", text)};
    if (error != std::errc{} || factor == 0 || !(number >= 0)) return refused;
    if (number * factor > max_bytes) return Status{Code::config, fmt::format("'{}' does not fit into 64 bits", text)};
    return fmt::format("{}", std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::ceil(number * factor))));
}

template <const char* const& Value>
Result<std::string> always(std::string_view /*text*/) {
    return std::string(Value);
}

constexpr const char* on = "1";
constexpr const char* debug = "debug";

constexpr StandardVariable variables[] = {
    {"VERSION", {"SHMEM_VERSION", "SMA_VERSION"}, "print the version at start", "any value", always<on>},
    {"INFO",
     {"SHMEM_INFO", "SMA_INFO"},
     "print this help, and the configuration in use with its reasons",
     "any value",
     always<on>},
    {"SYMMETRIC_SIZE",
     {"SHMEM_SYMMETRIC_SIZE", "SMA_SYMMETRIC_SIZE"},
     "bytes of each PE's symmetric heap",
     "a decimal number, possibly with a fraction, with an optional k, m, g or t (powers of 1024), such as 512M or .5g",
     translate_size},
    {"DEBUG", {"SHMEM_DEBUG", "SMA_DEBUG"}, "print messages for debugging", "any value", always<debug>},
};

}  // namespace

std::span<const StandardVariable> standard_variables() { return variables; }

std::optional<StandardValue> standard_value(const Environment& environment, std::string_view row) {
    for (const auto& variable : variables) {
        if (row != variable.row) continue;
        for (const char* name : variable.names)
            if (auto text = environment.get(name)) return StandardValue{&variable, name, std::move(*text)};
    }
    return std::nullopt;
}

std::string describe_standard_variables() {
    std::string text =
        "variables of OpenSHMEM (deprecated: SMA_ instead of SHMEM_); NPUSHMEM_ variables take precedence:\n";
    for (const auto& variable : variables)
        text += fmt::format("  {:<22}{}; {}\n", variable.names[0], variable.meaning, variable.accepted);
    return text + "npushmem-info -c lists all variables, with values and origins\n";
}

namespace {

// `place`: of the value in the configuration file, or empty.
Status malformed(std::string_view name, std::string_view text, std::string_view type, std::string_view place,
                 const Status& why) {
    return {Code::config, fmt::format("{}{}NPUSHMEM_{}='{}': {}; accepted: {}", place, place.empty() ? "" : ": ", name,
                                      text, why.message(), type)};
}

}  // namespace

Status check_typed(std::string_view type, std::string_view text) {
    constexpr auto high = std::numeric_limits<std::int64_t>::max();
    if (type == "bool") return parse_bool(text).status();
    if (type == "int") return parse_integer(text, -high, high).status();
    if (type == "uint") return parse_integer(text, 0, high).status();
    if (type == "size") return parse_size(text).status();
    if (type == "duration") return parse_duration(text).status();
    if (type == "string" || type == "list") return {};
    return {Code::config, fmt::format("unknown type '{}'", type)};
}

Result<Config> Config::read(const Environment& environment, const ContentReader& read_file) {
    Config config;
    config.npushmem_variables_ = environment.npushmem_variables();
    const auto path = config.npushmem_variables_.find(config_file_variable);
    if (path != config.npushmem_variables_.end()) {
        auto values = read_config_file(std::string(trimmed(path->second)), read_file);
        if (!values.ok()) return values.status();
        config.file_values_ = std::move(values).value();
    }
    for (const auto& row : config_rows())
        if (Status read = config.read_row(row, environment); !read.ok()) return read;
    return config;
}

// Returns the value of the environment, else that of the configuration file, else the default.
EffectiveValue Config::effective_value(std::string_view name, std::string_view default_value) const {
    EffectiveValue out;
    out.name = name;
    out.default_value = default_value;
    const std::string full = out.variable();
    const auto in_file = file_values_.find(full);
    if (const auto own = npushmem_variables_.find(full); own != npushmem_variables_.end()) {
        out.value = own->second;
        out.from_environment = true;
    } else if (in_file != file_values_.end()) {
        out.value = in_file->second.text;
        out.place = in_file->second.place;
    } else {
        out.value = default_value;
    }
    return out;
}

// A variable of the standard belongs to the environment, but that of the prefix NPUSHMEM_ takes precedence there.
Status Config::read_row(const ConfigRow& row, const Environment& environment) {
    EffectiveValue out = effective_value(row.name, row.default_value);
    if (const auto standard = standard_value(environment, row.name)) {
        out.standard = fmt::format("{}={}", standard->name, standard->text);
        if (!out.from_environment) {
            auto translated = standard->variable->translate(standard->text);
            if (!translated.ok())
                return {Code::config, fmt::format("{}='{}': {}; accepted: {}", standard->name, standard->text,
                                                  translated.status().message(), standard->variable->accepted)};
            out.value = std::move(translated).value();
            out.from_environment = true;
            out.place.clear();
        }
    }
    if (Status parsed = row.parse(out.value, settings_); !parsed.ok())
        return malformed(row.name, out.value, row.type, out.place, parsed);
    out.type = row.type;
    out.subsystem = row.subsystem;
    out.meaning = row.meaning;
    effective_.push_back(std::move(out));
    return {};
}

std::string Config::describe_standard() const {
    std::string lines;
    for (const auto& row : effective_) {
        if (row.standard.empty()) continue;
        const bool overruled = npushmem_variables_.contains(row.variable());
        lines += fmt::format("environment: {} {} {}={}\n", row.standard, overruled ? "is overruled by" : "sets",
                             row.variable(), row.value);
    }
    return lines;
}

bool Config::is_standard_variable_set(std::string_view name) const {
    return std::any_of(effective_.begin(), effective_.end(),
                       [&](const auto& row) { return row.name == name && !row.standard.empty(); });
}

namespace {

// A plugin's text is lost when the plugin is closed.
std::string_view retained(std::string_view text) {
    static std::mutex lock;
    static auto& texts = *new std::set<std::string>;  // for users at the end of the process, too
    const std::lock_guard guard(lock);
    return *texts.emplace(text).first;
}

}  // namespace

Status Config::declare(const char* subsystem, std::span<const npushmem_config_row> plugin_rows) {
    for (const auto& row : plugin_rows) {
        if (value(row.name) != nullptr) continue;
        EffectiveValue out = effective_value(retained(row.name), retained(row.default_value));
        if (Status parsed = check_typed(row.type, out.value); !parsed.ok())
            return malformed(row.name, out.value, row.type, out.place, parsed);
        out.type = retained(row.type);
        out.subsystem = retained(subsystem);
        out.meaning = retained(row.meaning);
        effective_.push_back(std::move(out));
    }
    return {};
}

const char* Config::value(std::string_view name) const {
    const auto found =
        std::find_if(effective_.begin(), effective_.end(), [&](const auto& row) { return row.name == name; });
    return found != effective_.end() ? found->value.c_str() : nullptr;
}

std::optional<std::string> Config::given(const std::string& name) const {
    if (const auto own = npushmem_variables_.find(name); own != npushmem_variables_.end()) return own->second;
    const auto in_file = file_values_.find(name);
    return in_file != file_values_.end() ? std::optional(in_file->second.text) : std::nullopt;
}

// Standard variables change values of the runtime's own rows.
bool Config::is_given_alike(const Config& other) const {
    return npushmem_variables_ == other.npushmem_variables_ && file_values_ == other.file_values_ &&
           std::ranges::all_of(config_rows(), [&](const ConfigRow& row) {
               return std::string_view(value(row.name)) == std::string_view(other.value(row.name));
           });
}

std::vector<std::string> Config::unknown_names() const {
    std::set<std::string> names;
    for (const auto& [name, text] : npushmem_variables_) names.insert(name);
    for (const auto& [name, value] : file_values_) names.insert(name);
    for (const auto& row : effective_) names.erase(row.variable());
    return {names.begin(), names.end()};
}

std::vector<std::string> Config::unknown_variables() const {
    constexpr std::string_view prefix = "NPUSHMEM_";
    std::vector<std::string> known;
    for (const auto& row : effective_) known.emplace_back(row.name);
    std::vector<std::string> sentences;
    for (const std::string& name : unknown_names()) {
        const auto in_file = file_values_.find(name);
        const bool by_file = in_file != file_values_.end() && !npushmem_variables_.contains(name);
        // Compares without the prefix, which would make any two names similar.
        const std::string near = nearest(name.substr(prefix.size()), known);
        sentences.push_back(fmt::format("{}unknown variable {} is ignored{}",
                                        by_file ? in_file->second.place + ": " : "", name,
                                        near.empty() ? "" : fmt::format("; did you mean NPUSHMEM_{}?", near)));
    }
    return sentences;
}

std::optional<std::string> given_variable(const std::string& name, const Environment& environment) {
    if (auto own = environment.get(name)) return own;
    const auto values =
        read_config_file(std::string(trimmed(environment.get(config_file_variable).value_or(""))), read_content);
    if (!values.ok()) return std::nullopt;
    const auto in_file = values.value().find(name);
    return in_file != values.value().end() ? std::optional(in_file->second.text) : std::nullopt;
}

bool is_secret(std::string_view name) {
    for (const std::string_view part :
         {"UNIQUEID", "SECRET", "SESSION", "TOKEN", "PASSWORD", "PASSWD", "CREDENTIAL", "COOKIE"})
        if (name.find(part) != std::string_view::npos) return true;
    return false;
}

}  // namespace npushmem
