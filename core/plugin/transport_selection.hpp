// The user's choice of transports as a value: "self,fault(p2p)" → [self] and [fault around p2p].
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "npushmem/plugin/status.hpp"

namespace npushmem {

// One transport with its decorators.
struct TransportStack {
    struct Layer {
        std::string name;          // or a path
        std::size_t position = 1;  // of its first character in the selection, from 1: for messages
    };
    std::vector<Layer> layers;  // outermost first; never empty

    // As the user would write it: "trace(fault(p2p))".
    [[nodiscard]] std::string text() const;
    // The transport that does the work: "p2p".
    [[nodiscard]] const std::string& innermost() const { return layers.back().name; }
};

// An ordered, comma-separated list. Blanks around names are dropped. Code::config says what is wrong at which
// character; an empty list, an empty name and a repeated entry are wrong. Whether the names exist is not looked at
// here.
Result<std::vector<TransportStack>> parse_transport_selection(std::string_view text);

}  // namespace npushmem
