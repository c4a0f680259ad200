// SPDX-License-Identifier: BSD-3-Clause
#include "tests/contract/sequence/generator.hpp"

#include <array>
#include <deque>
#include <random>

#include "npushmem/plugin/transport.h"
#include "tests/contract/sequence/model.hpp"

namespace npushmem::contract::sequence {
namespace {

struct Weight {
    Kind kind;
    std::uint64_t weight;
};
constexpr std::array<Weight, 15> weights{{{Kind::put, 20},
                                          {Kind::get, 16},
                                          {Kind::atomic, 28},
                                          {Kind::put_signal, 10},
                                          {Kind::put_strided, 8},
                                          {Kind::fence, 8},
                                          {Kind::quiet, 5},
                                          {Kind::wait, 6},
                                          {Kind::poll, 4},
                                          {Kind::create_queue, 2},
                                          {Kind::destroy_queue, 2},
                                          {Kind::register_region, 2},
                                          {Kind::deregister_region, 1},
                                          {Kind::import_region, 4},
                                          {Kind::release_region, 1}}};

// Proposes operations without regard to the model, which rejects many. The distributions of the standard library
// differ between libraries, so the choices are remainders.
class Proposals {
public:
    Proposals(const World& world, std::uint64_t seed) : world_(world), random_(seed) {}

    Operation next(const Model& model, int id) {
        Operation op;
        op.id = id;
        op.kind = any_kind();
        op.pe = static_cast<int>(below(static_cast<std::uint64_t>(world_.npes)));
        op.queue = static_cast<int>(below(queue_count));
        op.to = static_cast<int>(below(static_cast<std::uint64_t>(world_.npes)));
        op.region = any_region();
        op.has_token = below(2) == 0;
        choose_data(op);
        if (!recent_.empty() && below(3) == 0) repeat_place(op, recent_[below(recent_.size())]);
        if (op.kind == Kind::atomic) choose_atomic(op);
        if (op.kind == Kind::put_signal) choose_signal(op);
        if (op.kind == Kind::put_strided) choose_blocks(op);
        if (op.kind == Kind::wait || op.kind == Kind::poll) {
            const auto ids = model.waitable(op.pe);
            if (!ids.empty()) op.waits_for = ids[below(ids.size())];
        }
        return op;
    }

    // Remembers an operation that the model admitted.
    void record(const Operation& op) {
        constexpr std::size_t max_recent = 6;
        if (op.bytes == 0 && op.kind != Kind::atomic) return;
        if (op.kind > Kind::put_strided) return;
        recent_.push_back(op);
        if (recent_.size() > max_recent) recent_.pop_front();
    }

private:
    std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

    Kind any_kind() {
        std::uint64_t sum = 0;
        for (const auto& each : weights) sum += each.weight;
        std::uint64_t at = below(sum);
        for (const auto& each : weights) {
            if (at < each.weight) return each.kind;
            at -= each.weight;
        }
        return Kind::quiet;
    }
    int any_region() { return below(4) == 0 ? second_region : main_region; }
    // One of the few words that atomics and signals share, so that they meet.
    std::uint64_t any_word() { return region_guard + below(8) * 8; }

    void choose_data(Operation& op) {
        constexpr std::array<std::uint64_t, 10> sizes{0, 1, 4, 7, 8, 9, 16, 63, 64, 130};
        op.bytes = sizes[below(sizes.size())];
        op.salt = below(1'000'000);
        const std::uint64_t room = region_bytes[op.region] - 2 * region_guard - op.bytes;
        op.offset = region_guard + below(room + 1);
        // Often aligned words among those of the atomics.
        if (below(3) == 0) op.offset = any_word();
    }
    // The place of an earlier operation by the same queue: the model admits it when a fence or a quiet lies between.
    static void repeat_place(Operation& op, const Operation& earlier) {
        op.pe = earlier.pe;
        op.queue = earlier.queue;
        op.to = earlier.to;
        op.region = earlier.region;
        op.offset = earlier.offset;
        if (op.offset + op.bytes > region_bytes[op.region] - region_guard) op.bytes = earlier.bytes;
    }
    void choose_atomic(Operation& op) {
        op.operation = static_cast<std::uint8_t>(below(NPUSHMEM_ATOMIC_COUNT));
        op.width = below(2) == 0 ? 4 : 8;
        const bool repeats = op.offset % 8 == 0 && below(2) == 0;
        if (!repeats) op.offset = any_word() + (op.width == 4 ? below(2) * 4 : 0);
        op.operand = operand();
        op.compare = below(2) == 0 ? 0 : operand();
    }
    void choose_signal(Operation& op) {
        op.operation = below(2) == 0 ? NPUSHMEM_SIGNAL_SET : NPUSHMEM_SIGNAL_ADD;
        op.operand = operand();
        op.signal_region = any_region();
        op.signal_offset = any_word();
    }
    // Most gaps are smaller than an atomic's word, so that operations of other kinds meet the blocks and the gaps.
    void choose_blocks(Operation& op) {
        op.count = below(6);
        op.stride = op.bytes + below(3) * below(9);
    }
    // Small values, which carry into few bits, and large ones.
    std::uint64_t operand() { return below(2) == 0 ? below(4) : random_(); }

    const World& world_;
    std::mt19937_64 random_;
    std::deque<Operation> recent_;
};

// Frees what blocks most proposals: all queues in turn become quiet, or get a fence.
Operation relief(const Model& model, int npes, int id) {
    Operation op;
    op.id = id;
    op.kind = id % 2 == 0 ? Kind::fence : Kind::quiet;
    op.pe = id / 2 % npes;
    op.queue = id / 2 / npes % queue_count;
    if (!model.queue_exists(op.pe, op.queue)) op.queue = 0;
    return op;
}

}  // namespace

Sequence generate(const World& world, std::uint64_t seed, std::size_t length) {
    constexpr int max_rejected = 12;
    Model model(world);
    Proposals proposals(world, seed);
    Sequence out;
    int rejected = 0;
    for (int id = 1; out.size() < length;) {
        const bool stuck = rejected == max_rejected;
        const Operation op = stuck ? relief(model, world.npes, id) : proposals.next(model, id);
        if (!model.admits(op)) {
            ++rejected;
            continue;
        }
        rejected = 0;
        model.apply(op);
        proposals.record(op);
        out.push_back(op);
        ++id;
    }
    return out;
}

Sequence admitted(const World& world, const Sequence& operations) {
    Model model(world);
    Sequence out;
    for (const Operation& op : operations) {
        if (!model.admits(op)) continue;
        model.apply(op);
        out.push_back(op);
    }
    return out;
}

}  // namespace npushmem::contract::sequence
