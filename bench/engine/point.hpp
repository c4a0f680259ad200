// What is measured together: one thing and its baselines, under the same circumstances.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace npushmem::bench {

// Does the thing this many times in a row, the loop included, so that the engine adds nothing to a single time.
using Batch = std::function<void(std::uint64_t)>;

struct Variant {
    std::string name;  // "npushmem", or what the baseline does
    Batch batch;
    bool baseline = true;
};

struct Point {
    std::string name{};       // "put 1 KiB"
    std::uint64_t bytes = 0;  // moved by one iteration; 0: time is all there is to say
    // An iteration as the batch counts them, divided by this, is what is reported: 2 for a ping-pong's one way.
    double parts = 1;
    // true: the batches need all PEs, which run them together. false: PE 0 runs them, the others wait.
    bool shared = false;
    std::vector<Variant> variants{};              // the measured one first, then its baselines
    std::vector<std::shared_ptr<void>> memory{};  // of this process, that the batches work on
};

}  // namespace npushmem::bench
