// SPDX-License-Identifier: BSD-3-Clause
#include "bench/simulate/model.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <sstream>
#include <string_view>

#include "core/base/streams.hpp"

namespace npushmem::simulate {
namespace {

struct Name {
    std::string_view text;
    double* (*value)(Model&);
};

constexpr std::array names{
    Name{"node.latency", [](Model& model) { return &model.node.latency; }},
    Name{"node.overhead", [](Model& model) { return &model.node.overhead; }},
    Name{"node.gap", [](Model& model) { return &model.node.gap; }},
    Name{"network.latency", [](Model& model) { return &model.network.latency; }},
    Name{"network.overhead", [](Model& model) { return &model.network.overhead; }},
    Name{"network.gap", [](Model& model) { return &model.network.gap; }},
    Name{"node.per_byte", [](Model& model) { return &model.node.per_byte; }},
    Name{"network.per_byte", [](Model& model) { return &model.network.per_byte; }},
    Name{"tcp.latency", [](Model& model) { return &model.tcp.latency; }},
    Name{"tcp.overhead", [](Model& model) { return &model.tcp.overhead; }},
    Name{"tcp.gap", [](Model& model) { return &model.tcp.gap; }},
    Name{"tcp.per_byte", [](Model& model) { return &model.tcp.per_byte; }},
    Name{"turn", [](Model& model) { return &model.turn; }},
};
constexpr std::string_view cores_name = "cores_per_node";
constexpr double most = 1e9;  // a second; so that no time overflows

// One word and where it begins, from 1.
struct Word {
    std::string_view text;
    std::size_t column;
};

Word next_word(std::string_view line, std::size_t from) {
    constexpr std::string_view blanks = " \t\r";
    const std::size_t begin = std::min(line.find_first_not_of(blanks, from), line.size());
    const std::size_t end = std::min(line.find_first_of(blanks, begin), line.size());
    return {line.substr(begin, end - begin), begin + 1};
}

Status set(Model& model, std::string_view name, double value) {
    if (name == cores_name) {
        if (value != std::floor(value) || value > 1'000'000) return {Code::config, "is no number of cores"};
        model.cores_per_node = static_cast<int>(value);
        return {};
    }
    for (const Name& one : names) {
        if (one.text != name) continue;
        *one.value(model) = value;
        return {};
    }
    std::string all(cores_name);
    for (const Name& one : names) all += fmt::format(", {}", one.text);
    return {Code::config, fmt::format("is no parameter; there are: {}", all)};
}

Status read_line(std::string_view line, const std::string& place, Model& model) {
    line = line.substr(0, line.find('#'));
    const Word name = next_word(line, 0);
    if (name.text.empty()) return {};
    const auto wrong = [&](const Word& word, std::string_view why) {
        return Status{Code::config, fmt::format("{}:{}: '{}' {}", place, word.column, word.text, why)};
    };
    const Word number = next_word(line, name.column - 1 + name.text.size());
    double value = 0;
    const auto [end, error] = std::from_chars(number.text.data(), number.text.data() + number.text.size(), value);
    if (error != std::errc{} || end != number.text.data() + number.text.size() || !(value >= 0 && value <= most))
        return wrong(number, "is no number from 0 to 1e9");
    const Word rest = next_word(line, number.column - 1 + number.text.size());
    if (!rest.text.empty()) return wrong(rest, "follows the number; a line has a name and a number");
    const Status known = set(model, name.text, value);
    return known.ok() ? known : wrong(name, known.message());
}

}  // namespace

Model default_model() {
    return {.node = {.latency = 60, .overhead = 10, .gap = 15, .per_byte = 0.05},
            .network = {.latency = 1400, .overhead = 300, .gap = 60, .per_byte = 0.04},
            .tcp = {.latency = 15'000, .overhead = 4000, .gap = 4000, .per_byte = 0.6},
            .turn = 830,
            .cores_per_node = 0};
}

Status read_model(std::istream& in, const std::string& file, Model& model) {
    int number = 0;
    for (std::string line; std::getline(in, line);)
        if (Status done = read_line(line, fmt::format("{}:{}", file, ++number), model); !done.ok()) return done;
    return {};
}

Status read_model_file(const std::string& path, Model& model) {
    if (path.empty()) return {};
    const auto text = read_whole_file(path);
    if (!text.ok()) return {Code::config, fmt::format("cannot read \"{}\": {}", path, text.status().message())};
    std::istringstream lines(text.value());
    return read_model(lines, path, model);
}

std::string describe(const Model& model) {
    std::string text = "# nanoseconds\n";
    Model copy = model;
    for (const Name& one : names) text += fmt::format("{} {:.4g}\n", one.text, *one.value(copy));
    return text + fmt::format("{} {}\n", cores_name, model.cores_per_node);
}

}  // namespace npushmem::simulate
