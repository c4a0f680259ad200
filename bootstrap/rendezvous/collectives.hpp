// SPDX-License-Identifier: BSD-3-Clause
// Collectives over a tree of ranks, and the bootstrap made of them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bootstrap/rendezvous/link_set.hpp"
#include "core/base/bytes.hpp"
#include "npushmem/plugin/bootstrap.hpp"

namespace npushmem::rendezvous {

// The tree of the collectives: pure arithmetic, the same on every rank.
//
// The subtree of a rank is the contiguous range of ranks [rank, end). So a subtree gathers one contiguous piece of the
// result, and neighbouring ranks, which mostly share a host, are neighbours in the tree. The root is rank 0; a
// rank's children split the rest of its range evenly.

constexpr int tree_radix = 4;

struct TreeRange {
    int first;  // the rank at the top of the subtree
    int end;    // one past its last rank

    [[nodiscard]] int size() const { return end - first; }
    friend bool operator==(const TreeRange&, const TreeRange&) = default;
};

struct TreePlace {
    int parent;  // -1 at the root
    TreeRange own;
    std::vector<TreeRange> children;
};

// The number of levels below the top of a subtree; 0 for a leaf.
[[nodiscard]] int tree_height(TreeRange range, int radix = tree_radix);

// 0 <= rank < nranks, radix >= 1.
[[nodiscard]] TreePlace tree_place(int rank, int nranks, int radix = tree_radix);

// The links of a rank to its neighbours in the tree.
struct TreeLinks {
    std::optional<LinkSet::Index> parent;
    std::vector<LinkSet::Index> children;  // in the order of TreePlace::children
};

// What a rank calls. Kind, number and size must be the same on every rank.
struct CollectiveCall {
    enum class Kind : std::uint32_t { barrier = 1, allgather = 2 };

    Kind kind;
    std::uint64_t number;
    std::uint64_t bytes;  // per rank

    // "barrier #3", "allgather #4 of 8 bytes per rank"
    [[nodiscard]] std::string text() const;
    // Precedes every piece of data that travels over a connection.
    [[nodiscard]] Buffer encode() const;
    static std::optional<CollectiveCall> decode(std::span<const std::byte> header);
    friend bool operator==(const CollectiveCall&, const CollectiveCall&) = default;
};

// Fails unless `received` bytes hold `sent` bytes of each rank.
Status check_allgather(std::size_t sent, int nranks, std::size_t received);

// Allgather and barrier over the tree: the data of a subtree goes up in one stream, the whole result comes down in one.
// The way up compares the calls of all ranks.
class Collectives {
public:
    // `timeout` 0: a collective waits for live ranks without limit.
    Collectives(LinkSet links, TreeLinks tree, TreePlace place, Milliseconds timeout);

    Status allgather(std::span<const std::byte> send, std::span<std::byte> receive);
    Status barrier();
    // The barrier of the job's start, with its own deadline; its number is 0.
    Status opening_barrier(Deadline deadline);

    [[nodiscard]] LinkSet& links() { return links_; }

private:
    using Call = CollectiveCall;
    using Kind = Call::Kind;

    struct Deadlines {
        Deadline up;
        Deadline down;
    };

    [[nodiscard]] Deadlines deadlines() const;
    Status run(const Call& call, std::span<std::byte> all, const Deadlines& deadlines);
    Status gather(const Call& call, std::span<std::byte> all, Deadline deadline);
    Status spread(const Call& call, std::span<std::byte> all, Deadline deadline);
    // Returns the part of `all` that belongs to a range of ranks.
    static std::span<std::byte> part(const Call& call, std::span<std::byte> all, const TreeRange& range);
    // Receives one piece into the beginning of `rest` and returns it.
    Result<std::span<std::byte>> receive_piece(LinkSet::Index from, FrameType type, const Call& call,
                                               std::span<std::byte> rest, Deadline deadline);
    Status send_piece(LinkSet::Index to, FrameType type, const Call& call, std::span<const std::byte> piece);
    Status mismatch(LinkSet::Index from, const Call& mine, const std::optional<Call>& theirs);

    LinkSet links_;
    TreeLinks tree_;
    TreePlace place_;
    Milliseconds timeout_;
    std::uint64_t calls_ = 0;
};

// The bootstrap of ranks that are connected in a tree.
class TreeBootstrap final : public Bootstrap {
public:
    TreeBootstrap(std::unique_ptr<Collectives> collectives, int rank, int nranks)
        : collectives_(std::move(collectives)), rank_(rank), nranks_(nranks) {}
    // A job of one rank, without connections.
    static std::unique_ptr<Bootstrap> single_rank();

    [[nodiscard]] int rank() const override { return rank_; }
    [[nodiscard]] int nranks() const override { return nranks_; }
    Status allgather(std::span<const std::byte> send, std::span<std::byte> receive) override;
    Status barrier() override { return collectives_->barrier(); }
    void abort(const std::string& reason) override;
    Status check() override { return collectives_->links().exchange({}, Deadline::now()); }

private:
    std::unique_ptr<Collectives> collectives_;
    int rank_;
    int nranks_;
};

}  // namespace npushmem::rendezvous
