#include "core/plugin/transport_selection.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace npushmem {
namespace {

// Recursive descent over: list = nest {"," nest}; nest = name | name "(" nest ")".
class SelectionParser {
public:
    explicit SelectionParser(std::string_view text) : text_(text) {}

    Result<std::vector<TransportNest>> list() {
        std::vector<TransportNest> out;
        do {
            const std::size_t begin = at_;
            TransportNest nest;
            if (Status s = parse_nest(nest); !s.ok()) return s;
            if (listed(out, nest)) return wrong(begin, fmt::format("'{}' is listed twice", nest.text()));
            out.push_back(std::move(nest));
        } while (accept(','));
        if (at_ != text_.size()) return wrong(at_, fmt::format("unexpected '{}'", text_[at_]));
        return out;
    }

private:
    static constexpr std::size_t deepest = 16;

    Status parse_nest(TransportNest& nest) {
        std::size_t open = 0;
        do {
            if (nest.parts.size() == deepest) return wrong(at_, fmt::format("more than {} decorators", deepest - 1));
            if (Status s = parse_name(nest); !s.ok()) return s;
        } while (accept('(') && ++open > 0);
        for (; open > 0; --open)
            if (!accept(')')) return wrong(at_, fmt::format("expected ')' to close '{}('", nest.parts[open - 1].name));
        return {};
    }

    Status parse_name(TransportNest& nest) {
        skip_blanks();
        const std::size_t begin = at_;
        at_ = std::min(text_.find_first_of(",() \t", begin), text_.size());
        if (at_ == begin) return wrong(begin, "expected the name of a transport");
        nest.parts.push_back({std::string(text_.substr(begin, at_ - begin)), begin + 1});
        return {};
    }

    void skip_blanks() { at_ = std::min(text_.find_first_not_of(" \t", at_), text_.size()); }

    bool accept(char wanted) {
        skip_blanks();
        if (at_ == text_.size() || text_[at_] != wanted) return false;
        ++at_;
        return true;
    }

    static bool listed(const std::vector<TransportNest>& list, const TransportNest& nest) {
        const auto same = [&](const TransportNest& other) { return other.text() == nest.text(); };
        return std::any_of(list.begin(), list.end(), same);
    }

    [[nodiscard]] Status wrong(std::size_t at, const std::string& what) const {
        return {Code::config, fmt::format("transport selection '{}', character {}{}: {}; write for instance "
                                          "self,p2p or self,fault(p2p)",
                                          text_, at + 1, at >= text_.size() ? " (the end)" : "", what)};
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

}  // namespace

std::string TransportNest::text() const {
    std::string out;
    for (const auto& part : parts) out.append(out.empty() ? "" : "(").append(part.name);
    return out.append(parts.empty() ? 0 : parts.size() - 1, ')');
}

Result<std::vector<TransportNest>> parse_transport_selection(std::string_view text) {
    return SelectionParser(text).list();
}

}  // namespace npushmem
