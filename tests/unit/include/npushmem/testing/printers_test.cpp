// SPDX-License-Identifier: BSD-3-Clause
#include "npushmem/testing/printers.hpp"

#include <gtest/gtest.h>

#include <cstdio>

namespace npushmem {
namespace {

using ::testing::PrintToString;

TEST(Printers, NameCodesAndFailures) {
    EXPECT_EQ(PrintToString(Code::range), "range (-101)");
    EXPECT_EQ(PrintToString(Code::ok), "ok (0)");
    EXPECT_EQ(PrintToString(static_cast<Code>(-7)), "unknown (-7)");
    EXPECT_EQ(PrintToString(Status{}), "ok (0)");
    EXPECT_EQ(PrintToString(Status{Code::timeout, "no answer"}), "timeout (-402): no answer");
    EXPECT_EQ(PrintToString(Result<int>(3)), "a value");
    EXPECT_EQ(PrintToString(Result<int>(Status{Code::memory, "full"})), "no value: memory (-500): full");
}

TEST(Printers, NameCapabilitiesAndReach) {
    EXPECT_EQ(PrintToString(Capabilities{}), "no capabilities");
    EXPECT_EQ(PrintToString(Capabilities{NPUSHMEM_CAP_MAP | NPUSHMEM_CAP_PUT_SIGNAL}), "map, put_signal");
    EXPECT_EQ(PrintToString(Capabilities{NPUSHMEM_CAP_TARGET_PROGRESS | NPUSHMEM_CAP_PUT_STRIDED}),
              "target_progress, put_strided");
    EXPECT_EQ(PrintToString(Capabilities{NPUSHMEM_CAP_GET | std::uint64_t{1} << 40}), "get, 0x10000000000");
    EXPECT_EQ(PrintToString(Capabilities{std::uint64_t{1} << 40}), "0x10000000000");
    EXPECT_EQ(PrintToString(Reach{NPUSHMEM_CAP_PUT, 0, 0, "same host"}), "reach{put; \"same host\"}");
    EXPECT_EQ(PrintToString(Reach{NPUSHMEM_CAP_ATOMIC, 0, 0xfff, "NIC"}),
              "reach{atomic; atomic_32 0x0, atomic_64 0xfff; \"NIC\"}");
}

TEST(Printers, ShowThePlaceOfOperations) {
    npushmem_rma rma{};
    rma.pe = 3;
    rma.remote = 7;
    rma.offset = 64;
    rma.bytes = 8;
    EXPECT_EQ(PrintToString(rma), "rma{PE 3, remote 7 + 64, local 0, 8 bytes}");
    npushmem_atomic atomic{};
    atomic.pe = 1;
    atomic.operation = NPUSHMEM_ATOMIC_COMPARE_SWAP;
    atomic.width = 4;
    atomic.operand = 5;
    atomic.compare = 6;
    EXPECT_EQ(PrintToString(atomic),
              "atomic{compare_swap, 4 bytes, PE 1, remote 0 + 0, operand 5, compare 6, result 0}");
    atomic.operation = 77;
    EXPECT_EQ(PrintToString(atomic), "atomic{unknown operation 77, 4 bytes, PE 1, remote 0 + 0, operand 5, result 0}");
    npushmem_put_signal signal{};
    signal.data = rma;
    signal.signal = 2;
    signal.signal_remote = 9;
    signal.signal_offset = 128;
    signal.operation = NPUSHMEM_SIGNAL_ADD;
    EXPECT_EQ(PrintToString(signal), "put_signal{" + PrintToString(rma) + ", add signal 2, remote 9 + 128}");
    EXPECT_EQ(PrintToString(npushmem_put_strided{rma, 3, 24, 8}),
              "put_strided{" + PrintToString(rma) + ", 3 times, strides 24 remote, 8 local}");
}

TEST(Printers, ShowPeersAndEvents) {
    npushmem_peer peer{};
    peer.pe = 2;
    peer.process_id = 40;
    peer.host = {1, 2, -1, 1000};
    EXPECT_EQ(PrintToString(peer), "peer{PE 2, process 40, host{machine 1, space 2, user 1000}, no address}");
    peer.host.emulated = 3;
    peer.host_name = "a";
    peer.address = &peer;
    peer.address_bytes = 5;
    EXPECT_EQ(PrintToString(peer),
              "peer{PE 2, process 40, host{machine 1, space 2, user 1000, emulated host 3}, "
              "host name \"a\", address of 5 bytes}");
    npushmem_event event{};
    event.code = NPUSHMEM_E_PEER_DEAD;
    event.pe = 4;
    std::snprintf(event.message, sizeof event.message, "gone");
    EXPECT_EQ(PrintToString(event), "event{peer dead (-401), PE 4, \"gone\"}");
    event.pe = -1;
    EXPECT_EQ(PrintToString(event), "event{peer dead (-401), \"gone\"}");
}

}  // namespace
}  // namespace npushmem
