// SPDX-License-Identifier: BSD-3-Clause
// Numbers that stand for nothing any more, and malformed handles and addresses. Unlike error_cases.cpp, which misuses
// single operations, these cases check what a transport accepts from peers and after the end of an object's life.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <limits>

#include "tests/contract/case_tools.hpp"
#include "tests/contract/fabric.hpp"
#include "tests/contract/patterns.hpp"

namespace npushmem::contract {
namespace {

using Call = std::function<Code(std::uint64_t* token)>;

// Posts the call and waits for it on its queue (0: the PE's own). Returns the first code that is not ok.
Code outcome(Pe& pe, const Call& call, std::uint64_t queue = 0) {
    std::uint64_t token = 0;
    Code code = Code::again;
    if (pe.until([&] { return (code = call(&token)) != Code::again; }) != Code::ok) return Code::timeout;
    if (code == Code::ok) code = pe.wait(token, queue);
    if (code == Code::ok) code = pe.quiet(queue);
    return code;
}

// The call fails, from the call itself or from its wait, and the queue remains usable.
void expect_refused(Pe& pe, const std::string& what, const Call& call) {
    const Code code = outcome(pe, call);
    EXPECT_LT(static_cast<int>(code), 0) << what << " was accepted";
    EXPECT_NE(code, Code::timeout) << what << " never ended";
    (void)pe.quiet();  // may report the same failure again
    EXPECT_EQ(pe.quiet(), Code::ok) << "after " << what;
}

// The kinds of operation on one place, each as far as the pair offers it.
class Probe {
public:
    Probe(Pe& pe, int peer) : pe_(pe), peer_(peer) { place = pe.rma(peer, 64, &word_, 8); }

    npushmem_rma place{};     // of data, and of the word of an atomic or signal
    std::uint64_t queue = 0;  // 0: the PE's own

    [[nodiscard]] std::vector<std::pair<std::string, Call>> calls() {
        std::vector<std::pair<std::string, Call>> out;
        const Reach& reach = pe_.reach(peer_);
        const std::uint64_t on = queue != 0 ? queue : pe_.queue();
        Transport& transport = pe_.transport();
        if (reach.has(NPUSHMEM_CAP_PUT))
            out.emplace_back("a put",
                             [&transport, on, op = place](auto* token) { return transport.put(on, op, token); });
        if (reach.has(NPUSHMEM_CAP_GET))
            out.emplace_back("a get",
                             [&transport, on, op = place](auto* token) { return transport.get(on, op, token); });
        if (reach.has(NPUSHMEM_CAP_ATOMIC) && (reach.atomic_64 >> NPUSHMEM_ATOMIC_ADD & 1) != 0)
            out.emplace_back("an addition", [&transport, on, op = addition()](auto* token) {
                return transport.atomic(on, op, token);
            });
        if (reach.has(NPUSHMEM_CAP_ATOMIC) && (reach.atomic_64 >> NPUSHMEM_ATOMIC_FETCH_ADD & 1) != 0)
            out.emplace_back("a fetching addition", [&transport, on, op = fetching_addition()](auto* token) {
                return transport.atomic(on, op, token);
            });
        if (reach.has(NPUSHMEM_CAP_PUT_SIGNAL))
            out.emplace_back("a put with a signal", [&transport, on, op = signal()](auto* token) {
                return transport.put_signal(on, op, token);
            });
        if (reach.has(NPUSHMEM_CAP_PUT_STRIDED))
            out.emplace_back("a strided put", [&transport, on, op = strided()](auto* token) {
                return transport.put_strided(on, op, token);
            });
        return out;
    }
    void expect_all_refused(const std::string& why) {
        for (const auto& [what, call] : calls()) expect_refused(pe_, what + " " + why, call);
    }

private:
    [[nodiscard]] npushmem_atomic addition() const {
        npushmem_atomic op{};
        op.pe = place.pe;
        op.operation = NPUSHMEM_ATOMIC_ADD;
        op.width = 8;
        op.remote = place.remote;
        op.offset = place.offset;
        op.operand = 1;
        return op;
    }
    [[nodiscard]] npushmem_atomic fetching_addition() {
        npushmem_atomic op = addition();
        op.operation = NPUSHMEM_ATOMIC_FETCH_ADD;
        op.result = &word_;
        return op;
    }
    // The data is none, so that only the place of the signal can be wrong.
    [[nodiscard]] npushmem_put_signal signal() const {
        npushmem_put_signal op{};
        op.data = pe_.rma(peer_, 0, nullptr, 0);
        op.data.pe = place.pe;
        op.signal_remote = place.remote;
        op.signal_offset = place.offset;
        op.signal = 1;
        return op;
    }
    // Several blocks at one place.
    [[nodiscard]] npushmem_put_strided strided() const { return {place, 3, 0, 0}; }

