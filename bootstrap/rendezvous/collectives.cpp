// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/rendezvous/collectives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "bootstrap/rendezvous/messages.hpp"
#include "bootstrap/rendezvous/settings.hpp"
#include "core/base/bytes.hpp"

namespace npushmem::rendezvous {

namespace {

// Returns at most `radix` ranges, whose sizes differ by one at most.
std::vector<TreeRange> children_of(const TreeRange& range, int radix) {
    std::vector<TreeRange> children;
    const int below = range.size() - 1;
    const int count = std::min(below, radix);
    int first = range.first + 1;
    for (int i = 0; i < count; ++i) {
        const int size = below / count + (i < below % count ? 1 : 0);
        children.push_back({first, first + size});
        first += size;
    }
    return children;
}

}  // namespace

int tree_height(TreeRange range, int radix) {
    int height = 0;
    for (; range.size() > 1; ++height) range = children_of(range, radix).front();  // none of its siblings is larger
    return height;
}

TreePlace tree_place(int rank, int nranks, int radix) {
    TreePlace place{-1, {0, nranks}, children_of({0, nranks}, radix)};
    while (place.own.first != rank) {
        const auto holds = [rank](const TreeRange& range) { return rank < range.end; };
        place.parent = place.own.first;
        place.own = *std::ranges::find_if(place.children, holds);
        place.children = children_of(place.own, radix);
    }
    return place;
}

namespace {

template <class Byte>
std::span<Byte> first_piece(std::span<Byte> rest) {
    return rest.first(std::min(rest.size(), limits::chunk_bytes));
}

}  // namespace

std::string CollectiveCall::text() const {
    if (kind == Kind::barrier) return fmt::format("barrier #{}", number);
    return fmt::format("allgather #{} of {} bytes per rank", number, bytes);
}

Buffer CollectiveCall::encode() const {
    return ByteWriter()
        .integer(static_cast<std::uint32_t>(kind))
        .integer(std::uint32_t{0})
        .integer(number)
        .integer(bytes)
        .take();
}

std::optional<CollectiveCall> CollectiveCall::decode(std::span<const std::byte> header) {
    ByteReader in(header);
    const auto kind = in.integer<std::uint32_t>();
    (void)in.integer<std::uint32_t>();
    CollectiveCall made{static_cast<Kind>(kind), in.integer<std::uint64_t>(), in.integer<std::uint64_t>()};
    if (!in.ok() || (made.kind != Kind::barrier && made.kind != Kind::allgather)) return std::nullopt;
    return made;
}

Status check_allgather(std::size_t sent, int nranks, std::size_t received) {
    const std::size_t expected = sent * static_cast<std::size_t>(nranks);
    if (received == expected) return {};
    return {Code::argument, fmt::format("allgather of {} bytes from {} ranks needs {} bytes to receive, not {}", sent,
                                        nranks, expected, received)};
}

Collectives::Collectives(LinkSet links, TreeLinks tree, TreePlace place, Milliseconds timeout)
    : links_(std::move(links)), tree_(std::move(tree)), place_(std::move(place)), timeout_(timeout) {}

Collectives::Deadlines Collectives::deadlines() const {
    if (timeout_.count() == 0) return {Deadline::never(), Deadline::never()};
    const auto up = limits::cause_report_step * tree_height(place_.own);
    return {Deadline::after(timeout_, up), Deadline::after(timeout_, up + limits::cause_report_grace)};
}

Status Collectives::barrier() { return run({Kind::barrier, ++calls_, 0}, {}, deadlines()); }

Status Collectives::opening_barrier(Deadline deadline) { return run({Kind::barrier, 0, 0}, {}, {deadline, deadline}); }

Status Collectives::allgather(std::span<const std::byte> send, std::span<std::byte> receive) {
    const Call call{Kind::allgather, ++calls_, send.size()};
    const auto mine = part(call, receive, {place_.own.first, place_.own.first + 1});
    if (!send.empty() && mine.data() != send.data()) std::memmove(mine.data(), send.data(), send.size());
    return run(call, receive, deadlines());
}

Status Collectives::run(const Call& call, std::span<std::byte> all, const Deadlines& deadlines) {
    links_.set_activity("during " + call.text());
    if (Status up = gather(call, all, deadlines.up); !up.ok()) return up;
    if (Status down = spread(call, all, deadlines.down); !down.ok()) return down;
    // Queued bytes would wait for this rank's next call while its children wait for them.
    if (Status sent = links_.drain(0, deadlines.down); !sent.ok()) return sent;
    links_.set_activity("after " + call.text());
    return {};
}

Status Collectives::gather(const Call& call, std::span<std::byte> all, Deadline deadline) {
    for (std::size_t i = 0; i < tree_.children.size(); ++i) {
        auto rest = part(call, all, place_.children[i]);
        do {
            auto piece = receive_piece(tree_.children[i], FrameType::up, call, rest, deadline);
            if (!piece.ok()) return piece.status();
            rest = rest.subspan(piece.value().size());
        } while (!rest.empty());
    }
    if (!tree_.parent) return {};
    std::span<const std::byte> rest = part(call, all, place_.own);
    do {
        const auto piece = first_piece(rest);
        if (Status sent = send_piece(*tree_.parent, FrameType::up, call, piece); !sent.ok()) return sent;
        if (Status room = links_.drain(limits::queued_bytes, deadline); !room.ok()) return room;
        rest = rest.subspan(piece.size());
    } while (!rest.empty());
    return {};
}

// Forwards each piece to the children as soon as it arrives.
Status Collectives::spread(const Call& call, std::span<std::byte> all, Deadline deadline) {
    std::span<std::byte> rest = all;
    do {
        std::span<std::byte> piece = first_piece(rest);
        if (tree_.parent) {
            auto received = receive_piece(*tree_.parent, FrameType::down, call, rest, deadline);
            if (!received.ok()) return received.status();
            piece = received.value();
        }
        for (const LinkSet::Index child : tree_.children)
            if (Status sent = send_piece(child, FrameType::down, call, piece); !sent.ok()) return sent;
        if (Status room = links_.drain(limits::queued_bytes, deadline); !room.ok()) return room;
        rest = rest.subspan(piece.size());
    } while (!rest.empty());
    return {};
}

std::span<std::byte> Collectives::part(const Call& call, std::span<std::byte> all, const TreeRange& range) {
    return all.subspan(static_cast<std::size_t>(range.first) * call.bytes,
                       static_cast<std::size_t>(range.size()) * call.bytes);
}

Status Collectives::send_piece(LinkSet::Index to, FrameType type, const Call& call, std::span<const std::byte> piece) {
    return links_.send(to, type, {call.encode(), piece});
}

Result<std::span<std::byte>> Collectives::receive_piece(LinkSet::Index from, FrameType type, const Call& call,
                                                        std::span<std::byte> rest, Deadline deadline) {
    auto frame = links_.receive(from, deadline);
    if (!frame.ok()) return frame.status();
    const std::span<const std::byte> payload(frame.value().payload);
    const std::size_t header = std::min(payload.size(), limits::collective_header_bytes);
    const auto theirs = Call::decode(payload.first(header));
    if (frame.value().type != type || theirs != call) return mismatch(from, call, theirs);
    const auto data = payload.subspan(header);
    if (data.size() != first_piece(rest).size()) return mismatch(from, call, std::nullopt);
    std::ranges::copy(data, rest.begin());
    return rest.first(data.size());
}

Status Collectives::mismatch(LinkSet::Index from, const Call& mine, const std::optional<Call>& theirs) {
    if (!theirs)
        return links_.fail({Code::protocol, fmt::format("{} sent {} a message that does not belong to {}",
                                                        links_.peer(from), links_.me(), mine.text())});
    return links_.fail({Code::mismatch, fmt::format("{} called {}, while {} called {}", links_.peer(from),
                                                    theirs->text(), links_.me(), mine.text())});
}

std::unique_ptr<Bootstrap> TreeBootstrap::single_rank() {
    LinkSet none(Identity::of_this_process(0).text());
    auto collectives = std::make_unique<Collectives>(std::move(none), TreeLinks{}, tree_place(0, 1), Milliseconds{0});
    return std::make_unique<TreeBootstrap>(std::move(collectives), 0, 1);
}

Status TreeBootstrap::allgather(std::span<const std::byte> send, std::span<std::byte> receive) {
    const Status fits = check_allgather(send.size(), nranks_, receive.size());
    return fits.ok() ? collectives_->allgather(send, receive) : fits;
}

void TreeBootstrap::abort(const std::string& reason) {
    LinkSet& links = collectives_->links();
    (void)links.fail({Code::aborted, fmt::format("{} aborted the job: {}", links.me(), reason)});
}

}  // namespace npushmem::rendezvous
