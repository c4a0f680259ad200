// SPDX-License-Identifier: BSD-3-Clause
// Start and end of the runtime against mocks: the calls, their order, and the effect of a failing one.
#include "core/runtime/startup.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>

#include "npushmem/npu/npu.hpp"
#include "npushmem/testing/mocks.hpp"
#include "tests/fakes/fake_os.hpp"
#include "tests/fakes/open_descriptors.hpp"

namespace npushmem {
namespace {

using ::testing::_;
using ::testing::AnyNumber;
using ::testing::HasSubstr;
using ::testing::InSequence;
using ::testing::NiceMock;
using ::testing::Return;

// A job of one rank.
void alone(MockBootstrap& bootstrap) {
    ON_CALL(bootstrap, rank()).WillByDefault(Return(0));
    ON_CALL(bootstrap, nranks()).WillByDefault(Return(1));
    ON_CALL(bootstrap, barrier()).WillByDefault(Return(Status{}));
    ON_CALL(bootstrap, allgather(_, _))
        .WillByDefault([](std::span<const std::byte> send, std::span<std::byte> receive) {
            std::copy(send.begin(), send.end(), receive.begin());
            return Status{};
        });
}

// Reaches the PE itself and maps its memory at its own address.
void mapping(MockTransport& transport) {
    ON_CALL(transport, devices()).WillByDefault(Return(std::vector<npushmem_device>{}));
    ON_CALL(transport, address()).WillByDefault(Return(Bytes{}));
    ON_CALL(transport, reach(_)).WillByDefault(Return(Reach{NPUSHMEM_CAP_MAP | NPUSHMEM_CAP_PUT, 0, 0, "mapped"}));
    ON_CALL(transport, connect(_)).WillByDefault(Return(Status{}));
    ON_CALL(transport, create_queue()).WillByDefault(Return(std::uint64_t{1}));
    ON_CALL(transport, import_memory(_, _)).WillByDefault([](int, std::span<const std::byte> handle) {
        std::uint64_t base = 0;
        std::memcpy(&base, handle.data(), sizeof base);
        return Result<std::uint64_t>(base);
    });
    ON_CALL(transport, map(_)).WillByDefault([](std::uint64_t base) {
        return Result<void*>(reinterpret_cast<void*>(base));
    });
    ON_CALL(transport, register_memory(_)).WillByDefault([](const npushmem_memory& memory) {
        RegisteredMemory made{5, Bytes(sizeof memory.base)};
        std::memcpy(made.handle.data(), &memory.base, sizeof memory.base);
        return Result<RegisteredMemory>(made);
    });
    ON_CALL(transport, poll_event(_)).WillByDefault(Return(Code::again));
}

class MockSources final : public Sources {
public:
    Result<std::unique_ptr<Bootstrap>> open_bootstrap(Config&, const npushmem_host&,
                                                      const npushmem_bootstrap_params&) override {
        if (!bootstrap_failure.ok()) return bootstrap_failure;
        return std::unique_ptr<Bootstrap>(std::move(bootstrap));
    }
    Result<std::vector<OwnedTransport>> open_transports(Config&, const npushmem_host&,
                                                        const npushmem_transport_params& params) override {
        seen = params;
        if (!transport_failure.ok()) return transport_failure;
        std::vector<OwnedTransport> opened;
        opened.push_back({"mock", std::move(transport)});
        opened.back().nics = drives_nics;
        return opened;
    }

    Status bootstrap_failure;
    Status transport_failure;
    npushmem_transport_params seen{};
    bool drives_nics = false;
    std::unique_ptr<NiceMock<MockBootstrap>> bootstrap = std::make_unique<NiceMock<MockBootstrap>>();
    std::unique_ptr<NiceMock<MockTransport>> transport = std::make_unique<NiceMock<MockTransport>>();
};

class RuntimeTest : public ::testing::Test {
protected:
    RuntimeTest() {
        alone(*sources.bootstrap);
        mapping(*sources.transport);
    }

    Result<std::unique_ptr<Runtime>> start(const FakeEnvironment& environment = {{"NPUSHMEM_SYMMETRIC_SIZE", "1M"}},
                                           const StartRequest& request = {}) {
        auto config = Config::read(environment);
        EXPECT_TRUE(config.ok()) << config.status().message();
        return start_runtime(std::move(config).value(), sources, request);
    }

