// SPDX-License-Identifier: BSD-3-Clause
#include "tests/contract/sequence/operation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "npushmem/plugin/transport.h"

namespace npushmem::contract::sequence {
namespace {

constexpr std::array<const char*, NPUSHMEM_ATOMIC_COUNT> atomic_words{
    "FETCH", "SET",          "ADD",       "AND",       "OR",       "XOR",
    "SWAP",  "COMPARE_SWAP", "FETCH_ADD", "FETCH_AND", "FETCH_OR", "FETCH_XOR"};

std::string place_text(int region, std::uint64_t offset) {
    return fmt::format("{} + {}", region == main_region ? "main" : "second", offset);
}

std::string target_text(const Operation& op) {
    return fmt::format("queue {}, to {}, {}", op.queue, op.to, place_text(op.region, op.offset));
}

std::string atomic_text(const Operation& op) {
    std::string out = fmt::format("{}, {} bits, {}", atomic_words.at(op.operation), op.width * 8, target_text(op));
    if (op.operation != NPUSHMEM_ATOMIC_FETCH) out += fmt::format(", operand {:#x}", op.operand);
    if (op.operation == NPUSHMEM_ATOMIC_COMPARE_SWAP) out += fmt::format(", compare {:#x}", op.compare);
    return out;
}

std::string signal_text(const Operation& op) {
    return fmt::format("{}, {} bytes of pattern {}, signal {} {:#x} to {}", target_text(op), op.bytes, op.salt,
                       op.operation == NPUSHMEM_SIGNAL_ADD ? "ADD" : "SET", op.operand,
                       place_text(op.signal_region, op.signal_offset));
}

// The call without the PE.
std::string call_text(const Operation& op) {
    switch (op.kind) {
        case Kind::put: return fmt::format("put({}, {} bytes of pattern {})", target_text(op), op.bytes, op.salt);
        case Kind::get: return fmt::format("get({}, {} bytes)", target_text(op), op.bytes);
        case Kind::atomic: return fmt::format("atomic({})", atomic_text(op));
        case Kind::put_signal: return fmt::format("put_signal({})", signal_text(op));
        case Kind::fence: return fmt::format("fence(queue {})", op.queue);
        case Kind::quiet: return fmt::format("quiet(queue {})", op.queue);
        case Kind::wait: return fmt::format("wait(token of {})", op.waits_for);
        case Kind::poll: return fmt::format("test(token of {})", op.waits_for);
        case Kind::create_queue: return fmt::format("create_queue({})", op.queue);
        case Kind::destroy_queue: return fmt::format("destroy_queue({})", op.queue);
        case Kind::register_region: return "register_memory(second)";
        case Kind::deregister_region: return "deregister_memory(second)";
        case Kind::import_region: return fmt::format("import_memory(second of PE {})", op.to);
        case Kind::release_region: return fmt::format("release_memory(second of PE {})", op.to);
    }
    return "unknown";
}

}  // namespace

bool fetches(std::uint8_t operation) { return operation == NPUSHMEM_ATOMIC_FETCH || operation >= NPUSHMEM_ATOMIC_SWAP; }

std::uint64_t fetched_bytes(const Operation& op) {
    if (op.kind == Kind::get) return op.bytes;
    return op.kind == Kind::atomic && fetches(op.operation) ? op.width : 0;
}

std::string text_of(const Operation& op) {
    return fmt::format("pe({}).{};  // {}{}", op.pe, call_text(op), op.id, op.has_token ? ", with a token" : "");
}

std::string text_of(const Sequence& operations) {
    std::string out;
    for (const auto& op : operations) out += "    " + text_of(op) + "\n";
    return out;
}

const Offer* World::find(int from, int to) const {
    const auto found = std::find_if(offers.begin(), offers.end(),
                                    [&](const Offer& offer) { return offer.from == from && offer.to == to; });
    return found == offers.end() ? nullptr : &*found;
}

}  // namespace npushmem::contract::sequence
