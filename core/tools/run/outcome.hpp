// How the PEs of one host end for a reason of their own: a pure value.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace npushmem::run {

struct Outcome {
    int status = 0;
    // Not empty: a PE has exited with the status, maybe because a PE on another host was killed. The launcher of the
    // whole job shows this text if it finds no such PE. The host agent has reported any other reason itself.
    std::string exit;

    friend bool operator==(const Outcome&, const Outcome&) = default;
};

// As a record carries it.
std::string text_of(const Outcome& outcome);
std::optional<Outcome> parse_outcome(std::string_view text);

}  // namespace npushmem::run
