// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <cstring>

#include "core/coll/collectives.hpp"
#include "core/coll/steps.hpp"

namespace npushmem::coll {

namespace {

// Adds a member's array to the sum of those before it. Begins with the first, because 0 + -0 is not -0.
void add(std::byte* sum, const std::byte* array, std::size_t count, int member, const Reduction& how) {
    if (member == 0)
        how.begin(sum, array, count);
    else
        how.kernel(sum, array, count);
}

// Scans one block of all arrays in the members' order: each member gets the sum up to it.
Status scan_block(Group& group, std::uint64_t dest, std::uint64_t source, std::size_t count, bool inclusive,
                  const Reduction& how) {
    alignas(64) std::array<std::byte, block_bytes> sum{};  // zero is the empty sum
    alignas(64) std::array<std::byte, block_bytes> fetched;
    alignas(64) std::array<std::byte, block_bytes> rounded;
    const std::uint64_t bytes = count * how.size;
    const auto write_sum = [&](int member) {
        std::byte* const elements = how.widens() ? rounded.data() : sum.data();
        how.finish(elements, sum.data(), count);
        return write(group, member, dest, elements, bytes);
    };
    Status done;
    for (int member = 0; member < group.size() && done.ok(); ++member) {
        done = read(group, member, source, fetched.data(), bytes);
        if (!done.ok()) break;
        if (!inclusive) done = write_sum(member);
        add(sum.data(), fetched.data(), count, member, how);
        if (inclusive) done = write_sum(member);
    }
    return done;
}

Status scan_chunked(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t count, bool inclusive,
                    const Reduction& how) {
    if (Status synced = group.sync(); !synced.ok()) return synced;
    const Chunk chunk = chunk_of(count, group.size(), group.index());
    const std::uint64_t step = block_bytes / how.accumulator_size;
    Status done;
    for (std::uint64_t i = 0; i < chunk.count && done.ok(); i += step) {
        const std::uint64_t at = (chunk.first + i) * how.size;
        done = scan_block(group, dest + at, source + at, std::min(step, chunk.count - i), inclusive, how);
    }
    return complete_and_sync(group, std::move(done));
}

Status scan_published(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t count, bool inclusive,
                      const Reduction& how) {
    const std::uint64_t bytes = count * how.size;
    const auto all = publish(group, local_address(group, source), bytes);
    if (!all.ok()) return all.status();
    alignas(64) std::array<std::byte, 2 * Workspace::contribution_bytes> sum;
    alignas(64) std::array<std::byte, Workspace::contribution_bytes> fetched;
    std::memset(sum.data(), 0, count * how.accumulator_size);
    const int last = inclusive ? group.index() : group.index() - 1;
    Status done;
    for (int member = 0; member <= last && done.ok(); ++member) {
        done = read(group, all.value().of(member), fetched.data(), bytes);
        if (done.ok()) add(sum.data(), fetched.data(), count, member, how);
    }
    if (done.ok()) how.finish(local_address(group, dest), sum.data(), count);
    return done;
}

}  // namespace

Status scan(Group& group, std::uint64_t dest, std::uint64_t source, std::uint64_t count, bool inclusive,
            ReduceElement element) {
    const Reduction how(ReduceOperation::sum, element);
    if (count == 0) return {};
    if (SmallExchange* const lines = lines_for(group, count, how, false))
        return combine_by_lines(group, *lines, dest, source, count, false, how, group.index() + (inclusive ? 1 : 0));
    if (count <= Workspace::contribution_bytes / how.size)
        return scan_published(group, dest, source, count, inclusive, how);
    return scan_chunked(group, dest, source, count, inclusive, how);
}

}  // namespace npushmem::coll
