#include "transports/fault/fault_settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/base/parse.hpp"
#include "core/base/strings.hpp"

namespace npushmem::fault {
namespace {

constexpr std::array<std::string_view, function_count> function_names{
    "connect", "register_memory", "import_memory", "create_queue", "put",
    "get",     "atomic",          "put_signal",    "fence",        "quiet"};

constexpr std::array codes{Code::argument,    Code::range,       Code::state,     Code::config,
                           Code::unsupported, Code::unreachable, Code::peer_dead, Code::timeout,
                           Code::protocol,    Code::aborted,     Code::memory,    Code::system};

// A code as one word: "peer_dead".
std::string word_of(Code code) {
    std::string word(npushmem::name_of(code));
    std::replace(word.begin(), word.end(), ' ', '_');
    return word;
}

std::string all_words() {
    std::string out;
    for (const Code code : codes) out.append(out.empty() ? "" : ", ").append(word_of(code));
    return out;
}

Result<FailRule> parse_rule(std::string_view text) {
    const auto parts = split(text, ':');
    if (parts.size() != 3)
        return Status{Code::config,
                      fmt::format("'{}' is not <function>:<number of the call>:<code>, as in put:3:timeout", text)};
    const auto function = std::find(function_names.begin(), function_names.end(), parts[0]);
    if (function == function_names.end())
        return Status{Code::config, fmt::format("'{}' cannot be told to fail; these can: {}", parts[0],
                                                fmt::join(function_names, ", "))};
    const auto call = parse_integer(parts[1], 1, std::numeric_limits<std::int64_t>::max());
    if (!call.ok()) return call.status().within(fmt::format("the number of the call in '{}'", text));
    const auto code = std::find_if(codes.begin(), codes.end(), [&](Code c) { return word_of(c) == parts[2]; });
    if (code == codes.end())
        return Status{Code::config, fmt::format("'{}' is no code; write one of {}", parts[2], all_words())};
    return FailRule{static_cast<Function>(function - function_names.begin()), static_cast<std::uint64_t>(call.value()),
                    *code};
}

Result<std::int64_t> read_integer(const Host& host, const char* name, const char* otherwise, std::int64_t high) {
    auto value = parse_integer(host.config(name, otherwise), 0, high);
    if (!value.ok()) return value.status().within(fmt::format("NPUSHMEM_{}", name));
    return value;
}

}  // namespace

std::string_view name_of(Function function) { return function_names.at(static_cast<std::size_t>(function)); }

Result<std::vector<FailRule>> parse_fail_rules(std::string_view text) {
    std::vector<FailRule> out;
    for (const auto& part : split(text, ',')) {
        auto rule = parse_rule(part);
        if (!rule.ok()) return rule.status().within("NPUSHMEM_FAULT_FAIL");
        out.push_back(rule.value());
    }
    return out;
}

Result<Settings> read_settings(const Host& host) {
    constexpr std::int64_t max_delay = 1'000'000;
    constexpr std::int64_t max_again = 90;  // at 100 nothing would ever be posted
    const auto seed = read_integer(host, "FAULT_SEED", "1", std::numeric_limits<std::int64_t>::max());
    if (!seed.ok()) return seed.status();
    const auto delay = read_integer(host, "FAULT_DELAY", "4", max_delay);
    if (!delay.ok()) return delay.status();
    const auto again = read_integer(host, "FAULT_AGAIN", "10", max_again);
    if (!again.ok()) return again.status();
    const auto reorder = parse_bool(host.config("FAULT_REORDER", "true"));
    if (!reorder.ok()) return reorder.status().within("NPUSHMEM_FAULT_REORDER");
    auto fail = parse_fail_rules(host.config("FAULT_FAIL"));
    if (!fail.ok()) return fail.status();
    return Settings{static_cast<std::uint64_t>(seed.value()), static_cast<std::uint32_t>(delay.value()),
                    reorder.value(), static_cast<std::uint32_t>(again.value()), std::move(fail).value()};
}

}  // namespace npushmem::fault
