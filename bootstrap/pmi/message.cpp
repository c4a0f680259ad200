#include "bootstrap/pmi/message.hpp"

#include <fmt/format.h>

#include "core/base/parse.hpp"

namespace npushmem::pmi {
namespace {

Status garbage(std::string_view line) {
    return {Code::protocol, fmt::format("the launcher sent '{}', which is no PMI message", line.substr(0, 80))};
}

}  // namespace

Result<Message> Message::parse(std::string_view line) {
    Message made;
    const std::string_view whole = line;
    while (!line.empty()) {
        const std::string_view word = line.substr(0, line.find(' '));
        line.remove_prefix(std::min(line.size(), word.size() + 1));
        const auto equals = word.find('=');
        if (word.empty()) continue;
        // The words of a text that explains something (msg=) have no name; nothing that is looked for is among them.
        if (equals == std::string_view::npos || equals == 0) continue;
        made.words_.emplace(word.substr(0, equals), word.substr(equals + 1));
    }
    if (made.command().empty()) return garbage(whole);
    return made;
}

std::optional<std::string> Message::find(const std::string& name) const {
    const auto found = words_.find(name);
    return found == words_.end() ? std::nullopt : std::optional(found->second);
}

Result<int> Message::number(const std::string& name) const {
    const auto text = find(name);
    if (!text) return Status{Code::protocol, fmt::format("the launcher's '{}' lacks {}", command(), name)};
    const auto parsed = parse_integer(*text, -1, 1 << 30);
    if (!parsed.ok())
        return Status{Code::protocol, fmt::format("the launcher's '{}' has {}='{}'", command(), name, *text)};
    return static_cast<int>(parsed.value());
}

}  // namespace npushmem::pmi
