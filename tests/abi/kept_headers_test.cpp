// SPDX-License-Identifier: BSD-3-Clause
// Plugins in C and C++ that were compiled against the headers of each published version load and work in this runtime,
// and those of this version work in a runtime of an earlier one.
#include <gmock/gmock.h>

#include <array>
#include <cstddef>
#include <cstring>

#include "core/plugin/loader.hpp"
#include "core/plugin/opened_plugin.hpp"
#include "npushmem/plugin/decorator_transport.hpp"
#include "npushmem/testing/fake_host.hpp"
#include "npushmem/testing/mocks.hpp"

namespace npushmem {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

struct KeptPlugin {
    const char* language;
    int minor;            // of the transport table
    int bootstrap_minor;  // in the same headers

    [[nodiscard]] std::string name() const { return std::string(language) + "_1_" + std::to_string(minor); }
};

void PrintTo(const KeptPlugin& plugin, std::ostream* out) { *out << plugin.name(); }

class KeptHeaders : public ::testing::TestWithParam<KeptPlugin> {
protected:
    static PluginFinder kept_plugins() { return PluginFinder({ABI_KEPT_PLUGIN_DIR}); }
    std::unique_ptr<OpenedTransport> open(std::uint16_t& minor) {
        auto loaded = load_transport(kept_plugins(), GetParam().name());
        EXPECT_TRUE(loaded.ok()) << loaded.status().message();
        if (!loaded.ok()) return nullptr;
        minor = loaded.value()->minor();
        npushmem_transport_params params{};
        params.struct_size = sizeof params;
        params.pe = 3;
        params.npes = 4;
        auto opened = open_transport(loaded.value(), host_.table(), params);
        EXPECT_TRUE(opened.ok()) << opened.status().message();
        return opened.ok() ? std::move(opened).value() : nullptr;
    }
    static npushmem_peer peer(int pe) {
        npushmem_peer out{};
        out.struct_size = sizeof out;
        out.pe = pe;
        return out;
    }

