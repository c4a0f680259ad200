// SPDX-License-Identifier: BSD-3-Clause
// Invalid calls return an error code, from the call itself or from its wait, and have no other effect.
#include <gtest/gtest.h>

#include <functional>

#include "tests/contract/fabric.hpp"
#include "tests/contract/patterns.hpp"

namespace npushmem::contract {
namespace {

using Post = std::function<Code(std::uint64_t*)>;

// Expects an error code from `post`, or, if that returns ok, from the wait. The queue must be usable afterwards.
void expect_error(Pe& pe, const char* what, const Post& post) {
    std::uint64_t token = 0;
    Code code = Code::again;
    ASSERT_EQ(pe.until([&] { return (code = post(&token)) != Code::again; }), Code::ok) << what;
    if (code == Code::ok) code = pe.wait(token);
    if (code == Code::ok) code = pe.quiet();
    EXPECT_LT(static_cast<int>(code), 0) << what << " was accepted";
    EXPECT_NE(code, Code::timeout) << what;
    (void)pe.quiet();  // may report the same failure again
    EXPECT_EQ(pe.quiet(), Code::ok) << "after " << what;
}

void wrong_puts(Fabric& fabric) {
    for (const auto& [from, to] : fabric.pairs_with(NPUSHMEM_CAP_PUT)) {
        Pe& pe = fabric.pe(from);
        std::uint64_t word = 1;
        const auto size = fabric.pe(to).memory().size();
        const auto put = [&](const npushmem_rma& op) {
            return [&pe, op](std::uint64_t* token) { return pe.transport().put(pe.queue(), op, token); };
        };
        expect_error(pe, "a put beyond the end", put(pe.rma(to, size - 4, &word, 8)));
        expect_error(pe, "a put far beyond the end", put(pe.rma(to, size + 4096, &word, 8)));
        expect_error(pe, "a put whose end overflows", put(pe.rma(to, ~std::uint64_t{0} - 3, &word, 8)));
        npushmem_rma nowhere = pe.rma(to, 0, &word, 8);
        nowhere.remote = 0xdead;
        expect_error(pe, "a put to memory that was not imported", put(nowhere));
    }
}

void wrong_gets(Fabric& fabric) {
    for (const auto& [from, to] : fabric.pairs_with(NPUSHMEM_CAP_GET)) {
        Pe& pe = fabric.pe(from);
        std::uint64_t word = 0x1234;
        const auto get = [&](const npushmem_rma& op) {
            return [&pe, op](std::uint64_t* token) { return pe.transport().get(pe.queue(), op, token); };
        };
        expect_error(pe, "a get beyond the end", get(pe.rma(to, fabric.pe(to).memory().size() - 4, &word, 8)));
        EXPECT_EQ(word, 0x1234U);
    }
}

void wrong_atomics(Fabric& fabric) {
    for (const auto& [from, to] : fabric.pairs_with(NPUSHMEM_CAP_ATOMIC)) {
        Pe& pe = fabric.pe(from);
        const auto atomic = [&](const npushmem_atomic& op) {
            return [&pe, op](std::uint64_t* token) { return pe.transport().atomic(pe.queue(), op, token); };
        };
        std::uint64_t result = 0;
        npushmem_atomic op = pe.atomic_op(to, fabric.pe(to).memory().size(), NPUSHMEM_ATOMIC_ADD, 8);
        op.result = &result;
        expect_error(pe, "an atomic beyond the end", atomic(op));
        op.offset = 12;
        expect_error(pe, "a misaligned atomic", atomic(op));
        op.offset = 16;
        op.operation = NPUSHMEM_ATOMIC_COUNT;
        expect_error(pe, "an unknown atomic operation", atomic(op));
        op.operation = NPUSHMEM_ATOMIC_ADD;
        op.width = 3;
        expect_error(pe, "an atomic of 3 bytes", atomic(op));
    }
}

void wrong_signals(Fabric& fabric) {
    for (const auto& [from, to] : fabric.pairs_with(NPUSHMEM_CAP_PUT_SIGNAL)) {
        Pe& pe = fabric.pe(from);
        std::uint64_t word = 0x42;
        set_word(fabric.pe(to).memory(), 0, 0);
        npushmem_put_signal op{};
        op.data = pe.rma(to, 0, &word, 8);
        op.signal_remote = pe.remote(to);
        const auto put_signal = [&] {
            return [&pe, op](std::uint64_t* token) { return pe.transport().put_signal(pe.queue(), op, token); };
        };
        op.signal_offset = fabric.pe(to).memory().size();
        expect_error(pe, "a signal beyond the end", put_signal());
        op.signal_offset = 68;
        expect_error(pe, "a misaligned signal", put_signal());
        op.signal_offset = 64;
        op.operation = 9;
        expect_error(pe, "an unknown signal operation", put_signal());
    }
}

void wrong_queues(Fabric& fabric) {
    Pe& pe = fabric.pe(0);
    for (const std::uint64_t queue : {std::uint64_t{0}, std::uint64_t{0xdead}, ~std::uint64_t{0}}) {
        EXPECT_LT(static_cast<int>(pe.transport().fence(queue)), 0) << "fence of queue " << queue;
        EXPECT_LT(static_cast<int>(pe.transport().quiet(queue)), 0) << "quiet of queue " << queue;
        EXPECT_LT(static_cast<int>(pe.transport().destroy_queue(queue)), 0) << "end of queue " << queue;
        if (!pe.is_connected(0) || !pe.reach(0).has(NPUSHMEM_CAP_PUT)) continue;
        std::uint64_t word = 1;
        EXPECT_LT(static_cast<int>(pe.transport().put(queue, pe.rma(0, 0, &word, 8), nullptr)), 0);
    }
}

}  // namespace

std::vector<Case> error_cases() {
    return {{"wrong_puts", NPUSHMEM_CAP_PUT, wrong_puts},
            {"wrong_gets", NPUSHMEM_CAP_GET, wrong_gets},
            {"wrong_atomics", NPUSHMEM_CAP_ATOMIC, wrong_atomics},
            {"wrong_signals", NPUSHMEM_CAP_PUT_SIGNAL, wrong_signals},
            {"wrong_queues", 0, wrong_queues}};
}

}  // namespace npushmem::contract
