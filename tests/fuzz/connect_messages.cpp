// SPDX-License-Identifier: BSD-3-Clause
// Connect messages, addresses and memory descriptions of the transport verbs, and its ranges of addresses.
#include "tests/fuzz/targets.hpp"

#ifndef NPUSHMEM_FUZZ_WITHOUT_VERBS

#include "transports/verbs/key_exchange.hpp"
#include "transports/verbs/ud_handshake.hpp"
#include "transports/verbs/verbs_settings.hpp"

namespace npushmem::fuzz {
namespace {

void check_message(Input bytes) {
    const auto message = verbs::connect_message_from(bytes);
    if (!message) return;
    require(verbs::is_sound(message->from), "a message from an unsound address is accepted");
    require(std::ranges::equal(verbs::bytes_from(*message), bytes), "a message changes by decoding and encoding");
}

void check_port(Input bytes) {
    const auto port = verbs::port_address_from(bytes);
    if (port) require(std::ranges::equal(verbs::bytes_from(*port), bytes), "an address changes");
}

void check_range(std::string_view text) {
    const auto range = verbs::GidRange::parse(std::string(text));
    if (!range.ok()) return require_message(range.status());
    require(range.value().bits() <= 128, "a prefix is too long");
    const auto again = verbs::GidRange::parse(range.value().text());
    require(again.ok() && again.value().bits() == range.value().bits(), "a range changes by formatting");
}

// Operations on memory that a peer describes. The limit keeps the input from describing more keys than fit.
void check_region(Taker& in) {
    const auto info = verbs::region_info_from(in.bytes(sizeof(verbs::RegionInfo)));
    if (!info) return;
    constexpr std::uint64_t max_chunks = 1U << 16;
    if (info->bytes / info->chunk_bytes > max_chunks) return;
    verbs::RemoteMemory memory(1, *info);
    for (int i = 0; i < 16 && !in.empty(); ++i) {
        const std::uint64_t offset = in.byte() * (info->bytes / 255);
        const std::uint64_t bytes = in.byte() + std::uint64_t{1};
        if (!memory.has(offset, bytes)) continue;
        if (!memory.has_keys(offset, bytes, [&](std::uint64_t chunk) { memory.set_key(chunk, 7); })) continue;
        require(memory.piece_at(offset).rkey == 7 && memory.piece_at(offset).bytes >= 1, "a key is lost");
    }
}

}  // namespace

// The first byte selects the check.
void connect_messages(Input input) {
    Taker in(input);
    switch (in.byte() % 4) {
        case 0: return check_message(in.rest());
        case 1: return check_port(in.rest());
        case 2: return check_range(text_of(in.rest()));
        default: return check_region(in);
    }
}

}  // namespace npushmem::fuzz

#else

namespace npushmem::fuzz {

void connect_messages(Input) {}

}  // namespace npushmem::fuzz

#endif
