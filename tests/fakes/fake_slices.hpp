// SPDX-License-Identifier: BSD-3-Clause
// The slices of some PEs in one process, each on its own host. PE 0 reaches them through a fake fabric.
#pragma once

#include <optional>
#include <vector>

#include "core/remote/remote_peers.hpp"
#include "npushmem/testing/array_fabric.hpp"
#include "npushmem/testing/fake_transport.hpp"
#include "tests/fakes/fake_os.hpp"

namespace npushmem::fakes {

class FakeSlices {
public:
    FakeSlices(SymmetricArray& array, FakeFabric::Delivery delivery) : fabric(delivery), layout_(hosts(array.pes())) {
        for (int pe = 0; pe < array.pes(); ++pe) {
            npushmem_memory memory{};
            memory.base = array.base(pe);
            memory.bytes = array.part();
            handles_.push_back(FakeTransport(fabric, pe).register_memory(memory).value().handle);
        }
        map_.emplace(std::move(TransportMap::build(named_, layout_, 0, peer_of)).value());
        const auto handle_of = [this](int, int pe) {
            return std::span<const std::byte>(handles_[static_cast<std::size_t>(pe)]);
        };
        peers.emplace(named_, *map_, PeerDirectory{peer_of, handle_of}, waiter_, Duration{1'000'000'000});
    }

    FakeFabric fabric;

private:
    static npushmem_peer peer_of(int /*transport*/, int pe) {
        return {sizeof(npushmem_peer), pe, {}, 0, 0, nullptr, "host"};
    }
    static HostLayout hosts(int pes) {
        std::vector<npushmem_host_id> ids(static_cast<std::size_t>(pes));
        for (std::size_t i = 0; i < ids.size(); ++i) ids[i].machine = i;
        return HostLayout(ids);
    }

    FakeTransport transport_{fabric, 0};
    std::vector<NamedTransport> named_{{"fake", &transport_}};
    HostLayout layout_;
    std::vector<Bytes> handles_;
    std::optional<TransportMap> map_;
    npushmem::testing::FakeWaitOs os_;
    WaitCounters counters_;
    Waiter waiter_{choose_wait_budget({1, 2}), os_, counters_};

public:
    std::optional<RemotePeers> peers;  // destroyed before the objects it refers to
};

}  // namespace npushmem::fakes
