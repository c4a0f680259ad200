// SPDX-License-Identifier: BSD-3-Clause
#include "core/tools/run/exit_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <limits>

#include "core/base/parse.hpp"

namespace npushmem::run {

TerminationKind termination_kind(int code) {
    return code == CLD_EXITED   ? TerminationKind::exited
           : code == CLD_DUMPED ? TerminationKind::dumped_core
                                : TerminationKind::killed;
}

std::string describe_termination(const ExitRecord& end) {
    if (end.termination == TerminationKind::exited) return fmt::format("exited with status {}", end.value);
    const char* meaning = ::sigdescr_np(end.value);
    return fmt::format("was killed by signal {} ({}{}{}){}", end.value, signal_name(end.value),
                       meaning == nullptr ? "" : ": ", meaning == nullptr ? "" : meaning,
                       end.termination == TerminationKind::dumped_core ? ", core dumped" : "");
}

int exit_code_of(const ExitRecord& end) {
    return end.termination == TerminationKind::exited ? end.value : exit_signal_base + end.value;
}

std::string signal_name(int signal) {
    const char* abbreviation = ::sigabbrev_np(signal);
    return abbreviation == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{}", abbreviation);
}

std::string describe(const ExitRecord& end, const std::string& host, int emulated_host) {
    const std::string emulated = emulated_host < 0 ? "" : fmt::format(", emulated host {}", emulated_host);
    return fmt::format("PE {} (pid {}, host {}{}) {}", end.pe, end.pid, host, emulated, describe_termination(end));
}

namespace {

bool parse(std::string_view text, int& into) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
    return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

std::optional<ExitRequest> parse_exit_request(std::string_view line) {
    const auto words = split(line, ' ');
    ExitRequest request;
    request.openshmem = words.size() == 4 && words[0] == "exit" && words[3] == "shmem";
    const bool known = request.openshmem || (words.size() == 3 && (words[0] == "exit" || words[0] == "failed"));
    const bool good = known && parse(words[1], request.pe) && parse(words[2], request.status) && request.pe >= -1;
    request.failed = good && words[0] == "failed";
    return good ? std::optional(request) : std::nullopt;
}

std::string line_of(const ExitRequest& request) {
    return fmt::format("{} {} {}{}", request.failed ? "failed" : "exit", request.pe, request.status,
                       request.openshmem ? " shmem" : "");
}

std::vector<ExitRequest> ExitRequests::take(std::string_view bytes) {
    std::vector<ExitRequest> requests;
    rest_.append(bytes);
    for (auto end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n')) {
        if (const auto request = parse_exit_request(std::string_view(rest_).substr(0, end)))
            requests.push_back(*request);
        rest_.erase(0, end + 1);
    }
    if (rest_.size() > longest_line) rest_.clear();
    return requests;
}

std::string text_of(const Outcome& outcome) { return fmt::format("{} {}", outcome.status, outcome.exit); }

std::optional<Outcome> parse_outcome(std::string_view text) {
    using Limits = std::numeric_limits<std::int32_t>;
    const auto blank = std::min(text.find(' '), text.size());
    const auto status = parse_integer(text.substr(0, blank), Limits::min(), Limits::max());
    if (!status.ok()) return std::nullopt;
    return Outcome{static_cast<int>(status.value()), std::string(text.substr(std::min(blank + 1, text.size())))};
}

}  // namespace npushmem::run
