// SPDX-License-Identifier: BSD-3-Clause
// The model, the generator and the reduction of sequences, over a machine in memory that is as late and as unordered as
// the contract allows, and has a defect on request.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <set>

#include "npushmem/plugin/transport.h"
#include "tests/contract/patterns.hpp"
#include "tests/contract/sequence/execution.hpp"
#include "tests/contract/sequence/generator.hpp"
#include "tests/contract/sequence/model.hpp"

namespace npushmem::contract::sequence {
namespace {

enum class Defect {
    none,
    ignores_fences,
    fetch_xor_of_4_bytes_writes_8,
    puts_of_other_queues_lose_a_byte,
    signals_without_data,
};

World complete_world(int npes) {
    constexpr std::uint32_t all = (1U << NPUSHMEM_ATOMIC_COUNT) - 1;
    World out;
    out.npes = npes;
    for (int from = 0; from < npes; ++from)
        for (int to = 0; to < npes; ++to)
            out.offers.push_back({from, to,
                                  NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET | NPUSHMEM_CAP_ATOMIC | NPUSHMEM_CAP_PUT_SIGNAL |
                                      NPUSHMEM_CAP_PUT_STRIDED,
                                  all, all});
    return out;
}

class MemoryMachine final : public Machine {
public:
    MemoryMachine(int npes, Defect defect, std::uint64_t seed) : defect_(defect), random_(seed) {
        for (int pe = 0; pe < npes; ++pe) memory_[{pe, main_region}].resize(region_bytes[main_region]);
    }

    Outcome perform(const Operation& op) override {
        Queue& queue = queues_[{op.pe, op.queue}];
        switch (op.kind) {
            case Kind::put:
            case Kind::get:
            case Kind::atomic:
            case Kind::put_signal:
            case Kind::put_strided: queue.held.push_back({op, queue.epoch}); break;
            case Kind::fence: ++queue.epoch; break;
            case Kind::quiet:
                while (!queue.held.empty()) step(queue);
                break;
            case Kind::wait:
                while (Queue* holder = holder_of(op.waits_for)) step(*holder);
                break;
            case Kind::register_region: memory_[{op.pe, second_region}].assign(region_bytes[second_region], {}); break;
            default: break;
        }
        for (auto& [place, each] : queues_)
            if (!each.held.empty() && defect_ != Defect::ignores_fences && random_() % 8 == 0) step(each);
        const int token_of = op.kind == Kind::wait || op.kind == Kind::poll ? op.waits_for : op.id;
        return {"", false, holder_of(token_of) == nullptr};
    }
    [[nodiscard]] std::span<const std::byte> fetched(int id) const override { return fetched_.at(id); }
    [[nodiscard]] std::span<const std::byte> region(int pe, int region) const override {
        return memory_.at({pe, region});
    }

private:
    struct Held {
        Operation op;
        std::uint64_t epoch;
    };
    struct Queue {
        std::vector<Held> held;
        std::uint64_t epoch = 0;
    };

    static bool updates(const Operation& op) {
        return op.kind != Kind::get && !(op.kind == Kind::atomic && op.operation == NPUSHMEM_ATOMIC_FETCH);
    }
    Queue* holder_of(int id) {
        for (auto& [place, queue] : queues_)
            for (const Held& held : queue.held)
                if (held.op.id == id) return &queue;
        return nullptr;
    }
    // Carries out one operation that no fence holds back.
    void step(Queue& queue) {
        std::vector<std::size_t> ready;
        for (std::size_t i = 0; i < queue.held.size(); ++i) {
            const Held& held = queue.held[i];
            const bool blocked = std::any_of(queue.held.begin(), queue.held.end(), [&](const Held& earlier) {
                return updates(earlier.op) && earlier.op.to == held.op.to && earlier.epoch < held.epoch;
            });
            if (!blocked || defect_ == Defect::ignores_fences) ready.push_back(i);
        }
        // The defect is deterministic, so that it does not depend on operations that have nothing to do with it.
        const std::size_t chosen = defect_ == Defect::ignores_fences ? ready.back() : ready[random_() % ready.size()];
        const Operation op = queue.held[chosen].op;
        queue.held.erase(queue.held.begin() + static_cast<std::ptrdiff_t>(chosen));
        carry_out(op);
    }
    std::byte* place(const Operation& op) { return memory_.at({op.to, op.region}).data() + op.offset; }

