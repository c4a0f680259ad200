// Allgather and barrier over the tree: what a subtree has goes up in one stream, the whole comes down in one. The order
// of calls is checked on the way up: kind, number and size must be the same on every rank.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bootstrap/rendezvous/byte_writer.hpp"
#include "bootstrap/rendezvous/link_set.hpp"
#include "bootstrap/rendezvous/tree.hpp"

namespace npushmem::rendezvous {

// The links of a rank by their places in the tree.
struct TreeLinks {
    std::optional<LinkSet::Index> parent;
    std::vector<LinkSet::Index> children;  // in the order of TreePlace::children
};

class Collectives {
public:
    // `timeout` 0: a collective waits for ranks that live, however long they take to come.
    Collectives(LinkSet links, TreeLinks tree, TreePlace place, Milliseconds timeout);

    Status allgather(std::span<const std::byte> send, std::span<std::byte> receive);
    Status barrier();
    // As barrier, but with its own deadline, for the start of the job; it is number 0.
    Status opening_barrier(Deadline deadline);

    [[nodiscard]] LinkSet& links() { return links_; }

private:
    enum class Kind : std::uint32_t { barrier = 1, allgather = 2 };
    // Travels in front of every piece of data.
    struct Call {
        Kind kind;
        std::uint64_t number;
        std::uint64_t bytes;  // per rank

        [[nodiscard]] std::string text() const;
        [[nodiscard]] Buffer encode() const;
        static std::optional<Call> decode(std::span<const std::byte> header);
        friend bool operator==(const Call&, const Call&) = default;
    };

    struct Deadlines {
        Deadline up;
        Deadline down;
    };

    [[nodiscard]] Deadlines deadlines() const;
    Status run(const Call& call, std::span<std::byte> all, const Deadlines& deadlines);
    Status gather(const Call& call, std::span<std::byte> all, Deadline deadline);
    Status spread(const Call& call, std::span<std::byte> all, Deadline deadline);
    // The part of `all` that belongs to a range of ranks.
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

}  // namespace npushmem::rendezvous
