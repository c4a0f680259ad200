// SPDX-License-Identifier: BSD-3-Clause
// The fuzz targets: functions that pass arbitrary bytes to a parser or a message handler and check its results.
//
// libFuzzer drives them in the build with the preset `fuzz` (driver.cpp). All other builds replay the kept inputs of
// corpus/<target>/ and seeded changes of them as tests (replay_test.cpp).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "npushmem/plugin/status.hpp"

namespace npushmem::fuzz {

using Input = std::span<const std::byte>;

// Throws when a result contradicts the documentation of the code under test.
inline void require(bool holds, const std::string& what) {
    if (!holds) throw std::logic_error(what);
}

// An error must have a message, which may quote the input but not much more.
inline void require_message(const Status& status) {
    require(status.ok() || !status.message().empty(), "an error has no message");
}

inline std::string_view text_of(Input input) { return {reinterpret_cast<const char*>(input.data()), input.size()}; }

// Takes parts from the front of an input. Past its end everything is zero or empty.
class Taker {
public:
    explicit Taker(Input input) : rest_(input) {}

    std::uint8_t byte() {
        const Input taken = bytes(1);
        return taken.empty() ? std::uint8_t{0} : std::to_integer<std::uint8_t>(taken.front());
    }
    Input bytes(std::size_t wanted) {
        const Input taken = rest_.first(std::min(wanted, rest_.size()));
        rest_ = rest_.subspan(taken.size());
        return taken;
    }
    // The text before the next newline, which is taken too.
    std::string line() {
        const std::string_view text = text_of(rest_);
        const std::size_t end = std::min(text.find('\n'), text.size());
        std::string out(text.substr(0, end));
        (void)bytes(end + 1);
        return out;
    }
    [[nodiscard]] Input rest() const { return rest_; }
    [[nodiscard]] bool empty() const { return rest_.empty(); }

private:
    Input rest_;
};

void connect_messages(Input input);
void device_model(Input input);
void frames(Input input);
void launcher_records(Input input);
void network_codec(Input input);
void network_messages(Input input);
void plugin_tables(Input input);
void pmi(Input input);
void processes(Input input);
void routing(Input input);
void selections(Input input);
void team_messages(Input input);
void topology(Input input);
void tuning(Input input);
void unique_id(Input input);
void variables(Input input);

struct Target {
    std::string_view name;  // of its source and of the folder of its corpus
    void (*run)(Input input);
};

inline constexpr std::array targets{Target{"connect_messages", connect_messages},
                                    Target{"device_model", device_model},
                                    Target{"frames", frames},
                                    Target{"launcher_records", launcher_records},
                                    Target{"network_codec", network_codec},
                                    Target{"network_messages", network_messages},
                                    Target{"plugin_tables", plugin_tables},
                                    Target{"pmi", pmi},
                                    Target{"processes", processes},
                                    Target{"routing", routing},
                                    Target{"selections", selections},
                                    Target{"team_messages", team_messages},
                                    Target{"topology", topology},
                                    Target{"tuning", tuning},
                                    Target{"unique_id", unique_id},
                                    Target{"variables", variables}};

}  // namespace npushmem::fuzz