    void carry_out(const Operation& op) {
        if (op.kind == Kind::get) fetched_[op.id].assign(place(op), place(op) + op.bytes);
        if (op.kind == Kind::put || op.kind == Kind::put_signal) {
            auto data = pattern(op.bytes, op.salt);
            if (defect_ == Defect::puts_of_other_queues_lose_a_byte && op.queue != 0 && !data.empty()) data.pop_back();
            if (defect_ == Defect::signals_without_data && op.kind == Kind::put_signal) data.clear();
            std::copy(data.begin(), data.end(), place(op));
        }
        if (op.kind == Kind::put_strided) {
            const auto data = data_of(op);
            for (std::uint64_t i = 0; i < op.count; ++i)
                std::copy_n(data.begin() + static_cast<std::ptrdiff_t>(i * op.bytes), op.bytes,
                            place(op) + i * op.stride);
        }
        if (op.kind == Kind::put_signal) {
            std::byte* const signal = memory_.at({op.to, op.signal_region}).data() + op.signal_offset;
            std::uint64_t value = 0;
            std::memcpy(&value, signal, sizeof value);
            value = op.operation == NPUSHMEM_SIGNAL_ADD ? value + op.operand : op.operand;
            std::memcpy(signal, &value, sizeof value);
        }
        if (op.kind == Kind::atomic) carry_out_atomic(op);
    }
    void carry_out_atomic(const Operation& op) {
        std::uint64_t old = 0;
        std::memcpy(&old, place(op), op.width);
        const std::uint64_t compare = op.width == 4 ? op.compare & 0xffffffffU : op.compare;
        std::uint64_t value = old;
        switch (op.operation) {
            case NPUSHMEM_ATOMIC_SET:
            case NPUSHMEM_ATOMIC_SWAP: value = op.operand; break;
            case NPUSHMEM_ATOMIC_COMPARE_SWAP: value = old == compare ? op.operand : old; break;
            case NPUSHMEM_ATOMIC_ADD:
            case NPUSHMEM_ATOMIC_FETCH_ADD: value = old + op.operand; break;
            case NPUSHMEM_ATOMIC_AND:
            case NPUSHMEM_ATOMIC_FETCH_AND: value = old & op.operand; break;
            case NPUSHMEM_ATOMIC_OR:
            case NPUSHMEM_ATOMIC_FETCH_OR: value = old | op.operand; break;
            case NPUSHMEM_ATOMIC_XOR:
            case NPUSHMEM_ATOMIC_FETCH_XOR: value = old ^ op.operand; break;
            default: break;
        }
        const bool wide = defect_ == Defect::fetch_xor_of_4_bytes_writes_8 && op.operation == NPUSHMEM_ATOMIC_FETCH_XOR;
        std::memcpy(place(op), &value, wide ? 8 : op.width);
        if (!fetches(op.operation)) return;
        fetched_[op.id].resize(op.width);
        std::memcpy(fetched_[op.id].data(), &old, op.width);
    }

