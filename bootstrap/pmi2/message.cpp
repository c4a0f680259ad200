#include "bootstrap/pmi2/message.hpp"

#include <fmt/format.h>

#include "core/base/parse.hpp"

namespace npushmem::pmi2 {
namespace {

constexpr std::int64_t longest_body = 64 * 1024;  // more is taken for garbage

std::string escaped(std::string_view value) {
    std::string out;
    for (const char c : value) out += c == ';' ? std::string(";;") : std::string(1, c);
    return out;
}

// Takes one word off the front, its closing semicolon included, and undoes the doubled ones.
std::string take_word(std::string_view& rest) {
    std::string word;
    while (!rest.empty()) {
        const char c = rest.front();
        const bool doubled = c == ';' && rest.size() > 1 && rest[1] == ';';
        rest.remove_prefix(doubled ? 2 : 1);
        if (c == ';' && !doubled) break;
        word.push_back(c);
    }
    return word;
}

}  // namespace

std::string Message::encode(const std::string& command, const Words& words) {
    std::string body = fmt::format("cmd={};", command);
    for (const auto& [name, value] : words) body += fmt::format("{}={};", name, escaped(value));
    return fmt::format("{:>{}}{}", body.size(), length_digits, body);
}

Result<std::size_t> Message::length(std::string_view digits) {
    const auto parsed = parse_integer(trimmed(digits), 1, longest_body);
    if (!parsed.ok())
        return Status{Code::protocol,
                      fmt::format("the launcher sent '{}' where a message's length belongs", digits.substr(0, 32))};
    return static_cast<std::size_t>(parsed.value());
}

Result<Message> Message::parse(std::string_view body) {
    Message made;
    for (std::string_view rest = body; !rest.empty();) {
        const std::string word = take_word(rest);
        const auto equals = word.find('=');
        if (equals != std::string::npos && equals > 0)
            made.words_.emplace(word.substr(0, equals), word.substr(equals + 1));
    }
    if (made.command().empty())
        return Status{Code::protocol,
                      fmt::format("the launcher sent '{}', which is no PMI-2 message", body.substr(0, 80))};
    return made;
}

std::optional<std::string> Message::find(const std::string& name) const {
    const auto found = words_.find(name);
    return found == words_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace npushmem::pmi2
