// A PMI-1 message: a line of words `name=value`, the first of them the command.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "npushmem/plugin/status.hpp"

namespace npushmem::pmi {

class Message {
public:
    // Code::protocol for a line that is none.
    static Result<Message> parse(std::string_view line);

    [[nodiscard]] std::optional<std::string> find(const std::string& name) const;
    [[nodiscard]] std::string command() const { return find("cmd").value_or(""); }
    // Code::protocol when it is missing or no whole number.
    [[nodiscard]] Result<int> number(const std::string& name) const;

private:
    std::map<std::string, std::string> words_;
};

}  // namespace npushmem::pmi