    Defect defect_;
    std::mt19937_64 random_;
    std::map<std::pair<int, int>, std::vector<std::byte>> memory_;
    std::map<std::pair<int, int>, Queue> queues_;
    std::map<int, std::vector<std::byte>> fetched_;
};

constexpr std::size_t sequence_length = 200;

std::optional<Failure> run(const World& world, const Sequence& operations, Defect defect) {
    MemoryMachine machine(world.npes, defect, 7);
    return execute(world, operations, machine);
}

TEST(ContractSequence, NoFalseAlarmOverAMachineThatIsAsUnorderedAsTheContractAllows) {
    for (int npes = 1; npes <= 3; ++npes) {
        const World world = complete_world(npes);
        for (std::uint64_t seed = 1; seed <= 100; ++seed) {
            const auto operations = generate(world, seed, sequence_length);
            const auto failure = run(world, operations, Defect::none);
            ASSERT_FALSE(failure.has_value()) << failure->what << ", seed " << seed << "\n" << text_of(operations);
        }
    }
}

TEST(ContractSequence, UsesEveryKindOfOperation) {
    const World world = complete_world(3);
    std::set<Kind> kinds;
    std::set<int> atomics;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        for (const Operation& op : generate(world, seed, sequence_length)) {
            kinds.insert(op.kind);
            if (op.kind == Kind::atomic) atomics.insert(op.operation * 2 + (op.width == 4 ? 0 : 1));
        }
    }
    EXPECT_EQ(kinds.size(), 15U);
    EXPECT_EQ(atomics.size(), std::size_t{2 * NPUSHMEM_ATOMIC_COUNT});
}

TEST(ContractSequence, ASeedGivesOneSequence) {
    const World world = complete_world(2);
    EXPECT_EQ(text_of(generate(world, 5, 100)), text_of(generate(world, 5, 100)));
    EXPECT_NE(text_of(generate(world, 5, 100)), text_of(generate(world, 6, 100)));
}

// Each defect is found, and the sequence that shows it is reduced to at most three operations.
class ContractSequenceDefect : public ::testing::TestWithParam<Defect> {};

TEST_P(ContractSequenceDefect, IsFoundAndReduced) {
    const World world = complete_world(2);
    int found = 0;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        const auto operations = generate(world, seed, sequence_length);
        const auto failure = run(world, operations, GetParam());
        if (!failure.has_value()) continue;
        ++found;
        const auto fails = [&](const Sequence& candidate) { return run(world, candidate, GetParam()); };
        constexpr int max_replays = 3000;
        const auto reduced = reduce(world, operations, *failure, fails, max_replays);
        EXPECT_LE(reduced.operations.size(), 3U) << reduced.failure.what << "\n" << text_of(reduced.operations);
        EXPECT_TRUE(fails(reduced.operations).has_value());
        EXPECT_LT(reduced.replays, max_replays);
    }
    EXPECT_GT(found, 3) << "of 10 seeds";
}

INSTANTIATE_TEST_SUITE_P(Defects, ContractSequenceDefect,
                         ::testing::Values(Defect::ignores_fences, Defect::fetch_xor_of_4_bytes_writes_8,
                                           Defect::puts_of_other_queues_lose_a_byte, Defect::signals_without_data));

TEST(ContractSequence, TheReductionKeepsItsBound) {
    const World world = complete_world(2);
    const auto operations = generate(world, 1, sequence_length);
    int replays = 0;
    const auto fails = [&](const Sequence&) -> std::optional<Failure> {
        ++replays;
        return Failure{"timed out", true};
    };
    const auto reduced = reduce(world, operations, {"timed out", true}, fails, 40);
    EXPECT_LE(replays, 2) << "a replay that times out counts as many";
    EXPECT_LT(reduced.operations.size(), operations.size());
}

Operation put_of(int id, int pe, int queue, std::uint64_t offset, std::uint64_t bytes) {
    Operation op;
    op.kind = Kind::put;
    op.id = id;
    op.pe = pe;
    op.queue = queue;
    op.offset = offset;
    op.bytes = bytes;
    op.salt = static_cast<std::uint64_t>(id);
    return op;
}

Operation call_of(Kind kind, int pe) {
    Operation op;
    op.kind = kind;
    op.pe = pe;
    return op;
}

Operation atomic_of(int id, int pe, std::uint8_t operation, std::uint64_t operand) {
    Operation op = put_of(id, pe, 0, 64, 0);
    op.kind = Kind::atomic;
    op.operation = operation;
    op.operand = operand;
    return op;
}

