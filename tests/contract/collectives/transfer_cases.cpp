// SPDX-License-Identifier: BSD-3-Clause
// Barrier, broadcast, collect, fcollect and alltoall: every size, every root.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/contract/collectives/collectives_case.hpp"

namespace npushmem::contract {
namespace {

constexpr std::uint64_t sizes[] = {1, 8, 1000, 70000};
constexpr auto guard = std::byte{0xEE};

std::vector<std::byte> contribution(int pe, std::uint64_t bytes, unsigned salt) {
    std::vector<std::byte> out(bytes);
    for (std::uint64_t j = 0; j < bytes; ++j) out[j] = contributed(pe, j, salt);
    return out;
}

// Expects `bytes` bytes of `pe` from byte `first` of its contribution on.
void expect_from(const std::vector<std::byte>& dest, std::uint64_t at, int pe, std::uint64_t first, std::uint64_t bytes,
                 unsigned salt) {
    for (std::uint64_t j = 0; j < bytes; ++j)
        if (dest[at + j] != contributed(pe, first + j, salt)) {
            ADD_FAILURE() << "byte " << at + j << " is not byte " << first + j << " of PE " << pe;
            return;
        }
}

void expect_guard(const std::vector<std::byte>& dest) { EXPECT_EQ(dest.back(), guard) << "a byte behind dest changed"; }

void broadcasts_from_every_root(CollectivesPe& pe) {
    const std::uint64_t team = pe.make_team(pe.all_pes(), 3);
    for (const std::uint64_t bytes : sizes)
        for (int root = 0; root < pe.count(); ++root) {
            const auto source = contribution(pe.index(), bytes, 1);
            std::vector<std::byte> dest(bytes + 1, guard);
            auto call = coll_call(NPUSHMEM_COLL_BROADCAST, source.data(), dest.data(), bytes);
            call.root = root;
            pe.run(team, call);
            expect_guard(dest);
            if (pe.index() != root)
                expect_from(dest, 0, root, 0, bytes, 1);
            else
                EXPECT_EQ(std::ranges::count(dest, guard), static_cast<std::ptrdiff_t>(dest.size()))
                    << "the root's dest was written";
        }
    pe.library().destroy_team(team);
}

void collects_different_sizes(CollectivesPe& pe) {
    const std::uint64_t team = pe.make_team(pe.all_pes(), 3);
    for (const std::uint64_t bytes : sizes) {
        std::vector<std::uint64_t> counts;
        for (int i = 0; i < pe.count(); ++i) counts.push_back(i == 1 ? 0 : bytes + static_cast<unsigned>(i));
        std::uint64_t all = 0;
        for (const std::uint64_t count : counts) all += count;
        const std::uint64_t own = counts[static_cast<std::size_t>(pe.index())];
        const auto source = contribution(pe.index(), own, 2);
        std::vector<std::byte> dest(all + 1, guard);
        auto call = coll_call(NPUSHMEM_COLL_COLLECT, source.data(), dest.data(), own);
        call.counts = counts.data();
        std::uint64_t request = 0;
        Status started = pe.library().start(team, call, request);
        counts.assign(counts.size(), 77);  // valid during `start` only
        pe.finish(request, std::move(started));
        std::uint64_t at = 0;
        for (int i = 0; i < pe.count(); ++i) {
            const std::uint64_t count = i == 1 ? 0 : bytes + static_cast<unsigned>(i);
            expect_from(dest, at, i, 0, count, 2);
            at += count;
        }
        expect_guard(dest);
    }
    pe.library().destroy_team(team);
}

void fcollects_every_size(CollectivesPe& pe) {
    const std::uint64_t team = pe.make_team(pe.all_pes(), 3);
    for (const std::uint64_t bytes : sizes) {
        const auto source = contribution(pe.index(), bytes, 3);
        std::vector<std::byte> dest(bytes * static_cast<unsigned>(pe.count()) + 1, guard);
        pe.run(team, coll_call(NPUSHMEM_COLL_FCOLLECT, source.data(), dest.data(), bytes));
        for (int i = 0; i < pe.count(); ++i) expect_from(dest, static_cast<unsigned>(i) * bytes, i, 0, bytes, 3);
        expect_guard(dest);
    }
    pe.library().destroy_team(team);
}

void exchanges_blocks_of_every_size(CollectivesPe& pe) {
    const std::uint64_t team = pe.make_team(pe.all_pes(), 3);
    for (const std::uint64_t bytes : sizes) {
        const auto members = static_cast<unsigned>(pe.count());
        const auto source = contribution(pe.index(), bytes * members, 4);
        std::vector<std::byte> dest(bytes * members + 1, guard);
        pe.run(team, coll_call(NPUSHMEM_COLL_ALLTOALL, source.data(), dest.data(), bytes));
        for (int i = 0; i < pe.count(); ++i)
            expect_from(dest, static_cast<unsigned>(i) * bytes, i, static_cast<unsigned>(pe.index()) * bytes, bytes, 4);
        expect_guard(dest);
    }
    pe.library().destroy_team(team);
}

// Each PE in turn is late.
void nobody_leaves_a_barrier_early(CollectivesPe& pe) {
    const std::uint64_t team = pe.make_team(pe.all_pes(), 3);
    for (int late = 0; late < pe.count(); ++late) {
        std::uint64_t request = 0;
        Status status;
        const auto barrier = coll_call(NPUSHMEM_COLL_BARRIER, nullptr, nullptr, 0);
        if (pe.index() != late) {
            status = pe.library().start(team, barrier, request);
            for (int i = 0; i < 100 && status.code() == Code::again; ++i) status = pe.library().test(request);
            EXPECT_EQ(status.code(), Code::again) << "complete before PE " << late << " has started";
        }
        pe.barrier();
        if (pe.index() == late) status = pe.library().start(team, barrier, request);
        pe.finish(request, std::move(status));
    }
    pe.library().destroy_team(team);
}

void successive_calls_do_not_mix(CollectivesPe& pe) {
    const std::uint64_t team = pe.make_team(pe.all_pes(), 3);
    for (unsigned call = 0; call < 300; ++call) {
        const std::uint64_t bytes = 1 + call * 7 % 100;
        const auto source = contribution(pe.index(), bytes, call);
        std::vector<std::byte> dest(bytes * static_cast<unsigned>(pe.count()) + 1, guard);
        const int root = static_cast<int>(call) % pe.count();
        auto wanted = coll_call(call % 2 == 0 ? NPUSHMEM_COLL_FCOLLECT : NPUSHMEM_COLL_BROADCAST, source.data(),
                                dest.data(), bytes);
        wanted.root = call % 2 == 0 ? 0 : root;
        pe.run(team, wanted);
        if (call % 2 == 0)
            for (int i = 0; i < pe.count(); ++i) expect_from(dest, static_cast<unsigned>(i) * bytes, i, 0, bytes, call);
        else if (pe.index() != root)
            expect_from(dest, 0, root, 0, bytes, call);
    }
    pe.library().destroy_team(team);
}

}  // namespace

std::span<const CollectivesCase> collectives_transfer_cases() {
    static constexpr CollectivesCase cases[] = {
        {"broadcasts_from_every_root", "BROADCAST: every other member gets the root's source; the root's dest stays.",
         broadcasts_from_every_root},
        {"collects_different_sizes",
         "COLLECT: sources of different sizes, also 0, arrive in order; `counts` is valid during `start` only.",
         collects_different_sizes},
        {"fcollects_every_size", "FCOLLECT: sources of equal sizes arrive in the order of members.",
         fcollects_every_size},
        {"exchanges_blocks_of_every_size", "ALLTOALL: block j of member i arrives as block i of member j.",
         exchanges_blocks_of_every_size},
        {"nobody_leaves_a_barrier_early",
         "BARRIER: no member completes before all have started; `start` and `test` never wait.",
         nobody_leaves_a_barrier_early},
        {"successive_calls_do_not_mix", "Order: the calls of a team match in the order in which members start them.",
         successive_calls_do_not_mix}};
    return cases;
}

}  // namespace npushmem::contract
