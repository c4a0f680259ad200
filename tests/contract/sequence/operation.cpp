// SPDX-License-Identifier: BSD-3-Clause
#include "tests/contract/sequence/operation.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "npushmem/plugin/transport.h"
#include "tests/contract/patterns.hpp"

namespace npushmem::contract::sequence {
namespace {

constexpr std::array<const char*, NPUSHMEM_ATOMIC_COUNT> atomic_words{
    "FETCH", "SET",          "ADD",       "AND",       "OR",       "XOR",
    "SWAP",  "COMPARE_SWAP", "FETCH_ADD", "FETCH_AND", "FETCH_OR", "FETCH_XOR"};

using std::to_string;

std::string place_text(int region, std::uint64_t offset) { return region_name(region) + (" + " + to_string(offset)); }

std::string target_text(const Operation& op) {
    return "queue " + to_string(op.queue) + ", to " + to_string(op.to) + ", " + place_text(op.region, op.offset);
}

std::string data_text(const Operation& op) {
    return target_text(op) + ", " + to_string(op.bytes) + " bytes of pattern " + to_string(op.salt);
}

std::string atomic_text(const Operation& op) {
    std::string out = atomic_words.at(op.operation);
    out += ", " + to_string(op.width * 8) + " bits, " + target_text(op);
    if (op.operation != NPUSHMEM_ATOMIC_FETCH) out += ", operand " + hex(op.operand);
    if (op.operation == NPUSHMEM_ATOMIC_COMPARE_SWAP) out += ", compare " + hex(op.compare);
    return out;
}

std::string signal_text(const Operation& op) {
    return data_text(op) + ", signal " + (op.operation == NPUSHMEM_SIGNAL_ADD ? "ADD " : "SET ") + hex(op.operand) +
           " to " + place_text(op.signal_region, op.signal_offset);
}

// The call without the PE.
std::string call_text(const Operation& op) {
    switch (op.kind) {
        case Kind::put: return "put(" + data_text(op) + ")";
        case Kind::get: return "get(" + target_text(op) + ", " + to_string(op.bytes) + " bytes)";
        case Kind::atomic: return "atomic(" + atomic_text(op) + ")";
        case Kind::put_signal: return "put_signal(" + signal_text(op) + ")";
        case Kind::put_strided:
            return "put_strided(" + data_text(op) + ", " + to_string(op.count) + " times, stride " +
                   to_string(op.stride) + ")";
        case Kind::fence: return "fence(queue " + to_string(op.queue) + ")";
        case Kind::quiet: return "quiet(queue " + to_string(op.queue) + ")";
        case Kind::wait: return "wait(token of " + to_string(op.waits_for) + ")";
        case Kind::poll: return "test(token of " + to_string(op.waits_for) + ")";
        case Kind::create_queue: return "create_queue(" + to_string(op.queue) + ")";
        case Kind::destroy_queue: return "destroy_queue(" + to_string(op.queue) + ")";
        case Kind::register_region: return "register_memory(second)";
        case Kind::deregister_region: return "deregister_memory(second)";
        case Kind::import_region: return "import_memory(second of PE " + to_string(op.to) + ")";
        case Kind::release_region: return "release_memory(second of PE " + to_string(op.to) + ")";
    }
    return "unknown";
}

}  // namespace

std::string hex(std::uint64_t value) {
    std::array<char, 16> digits{};
    const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), value, 16);
    return "0x" + std::string(digits.data(), written.ptr);
}

const char* region_name(int region) { return region == main_region ? "main" : "second"; }

std::uint64_t blocks_of(const Operation& op) { return op.kind == Kind::put_strided ? op.count : 1; }

std::vector<std::byte> data_of(const Operation& op) { return pattern(op.bytes * blocks_of(op), op.salt); }

bool fetches(std::uint8_t operation) { return operation == NPUSHMEM_ATOMIC_FETCH || operation >= NPUSHMEM_ATOMIC_SWAP; }

std::uint64_t fetched_bytes(const Operation& op) {
    if (op.kind == Kind::get) return op.bytes;
    return op.kind == Kind::atomic && fetches(op.operation) ? op.width : 0;
}

std::string text_of(const Operation& op) {
    return "pe(" + to_string(op.pe) + ")." + call_text(op) + ";  // " + to_string(op.id) +
           (op.has_token ? ", with a token" : "");
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