TEST(ContractSequenceModel, AdmitsOverlappingUpdatesOnlyInOrder) {
    const World world = complete_world(2);
    Model model(world);
    model.apply(put_of(1, 0, 0, 100, 20));
    const auto overlapping = put_of(2, 0, 0, 110, 20);
    EXPECT_FALSE(model.admits(overlapping));
    EXPECT_TRUE(model.admits(put_of(2, 0, 0, 120, 20)));
    model.apply(call_of(Kind::fence, 0));
    EXPECT_TRUE(model.admits(overlapping));
    EXPECT_FALSE(model.admits(put_of(2, 1, 0, 110, 20))) << "the fence of PE 0 does not order puts of PE 1";
    model.apply(call_of(Kind::quiet, 0));
    EXPECT_TRUE(model.admits(put_of(2, 1, 0, 110, 20)));
}

TEST(ContractSequenceModel, AFenceDoesNotOrderEarlierGets) {
    const World world = complete_world(1);
    Model model(world);
    Operation get = put_of(1, 0, 0, 100, 20);
    get.kind = Kind::get;
    get.has_token = true;
    model.apply(get);
    model.apply(call_of(Kind::fence, 0));
    EXPECT_FALSE(model.admits(put_of(2, 0, 0, 110, 20)));
    Operation wait = call_of(Kind::wait, 0);
    wait.waits_for = 1;
    ASSERT_TRUE(model.admits(wait));
    model.apply(wait);
    EXPECT_TRUE(model.admits(put_of(2, 0, 0, 110, 20)));
}

TEST(ContractSequenceModel, ConcurrentAdditionsAllowASetOfFetchedValues) {
    const World world = complete_world(3);
    Model model(world);
    model.apply(atomic_of(1, 0, NPUSHMEM_ATOMIC_ADD, 1));
    ASSERT_TRUE(model.admits(atomic_of(2, 1, NPUSHMEM_ATOMIC_FETCH_ADD, 16)));
    EXPECT_FALSE(model.admits(atomic_of(2, 1, NPUSHMEM_ATOMIC_SWAP, 16)));
    EXPECT_FALSE(model.admits(atomic_of(2, 1, NPUSHMEM_ATOMIC_OR, 16)));
    model.apply(atomic_of(2, 1, NPUSHMEM_ATOMIC_FETCH_ADD, 16));
    model.apply(atomic_of(3, 2, NPUSHMEM_ATOMIC_ADD, 256));
    const auto is_possible = [&](std::uint64_t value) {
        return !model.check_fetched(2, std::as_bytes(std::span(&value, 1))).has_value();
    };
    for (const std::uint64_t value : {0, 1, 256, 257}) EXPECT_TRUE(is_possible(value)) << value;
    for (const std::uint64_t value : {2, 16, 17, 273}) EXPECT_FALSE(is_possible(value)) << value;
}

TEST(ContractSequenceModel, AnAdditionBeforeAFenceIsFetched) {
    const World world = complete_world(2);
    Model model(world);
    model.apply(atomic_of(1, 0, NPUSHMEM_ATOMIC_ADD, 1));
    model.apply(call_of(Kind::fence, 0));
    model.apply(atomic_of(2, 0, NPUSHMEM_ATOMIC_FETCH, 0));
    const std::uint64_t old = 0;
    const std::uint64_t added = 1;
    EXPECT_TRUE(model.check_fetched(2, std::as_bytes(std::span(&old, 1))).has_value());
    EXPECT_FALSE(model.check_fetched(2, std::as_bytes(std::span(&added, 1))).has_value());
}

TEST(ContractSequenceModel, DoesNotReadBytesThatMayChange) {
    const World world = complete_world(1);
    Model model(world);
    model.apply(put_of(1, 0, 0, 100, 20));
    std::vector<std::byte> real(region_bytes[main_region]);
    EXPECT_FALSE(model.check_region(0, main_region, real).has_value()) << "the put may arrive later";
    real[120] = std::byte{1};
    EXPECT_TRUE(model.check_region(0, main_region, real).has_value()) << "written beyond the target";
    real[120] = std::byte{0};
    model.apply(call_of(Kind::quiet, 0));
    EXPECT_TRUE(model.check_region(0, main_region, real).has_value()) << "the put did not arrive";
}

}  // namespace
}  // namespace npushmem::contract::sequence