    MockSources sources;
};

TEST_F(RuntimeTest, StartsAndEndsInOrder) {
    MockTransport& transport = *sources.transport;
    MockBootstrap& bootstrap = *sources.bootstrap;
    {
        InSequence order;
        EXPECT_CALL(bootstrap, allgather(_, _));  // the PE records
        EXPECT_CALL(bootstrap, allgather(_, _));  // the host's memory segment
        EXPECT_CALL(transport, devices());
        EXPECT_CALL(transport, address());
        EXPECT_CALL(transport, register_memory(_));
        EXPECT_CALL(bootstrap, barrier());  // the endpoints are in the host's memory
        EXPECT_CALL(transport, reach(_));
        EXPECT_CALL(transport, connect(_));
        EXPECT_CALL(transport, import_memory(0, _));
        EXPECT_CALL(transport, map(_));
        EXPECT_CALL(transport, release_memory(_));  // it is where this PE has mapped it
        EXPECT_CALL(bootstrap, allgather(_, _));    // the mapped peers
        EXPECT_CALL(bootstrap, barrier());          // the world's barrier exists
        EXPECT_CALL(bootstrap, barrier());          // finish: all PEs have arrived
        EXPECT_CALL(transport, deregister_memory(5));
    }
    auto started = start();
    ASSERT_TRUE(started.ok()) << started.status().message();
    Runtime& runtime = *started.value();
    EXPECT_EQ(runtime.npes(), 1);
    EXPECT_EQ(runtime.slices().fast_map().all_mapped, 1U);
    EXPECT_TRUE(runtime.slices().host_memory().published(HostMemory::Publication::endpoints).empty())
        << "no PE connects to another";
    EXPECT_EQ(sources.seen.npes, 1);
    EXPECT_THAT(runtime.reports().map_text(), HasSubstr("pe 0: mock, mapped (mapped)"));
    EXPECT_TRUE(runtime.synchronization().barrier_all().ok());
    EXPECT_TRUE(runtime.finish().ok());
    started.value().reset();
}

TEST_F(RuntimeTest, AProgramCompiledWithANewerLibraryIsRefusedBeforeAnythingIsOpened) {
    EXPECT_CALL(*sources.bootstrap, allgather(_, _)).Times(0);
    StartRequest request;
    request.compiled_with = {library_version.major, library_version.minor + 1, 0};
    const auto refused = start({}, request);
    EXPECT_EQ(refused.status().code(), Code::mismatch);
    EXPECT_THAT(refused.status().message(), HasSubstr("compile it again or install the other library"));
}

TEST_F(RuntimeTest, ReportsAFailedBootstrap) {
    sources.bootstrap_failure = {Code::timeout, "nobody came"};
    EXPECT_THAT(start().status().message(), HasSubstr("start-up failed at bootstrap: nobody came"));
}

TEST_F(RuntimeTest, AFailureAfterTheBootstrapIsReportedToTheOthersAndUndone) {
    const std::size_t before = open_descriptors();
    sources.transport_failure = {Code::plugin_missing, "no such plugin"};
    EXPECT_CALL(*sources.bootstrap, abort(HasSubstr("start-up failed at transports: no such plugin")));
    EXPECT_EQ(start().status().code(), Code::plugin_missing);
    EXPECT_EQ(open_descriptors(), before);
}

// PEs with equal reports: the launcher merges them.
TEST_F(RuntimeTest, TheSameFailureOfAnotherPeIsNoCause) {
    sources.transport_failure = {Code::plugin_missing, "no such plugin"};
    EXPECT_CALL(*sources.bootstrap, check())
        .WillRepeatedly(
            Return(Status{Code::aborted, "rank 1 aborted the job: start-up failed at transports: no such plugin"}));
    EXPECT_EQ(start().status().message(), "start-up failed at transports: no such plugin");
}

TEST_F(RuntimeTest, AFailureOfAnotherPeIsNamedAsTheCause) {
    sources.transport_failure = {Code::system, "no memory"};
    EXPECT_CALL(*sources.bootstrap, check())
        .WillRepeatedly(Return(Status{Code::aborted, "rank 1 aborted the job: start-up failed at bootstrap: full"}));
    EXPECT_EQ(start().status().message(),
              "start-up failed at transports: no memory; because rank 1 aborted the job: start-up failed at bootstrap: "
              "full");
}

TEST_F(RuntimeTest, AnUnreachablePeFailsTheStart) {
    ON_CALL(*sources.transport, reach(_)).WillByDefault(Return(Reach{0, 0, 0, "cable cut"}));
    EXPECT_CALL(*sources.bootstrap, abort(_));
    EXPECT_CALL(*sources.transport, deregister_memory(5));
    const auto failed = start();
    EXPECT_EQ(failed.status().code(), Code::unreachable);
    EXPECT_THAT(failed.status().message(), HasSubstr("mock: cable cut"));
}

TEST_F(RuntimeTest, MemoryThatATransportRefusesIsUndone) {
    ON_CALL(*sources.transport, register_memory(_)).WillByDefault(Return(Status{Code::memory, "locked-memory limit"}));
    EXPECT_CALL(*sources.transport, deregister_memory(_)).Times(0);
    EXPECT_THAT(start().status().message(),
                HasSubstr("transport mock cannot use the symmetric heap: locked-memory limit"));
}

TEST_F(RuntimeTest, AFailedMappingFailsTheStart) {
    ON_CALL(*sources.transport, map(_)).WillByDefault(Return(Status{Code::system, "no address space"}));
    EXPECT_THAT(start().status().message(), HasSubstr("mapping of peers: no address space"));
}

TEST_F(RuntimeTest, TheFastPathRejectsAMappingAtAnotherAddress) {
    static std::byte elsewhere[64];
    ON_CALL(*sources.transport, map(_)).WillByDefault(Return(static_cast<void*>(elsewhere)));
    bool is_released = false;
    ON_CALL(*sources.transport, release_memory(_)).WillByDefault([&is_released](std::uint64_t) {
        is_released = true;
        return Code::ok;
    });
    auto started = start();
    ASSERT_TRUE(started.ok()) << started.status().message();
    // A PE's own slice is always at its own address.
    EXPECT_EQ(started.value()->slices().mapped(0, 0), started.value()->slices().heap().base());
    EXPECT_FALSE(is_released) << "the mapping needs the imported memory";
}

TEST_F(RuntimeTest, DevicesOfATransportAreAssignedAndReleased) {
    npushmem_device nic{};
    nic.struct_size = sizeof nic;
    nic.port = 1;
    nic.state = NPUSHMEM_PORT_ACTIVE;
    nic.bits_per_second = 100'000'000'000;
    (void)std::string("nic0").copy(nic.name, sizeof nic.name);
    (void)std::string("0000:3b:00.0").copy(nic.pci_address, sizeof nic.pci_address);
    sources.drives_nics = true;
    ON_CALL(*sources.transport, devices()).WillByDefault(Return(std::vector{nic}));
    EXPECT_CALL(*sources.transport, use_devices(::testing::ElementsAre(0U))).WillOnce(Return(Status{}));
    auto started = start();
    ASSERT_TRUE(started.ok()) << started.status().message();
    RuntimeReports& reports = started.value()->reports();
    EXPECT_THAT(reports.nic_text(), HasSubstr("nic0:1"));
    for (const PeNics& nics : {reports.nics_of(0), reports.route(0).own_nics, reports.route(0).peer_nics}) {
        EXPECT_TRUE(nics.is_known);
        EXPECT_EQ(nics.transport, "mock");
        ASSERT_EQ(nics.nics.size(), 1U);
        EXPECT_EQ(nics.nics[0].choice.nic, "nic0");
        EXPECT_EQ(nics.nics[0].pci_address, "0000:3b:00.0");
        EXPECT_THAT(reports.nic_text(), HasSubstr(nics.why));
    }
}

TEST_F(RuntimeTest, SelectionsAreThoseOfTheTexts) {
    auto started = start();
    ASSERT_TRUE(started.ok()) << started.status().message();
    const RuntimeReports& reports = started.value()->reports();
    const RouteReport route = reports.route(0);
    EXPECT_EQ(route.transport, "mock");
    EXPECT_TRUE(route.route.maps());
    EXPECT_EQ(route.route.reach.why, "mapped");
    EXPECT_TRUE(route.same_host);
    EXPECT_FALSE(route.proxied);
    EXPECT_TRUE(route.own_nics.nics.empty());
    EXPECT_TRUE(reports.nics_of(0).is_known);
    EXPECT_EQ(reports.nics_of(0).why, "no transport in use drives a NIC");
    EXPECT_EQ(reports.job().bootstrap.name, "given");
    EXPECT_THAT(reports.job_text(), HasSubstr("bootstrap: given\n"));
    EXPECT_THAT(reports.job_text(), HasSubstr("barrier: " + barrier::name_of(reports.job().barrier.plan) + " (" +
                                              reports.job().barrier.why + ")\n"));
}

TEST_F(RuntimeTest, AMalformedNicMappingFailsTheStart) {
    npushmem_device nic{};
    nic.struct_size = sizeof nic;
    nic.port = 1;
    nic.state = NPUSHMEM_PORT_ACTIVE;
    (void)std::string("nic0").copy(nic.name, sizeof nic.name);
    sources.drives_nics = true;
    ON_CALL(*sources.transport, devices()).WillByDefault(Return(std::vector{nic}));
    const auto failed = start({{"NPUSHMEM_SYMMETRIC_SIZE", "1M"},
                               {"NPUSHMEM_ENABLE_NIC_PE_MAPPING", "1"},
                               {"NPUSHMEM_HCA_PE_MAPPING", "nic9:1:1"}});
    EXPECT_EQ(failed.status().code(), Code::config);
    EXPECT_THAT(failed.status().message(), HasSubstr("nic9"));
}

TEST_F(RuntimeTest, NicVariablesAreCheckedEvenWithoutNics) {
    const auto no_file = start({{"NPUSHMEM_SYMMETRIC_SIZE", "1M"}, {"NPUSHMEM_TOPO_FILE", "/nowhere.xml"}});
    EXPECT_EQ(no_file.status().code(), Code::config);
    EXPECT_THAT(no_file.status().message(), HasSubstr("NPUSHMEM_TOPO_FILE: cannot read topology file"));
}

TEST_F(RuntimeTest, AMalformedNicListFailsTheStartEvenWithoutNics) {
    const auto failed = start({{"NPUSHMEM_SYMMETRIC_SIZE", "1M"}, {"NPUSHMEM_HCA_LIST", "mlx5_0:x"}});
    EXPECT_EQ(failed.status().code(), Code::config);
    EXPECT_THAT(failed.status().message(), HasSubstr("NPUSHMEM_HCA_LIST entry 1 \"mlx5_0:x\""));
}

TEST_F(RuntimeTest, AnUnknownBarrierIsReportedWithTheNearestName) {
    const auto failed = start({{"NPUSHMEM_SYMMETRIC_SIZE", "1M"}, {"NPUSHMEM_BARRIER_ALGO", "disemination"}});
    EXPECT_EQ(failed.status().code(), Code::config);
    EXPECT_THAT(failed.status().message(), HasSubstr("did you mean \"dissemination\"?"));
}

TEST_F(RuntimeTest, AHeapBeyondTheAddressSpaceIsRefused) {
    const auto failed = start({{"NPUSHMEM_SYMMETRIC_SIZE", "100000T"}});
    EXPECT_EQ(failed.status().code(), Code::memory);
    EXPECT_THAT(failed.status().message(), HasSubstr("lower NPUSHMEM_SYMMETRIC_SIZE"));
}

TEST_F(RuntimeTest, ABootstrapWithAnImpossibleRankIsRefused) {
    ON_CALL(*sources.bootstrap, rank()).WillByDefault(Return(3));
    EXPECT_THAT(start().status().message(), HasSubstr("the bootstrap gave rank 3 of 1"));
}

TEST_F(RuntimeTest, TheNpuIsCreatedOnFirstUse) {
    auto started = start({{"NPUSHMEM_SYMMETRIC_SIZE", "1M"}, {"NPUSHMEM_NPU_BLOCKS", "3"}});
    ASSERT_TRUE(started.ok());
    auto device = started.value()->npu().device();
    ASSERT_TRUE(device.ok()) << device.status().message();
    EXPECT_EQ(device.value()->config().blocks, 3);
    EXPECT_EQ(started.value()->npu().device().value(), device.value());
    EXPECT_TRUE(started.value()->finish().ok());
}

TEST_F(RuntimeTest, TheNpuIsCheckedAndItsBarrierChosenBySettings) {
    auto started = start({{"NPUSHMEM_SYMMETRIC_SIZE", "1M"},
                          {"NPUSHMEM_NPU_CHECK", "1"},
                          {"NPUSHMEM_NPU_SCHEDULE", "random:7"},
                          {"NPUSHMEM_NPU_BARRIER", "v2:4"}});
    ASSERT_TRUE(started.ok());
    auto device = started.value()->npu().device();
    ASSERT_TRUE(device.ok()) << device.status().message();
    EXPECT_TRUE(device.value()->config().hooks);
    EXPECT_EQ(device.value()->config().barrier.radix, 4);
    EXPECT_TRUE(started.value()->finish().ok());
}

TEST_F(RuntimeTest, APeThatATransportServesWithoutMappingKeepsItsEndpoint) {
    MockTransport& transport = *sources.transport;
    ON_CALL(transport, reach(_)).WillByDefault(Return(Reach{NPUSHMEM_CAP_PUT, 0, 0, "far"}));
    ON_CALL(transport, put(_, _, _)).WillByDefault(Return(Code::ok));
    auto started = start();
    ASSERT_TRUE(started.ok()) << started.status().message();
    EXPECT_CALL(transport, import_memory(0, ::testing::SizeIs(sizeof(void*))));  // the handle of mapping()
    const std::uint64_t source = 0;
    const Status put = started.value()->transports().remote().put(0, control_bytes, &source, sizeof source,
                                                                  RemoteAccess::Completion::local);
    EXPECT_TRUE(put.ok()) << put.message();
}

// A transport that cannot map serves the PE itself. Kernels still use their own memory directly, and no transport.
TEST_F(RuntimeTest, KernelsLoadAndStoreTheirOwnMemoryWhereATransportServesThePeItself) {
    MockTransport& transport = *sources.transport;
    constexpr std::uint32_t every_atomic = (1U << NPUSHMEM_ATOMIC_COUNT) - 1;
    const Reach unmapped{NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET | NPUSHMEM_CAP_ATOMIC, every_atomic, every_atomic, "far"};
    ON_CALL(transport, reach(_)).WillByDefault(Return(unmapped));
    EXPECT_CALL(transport, put(_, _, _)).Times(0);
    EXPECT_CALL(transport, get(_, _, _)).Times(0);
    EXPECT_CALL(transport, atomic(_, _, _)).Times(0);
    auto started = start({{"NPUSHMEM_SYMMETRIC_SIZE", "1M"}, {"NPUSHMEM_NPU_BLOCKS", "1"}});
    ASSERT_TRUE(started.ok()) << started.status().message();
    EXPECT_EQ(started.value()->slices().fast_map().all_mapped, 0U);
    auto device = started.value()->npu().device();
    ASSERT_TRUE(device.ok()) << device.status().message();
    const auto place = started.value()->slices().heap().allocate(64, 64);
    ASSERT_TRUE(place.ok()) << place.status().message();
    auto* words = reinterpret_cast<std::uint64_t*>(started.value()->slices().heap().at(place.value()));
    const npu::Fabric& fabric = device.value()->fabric();
    EXPECT_EQ(fabric.remote(words, 0), words);
    EXPECT_EQ(fabric.pe_of(words), 0);
    npu::Stream& stream = device.value()->default_stream();
    const Status launched = npu::launch(stream, 1, [words](npu::Core& core) {
        if (core.index() != 0) return;
        words[0] = 11;
        core.put(words + 1, words, 1, 0);
        core.get(words + 2, words + 1, 1, 0);
        core.put_signal(words + 3, words, 1, words + 4, 5, 0);
        EXPECT_EQ(core.atomic_fetch_add_on(words + 4, 2, 0), 5U);
        EXPECT_EQ(core.signal_wait_until_on(words + 4, npu::Compare::equal, 7, 0), 7U);
    });
    ASSERT_TRUE(launched.ok()) << launched.message();
    const Status ended = stream.synchronize();
    EXPECT_TRUE(ended.ok()) << ended.message();
    EXPECT_THAT(std::vector<std::uint64_t>(words, words + 5), ::testing::ElementsAre(11, 11, 11, 11, 7));
}

TEST_F(RuntimeTest, AnNpuScheduleThatNeedsAllPesIsRefused) {
    auto started =
        start({{"NPUSHMEM_SYMMETRIC_SIZE", "1M"}, {"NPUSHMEM_NPU_CHECK", "1"}, {"NPUSHMEM_NPU_SCHEDULE", "explore"}});
    ASSERT_TRUE(started.ok());
    const auto device = started.value()->npu().device();
    EXPECT_EQ(device.status().code(), Code::config);
    EXPECT_THAT(device.status().message(), HasSubstr("NPUSHMEM_NPU_SCHEDULE"));
    EXPECT_TRUE(started.value()->finish().ok());
}

TEST_F(RuntimeTest, AnUnknownKindOfNpuReportIsRefused) {
    auto started = start(
        {{"NPUSHMEM_SYMMETRIC_SIZE", "1M"}, {"NPUSHMEM_NPU_CHECK", "1"}, {"NPUSHMEM_NPU_CHECK_REPORT", "race.png"}});
    ASSERT_TRUE(started.ok());
    EXPECT_THAT(started.value()->npu().device().status().message(),
                HasSubstr("NPUSHMEM_NPU_CHECK_REPORT: 'race.png': expected a path that ends in .svg, .txt or .json"));
    EXPECT_TRUE(started.value()->finish().ok());
}

TEST_F(RuntimeTest, ADeviceFileDescribesTheNpu) {
    const std::string path = ::testing::TempDir() + "runtime_test_device.txt";
    const auto device_of = [&](const char* file) {
        std::ofstream(path) << file;
        sources.bootstrap = std::make_unique<NiceMock<MockBootstrap>>();
        sources.transport = std::make_unique<NiceMock<MockTransport>>();
        alone(*sources.bootstrap);
        mapping(*sources.transport);
        auto started =
            start({{"NPUSHMEM_SYMMETRIC_SIZE", "1M"}, {"NPUSHMEM_NPU_BLOCKS", "3"}, {"NPUSHMEM_NPU_DEVICE", path}});
        EXPECT_TRUE(started.ok());
        const auto device = started.value()->npu().device();
        const std::string result =
            device.ok() ? device.value()->config().text().substr(0, 11) : device.status().message();
        EXPECT_TRUE(started.value()->finish().ok());
        return result;
    };
    EXPECT_EQ(device_of("blocks = 5\nflag_ids = 4\n"), "blocks = 5 ");
    EXPECT_EQ(device_of("flag_ids = 4\n"), "blocks = 3 ");
    EXPECT_THAT(device_of("flag_ids = 9\n"), HasSubstr("device file, line 1: flag_ids: '9': expected 1 to 6"));
    EXPECT_THAT(device_of("gm_bytes = 4096\n"), HasSubstr("NPUSHMEM_NPU_DEVICE: gm_bytes is 4096, but the symmetric"));
    static_cast<void>(std::remove(path.c_str()));
}

TEST(PeerAddressTable, FindsByTransportAndSurvivesGarbage) {
    NiceMock<MockBootstrap> bootstrap;
    alone(bootstrap);
    const std::vector<EndpointRecord> contacts{{11, Bytes(3, std::byte{1}), Bytes(5, std::byte{2})},
                                               {12, {}, Bytes(1, std::byte{3})}};
    auto gathered = GatheredBytes::gather(bootstrap, pack_endpoints(contacts));
    ASSERT_TRUE(gathered.ok());
    PeerAddressTable book(std::move(gathered).value(), 1);
    EXPECT_EQ(book.address(11, 0).size(), 3U);
    EXPECT_EQ(book.handle(11, 0).size(), 5U);
    EXPECT_EQ(book.handle(12, 0)[0], std::byte{3});
    EXPECT_FALSE(book.has(13, 0));
    EXPECT_FALSE(book.has(11, 1)) << "there is one PE";
    EXPECT_FALSE(book.has(11, -1));
    EXPECT_FALSE(PeerAddressTable().has(11, 0));

    const Bytes copy(book.gathered().view().begin(), book.gathered().view().end());
    book.gathered().use_copy(copy);
    EXPECT_EQ(book.handle(11, 0).size(), 5U);
    EXPECT_EQ(book.handle(12, 0)[0], std::byte{3});
    EXPECT_GE(book.handle(12, 0).data(), copy.data());

    Bytes damaged = pack_endpoints(contacts);
    damaged[8] = std::byte{0xff};  // a length beyond the end
    auto bad = GatheredBytes::gather(bootstrap, damaged);
    const PeerAddressTable suspicious(std::move(bad).value(), 1);
    EXPECT_FALSE(suspicious.has(12, 0));
}

}  // namespace
}  // namespace npushmem
