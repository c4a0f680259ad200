#include "core/tools/run/exit_requests.hpp"

#include <fmt/format.h>

#include <charconv>

#include "core/base/strings.hpp"

namespace npushmem::run {

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

}  // namespace npushmem::run
