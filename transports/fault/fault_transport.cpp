// SPDX-License-Identifier: BSD-3-Clause
#include "transports/fault/fault_transport.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/base/parse.hpp"

namespace npushmem::fault {
namespace {

constexpr std::array<std::string_view, function_count> function_names{
    "connect", "register_memory", "import_memory", "create_queue", "put",  "get",
    "atomic",  "put_signal",      "put_strided",   "fence",        "quiet"};

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
        return Status{
            Code::config,
            fmt::format("'{}' does not have the form <function>:<number of the call>:<code>, as in put:3:timeout",
                        text)};
    const auto function = std::find(function_names.begin(), function_names.end(), parts[0]);
    if (function == function_names.end())
        return Status{Code::config, fmt::format("'{}' is not a function that can fail on request; expected one of: {}",
                                                parts[0], fmt::join(function_names, ", "))};
    const auto call = parse_integer(parts[1], 1, std::numeric_limits<std::int64_t>::max());
    if (!call.ok()) return call.status().within(fmt::format("the number of the call in '{}'", text));
    const auto code = std::find_if(codes.begin(), codes.end(), [&](Code c) { return word_of(c) == parts[2]; });
    if (code == codes.end())
        return Status{Code::config,
                      fmt::format("'{}' is not an error code; expected one of: {}", parts[2], all_words())};
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
    constexpr std::int64_t max_again = 90;  // with 100 no operation would ever be posted
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

namespace npushmem {

using fault::Function;
using fault::HeldQueue;

namespace {

// Derives a different seed for each PE.
std::uint64_t seed_of(std::uint64_t seed, int pe) {
    constexpr std::uint64_t golden_ratio = 0x9e3779b97f4a7c15U;
    return seed + static_cast<std::uint64_t>(pe) * golden_ratio;
}

}  // namespace

Result<std::unique_ptr<Transport>> FaultTransport::open(const Host& host, const npushmem_transport_params& params) {
    if (Status s = check_inner(params); !s.ok()) return s;
    auto settings = fault::read_settings(host);
    if (!settings.ok()) return settings.status();
    return std::unique_ptr<Transport>(std::make_unique<FaultTransport>(host, params, std::move(settings).value()));
}

FaultTransport::FaultTransport(const Host& host, const npushmem_transport_params& params, fault::Settings settings)
    : DecoratorTransport(params, NPUSHMEM_CAP_MAP | NPUSHMEM_CAP_ORDERED),
      host_(host),
      settings_(std::move(settings)),
      random_(seed_of(settings_.seed, params.pe)) {}

Code FaultTransport::injected_failure(Function function) {
    const std::uint64_t call = ++calls_.at(static_cast<std::size_t>(function));
    const auto rule = std::find_if(settings_.fail.begin(), settings_.fail.end(), [&](const auto& candidate) {
        return candidate.function == function && candidate.call == call;
    });
    if (rule == settings_.fail.end()) return Code::ok;
    host_.log(LogLevel::debug, fmt::format("call {} of {} fails with '{}', as NPUSHMEM_FAULT_FAIL requests", call,
                                           name_of(function), npushmem::name_of(rule->code)));
    return rule->code;
}

Status FaultTransport::injected_setup_failure(Function function) {
    const std::lock_guard lock(mutex_);
    const Code code = injected_failure(function);
    if (code == Code::ok) return {};
    return {code, fmt::format("{} fails, as NPUSHMEM_FAULT_FAIL requests", name_of(function))};
}

Reach FaultTransport::reach(const npushmem_peer& peer) {
    Reach out = DecoratorTransport::reach(peer);
    if (out.reachable()) out.why += fmt::format(", with faults (seed {})", settings_.seed);
    return out;
}

Status FaultTransport::connect(const npushmem_peer& peer) {
    const Status injected = injected_setup_failure(Function::connect);
    return injected.ok() ? inner().connect(peer) : injected;
}

Result<RegisteredMemory> FaultTransport::register_memory(const npushmem_memory& memory) {
    if (Status injected = injected_setup_failure(Function::register_memory); !injected.ok()) return injected;
    return inner().register_memory(memory);
}

Result<std::uint64_t> FaultTransport::import_memory(int pe, std::span<const std::byte> handle) {
    if (Status injected = injected_setup_failure(Function::import_memory); !injected.ok()) return injected;
    return inner().import_memory(pe, handle);
}

Result<std::uint64_t> FaultTransport::create_queue() {
    if (Status injected = injected_setup_failure(Function::create_queue); !injected.ok()) return injected;
    auto made = inner().create_queue();
    if (!made.ok()) return made;
    const std::lock_guard lock(mutex_);
    queues_.insert_or_assign(made.value(), HeldQueue(inner(), made.value(), settings_.reorder));
    return made;
}

Code FaultTransport::destroy_queue(std::uint64_t queue) {
    {
        const std::lock_guard lock(mutex_);
        if (queues_.erase(queue) == 0) return Code::argument;
    }
    return inner().destroy_queue(queue);
}

HeldQueue* FaultTransport::find(std::uint64_t queue) {
    const auto found = queues_.find(queue);
    return found == queues_.end() ? nullptr : &found->second;
}

Code FaultTransport::hold(std::uint64_t queue, Function function, const PostedOperation& posted, std::uint64_t* token) {
    const std::lock_guard lock(mutex_);
    HeldQueue* const held = find(queue);
    if (held == nullptr) return Code::argument;
    if (const Code injected = injected_failure(function); injected != Code::ok) return injected;
    if (random_() % 100 < settings_.again_percent) return Code::again;
    if (held->full()) {
        held->step(random_);  // so that a caller that only repeats its call finally succeeds
        return Code::again;
    }
    const auto waiting = static_cast<std::uint32_t>(random_() % (std::uint64_t{settings_.delay} + 1));
    const std::uint64_t number = held->hold({.posted = posted, .waiting = waiting});
    if (token != nullptr) *token = number;
    // An operation may also take effect at once.
    if (one_in(4)) held->step(random_);
    return Code::ok;
}

Code FaultTransport::put(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) {
    return hold(queue, Function::put, {PostedPut{op}}, token);
}

Code FaultTransport::get(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) {
    return hold(queue, Function::get, {PostedGet{op}}, token);
}

Code FaultTransport::atomic(std::uint64_t queue, const npushmem_atomic& op, std::uint64_t* token) {
    return hold(queue, Function::atomic, {op}, token);
}

Code FaultTransport::put_signal(std::uint64_t queue, const npushmem_put_signal& op, std::uint64_t* token) {
    return hold(queue, Function::put_signal, {op}, token);
}

Code FaultTransport::put_strided(std::uint64_t queue, const npushmem_put_strided& op, std::uint64_t* token) {
    return hold(queue, Function::put_strided, {op}, token);
}

Code FaultTransport::fence(std::uint64_t queue) {
    const std::lock_guard lock(mutex_);
    HeldQueue* const held = find(queue);
    if (held == nullptr) return Code::argument;
    if (const Code injected = injected_failure(Function::fence); injected != Code::ok) return injected;
    held->fence();
    return Code::ok;
}

Code FaultTransport::quiet(std::uint64_t queue) {
    const std::lock_guard lock(mutex_);
    HeldQueue* const held = find(queue);
    if (held == nullptr) return Code::argument;
    if (const Code injected = injected_failure(Function::quiet); injected != Code::ok) return injected;
    held->step(random_);
    return held->quiet();
}

Code FaultTransport::test(std::uint64_t queue, std::uint64_t token) {
    const std::lock_guard lock(mutex_);
    HeldQueue* const held = find(queue);
    if (held == nullptr) return Code::argument;
    held->step(random_);
    return held->test(token);
}

Code FaultTransport::progress() {
    const Code inner_code = inner().progress();
    const std::lock_guard lock(mutex_);
    bool any = inner_code == Code::ok;
    for (auto& [number, held] : queues_) any = held.step(random_) || any;
    return any ? Code::ok : inner_code;
}

}  // namespace npushmem
