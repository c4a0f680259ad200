// What the contract suite is run on.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/plugin/transport_stack.hpp"
#include "tests/fakes/fake_host.hpp"

namespace npushmem::contract {

// How the PEs' memory is laid out: slices of one file that all have mapped, as the runtime does it on one host, or a
// file each, as PEs of different jobs or hosts have it.
enum class Layout { one_file, own_files };

struct Subject {
    std::string label;  // "fault(p2p)", with what distinguishes it
    LoadedStack stack;
    Layout layout;
    const fakes::FakeHost* host;
    // The command line of this program, and the subject's number in what that makes: for processes of their own.
    std::vector<std::string> command;
    std::size_t number;
    std::uint32_t devices = 0;  // of the transport's, that each PE is to use; 0: what it takes by itself

    [[nodiscard]] std::uint64_t declared_capabilities() const { return stack.front()->table().capabilities; }
};

}  // namespace npushmem::contract
