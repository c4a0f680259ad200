// The processes that measure together. One leads: it decides what runs how often; the others do as they are told.
#pragma once

#include <cstdint>

namespace npushmem::bench {

struct Order {
    static constexpr std::uint32_t stop = ~std::uint32_t{0};

    std::uint32_t variant = stop;
    std::uint32_t iterations = 0;

    bool operator==(const Order&) const = default;
};

class Crew {
public:
    Crew() = default;
    Crew(const Crew&) = delete;
    Crew& operator=(const Crew&) = delete;
    virtual ~Crew() = default;

    // Exactly one of the crew does.
    [[nodiscard]] virtual bool leads() const = 0;
    // Gives the order to all; when it returns, all have it or are about to.
    virtual void give(const Order& order) = 0;
    // The leader's next order; stop also when there will be none any more.
    virtual Order receive() = 0;
};

// A process on its own.
class SoloCrew final : public Crew {
public:
    [[nodiscard]] bool leads() const override { return true; }
    void give(const Order& /*order*/) override {}
    Order receive() override { return {}; }
};

}  // namespace npushmem::bench
