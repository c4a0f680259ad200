// SPDX-License-Identifier: BSD-3-Clause
// Joins a rank to its job.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "bootstrap/rendezvous/collectives.hpp"
#include "bootstrap/rendezvous/connector.hpp"
#include "bootstrap/rendezvous/handshake_acceptor.hpp"
#include "bootstrap/rendezvous/messages.hpp"
#include "bootstrap/rendezvous/settings.hpp"
#include "bootstrap/rendezvous/shared_memory_bootstrap.hpp"
#include "bootstrap/rendezvous/unique_id.hpp"
#include "npushmem/plugin/bootstrap.hpp"

namespace npushmem::rendezvous {

// Joins one rank. If the unique id contains memory of this host, the rank attaches to it and waits there for the
// others. Otherwise, or when the memory is refused, it connects to the service, sends join, and receives the handle of
// memory that all ranks share, or the address of its parent in the tree. It attaches to the memory, or connects to
// parent and children. Then it passes a first barrier and leaves the service. A failure in any step is reported in the
// memory of the id, or to the service, which sends it to all ranks.
class JobJoin {
public:
    // 0 <= rank < nranks, nranks > 1. `host`: for the log.
    JobJoin(const Host& host, const Settings& settings, const UniqueId& id, int rank, int nranks);

    // Blocks until the job is connected, has failed, or the timeout has passed.
    Result<std::unique_ptr<Bootstrap>> run();

private:
    Result<std::unique_ptr<SharedMemoryBootstrap>> attach_to_memory_of_id();
    Result<std::unique_ptr<Bootstrap>> join_service();
    Result<Channel> connect_to_service();
    Status listen(const Address& towards_service);
    Status join();
    void offer_memory(Join& join);
    Status await_assignment();
    Result<std::unique_ptr<Bootstrap>> share_memory();
    Result<std::unique_ptr<Bootstrap>> connect_tree();
    Status connect_neighbours();
    Status poll_once();
    Status connect_to_parent();
    Status accept_children();
    Status add_child(AuthenticatedConnection child);
    Status timed_out();
    [[nodiscard]] bool linked() const;
    [[nodiscard]] std::string describe_subtree(const TreeRange& range, const std::string& top) const;

    const Host& log_host_;
    const Settings& settings_;
    UniqueId id_;
    int nranks_;
    TreePlace place_;
    Identity me_;
    Milliseconds timeout_;  // of the settings, or what the wait in the memory has left of it
    Deadline deadline_;     // of this rank: later than the service's deadline, since the service knows the cause
    LinkSet links_;
    LinkSet::Index service_ = 0;                 // the first link
    std::optional<HandshakeAcceptor> acceptor_;  // none at a leaf
    std::optional<npushmem_host_id> host_;       // none: this rank shares no memory
    std::optional<JobMemory> memory_;            // of rank 0, for all ranks
    std::optional<Connector> parent_connector_;
    Assign assigned_;
    std::optional<LinkSet::Index> parent_;
    std::vector<std::optional<LinkSet::Index>> children_;
};

// The last step of every start: all ranks know the id and join. Collective, 0 <= rank < nranks. A rank whose settings
// are malformed takes part with `fallback`, reports the error to the others, and returns it.
Result<std::unique_ptr<Bootstrap>> join_or_report(const Host& host, const Result<Settings>& read,
                                                  const Settings& fallback, const UniqueId& id, int rank, int nranks);

}  // namespace npushmem::rendezvous
