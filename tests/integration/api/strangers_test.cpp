// SPDX-License-Identifier: BSD-3-Clause
// Processes that do not belong to a job but can reach its sockets.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/poller.hpp"
#include "tests/integration/run/job_under_test.hpp"
#ifdef API_TEST_LIBFABRIC
#include "transports/libfabric/libfabric_wire.hpp"
#endif

namespace npushmem::api_test {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::Field;
using ::testing::IsEmpty;
using ::testing::Not;

struct Listener {
    std::string address;
    std::uint16_t port = 0;
};

std::set<unsigned long> sockets_of(int process) {
    std::set<unsigned long> out;
    for (const auto& each : std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/fd")) {
        struct stat facts {};
        if (::stat(each.path().c_str(), &facts) == 0 && S_ISSOCK(facts.st_mode)) out.insert(facts.st_ino);
    }
    return out;
}

// An address of IPv6 appears as its digits.
std::string address_of(const std::string& digits) {
    in_addr address{};
    if (digits.size() != 2 * sizeof address) return digits;
    address.s_addr = static_cast<in_addr_t>(std::stoul(digits, nullptr, 16));
    std::array<char, INET_ADDRSTRLEN> text{};
    return ::inet_ntop(AF_INET, &address, text.data(), text.size());
}

// The TCP sockets on which a process listens.
std::vector<Listener> listeners_of(int process) {
    constexpr unsigned listening = 0x0a;
    const auto own = sockets_of(process);
    std::vector<Listener> out;
    for (const char* table : {"tcp", "tcp6"}) {
        std::ifstream file("/proc/" + std::to_string(process) + "/net/" + table);
        std::string line;
        std::getline(file, line);  // the headings
        while (std::getline(file, line)) {
            std::array<char, 33> digits{};
            unsigned port = 0;
            unsigned state = 0;
            unsigned long socket = 0;
            const int fields = std::sscanf(line.c_str(), "%*s %32[0-9A-F]:%x %*s %x %*s %*s %*s %*s %*s %lu",
                                           digits.data(), &port, &state, &socket);
            if (fields == 4 && state == listening && own.contains(socket))
                out.push_back({address_of(digits.data()), static_cast<std::uint16_t>(port)});
        }
    }
    return out;
}

sockaddr_in address_of(const Listener& listener) {
    sockaddr_in out{};
    out.sin_family = AF_INET;
    out.sin_port = htons(listener.port);
    EXPECT_EQ(::inet_pton(AF_INET, listener.address.c_str(), &out.sin_addr), 1) << listener.address;
    return out;
}

// A connection that sends what no protocol expects.
FileDescriptor connect_and_send(const Listener& to, const std::string& bytes) {
    FileDescriptor connection(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in address = address_of(to);
    // The other side may close the connection at any time.
    if (::connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
        (void)::send(connection.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    return connection;
}

// Two PEs of different hosts over the loopback interface. They communicate, PE 0 waits for the test, and they
// communicate again.
class WaitingJob {
public:
    explicit WaitingJob(std::string transport) : transport_(std::move(transport)) {
        std::array<int, 2> ends{-1, -1};
        EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
        waiting_ = FileDescriptor(ends[0]);
        go_ = FileDescriptor(ends[1]);
    }
    [[nodiscard]] run::JobSettings settings() const {
        run::JobSettings out;
        out.with_bootstrap = true;
        out.input = waiting_.get();  // of PE 0
        out.environment = {"NPUSHMEM_REMOTE_TRANSPORT=" + transport_,
                           "NPUSHMEM_SYMMETRIC_SIZE=16M",
                           "NPUSHMEM_TCP_IFNAME=lo",
                           "NPUSHMEM_TCP_PEER_TIMEOUT=0",
                           "NPUSHMEM_LIBFABRIC_DOMAIN=lo",
                           "NPUSHMEM_UCX_NET_DEVICES=lo",
                           "NPUSHMEM_LIBFABRIC_PEER_TIMEOUT=0",
                           "NPUSHMEM_UCX_PEER_TIMEOUT=0",
                           "SCENARIO_GO=0"};
        return out;
    }
    static std::vector<std::string> words() {
        return {"-n",      "2",    "--nodes",      "2",    std::string(API_TEST_FOLDER) + "/api_scenario",
                "init",    "ring", "report=ready", "hold", "ring",
                "finalize"};
    }
    // Ends the wait of PE 0.
    void go() { go_.reset(); }

private:
    std::string transport_;
    FileDescriptor waiting_;
    FileDescriptor go_;
};

class StrangersOfRemoteTransport : public ::testing::TestWithParam<std::string> {
protected:
    WaitingJob waiting_{GetParam()};
};

TEST_P(StrangersOfRemoteTransport, ReachTheChosenInterfaceOnly) {
    run::JobUnderTest job(WaitingJob::words(), waiting_.settings());
    for (const run::Report& report : job.reports(2))
        EXPECT_THAT(listeners_of(report.pid), AllOf(Not(IsEmpty()), Each(Field(&Listener::address, "127.0.0.1"))));
    waiting_.go();
    EXPECT_EQ(job.end(), 0) << job.errors();
}

TEST_P(StrangersOfRemoteTransport, SendNonsenseWithoutEffect) {
    run::JobUnderTest job(WaitingJob::words(), waiting_.settings());
    auto processes = job.reports(2);
    processes.push_back({-1, "launcher", job.launcher()});
    std::vector<FileDescriptor> kept;
    for (const run::Report& report : processes)
        for (const Listener& listener : listeners_of(report.pid))
            for (std::size_t bytes = 0; bytes < 200; ++bytes) {
                FileDescriptor connection = connect_and_send(listener, std::string(bytes, 'W'));
                if (bytes % 5 == 0) kept.push_back(std::move(connection));
            }
    EXPECT_THAT(kept, Not(IsEmpty()));
    waiting_.go();
    EXPECT_EQ(job.end(), 0) << job.errors();
}

#ifdef API_TEST_LIBFABRIC
// Speaks the library's protocol, as a PE of an older job does whose peer's port was reused.
class LibfabricStranger {
public:
    explicit LibfabricStranger(const std::vector<Listener>& listeners) : count_(static_cast<int>(listeners.size())) {
        auto chosen = libfabric::choose_provider({"tcp;ofi_rxm", "lo"}, libfabric::query_provider);
        EXPECT_TRUE(chosen.ok()) << chosen.status().message();
        auto wire = libfabric::LibfabricWire::open(std::move(chosen).value(), count_);
        EXPECT_TRUE(wire.ok()) << wire.status().message();
        wire_ = std::move(wire).value();
        for (int i = 0; i < count_; ++i) {
            const sockaddr_in address = address_of(listeners[static_cast<std::size_t>(i)]);
            EXPECT_TRUE(wire_->add_peer(i, std::as_bytes(std::span(&address, 1))).ok());
        }
    }
    // Sends once to each listener that has got no message yet and accepts one now.
    void send(std::span<const std::byte> message) {
        (void)wire_->progress(nobody_);
        for (int i = 0; i < count_; ++i)
            if (!sent_.contains(i) && wire_->send({i, 0}, message, {}) == Code::ok) sent_.insert(i);
    }

private:
    struct Nobody final : network::WireListener {
        void completed(network::WireContext& /*context*/, Code /*code*/, const std::string& /*why*/) override {}
        void arrived(std::span<const std::byte> /*message*/) override {}
        void lost(network::LaneId /*lane_id*/, Code /*code*/, const std::string& /*why*/) override {}
    };

    int count_;
    std::unique_ptr<network::Wire> wire_;
    Nobody nobody_;
    std::set<int> sent_;
};

TEST(StrangerOfRemoteTransport, SendsUnsignedMessagesWithoutEffect) {
    WaitingJob waiting("libfabric");
    run::JobUnderTest job(WaitingJob::words(), waiting.settings());
    std::vector<Listener> listeners;
    for (const run::Report& report : job.reports(2))
        std::ranges::copy(listeners_of(report.pid), std::back_inserter(listeners));
    LibfabricStranger stranger(listeners);
    const Bytes message(100, std::byte{0x57});
    EXPECT_TRUE(run::eventually([&] {
        stranger.send(message);
        return job.errors().find("that no PE of this job has sent arrived over libfabric") != std::string::npos;
    })) << "no message has reached the transport: "
        << job.errors();
    waiting.go();
    EXPECT_EQ(job.end(), 0) << job.errors();
}
#endif

std::vector<std::string> tcp_transports() {
    std::vector<std::string> out{"tcp"};
#ifdef API_TEST_LIBFABRIC
    out.emplace_back("libfabric");
#endif
#ifdef API_TEST_UCX
    out.emplace_back("ucx");
#endif
    return out;
}

INSTANTIATE_TEST_SUITE_P(Network, StrangersOfRemoteTransport, ::testing::ValuesIn(tcp_transports()),
                         [](const auto& parameter) { return parameter.param; });

}  // namespace
}  // namespace npushmem::api_test
