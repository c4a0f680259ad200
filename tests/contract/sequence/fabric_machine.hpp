// SPDX-License-Identifier: BSD-3-Clause
// Carries out the operations of a sequence with the PEs of a fabric.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/contract/fabric.hpp"
#include "tests/contract/sequence/execution.hpp"

namespace npushmem::contract::sequence {

// The operations and widths that the PEs of the fabric offer.
World world_of(const Fabric& fabric);

// It clears the memory that sequences use at its start, and leaves the fabric as it found it, so that several
// sequences may run one after another. The main region of a PE lies across a page border of its memory. One thread.
class FabricMachine final : public Machine {
public:
    explicit FabricMachine(Fabric& fabric);
    // Waits for everything that is in flight, because it uses the machine's buffers.
    ~FabricMachine() override;

    Outcome perform(const Operation& op) override;
    [[nodiscard]] std::span<const std::byte> fetched(int id) const override { return buffers_.at(id).used(); }
    [[nodiscard]] std::span<const std::byte> region(int pe, int region) const override;

private:
    using PeAndNumber = std::pair<int, int>;

    // The local memory of one operation, at an alignment that depends on its id.
    class Buffer {
    public:
        Buffer(int id, std::span<const std::byte> content);
        Buffer(int id, std::uint64_t bytes, std::uint64_t alignment);
        [[nodiscard]] std::span<std::byte> used() { return std::span(bytes_).subspan(lead_); }
        [[nodiscard]] std::span<const std::byte> used() const { return std::span(bytes_).subspan(lead_); }

    private:
        std::size_t lead_;
        std::vector<std::byte> bytes_;
    };
    struct Token {
        std::uint64_t number;  // 0: complete
        int pe;
        int queue;
        bool is_source;  // of a put, put_signal or put_strided
    };
    struct SecondRegion {
        std::unique_ptr<Slice> slice;
        RegisteredMemory registered;
    };

    [[nodiscard]] Pe& pe(const Operation& op) const { return fabric_.pe(op.pe); }
    [[nodiscard]] std::uint64_t queue_number(int pe, int queue) const;
    [[nodiscard]] std::uint64_t remote(const Operation& op, int region) const;
    [[nodiscard]] static std::uint64_t offset(int region, std::uint64_t offset);
    Outcome post(const Operation& op);
    Code post_once(const Operation& op, std::uint64_t* token);
    [[nodiscard]] npushmem_rma rma(const Operation& op, std::span<std::byte> local) const;
    [[nodiscard]] npushmem_atomic atomic(const Operation& op, std::span<std::byte> result) const;
    [[nodiscard]] npushmem_put_signal put_signal(const Operation& op, std::span<std::byte> local) const;
    [[nodiscard]] npushmem_put_strided put_strided(const Operation& op, std::span<std::byte> local) const;
    Outcome test(const Operation& op);
    Outcome quiet(const Operation& op);
    void record_completion(int id, Token& token);
    Outcome create_queue(const Operation& op);
    Outcome destroy_queue(const Operation& op);
    Outcome register_region(const Operation& op);
    Outcome deregister_region(const Operation& op);
    Outcome import_region(const Operation& op);
    Outcome release_region(const Operation& op);

    Fabric& fabric_;
    std::map<int, Buffer> buffers_;                 // by id of the operation
    std::map<int, Token> tokens_;                   // by id, until the quiet of the queue
    std::map<PeAndNumber, std::uint64_t> queues_;   // by PE and index; without the PE's own queue
    std::map<int, SecondRegion> second_;            // by owner
    std::map<PeAndNumber, std::uint64_t> imports_;  // of second regions, by importer and owner
};

}  // namespace npushmem::contract::sequence
