// SPDX-License-Identifier: BSD-3-Clause
// The table of exchanges beside real starts, of jobs whose PEs are threads of this process.
#include "bench/simulate/start_exchanges.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>

#include "core/base/config.hpp"
#include "core/runtime/job_transports.hpp"
#include "core/runtime/startup.hpp"
#include "npushmem/testing/fake_bootstrap.hpp"
#include "npushmem/testing/fake_transport.hpp"
#include "npushmem/testing/mocks.hpp"
#include "tests/fakes/fake_os.hpp"

namespace npushmem::simulate {
namespace {

using fakes::FakeFabric;
using fakes::FakeTransport;

// Records the bytes of each allgather, and 0 for a barrier.
class RecordingBootstrap final : public Bootstrap {
public:
    RecordingBootstrap(std::shared_ptr<fakes::FakeJob> job, int rank, std::vector<std::uint64_t>& calls)
        : real_(std::move(job), rank), calls_(calls) {}

    [[nodiscard]] int rank() const override { return real_.rank(); }
    [[nodiscard]] int nranks() const override { return real_.nranks(); }
    Status allgather(std::span<const std::byte> send, std::span<std::byte> receive) override {
        calls_.push_back(send.size());
        return real_.allgather(send, receive);
    }
    Status barrier() override {
        calls_.push_back(0);
        return real_.barrier();
    }
    void abort(const std::string& reason) override { real_.abort(reason); }
    Status check() override { return real_.check(); }

private:
    fakes::FakeBootstrap real_;
    std::vector<std::uint64_t>& calls_;
};

std::unique_ptr<Transport> with_nic(std::unique_ptr<Transport> transport) {
    npushmem_device nic{};
    nic.struct_size = sizeof nic;
    nic.port = 1;
    nic.state = NPUSHMEM_PORT_ACTIVE;
    std::strcpy(nic.name, "nic");
    auto mock = std::make_unique<::testing::NiceMock<MockTransport>>();
    mock->delegate_to(std::move(transport));
    ON_CALL(*mock, devices()).WillByDefault(::testing::Return(std::vector{nic}));
    ON_CALL(*mock, use_devices(::testing::_)).WillByDefault(::testing::Return(Status{}));
    return mock;
}

// One transport for the PEs of a host, which reaches only these, and a candidate for others.
class FakeSources final : public Sources {
public:
    FakeSources(std::shared_ptr<fakes::FakeJob> job, int rank, FakeFabric& host, FakeFabric& network, bool has_nics)
        : job_(std::move(job)), rank_(rank), host_(host), network_(network), has_nics_(has_nics) {}

    Result<std::unique_ptr<Bootstrap>> open_bootstrap(Config&, const npushmem_host&,
                                                      const npushmem_bootstrap_params&) override {
        return std::unique_ptr<Bootstrap>(std::make_unique<RecordingBootstrap>(job_, rank_, calls));
    }
    Result<std::vector<OwnedTransport>> open_transports(Config&, const npushmem_host&,
                                                        const npushmem_transport_params& params) override {
        std::vector<OwnedTransport> opened;
        opened.push_back({"host", std::make_unique<FakeTransport>(host_, params)});
        return opened;
    }
    Result<OwnedTransport> open_transport(const std::string& name, Config&, const npushmem_host&,
                                          const npushmem_transport_params& params) override {
        OwnedTransport opened{name, std::make_unique<FakeTransport>(network_, params.pe)};
        opened.remote = true;
        opened.nics = has_nics_;
        if (has_nics_) opened.transport = with_nic(std::move(opened.transport));
        return opened;
    }

    std::vector<std::uint64_t> calls;

private:
    std::shared_ptr<fakes::FakeJob> job_;
    int rank_;
    FakeFabric& host_;
    FakeFabric& network_;
    bool has_nics_;
};

// Starts and ends a job of two PEs, on so many hosts. Returns the calls that PE 0 made in its start. `transports` is
// NPUSHMEM_TRANSPORTS of PE 1.
std::vector<std::uint64_t> calls_of_a_start(int hosts, bool has_nics = false,
                                            const std::string& transports = "self,p2p") {
    FakeFabric host;
    host.reach_by([](int, int) { return Reach{NPUSHMEM_CAP_MAP | NPUSHMEM_CAP_PUT, 0, 0, "mapped"}; });
    FakeFabric network;
    const auto job = std::make_shared<fakes::FakeJob>(2);
    std::vector<std::uint64_t> calls;
    std::vector<std::jthread> threads;
    threads.reserve(2);
    for (int rank = 0; rank < 2; ++rank)
        threads.emplace_back([&, rank] {
            const FakeEnvironment environment{{"NPUSHMEM_SYMMETRIC_SIZE", "1M"},
                                              {"NPUSHMEM_EMULATED_HOST", std::to_string(rank % hosts)},
                                              {"NPUSHMEM_TRANSPORTS", rank == 1 ? transports : "self,p2p"}};
            auto config = Config::read(environment);
            ASSERT_TRUE(config.ok()) << config.status().message();
            FakeSources sources(job, rank, host, network, has_nics);
            auto started = start_runtime(std::move(config).value(), sources, {});
            ASSERT_TRUE(started.ok()) << started.status().message();
            if (rank == 0) calls = sources.calls;
            EXPECT_TRUE(started.value()->finish().ok());
        });
    threads.clear();
    return calls;
}

std::vector<std::uint64_t> bytes_of(const StartTraits& traits) {
    std::vector<std::uint64_t> bytes;
    for (const StartExchange& each : start_exchanges(traits)) bytes.push_back(each.bytes);
    return bytes;
}

// Of a fake transport: the header, no address, and a handle of two words.
constexpr std::uint64_t fake_endpoint_bytes = 16 + 16;

TEST(StartExchanges, AreThoseOfAStartOnOneHost) {
    EXPECT_EQ(calls_of_a_start(1), bytes_of({.endpoint_bytes = fake_endpoint_bytes}));
}

TEST(StartExchanges, PesThatSelectTransportsDifferentlyGatherTheNeedOfNics) {
    constexpr std::uint64_t need = 8;
    const auto alike = calls_of_a_start(1);
    const auto different = calls_of_a_start(1, false, "p2p,self");
    EXPECT_EQ(std::ranges::count(different, need), std::ranges::count(alike, need) + 1);
    EXPECT_THAT(different, ::testing::Contains(sizeof(CommonRecord)));
}

TEST(StartExchanges, LongEndpointsTakeASecondRound) {
    EXPECT_EQ(bytes_of({.endpoint_bytes = 157}).size(), bytes_of({.endpoint_bytes = 156}).size() + 1);
    EXPECT_THAT(bytes_of({.endpoint_bytes = 256}), ::testing::Contains(260));
}

TEST(StartExchanges, AreThoseOfAStartOnTwoHosts) {
    EXPECT_EQ(calls_of_a_start(2), bytes_of({.several_hosts = true,
                                             .has_fabric = has_fabric_device(),
                                             .endpoint_bytes = 2 * fake_endpoint_bytes}));
}

TEST(StartExchanges, AreThoseOfAStartOverNics) {
    EXPECT_EQ(calls_of_a_start(2, true), bytes_of({.several_hosts = true,
                                                   .has_fabric = has_fabric_device(),
                                                   .has_nics = true,
                                                   .endpoint_bytes = 2 * fake_endpoint_bytes}));
}

}  // namespace
}  // namespace npushmem::simulate
