#include "core/tools/run/launch_request.hpp"

#include <fmt/format.h>

#include "core/base/parse.hpp"

namespace npushmem::run {
namespace {

constexpr std::string_view opening = "npushmem-launch 3 ";
constexpr std::int64_t longest_body = 64LL << 20;

std::vector<std::string> texts_of(std::string_view body) {
    std::vector<std::string> out;
    while (!body.empty()) {
        const auto end = std::min(body.find('\0'), body.size());
        out.emplace_back(body.substr(0, end));
        body.remove_prefix(std::min(end + 1, body.size()));
    }
    return out;
}

// The first bad number stays in `wrong`.
int number(const std::string& text, Status& wrong) {
    const auto parsed = parse_integer(text, 0, 1 << 24);
    if (!parsed.ok() && wrong.ok())
        wrong = {Code::protocol, fmt::format("'{}' is not a number of the launch request", text)};
    return parsed.ok() ? static_cast<int>(parsed.value()) : 0;
}

}  // namespace

std::string LaunchRequest::encode() const {
    std::vector<std::string> texts{folder, record_mark};
    for (const int fact : {pes.numbering.first, pes.numbering.step, pes.count, npes, static_cast<int>(bind),
                           tag_output ? 1 : 0, verbose ? 1 : 0, static_cast<int>(environment.size())})
        texts.push_back(std::to_string(fact));
    texts.insert(texts.end(), environment.begin(), environment.end());
    texts.insert(texts.end(), command.begin(), command.end());
    std::string body;
    for (const auto& text : texts) body.append(text).push_back('\0');
    return fmt::format("{}{}\n{}", opening, body.size(), body);
}

Result<std::size_t> LaunchRequest::body_bytes(std::string_view first_line) {
    const bool known = first_line.starts_with(opening);
    const auto bytes = parse_integer(known ? first_line.substr(opening.size()) : "", 1, longest_body);
    if (bytes.ok()) return static_cast<std::size_t>(bytes.value());
    return Status{Code::protocol,
                  fmt::format("standard input began with '{}' instead of a launch request of npushmem-run; are "
                              "both of one version, and does the remote shell print something?",
                              first_line.substr(0, 60))};
}

Result<LaunchRequest> LaunchRequest::decode(std::string_view body) {
    const auto texts = texts_of(body);
    constexpr std::size_t facts = 10;
    if (texts.size() <= facts) return Status{Code::protocol, "the launch request is truncated"};
    Status wrong;
    LaunchRequest made;
    made.folder = texts[0];
    made.record_mark = texts[1];
    made.pes = {{number(texts[2], wrong), number(texts[3], wrong)}, number(texts[4], wrong)};
    made.npes = number(texts[5], wrong);
    made.bind = static_cast<Bind>(number(texts[6], wrong));
    made.tag_output = texts[7] == "1";
    made.verbose = texts[8] == "1";
    const auto variables = static_cast<std::size_t>(number(texts[9], wrong));
    if (!wrong.ok()) return wrong;
    if (texts.size() <= facts + variables || made.pes.count < 1 || made.bind > Bind::device)
        return Status{Code::protocol, "the launch request is truncated"};
    const auto command = texts.begin() + static_cast<std::ptrdiff_t>(facts + variables);
    made.environment.assign(texts.begin() + static_cast<std::ptrdiff_t>(facts), command);
    made.command.assign(command, texts.end());
    return made;
}

}  // namespace npushmem::run
