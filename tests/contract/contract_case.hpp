// The cases of the contract, as a list that the program registers for each subject.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/contract/fabric.hpp"

namespace npushmem::contract {

struct Case {
    const char* name;
    std::uint64_t needs;  // capabilities that some pair of PEs must offer, else the case is skipped
    void (*body)(Fabric&);
};

std::vector<Case> life_cases();
std::vector<Case> memory_cases();
std::vector<Case> rma_cases();
std::vector<Case> atomic_cases();
std::vector<Case> ordering_cases();
std::vector<Case> queue_cases();
std::vector<Case> error_cases();
std::vector<Case> process_cases();

// What a process of its own has been told to be: `subject`, PE, channel to its parent, the memory's file or -1.
struct ChildArguments {
    std::size_t subject = 0;
    int pe = -1;
    int channel = -1;
    int file = -1;
};
inline constexpr const char* child_option = "--child";
// Its whole work; the exit status.
int run_child(const Subject& subject, const ChildArguments& arguments);

}  // namespace npushmem::contract
