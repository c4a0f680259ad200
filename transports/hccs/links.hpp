// How the NPUs of a server are wired: groups of NPUs in which each has a link to each other one, and a switch between
// the groups. Pure functions of values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "npushmem/plugin/status.hpp"

namespace npushmem::hccs {

// Most NPUs of a server.
inline constexpr int max_npus = 1024;

enum class LinkKind { none, direct, switched };

// What a transfer between two NPUs goes over. `near` is the NPU that asks, `far` the other one.
struct Path {
    LinkKind kind = LinkKind::none;  // none: an NPU and itself
    int near = 0;
    int far = 0;

    // "HCCS link 0-3", "the switch between NPU 2 and NPU 9".
    [[nodiscard]] std::string name() const;
};

class Links {
public:
    // Groups as ranges, "0-7,8-15": each NPU in one group. "mesh:8": groups of eight, as many as there are NPUs.
    // Code::config says what was wrong.
    static Result<Links> parse(std::string_view text);

    // Code::config for an NPU that is in no group.
    [[nodiscard]] Result<Path> between(int near, int far) const;
    [[nodiscard]] int group_of(int npu) const;  // -1: in none

private:
    struct Group {
        int first;
        int last;
    };

    explicit Links(int group_size) : group_size_(group_size) {}

    int group_size_;             // of equal groups; 0: those of the list
    std::vector<Group> groups_;  // disjoint
};

// What the annotation NpushmemHccs of a topology file says; empty when the file has none. Code::config when the file
// cannot be read.
Result<std::string> links_in_topology_file(const std::string& path);

}  // namespace npushmem::hccs
