// How a rank gets into its job: reach the service, say who it is, learn where its parent listens, link with parent and
// children, pass a first barrier, leave the service. A failure in any step goes to the service, which tells all ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "bootstrap/rendezvous/collectives.hpp"
#include "bootstrap/rendezvous/connector.hpp"
#include "bootstrap/rendezvous/handshake_acceptor.hpp"
#include "bootstrap/rendezvous/messages.hpp"
#include "bootstrap/rendezvous/settings.hpp"
#include "bootstrap/rendezvous/unique_id.hpp"

namespace npushmem::rendezvous {

class JobJoin {
public:
    // 0 <= rank < nranks, nranks > 1.
    JobJoin(const Settings& settings, const UniqueId& id, int rank, int nranks);

    // Blocks until the job stands, fails, or the time-out has passed.
    Result<std::unique_ptr<Collectives>> run();

private:
    Result<Channel> connect_to_service();
    Status listen(const Address& towards_service);
    Status join();
    Status await_assignment();
    Status connect_tree();
    Status poll_once();
    Status connect_to_parent();
    Status accept_children();
    Status add_child(AuthenticatedConnection child);
    Status timed_out();
    [[nodiscard]] bool linked() const;
    [[nodiscard]] std::string describe_subtree(const TreeRange& range, const std::string& top) const;

    const Settings& settings_;
    UniqueId id_;
    int nranks_;
    TreePlace place_;
    Identity me_;
    Deadline deadline_;  // of this rank: a little later than the service's, which knows more
    LinkSet links_;
    LinkSet::Index service_ = 0;                 // the first link
    std::optional<HandshakeAcceptor> acceptor_;  // none at a leaf
    std::optional<Connector> parent_connector_;
    Assign assigned_;
    std::optional<LinkSet::Index> parent_;
    std::vector<std::optional<LinkSet::Index>> children_;
};

}  // namespace npushmem::rendezvous
