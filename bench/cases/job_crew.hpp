// The PEs of the job as the engine's crew. PE 0 leads.
#pragma once

#include <cstdint>

#include "bench/engine/crew.hpp"

namespace npushmem::bench {

class JobCrew final : public Crew {
public:
    // `board`: a symmetric word, zero.
    explicit JobCrew(std::uint64_t* board);

    [[nodiscard]] bool leads() const override { return pe_ == 0; }
    void give(const Order& order) override;
    Order receive() override;

private:
    std::uint64_t* board_;
    int pe_;
    int pes_;
};

}  // namespace npushmem::bench