    fakes::FakeHost host_;
};

TEST_P(KeptHeaders, ATransportOpensAndDescribesItself) {
    std::uint16_t minor = 0;
    const auto transport = open(minor);
    ASSERT_NE(transport, nullptr);
    EXPECT_EQ(minor, GetParam().minor);
    ASSERT_FALSE(host_.lines().empty());
    EXPECT_EQ(host_.lines().back().text, "kept") << "the default of its variable";
    const bool first = GetParam().minor >= 1;
    const auto devices = transport->devices();
    ASSERT_TRUE(devices.ok()) << devices.status().message();
    ASSERT_EQ(devices.value().size(), 1U);
    EXPECT_EQ(text_of(devices.value()[0].name), "kept_0");
    EXPECT_EQ(devices.value()[0].bits_per_second, 64'000'000'000U);
    EXPECT_EQ(devices.value()[0].rail, first ? 4U : 0U);
    EXPECT_TRUE(transport->use_devices(std::array{0U}).ok());
    EXPECT_THAT(transport->use_devices(std::array{1U}).message(), HasSubstr("no such device"));
    EXPECT_TRUE(transport->address().value().empty());
    const Reach own = transport->reach(peer(3));
    EXPECT_EQ(own.capabilities, NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET);
    EXPECT_EQ(own.why, "the PE itself");
    EXPECT_EQ(own.latency_ns, first ? 1500U : 0U);
    EXPECT_EQ(own.bytes_per_second, first ? 8'000'000'000U : 0U);
    EXPECT_FALSE(transport->reach(peer(1)).reachable());
    EXPECT_TRUE(transport->connect(peer(3)).ok());
}

TEST_P(KeptHeaders, ATransportTransfers) {
    std::uint16_t minor = 0;
    const auto transport = open(minor);
    ASSERT_NE(transport, nullptr);
    std::array<std::uint64_t, 8> words{};
    npushmem_memory memory{};
    memory.struct_size = sizeof memory;
    memory.base = words.data();
    memory.bytes = sizeof words;
    const auto registered = transport->register_memory(memory);
    ASSERT_TRUE(registered.ok()) << registered.status().message();
    const auto remote = transport->import_memory(3, registered.value().handle);
    ASSERT_TRUE(remote.ok()) << remote.status().message();
    EXPECT_EQ(transport->import_memory(3, {}).status().code(), Code::protocol);
    const std::uint64_t queue = transport->create_queue().value();
    std::uint64_t value = 0x1122334455667788;
    std::uint64_t token = 0;
    npushmem_rma op{3, 0, remote.value(), 16, &value, sizeof value};
    EXPECT_EQ(transport->put(queue, op, &token), Code::ok);
    EXPECT_EQ(transport->test(queue, token), Code::ok);
    EXPECT_EQ(transport->quiet(queue), Code::ok);
    EXPECT_EQ(words[2], value);
    std::uint64_t seen = 0;
    op.local = &seen;
    EXPECT_EQ(transport->get(queue, op, &token), Code::ok);
    EXPECT_EQ(seen, value);
    op.offset = sizeof words;
    EXPECT_EQ(transport->put(queue, op, nullptr), Code::range);
    EXPECT_EQ(transport->fence(queue), Code::ok);
    EXPECT_EQ(transport->atomic(queue, {}, nullptr), Code::unsupported);
    EXPECT_EQ(transport->progress(), Code::again);
    npushmem_event event{};
    EXPECT_EQ(transport->poll_event(event), Code::ok);
    EXPECT_EQ(event.code, NPUSHMEM_E_TIMEOUT);
    EXPECT_EQ(text_of(event.message), "an event");
    EXPECT_EQ(transport->forget(3), Code::ok);
    EXPECT_EQ(transport->forget(7), GetParam().minor >= 1 ? Code::argument : Code::ok) << "from 1.1 on it is called";
    int reports = 0;
    const auto count = [](void* context) { ++*static_cast<int*>(context); };
    EXPECT_EQ(transport->report_arrivals(count, &reports), GetParam().minor >= 2 ? Code::ok : Code::unsupported);
    EXPECT_EQ(reports, GetParam().minor >= 2 ? 1 : 0);
    EXPECT_EQ(transport->release_memory(remote.value()), Code::ok);
    EXPECT_EQ(transport->deregister_memory(registered.value().region), Code::ok);
    EXPECT_EQ(transport->quiet(queue + 1), Code::argument);
    EXPECT_EQ(transport->destroy_queue(queue), Code::ok);
}

TEST_P(KeptHeaders, ABootstrapLoadsAndGathers) {
    auto loaded = load_bootstrap(kept_plugins(), GetParam().name());
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    EXPECT_EQ(loaded.value()->minor(), GetParam().bootstrap_minor);
    npushmem_bootstrap_params params{};
    params.struct_size = sizeof params;
    npushmem_error why{};
    EXPECT_EQ(loaded.value()->table().recognise(&host_.table(), &params, &why), NPUSHMEM_RECOGNISED_LAUNCHER);
    EXPECT_EQ(text_of(why.message), "a sign");
    std::array<std::byte, NPUSHMEM_UNIQUEID_BYTES> id{};
    EXPECT_TRUE(make_uniqueid(*loaded.value(), host_.table(), id).ok());
    EXPECT_THAT(id, Each(std::byte{9}));
    EXPECT_TRUE(report_ended_rank(*loaded.value(), host_.table(), id, 0, 1, "PE 0 ended").ok());
    params.nranks = 2;
    EXPECT_THAT(open_bootstrap(loaded.value(), host_.table(), params).status().message(), HasSubstr("one rank"));
    params.nranks = 1;
    auto job = open_bootstrap(loaded.value(), host_.table(), params);
    ASSERT_TRUE(job.ok()) << job.status().message();
    EXPECT_EQ(job.value()->nranks(), 1);
    const std::array sent{std::byte{1}, std::byte{2}};
    std::array<std::byte, 2> received{};
    EXPECT_TRUE(job.value()->allgather(sent, received).ok());
    EXPECT_EQ(received, sent);
    EXPECT_TRUE(job.value()->barrier().ok());
    EXPECT_TRUE(job.value()->check().ok());
    job.value()->abort("the test ends");
    EXPECT_EQ(job.value()->check().code(), Code::aborted);
    EXPECT_EQ(job.value()->barrier().message(), "the job was aborted");
}

INSTANTIATE_TEST_SUITE_P(EveryVersion, KeptHeaders,
                         ::testing::Values(KeptPlugin{"c", 0, 2}, KeptPlugin{"cpp", 0, 2}, KeptPlugin{"c", 1, 2},
                                           KeptPlugin{"cpp", 1, 2}, KeptPlugin{"c", 2, 2}, KeptPlugin{"cpp", 2, 2}),
                         [](const auto& plugin) { return plugin.param.name(); });

// The structures of a host of version 1.0, with memory behind them that a newer plugin must not touch.
constexpr std::size_t reach_bytes_1_0 = offsetof(npushmem_reach, latency_ns);
constexpr std::size_t device_bytes_1_0 = offsetof(npushmem_device, rail);

TEST_P(KeptHeaders, AnEarlierHostsStructuresAreNotExceeded) {
    std::uint16_t minor = 0;
    const auto transport = open(minor);
    ASSERT_NE(transport, nullptr);
    const npushmem_transport_v1& table = transport->table();
    npushmem_reach reach;
    std::memset(&reach, 0x5a, sizeof reach);
    reach.struct_size = reach_bytes_1_0;
    const npushmem_peer own = peer(3);
    ASSERT_EQ(table.reach(transport->self(), &own, &reach), NPUSHMEM_OK);
    EXPECT_EQ(reach.struct_size, reach_bytes_1_0);
    EXPECT_EQ(reach.capabilities, NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET);
    EXPECT_EQ(text_of(reach.why), "the PE itself");
    EXPECT_EQ(reach.latency_ns, 0x5a5a5a5a5a5a5a5aU);
    EXPECT_EQ(reach.bytes_per_second, 0x5a5a5a5a5a5a5a5aU);
    npushmem_device device;
    std::memset(&device, 0x5a, sizeof device);
    std::uint32_t count = 1;
    npushmem_error error{};
    ASSERT_EQ(table.devices(transport->self(), &device, device_bytes_1_0, &count, &error), NPUSHMEM_OK);
    EXPECT_EQ(text_of(device.name), "kept_0");
    EXPECT_EQ(device.rail, 0x5a5a5a5aU);
}

// A host of version 1.0 passes a decorator the table of its inner transport, which ends before `forget`.
TEST(EarlierHost, ADecoratorCallsNoFunctionThatTheInnerTableLacks) {
    ::testing::NiceMock<MockTransport> inner;
    const fakes::InnerTable full(inner);
    npushmem_transport_v1 table = *full.params().inner;
    table.struct_size = offsetof(npushmem_transport_v1, forget);
    std::memset(static_cast<void*>(&table.forget), 0x5a, sizeof table - table.struct_size);
    npushmem_transport_params params = full.params();
    params.inner = &table;
    DecoratorTransport decorator(params, 0);
    EXPECT_CALL(inner, forget(::testing::_)).Times(0);
    EXPECT_EQ(decorator.forget(1), Code::ok);
    EXPECT_CALL(inner, put_strided(::testing::_, ::testing::_, ::testing::_)).Times(0);
    EXPECT_EQ(decorator.put_strided(1, {}, nullptr), Code::unsupported);
    EXPECT_CALL(inner, report_arrivals(::testing::_, ::testing::_)).Times(0);
    EXPECT_EQ(decorator.report_arrivals(nullptr, nullptr), Code::unsupported);
    ::testing::Mock::VerifyAndClearExpectations(&inner);
    DecoratorTransport whole(full.params(), 0);
    EXPECT_CALL(inner, forget(1)).WillOnce(::testing::Return(Code::argument));
    EXPECT_EQ(whole.forget(1), Code::argument);
    EXPECT_CALL(inner, put_strided(::testing::_, ::testing::_, ::testing::_)).WillOnce(::testing::Return(Code::again));
    EXPECT_EQ(whole.put_strided(1, {}, nullptr), Code::again);
    EXPECT_CALL(inner, report_arrivals(::testing::_, &inner)).WillOnce(::testing::Return(Code::state));
    EXPECT_EQ(whole.report_arrivals(nullptr, &inner), Code::state);
}

}  // namespace
}  // namespace npushmem
