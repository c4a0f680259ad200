// SPDX-License-Identifier: BSD-3-Clause
#include "transports/hccs/hccs_transport.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include "npushmem/testing/fake_host.hpp"
#include "tests/contract/pe.hpp"

namespace npushmem {
namespace {

using contract::Pe;
using contract::SharedFile;
using contract::Slice;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::uint64_t slice_bytes = 64 * 1024;

// Two connected PEs in this process.
class Hccs : public ::testing::Test {
protected:
    void set(const char* name, const char* value) { host_.set(name, value); }

    std::unique_ptr<Pe> make(int pe) {
        npushmem_transport_params params{};
        params.struct_size = sizeof params;
        params.pe = pe;
        params.npes = 2;
        params.local_index = pe;
        params.process_id = ::getpid();
        auto opened = HccsTransport::open(Host(&host_.table(), "hccs"), params);
        EXPECT_TRUE(opened.ok()) << opened.status().message();
        if (!opened.ok()) return nullptr;
        return std::make_unique<Pe>(
            pe, std::move(opened).value(),
            std::make_unique<Slice>(std::make_shared<const SharedFile>(slice_bytes), 0, slice_bytes));
    }
    void connect_all() {
        pes_[0] = make(0);
        pes_[1] = make(1);
        const Pe::ConnectInfo infos[] = {pes_[0]->publish().value(), pes_[1]->publish().value()};
        for (auto& from : pes_)
            for (int to = 0; to < 2; ++to) {
                npushmem_peer peer{};
                peer.pe = to;
                const Status connected = from->connect(peer, infos[to]);
                EXPECT_TRUE(connected.ok()) << connected.message();
            }
    }
    Pe& origin() { return *pes_[0]; }
    std::string event() {
        npushmem_event out{};
        out.struct_size = sizeof out;
        if (origin().transport().poll_event(out) != Code::ok) return {};
        EXPECT_EQ(out.pe, 1);
        EXPECT_EQ(out.code, static_cast<std::int32_t>(Code::unreachable));
        return out.message;
    }

    fakes::FakeHost host_;
    std::unique_ptr<Pe> pes_[2];
};

TEST_F(Hccs, NamesTheLink) {
    connect_all();
    EXPECT_EQ(origin().reach(1).why, "HCCS link 0-1");
    EXPECT_TRUE(origin().reach(1).has(NPUSHMEM_CAP_MAP));
    EXPECT_EQ(origin().reach(0).why, "NPU 0 itself");
}

TEST_F(Hccs, NamesTheSwitch) {
    set("HCCS_LINKS", "0,1");
    connect_all();
    EXPECT_EQ(origin().reach(1).why, "the switch between NPU 0 and NPU 1");
}

TEST_F(Hccs, TimedLinksAreNotMappedAndTakeTheirTime) {
    set("HCCS_TIMED", "1");
    set("HCCS_LATENCY", "3ms");
    connect_all();
    EXPECT_FALSE(origin().reach(1).has(NPUSHMEM_CAP_MAP));
    EXPECT_TRUE(origin().reach(0).has(NPUSHMEM_CAP_MAP));
    EXPECT_FALSE(origin().transport().map(origin().remote(1)).ok());
    const auto begin = std::chrono::steady_clock::now();
    const std::uint64_t value = 42;
    ASSERT_EQ(origin().put(1, 0, &value, 8), Code::ok);
    ASSERT_EQ(origin().quiet(), Code::ok);
    EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(3));
    EXPECT_EQ(static_cast<std::uint8_t>(pes_[1]->memory()[0]), 42);
}

TEST_F(Hccs, EnginesProgressWithoutTheCaller) {
    connect_all();
    const std::uint64_t value = 42;
    std::uint64_t token = 0;
    npushmem_put_signal op{};
    op.data = origin().rma(1, 128, const_cast<std::uint64_t*>(&value), 8);
    op.signal_remote = origin().remote(1);
    op.signal = 1;
    ASSERT_EQ(origin().transport().put_signal(origin().queue(), op, &token), Code::ok);
    auto* const signal = reinterpret_cast<std::uint64_t*>(pes_[1]->memory().data());
    contract::Deadline deadline(std::chrono::seconds(60));
    // Acquire: pairs with the engine's release of the signal.
    while (std::atomic_ref(*signal).load(std::memory_order_acquire) != 1 && !deadline.expired()) ::usleep(100);
    EXPECT_FALSE(deadline.expired()) << "nobody carried it out";
    EXPECT_EQ(static_cast<std::uint8_t>(pes_[1]->memory()[128]), 42);
    EXPECT_EQ(origin().wait(token), Code::ok);
}

TEST_F(Hccs, AFailedLinkMakesThePeerUnreachable) {
    set("HCCS_FAIL", "1-0");
    connect_all();
    EXPECT_FALSE(origin().reach(1).reachable());
    EXPECT_THAT(origin().reach(1).why,
                AllOf(HasSubstr("HCCS link 0-1"), HasSubstr("NPU 1 of PE 1"), HasSubstr("is down")));
}

TEST_F(Hccs, ALinkThatFailsLaterFailsTheOperationAndNamesItself) {
    set("HCCS_FAIL", "0-1@2");
    connect_all();
    EXPECT_FALSE(origin().reach(1).has(NPUSHMEM_CAP_MAP));
    const std::uint64_t value = 42;
    for (int i = 0; i < 2; ++i) ASSERT_EQ(origin().put(1, 0, &value, 8), Code::ok);
    ASSERT_EQ(origin().quiet(), Code::ok);
    EXPECT_EQ(event(), "");
    std::uint64_t token = 0;
    ASSERT_EQ(origin().put(1, 64, &value, 8, &token), Code::ok);
    EXPECT_EQ(origin().wait(token), Code::unreachable);
    EXPECT_EQ(event(),
              "HCCS link 0-1 between PE 0 (NPU 0) and PE 1 (NPU 1) is down, as NPUSHMEM_HCCS_FAIL requests: a put of 8 "
              "bytes was not carried out");
    EXPECT_EQ(pes_[1]->memory()[64], std::byte{0});
    EXPECT_EQ(origin().quiet(), Code::ok) << "reported once";
    ASSERT_EQ(origin().put(0, 64, &value, 8), Code::ok);
    EXPECT_EQ(origin().quiet(), Code::ok) << "other ways stay";
}

TEST_F(Hccs, AnUnlinkedNpuIsRejected) {
    set("HCCS_LINKS", "1-7");
    npushmem_transport_params params{};
    params.struct_size = sizeof params;
    params.process_id = ::getpid();
    const auto opened = HccsTransport::open(Host(&host_.table(), "hccs"), params);
    EXPECT_EQ(opened.status().code(), Code::config);
    EXPECT_THAT(opened.status().message(), HasSubstr("PE 0 drives NPU 0 of its server, which is in no group"));
}

TEST_F(Hccs, APeerWithoutTheTransportIsNotReached) {
    const auto alone = make(0);
    npushmem_peer peer{};
    peer.pe = 1;
    EXPECT_THAT(alone->transport().reach(peer).why, HasSubstr("has not opened"));
    const std::uint64_t wrong = 1;
    peer.address = &wrong;
    peer.address_bytes = sizeof wrong;
    EXPECT_THAT(alone->transport().reach(peer).why, HasSubstr("not an address of hccs"));
    EXPECT_FALSE(alone->transport().reach(peer).reachable());
}

}  // namespace
}  // namespace npushmem