    Pe& pe_;
    int peer_;
    std::uint64_t word_ = 1;
};

// Each pair that is connected, whatever it offers.
std::vector<PePair> connected_pairs(const Fabric& fabric) {
    std::vector<PePair> out = fabric.pairs_with(0);
    std::erase_if(out, [&](const PePair& pair) { return !fabric.pe(pair.first).is_connected(pair.second); });
    return out;
}

void a_destroyed_queue_is_refused(Fabric& fabric) {
    for (const auto& [from, to] : connected_pairs(fabric)) {
        Pe& pe = fabric.pe(from);
        const auto made = pe.transport().create_queue();
        ASSERT_TRUE(made.ok()) << made.status().message();
        Probe probe(pe, to);
        probe.queue = made.value();
        for (const auto& [what, call] : probe.calls()) EXPECT_EQ(outcome(pe, call, made.value()), Code::ok) << what;
        ASSERT_EQ(pe.transport().destroy_queue(made.value()), Code::ok);
        for (const auto& [what, call] : probe.calls()) {
            std::uint64_t token = 0;
            EXPECT_LT(static_cast<int>(call(&token)), 0) << what << " on a destroyed queue";
        }
        EXPECT_LT(static_cast<int>(pe.transport().fence(made.value())), 0);
        EXPECT_LT(static_cast<int>(pe.transport().quiet(made.value())), 0);
        EXPECT_LT(static_cast<int>(pe.transport().test(made.value(), 1)), 0);
        EXPECT_LT(static_cast<int>(pe.transport().destroy_queue(made.value())), 0);
        EXPECT_EQ(pe.quiet(), Code::ok) << "the PE's other queue";
    }
}

void unknown_queues_are_refused(Fabric& fabric) {
    for (const auto& [from, to] : connected_pairs(fabric)) {
        Probe probe(fabric.pe(from), to);
        for (const std::uint64_t queue : {std::uint64_t{0xdead}, ~std::uint64_t{0}}) {
            probe.queue = queue;
            for (const auto& [what, call] : probe.calls()) {
                std::uint64_t token = 0;
                EXPECT_LT(static_cast<int>(call(&token)), 0) << what << " on queue " << queue;
            }
            EXPECT_LT(static_cast<int>(fabric.pe(from).transport().test(queue, 1)), 0);
        }
    }
}

// A token that the queue never gave is an error or complete. A wait for it ends.
void a_wait_for_an_unknown_token_ends(Fabric& fabric) {
    for (int number = 0; number < fabric.npes(); ++number) {
        Pe& pe = fabric.pe(number);
        for (const std::uint64_t token : {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{0xdead},
                                          std::uint64_t{1} << 32 | 1, std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
            EXPECT_NE(pe.wait(token), Code::timeout) << "token " << token;
            EXPECT_EQ(pe.quiet(), Code::ok) << "after a test of token " << token;
        }
    }
}

void released_memory_is_refused(Fabric& fabric) {
    for (const auto& [from, to] : connected_pairs(fabric)) {
        Pe& pe = fabric.pe(from);
        const auto again = pe.transport().import_memory(to, fabric.pe(to).handle());
        ASSERT_TRUE(again.ok()) << again.status().message();
        ASSERT_EQ(pe.transport().release_memory(again.value()), Code::ok);
        EXPECT_LT(static_cast<int>(pe.transport().release_memory(again.value())), 0) << "released twice";
        EXPECT_FALSE(pe.transport().map(again.value()).ok()) << "mapped after its release";
        Probe probe(pe, to);
        probe.place.remote = again.value();
        probe.expect_all_refused("on released memory");
    }
}

void memory_of_another_pe_is_refused(Fabric& fabric) {
    constexpr auto largest = std::numeric_limits<std::int32_t>::max();
    constexpr auto smallest = std::numeric_limits<std::int32_t>::min();
    for (const auto& [from, to] : connected_pairs(fabric)) {
        Probe probe(fabric.pe(from), to);
        for (const int pe : {-1, (to + 1) % fabric.npes(), fabric.npes(), fabric.npes() + 1000, largest, smallest}) {
            probe.place.pe = pe;
            probe.expect_all_refused("on PE " + std::to_string(pe) + " with memory of PE " + std::to_string(to));
        }
    }
}

void unknown_memory_is_refused(Fabric& fabric) {
    for (const auto& [from, to] : connected_pairs(fabric)) {
        Probe probe(fabric.pe(from), to);
        for (const std::uint64_t remote : {std::uint64_t{0}, std::uint64_t{0xdead}, ~std::uint64_t{0}}) {
            probe.place.remote = remote;
            probe.expect_all_refused("on memory number " + std::to_string(remote));
        }
    }
}

void offsets_that_wrap_around_are_refused(Fabric& fabric) {
    for (const auto& [from, to] : connected_pairs(fabric)) {
        Probe probe(fabric.pe(from), to);
        for (const std::uint64_t offset : {~std::uint64_t{0} - 7, std::uint64_t{1} << 63, std::uint64_t{1} << 32}) {
            probe.place.offset = offset;
            probe.expect_all_refused("at offset " + std::to_string(offset));
        }
    }
}

void sizes_beyond_the_region_are_refused(Fabric& fabric) {
    for (const auto& [from, to] : representative_pairs(fabric, 0)) {
        Pe& pe = fabric.pe(from);
        if (!pe.is_connected(to)) continue;
        const std::uint64_t size = fabric.pe(to).memory().size();
        std::vector<std::byte> local(size + 1);
        const std::array<npushmem_rma, 3> places{pe.rma(to, 0, local.data(), size + 1),
                                                 pe.rma(to, 8, local.data(), ~std::uint64_t{0} - 3),
                                                 pe.rma(to, 0, local.data(), ~std::uint64_t{0})};
        const std::vector<std::byte> before(fabric.pe(to).memory().begin(), fabric.pe(to).memory().end());
        for (const auto& op : places) {
            const auto what = std::to_string(op.bytes) + " bytes at offset " + std::to_string(op.offset);
            if (pe.reach(to).has(NPUSHMEM_CAP_PUT))
                expect_refused(pe, "a put of " + what,
                               [&](auto* token) { return pe.transport().put(pe.queue(), op, token); });
            if (pe.reach(to).has(NPUSHMEM_CAP_GET))
                expect_refused(pe, "a get of " + what,
                               [&](auto* token) { return pe.transport().get(pe.queue(), op, token); });
        }
        EXPECT_FALSE(first_difference(before, fabric.pe(to).memory()).has_value()) << "a refused put wrote memory";
    }
}

void null_buffers_are_refused_unless_empty(Fabric& fabric) {
    for (const auto& [from, to] : connected_pairs(fabric)) {
        Pe& pe = fabric.pe(from);
        Probe probe(pe, to);
        probe.place.local = nullptr;
        for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{8}, std::uint64_t{100'000}}) {
            probe.place.bytes = bytes;
            for (const auto& [what, call] : probe.calls()) {
                if (what != "a put" && what != "a get") continue;
                if (bytes == 0)
                    EXPECT_EQ(outcome(pe, call), Code::ok) << what << " of no bytes";
                else
                    expect_refused(pe, what + " with a null buffer", call);
            }
        }
    }
}

// A handle of memory that its owner has deregistered may still be imported, because the importer cannot know. Whatever
// an operation on it does, it ends. The memory itself exists until the end of the case. Not over networks: a NIC may
// drop such an operation without a word.
void operations_on_deregistered_memory_end(Fabric& fabric) {
    for (const auto& [from, to] : connected_pairs(fabric)) {
        Pe& pe = fabric.pe(from);
        if (pe.reach(to).has(NPUSHMEM_CAP_REMOTE)) continue;
        const auto slices = make_slices(Layout::own_files, 1, 8192);
        auto registered = fabric.pe(to).transport().register_memory(slices[0]->describe());
        ASSERT_TRUE(registered.ok()) << registered.status().message();
        ASSERT_EQ(fabric.pe(to).transport().deregister_memory(registered.value().region), Code::ok);
        EXPECT_LT(static_cast<int>(fabric.pe(to).transport().deregister_memory(registered.value().region)), 0);
        const auto imported = pe.transport().import_memory(to, registered.value().handle);
        if (!imported.ok()) {
            EXPECT_FALSE(imported.status().message().empty());
            continue;
        }
        Probe probe(pe, to);
        probe.place.remote = imported.value();
        for (const auto& [what, call] : probe.calls()) {
            EXPECT_NE(outcome(pe, call), Code::timeout) << what << " on deregistered memory";
            EXPECT_NE(pe.quiet(), Code::timeout) << "after " << what << " on deregistered memory";
        }
        EXPECT_EQ(pe.transport().release_memory(imported.value()), Code::ok);
    }
}

// Handles. An import that succeeds is released, and not used: a handle that is wrong in a way that no check can find
// may name other memory.

void expect_handle_refused(Transport& transport, int pe, std::span<const std::byte> handle, const std::string& what) {
    const auto imported = transport.import_memory(pe, handle);
    EXPECT_FALSE(imported.ok()) << what << " was accepted";
    if (imported.ok())
        EXPECT_EQ(transport.release_memory(imported.value()), Code::ok) << what;
    else
        EXPECT_FALSE(imported.status().message().empty()) << what;
}

void expect_refused_or_harmless(Transport& transport, int pe, std::span<const std::byte> handle,
                                const std::string& what) {
    const auto imported = transport.import_memory(pe, handle);
    if (imported.ok())
        EXPECT_EQ(transport.release_memory(imported.value()), Code::ok) << what;
    else
        EXPECT_FALSE(imported.status().message().empty()) << what;
}

// The connection and the memory still work.
void expect_still_working(Fabric& fabric, int from, int to) {
    Probe probe(fabric.pe(from), to);
    for (const auto& [what, call] : probe.calls())
        EXPECT_EQ(outcome(fabric.pe(from), call), Code::ok)
            << what << " afterwards from PE " << from << " to PE " << to;
}

void handles_of_a_wrong_length_are_refused(Fabric& fabric) {
    for (const auto& [from, to] : connected_pairs(fabric)) {
        Transport& transport = fabric.pe(from).transport();
        const Bytes handle = fabric.pe(to).handle();
        for (std::size_t bytes = 0; bytes < handle.size(); ++bytes) {
            const Bytes truncated(handle.begin(), handle.begin() + static_cast<std::ptrdiff_t>(bytes));
            expect_handle_refused(transport, to, truncated, "a handle cut to " + std::to_string(bytes) + " bytes");
        }
        for (const std::size_t bytes : {NPUSHMEM_HANDLE_MAX + 1, 4096, 70'000}) {
            Bytes longer = handle;
            longer.resize(bytes);
            expect_handle_refused(transport, to, longer, "a handle of " + std::to_string(bytes) + " bytes");
        }
        expect_still_working(fabric, from, to);
    }
}

void handles_with_a_changed_byte_do_no_harm(Fabric& fabric) {
    for (const auto& [from, to] : connected_pairs(fabric)) {
        Transport& transport = fabric.pe(from).transport();
        for (std::size_t at = 0; at < fabric.pe(to).handle().size(); ++at) {
            Bytes damaged = fabric.pe(to).handle();
            damaged[at] ^= std::byte{0xff};
            const std::string what = "a handle with byte " + std::to_string(at) + " changed";
            if (at == 0)
                expect_handle_refused(transport, to, damaged, what);
            else
                expect_refused_or_harmless(transport, to, damaged, what);
        }
        expect_still_working(fabric, from, to);
    }
}

void a_handle_under_another_number_does_no_harm(Fabric& fabric) {
    constexpr auto largest = std::numeric_limits<std::int32_t>::max();
    constexpr auto smallest = std::numeric_limits<std::int32_t>::min();
    for (const auto& [from, to] : connected_pairs(fabric)) {
        for (const int pe : {(to + 1) % fabric.npes(), -1, fabric.npes(), largest, smallest})
            expect_refused_or_harmless(
                fabric.pe(from).transport(), pe, fabric.pe(to).handle(),
                "the handle of PE " + std::to_string(to) + " as one of PE " + std::to_string(pe));
        expect_still_working(fabric, from, to);
    }
}

// Addresses.

// Another instance of the transport, which is not connected yet.
std::unique_ptr<Transport> open_instance(const Subject& subject, int pe, int npes) {
    auto opened = subject.open(params_of(pe, npes));
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    return opened.ok() ? std::move(opened).value() : nullptr;
}

std::vector<Bytes> malformed_addresses(const Bytes& address) {
    std::vector<Bytes> out;
    const auto add = [&out](std::vector<std::byte> bytes) { out.push_back(std::move(bytes)); };
    for (std::size_t bytes = 0; bytes < address.size(); ++bytes)
        add(Bytes(address.begin(), address.begin() + static_cast<std::ptrdiff_t>(bytes)));
    for (std::size_t at = 0; at < address.size(); ++at) {
        add(address);
        out.back()[at] ^= std::byte{0xff};
    }
    for (const std::size_t bytes : {1, 8, 64, NPUSHMEM_ADDRESS_MAX, NPUSHMEM_ADDRESS_MAX + 1, 4096})
        add(pattern(bytes, bytes));
    for (const std::size_t bytes : {NPUSHMEM_ADDRESS_MAX + 1, 4096}) {
        add(address);
        out.back().resize(bytes);
    }
    return out;
}

// An address may be malformed in a way that shows only when the peer does not answer, so reach and connect may accept
// it. They return, with a reason if they refuse.
void malformed_addresses_are_unreachable_or_refused(Fabric& fabric) {
    constexpr std::size_t max_connections = 8;
    constexpr int npes = 2 + static_cast<int>(max_connections);
    const auto other = open_instance(fabric.subject(), 1, npes);
    ASSERT_NE(other, nullptr);
    const auto address = other->address();
    ASSERT_TRUE(address.ok()) << address.status().message();
    // One instance finds the addresses that reach rejects. Each of the others has a number of its own and is connected
    // once only.
    const auto asking = open_instance(fabric.subject(), 0, npes);
    ASSERT_NE(asking, nullptr);
    std::vector<Bytes> accepted;
    for (const Bytes& malformed : malformed_addresses(address.value())) {
        npushmem_peer peer = peer_of(1);
        peer.address = malformed.empty() ? nullptr : malformed.data();
        peer.address_bytes = static_cast<std::uint32_t>(malformed.size());
        const Reach reach = asking->reach(peer);
        EXPECT_FALSE(reach.why.empty()) << "no reason for an address of " << malformed.size() << " bytes";
        if (reach.reachable()) accepted.push_back(malformed);
    }
    const std::size_t step = accepted.size() / max_connections + 1;
    for (std::size_t i = 0; i < accepted.size(); i += step) {
        const auto instance = open_instance(fabric.subject(), 2 + static_cast<int>(i / step), npes);
        ASSERT_NE(instance, nullptr);
        npushmem_peer peer = peer_of(1);
        peer.address = accepted[i].data();
        peer.address_bytes = static_cast<std::uint32_t>(accepted[i].size());
        if (!instance->reach(peer).reachable()) continue;
        const Status connected = instance->connect(peer);
        if (!connected.ok()) {
            EXPECT_FALSE(connected.message().empty());
        }
    }
}

void peers_with_unknown_numbers_do_no_harm(Fabric& fabric) {
    constexpr auto largest = std::numeric_limits<std::int32_t>::max();
    constexpr auto smallest = std::numeric_limits<std::int32_t>::min();
    for (const auto& [from, to] : connected_pairs(fabric)) {
        Transport& transport = fabric.pe(from).transport();
        const auto address = fabric.pe(to).transport().address();
        ASSERT_TRUE(address.ok()) << address.status().message();
        for (const int number : {-1, fabric.npes(), fabric.npes() + 1000, largest, smallest}) {
            npushmem_peer peer = peer_of(number);
            peer.address = address.value().data();
            peer.address_bytes = static_cast<std::uint32_t>(address.value().size());
            const Reach reach = transport.reach(peer);
            EXPECT_FALSE(reach.why.empty()) << "PE " << number;
            if (!reach.reachable()) {
                const Status connected = transport.connect(peer);
                EXPECT_TRUE(connected.ok() || !connected.message().empty());
            }
        }
        expect_still_working(fabric, from, to);
    }
}

}  // namespace

std::vector<Case> refusal_cases() {
    return {{"unknown_queues_are_refused", 0, unknown_queues_are_refused},
            {"a_destroyed_queue_is_refused", 0, a_destroyed_queue_is_refused},
            {"a_wait_for_an_unknown_token_ends", 0, a_wait_for_an_unknown_token_ends},
            {"unknown_memory_is_refused", 0, unknown_memory_is_refused},
            {"released_memory_is_refused", 0, released_memory_is_refused},
            {"memory_of_another_pe_is_refused", 0, memory_of_another_pe_is_refused},
            {"operations_on_deregistered_memory_end", 0, operations_on_deregistered_memory_end},
            {"offsets_that_wrap_around_are_refused", 0, offsets_that_wrap_around_are_refused},
            {"sizes_beyond_the_region_are_refused", 0, sizes_beyond_the_region_are_refused},
            {"null_buffers_are_refused_unless_empty", 0, null_buffers_are_refused_unless_empty},
            {"handles_of_a_wrong_length_are_refused", 0, handles_of_a_wrong_length_are_refused},
            {"handles_with_a_changed_byte_do_no_harm", 0, handles_with_a_changed_byte_do_no_harm},
            {"a_handle_under_another_number_does_no_harm", 0, a_handle_under_another_number_does_no_harm},
            {"malformed_addresses_are_unreachable_or_refused", 0, malformed_addresses_are_unreachable_or_refused},
            {"peers_with_unknown_numbers_do_no_harm", 0, peers_with_unknown_numbers_do_no_harm}};
}

}  // namespace npushmem::contract
