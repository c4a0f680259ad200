// SPDX-License-Identifier: BSD-3-Clause
// Values of environment variables: numbers, sizes, durations, and the whole configuration.
#include <map>
#include <optional>

#include "core/base/config.hpp"
#include "core/base/parse.hpp"
#include "tests/fuzz/targets.hpp"

namespace npushmem::fuzz {
namespace {

void check_size(std::string_view text) {
    const auto size = parse_size(text);
    if (!size.ok()) return require_message(size.status());
    const auto exact = parse_size(std::to_string(size.value().value));
    require(exact.ok() && exact.value() == size.value(), "a size changes");
    const std::string formatted = format_size(size.value().value);
    const auto again = parse_size(formatted);  // a rounded size has a decimal point, which no size has
    require(formatted.find('.') != std::string::npos || (again.ok() && again.value() == size.value()),
            "a size changes by formatting: " + formatted);
}

void check_duration(std::string_view text) {
    const auto duration = parse_duration(text);
    if (!duration.ok()) return require_message(duration.status());
    require(duration.value().count() >= 0, "a negative duration");
    const std::string formatted = format_duration(duration.value());
    const auto again = parse_duration(formatted);
    require(again.ok(), "a formatted duration is rejected: " + formatted);
    const auto wanted = static_cast<double>(duration.value().count());  // printed with four digits
    const double error = static_cast<double>(again.value().count()) - wanted;
    require(error <= wanted * 1e-3 && -error <= wanted * 1e-3, "a duration changes by formatting: " + formatted);
}

void check_integer(std::string_view text) {
    const auto number = parse_integer(text, -1000, 1000);
    if (!number.ok()) return require_message(number.status());
    require(number.value() >= -1000 && number.value() <= 1000, "an integer is out of range");
    require(parse_integer(std::to_string(number.value()), -1000, 1000).value() == number.value(), "an integer changes");
}

void check_words(std::string_view text) {
    const auto parts = split(text, ',');
    require(text.empty() == parts.empty(), "a wrong number of parts");
    for (const auto& part : parts) require(trimmed(part) == part, "a part has blanks around it");
    const std::string found = nearest(text, parts);
    require(found.empty() || std::ranges::find(parts, found) != parts.end(), "the nearest word is no candidate");
    require_message(parse_bool(text).status());
}

class InputEnvironment final : public Environment {
public:
    explicit InputEnvironment(std::map<std::string, std::string> values) : values_(std::move(values)) {}
    [[nodiscard]] std::optional<std::string> get(const std::string& name) const override {
        const auto found = values_.find(name);
        return found == values_.end() ? std::nullopt : std::optional(found->second);
    }
    [[nodiscard]] std::map<std::string, std::string> npushmem_variables() const override {
        std::map<std::string, std::string> out;
        for (const auto& [name, value] : values_)
            if (name.starts_with("NPUSHMEM_")) out.emplace(name, value);
        return out;
    }

private:
    std::map<std::string, std::string> values_;
};

void check_config_file(std::string_view text) {
    const auto values = parse_config_file(text, "f");
    if (!values.ok()) return require_message(values.status());
    std::string written;
    for (const auto& [name, value] : values.value()) written += name + "=" + value.text + "\n";
    const auto again = parse_config_file(written, "f");
    require(again.ok() && again.value().size() == values.value().size(), "a configuration file changes");
    for (const auto& [name, value] : again.value())
        require(value.text == values.value().at(name).text, "a value of a configuration file changes: " + name);
}

// Lines name=value. What is read must give the same configuration when its effective values are set.
void check_configuration(Taker& in) {
    std::map<std::string, std::string> values;
    std::string file;
    while (!in.empty()) {
        const std::string line = in.line();
        file += line + "\n";
        const std::size_t equals = line.find('=');
        if (equals != std::string::npos) values.emplace(line.substr(0, equals), line.substr(equals + 1));
    }
    check_config_file(file);
    const auto no_file = [](const std::string&) { return Result<std::string>(""); };
    const auto config = Config::read(InputEnvironment(values), no_file);
    if (!config.ok()) return require_message(config.status());
    for (const auto& sentence : config.value().unknown_variables()) require(!sentence.empty(), "an empty sentence");
    std::map<std::string, std::string> effective;
    for (const auto& each : config.value().effective()) effective.emplace(each.variable(), each.value);
    const auto again = Config::read(InputEnvironment(effective), no_file);
    require(again.ok(), "the effective values are rejected: " + again.status().message());
    for (const auto& each : again.value().effective())
        require(each.value == effective.at(each.variable()), "an effective value changes: " + each.variable());
}

}  // namespace

// The first byte selects the check.
void variables(Input input) {
    Taker in(input);
    switch (in.byte() % 5) {
        case 0: return check_size(text_of(in.rest()));
        case 1: return check_duration(text_of(in.rest()));
        case 2: return check_integer(text_of(in.rest()));
        case 3: return check_words(text_of(in.rest()));
        default: return check_configuration(in);
    }
}

}  // namespace npushmem::fuzz
