// SPDX-License-Identifier: BSD-3-Clause
#include "core/coll/barrier/tuning.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <sstream>

#include "core/base/hash.hpp"
#include "core/base/streams.hpp"

namespace npushmem::barrier {
namespace {

struct Word {
    std::string_view text;
    std::size_t column = 0;  // from 1
};

std::vector<Word> words_of(std::string_view line) {
    constexpr std::string_view blanks = " \t\r";
    line = line.substr(0, line.find('#'));
    std::vector<Word> words;
    for (std::size_t begin = line.find_first_not_of(blanks); begin != std::string_view::npos;) {
        const std::size_t end = std::min(line.find_first_of(blanks, begin), line.size());
        words.push_back({line.substr(begin, end - begin), begin + 1});
        begin = line.find_first_not_of(blanks, end);
    }
    return words;
}

bool parse_number(std::string_view text, double& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
    return error == std::errc{} && end == text.data() + text.size() && std::isfinite(value) && value >= 0;
}

bool parse_range(std::string_view text, TuningRange& range) {
    range = {};
    if (text == "*") return true;
    const auto dash = text.find('-');
    if (!parse_number(text.substr(0, dash), range.min)) return false;
    if (dash == std::string_view::npos) range.max = range.min;
    const bool open = dash == std::string_view::npos || dash + 1 == text.size();
    return (open || parse_number(text.substr(dash + 1), range.max)) && range.min <= range.max;
}

// Parses one line; `found` is false for a line without a rule. Failures name the column.
Result<bool> parse_line(std::string_view line, TuningRule& rule) {
    const auto words = words_of(line);
    if (words.empty()) return false;
    const auto wrong = [](const Word& word, const std::string& why) {
        return Status{Code::config, fmt::format("column {}: {}", word.column, why)};
    };
    constexpr std::size_t fields = 5;
    if (words[0].text != "barrier")
        return wrong(words[0], fmt::format("\"{}\" is not a collective; expected: barrier", words[0].text));
    if (words.size() != fields)
        return wrong(words.back(), fmt::format("{} fields; a rule has {}: barrier, PEs, PEs per node, PEs per core, "
                                               "algorithm",
                                               words.size(), fields));
    const std::array<TuningRange*, 3> ranges{&rule.members, &rule.per_node, &rule.per_core};
    for (std::size_t i = 0; i < ranges.size(); ++i)
        if (!parse_range(words[i + 1].text, *ranges[i]))
            return wrong(words[i + 1],
                         fmt::format("\"{}\" is not a range; expected 8, 2-8, 17- or *", words[i + 1].text));
    auto plan = parse_plan(words[4].text);
    if (!plan.ok()) return wrong(words[4], plan.status().message());
    rule.plan = plan.value();
    return true;
}

}  // namespace

Result<Tuning> Tuning::parse(std::string_view text, std::string name) {
    Tuning tuning;
    tuning.name_ = std::move(name);
    tuning.hash_ = hash_bytes(text);
    std::istringstream lines{std::string(text)};
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
        TuningRule rule;
        rule.line = ++number;
        const auto found = parse_line(line, rule);
        if (!found.ok())
            return Status{found.status().code(),
                          fmt::format("{}, line {}, {}", tuning.name_, number, found.status().message())};
        if (found.value()) tuning.rules_.push_back(rule);
    }
    return tuning;
}

Result<Tuning> Tuning::read(const std::string& path) {
    if (path.empty()) return Tuning{};
    const auto text = read_whole_file(path);
    if (!text.ok()) return Status{Code::config, fmt::format("cannot read \"{}\": {}", path, text.status().message())};
    return parse(text.value(), path);
}

const TuningRule* Tuning::find(const BarrierSelectionInput& selection_input) const {
    for (const TuningRule& rule : rules_)
        if (rule.members.contains(selection_input.members) && rule.per_node.contains(selection_input.pes_per_node()) &&
            rule.per_core.contains(selection_input.pes_per_core))
            return check_members(rule.plan, selection_input.members).ok() ? &rule : nullptr;
    return nullptr;
}

}  // namespace npushmem::barrier
