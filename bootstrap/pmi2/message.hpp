// A PMI-2 message: six characters that tell its length, then `name=value;` again and again, the first of them the
// command. A semicolon inside a value is written twice.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "npushmem/plugin/status.hpp"

namespace npushmem::pmi2 {

inline constexpr std::size_t length_digits = 6;

class Message {
public:
    using Words = std::vector<std::pair<std::string, std::string>>;

    // As it travels, with its length in front.
    static std::string encode(const std::string& command, const Words& words);
    // The length that the first six characters tell; Code::protocol when they are no number.
    static Result<std::size_t> length(std::string_view digits);
    // What follows the length.
    static Result<Message> parse(std::string_view body);

    [[nodiscard]] std::optional<std::string> find(const std::string& name) const;
    [[nodiscard]] std::string command() const { return find("cmd").value_or(""); }

private:
    std::map<std::string, std::string> words_;
};

}  // namespace npushmem::pmi2
