// SPDX-License-Identifier: BSD-3-Clause
#include "core/coll/barrier/tuning.hpp"

#include <fmt/format.h>

#include <algorithm>
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

constexpr std::size_t algorithm_fields = 5;
constexpr std::size_t library_fields = 6;

Status wrong(const Word& word, const std::string& why) {
    return {Code::config, fmt::format("column {}: {}", word.column, why)};
}

Status check_fields(const std::vector<Word>& words) {
    if (std::ranges::find(coll::collective_names, words[0].text) == coll::collective_names.end())
        return wrong(words[0], fmt::format("\"{}\" is not a collective; expected: {}", words[0].text,
                                           fmt::join(coll::collective_names, ", ")));
    if (words.size() == library_fields || (words.size() == algorithm_fields && words[0].text == "barrier")) return {};
    return wrong(words.back(), fmt::format("{} fields; a rule has {}: collective, PEs, PEs per node, PEs per core, "
                                           "bytes, library; or {}: barrier, PEs, PEs per node, PEs per core, algorithm",
                                           words.size(), library_fields, algorithm_fields));
}

template <std::size_t Count>
Status parse_ranges(const std::vector<Word>& words, const std::array<TuningRange*, Count>& ranges) {
    for (std::size_t i = 0; i < Count; ++i)
        if (!parse_range(words[i + 1].text, *ranges[i]))
            return wrong(words[i + 1],
                         fmt::format("\"{}\" is not a range; expected 8, 2-8, 17- or *", words[i + 1].text));
    return {};
}

Result<TuningRule> parse_algorithm_rule(const std::vector<Word>& words, int line) {
    TuningRule rule;
    rule.line = line;
    if (Status ranges = parse_ranges<3>(words, {&rule.members, &rule.per_node, &rule.per_core}); !ranges.ok())
        return ranges;
    auto plan = parse_plan(words[4].text);
    if (!plan.ok()) return wrong(words[4], plan.status().message());
    rule.plan = plan.value();
    return rule;
}

Result<LibraryRule> parse_library_rule(const std::vector<Word>& words, int line) {
    LibraryRule rule;
    rule.line = line;
    rule.collective = words[0].text;
    Status ranges = parse_ranges<4>(words, {&rule.members, &rule.per_node, &rule.per_core, &rule.bytes});
    if (!ranges.ok()) return ranges;
    const std::string_view choice = words[5].text;
    const auto colon = choice.find(':');
    rule.library = choice.substr(0, colon);
    if (colon == std::string_view::npos || rule.library != "npushmem") {
        rule.library = choice;
        return rule;
    }
    const auto number = std::ranges::find(coll::collective_names, words[0].text) - coll::collective_names.begin();
    const auto method = coll::method_named(static_cast<std::uint32_t>(number), choice.substr(colon + 1));
    if (!method.ok()) return wrong(words[5], method.status().message());
    rule.method = method.value();
    return rule;
}

template <class Rule>
Status append_rule(Result<Rule> parsed, std::vector<Rule>& rules) {
    if (parsed.ok()) rules.push_back(std::move(parsed).value());
    return parsed.status();
}

bool matches(const auto& rule, const BarrierSelectionInput& input) {
    return rule.members.contains(input.members) && rule.per_node.contains(input.pes_per_node()) &&
           rule.per_core.contains(input.pes_per_core);
}

}  // namespace

Result<Tuning> Tuning::parse(std::string_view text, std::string name) {
    Tuning tuning;
    tuning.name_ = std::move(name);
    tuning.hash_ = hash_bytes(text);
    std::istringstream lines{std::string(text)};
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
        ++number;
        const auto words = words_of(line);
        if (words.empty()) continue;
        Status added = check_fields(words);
        if (added.ok())
            added = words.size() == library_fields
                        ? append_rule(parse_library_rule(words, number), tuning.library_rules_)
                        : append_rule(parse_algorithm_rule(words, number), tuning.rules_);
        if (!added.ok())
            return Status{added.code(), fmt::format("{}, line {}, {}", tuning.name_, number, added.message())};
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
        if (matches(rule, selection_input))
            return check_members(rule.plan, selection_input.members).ok() ? &rule : nullptr;
    return nullptr;
}

const LibraryRule* Tuning::find_library(std::string_view collective, double bytes,
                                        const BarrierSelectionInput& selection_input) const {
    for (const LibraryRule& rule : library_rules_)
        if (rule.collective == collective && rule.bytes.contains(bytes) && matches(rule, selection_input)) return &rule;
    return nullptr;
}

std::vector<const LibraryRule*> Tuning::library_rules_for(std::string_view collective,
                                                          const BarrierSelectionInput& selection_input) const {
    std::vector<const LibraryRule*> out;
    for (const LibraryRule& rule : library_rules_)
        if (rule.collective == collective && matches(rule, selection_input)) out.push_back(&rule);
    return out;
}

}  // namespace npushmem::barrier
