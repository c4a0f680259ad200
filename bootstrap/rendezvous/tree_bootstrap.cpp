#include "bootstrap/rendezvous/tree_bootstrap.hpp"

#include <fmt/format.h>

#include "bootstrap/rendezvous/messages.hpp"

namespace npushmem::rendezvous {

std::unique_ptr<Bootstrap> TreeBootstrap::single_rank() {
    LinkSet none(Identity::of_this_process(0).text());
    auto collectives = std::make_unique<Collectives>(std::move(none), TreeLinks{}, tree_place(0, 1), Milliseconds{0});
    return std::make_unique<TreeBootstrap>(std::move(collectives), 0, 1);
}

Status TreeBootstrap::allgather(std::span<const std::byte> send, std::span<std::byte> receive) {
    const std::size_t expected = send.size() * static_cast<std::size_t>(nranks_);
    if (receive.size() == expected) return collectives_->allgather(send, receive);
    return {Code::argument, fmt::format("allgather of {} bytes from {} ranks needs {} bytes to receive, not {}",
                                        send.size(), nranks_, expected, receive.size())};
}

void TreeBootstrap::abort(const std::string& reason) {
    LinkSet& links = collectives_->links();
    (void)links.fail({Code::aborted, fmt::format("{} aborted the job: {}", links.me(), reason)});
}

}  // namespace npushmem::rendezvous
