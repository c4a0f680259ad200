// SPDX-License-Identifier: BSD-3-Clause
// The contract with a process per PE: tests what one process cannot test, such as access to another process's memory.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <array>
#include <cstring>

#include "tests/contract/fabric.hpp"
#include "tests/contract/patterns.hpp"

namespace npushmem::contract {
namespace {

constexpr int npes = 3;
constexpr std::uint64_t bytes_per_pe = 1 << 20;
constexpr int response_timeout_ms = 30'000;  // a process that has not responded by then is considered stuck

// Fixed size, so that one read is one message.
struct Message {
    std::uint32_t address_bytes;
    std::uint32_t handle_bytes;
    std::int32_t process;
    std::int32_t reserved;
    std::array<std::byte, NPUSHMEM_ADDRESS_MAX> address;
    std::array<std::byte, NPUSHMEM_HANDLE_MAX> handle;
};

bool wait_readable(int socket) {
    pollfd wanted{socket, POLLIN, 0};
    return ::poll(&wanted, 1, response_timeout_ms) == 1;
}

// One end of the parent's channel to a child.
class ControlChannel {
public:
    explicit ControlChannel(int socket) : socket_(socket) {}
    ControlChannel(ControlChannel&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
    ControlChannel(const ControlChannel&) = delete;
    ControlChannel& operator=(const ControlChannel&) = delete;
    ~ControlChannel() {
        if (socket_ >= 0) ::close(socket_);
    }
    bool send(const void* data, std::size_t bytes) const {
        return ::send(socket_, data, bytes, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes);
    }
    bool receive(void* data, std::size_t bytes) const {
        return wait_readable(socket_) && ::recv(socket_, data, bytes, 0) == static_cast<ssize_t>(bytes);
    }

private:
    int socket_;
};

// The child's side of the gather and barrier that the parent performs.
class Group {
public:
    explicit Group(const ControlChannel& channel) : channel_(channel) {}
    bool exchange(const Message& mine, std::array<Message, npes>& all) const {
        return channel_.send(&mine, sizeof mine) && channel_.receive(&all, sizeof all);
    }
    [[nodiscard]] bool barrier() const {
        std::array<Message, npes> nothing{};
        return exchange(Message{}, nothing);
    }

private:
    const ControlChannel& channel_;
};

// The parent's side: `rounds` times, receives a message from each child and sends all of them to each.
bool serve(const std::vector<ControlChannel>& channels, int rounds) {
    for (int round = 0; round < rounds; ++round) {
        std::array<Message, npes> all{};
        for (std::size_t i = 0; i < channels.size(); ++i)
            if (!channels[i].receive(&all[i], sizeof all[i])) return false;
        for (const auto& channel : channels)
            if (!channel.send(&all, sizeof all)) return false;
    }
    return true;
}

constexpr int rounds_of_a_child = 3;

Message info_message(const Pe::ConnectInfo& info) {
    Message out{};
    out.process = ::getpid();
    out.address_bytes = static_cast<std::uint32_t>(info.address.size());
    out.handle_bytes = static_cast<std::uint32_t>(info.handle.size());
    std::copy(info.address.begin(), info.address.end(), out.address.begin());
    std::copy(info.handle.begin(), info.handle.end(), out.handle.begin());
    return out;
}

Pe::ConnectInfo info_in(const Message& message) {
    const auto address = std::span(message.address).first(message.address_bytes);
    const auto handle = std::span(message.handle).first(message.handle_bytes);
    return {Bytes(address.begin(), address.end()), Bytes(handle.begin(), handle.end())};
}

// The child's work. Returns the number of the failed step, or 0. Adds 100 to a Code other than ok.
int connect_all(Pe& pe, const Group& group) {
    auto info = pe.publish();
    std::array<Message, npes> all{};
    if (!info.ok() || !group.exchange(info_message(info.value()), all)) return 11;
    for (int other = 0; other < npes; ++other) {
        npushmem_peer peer = peer_of(other);
        peer.process_id = all[static_cast<std::size_t>(other)].process;
        if (const Status connected = pe.connect(peer, info_in(all[static_cast<std::size_t>(other)])); !connected.ok()) {
            std::fprintf(stderr, "PE %d: %s\n", pe.number(), connected.message().c_str());
            return 12;
        }
    }
    return 0;
}

// Puts its own pattern into each PE that it reaches, and adds 1 to a word there.
int write_to_all(Pe& pe) {
    const auto mine = pattern(4096, static_cast<std::uint64_t>(pe.number()));
    for (int to = 0; to < npes; ++to) {
        if (!pe.is_connected(to) || !pe.reach(to).has(NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_ATOMIC)) continue;
        const auto place = static_cast<std::uint64_t>(pe.number() + 1) * 8192;
        if (pe.put(to, place, mine.data(), mine.size()) != Code::ok) return 21;
        npushmem_atomic op = pe.atomic_op(to, 0, NPUSHMEM_ATOMIC_ADD, 8);
        op.operand = 1;
        for (int i = 0; i < 100; ++i)
            if (pe.atomic(op) != Code::ok) return 22;
    }
    return pe.quiet() == Code::ok ? 0 : 23;
}

// This PE has written to every PE that can reach it, because reach is symmetric.
int check_own(const Pe& pe) {
    std::uint64_t writers = 0;
    for (int from = 0; from < npes; ++from) {
        if (!pe.is_connected(from) || !pe.reach(from).has(NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_ATOMIC)) continue;
        ++writers;
        const auto place = static_cast<std::size_t>(from + 1) * 8192;
        if (!same(pe.memory().subspan(place, 4096), pattern(4096, static_cast<std::uint64_t>(from)))) return 31;
    }
    return word_at(pe.memory(), 0) == writers * 100 ? 0 : 32;
}

struct Children {
    std::vector<pid_t> processes;
    std::vector<ControlChannel> channels;
};

// A child process executes this program again, because network libraries, with their own threads and devices, need not
// survive a fork.
pid_t start(const Subject& subject, int number, int channel, int file) {
    std::vector<std::string> words = subject.command;
    words.emplace_back(child_option);
    for (const int word : {static_cast<int>(subject.number), number, channel, file})
        words.push_back(std::to_string(word));
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (auto& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const pid_t process = ::fork();
    if (process != 0) return process;
    for (const int inherited : {channel, file})
        if (inherited >= 0) ::fcntl(inherited, F_SETFD, 0);
    ::execv("/proc/self/exe", arguments.data());
    ::_exit(15);
}

void spawn(const Subject& subject, const SharedFile* common, Children& children) {
    for (int number = 0; number < npes; ++number) {
        std::array<int, 2> ends{};
        ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
        const pid_t process = start(subject, number, ends[1], common != nullptr ? common->descriptor() : -1);
        ASSERT_GE(process, 0);
        ::close(ends[1]);
        children.processes.push_back(process);
        children.channels.emplace_back(ends[0]);
    }
}

void processes_reach_each_other(Fabric& fabric) {
    Children children;
    std::unique_ptr<SharedFile> common;
    if (fabric.subject().layout == Layout::one_file)
        common = std::make_unique<SharedFile>(bytes_per_pe * static_cast<std::uint64_t>(npes));
    spawn(fabric.subject(), common.get(), children);
    const bool responded = serve(children.channels, rounds_of_a_child);
    for (std::size_t i = 0; i < children.processes.size(); ++i) {
        if (!responded) ::kill(children.processes[i], SIGKILL);
        int status = 0;
        ASSERT_EQ(::waitpid(children.processes[i], &status, 0), children.processes[i]);
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
            << "process of PE " << i << ": wait status " << status << ", exit status " << WEXITSTATUS(status);
    }
    EXPECT_TRUE(responded) << "a process did not take part";
}

}  // namespace

int run_child(const Subject& subject, const ChildArguments& arguments) {
    auto opened = open_stack(subject.stack, subject.host->table(), params_of(arguments.pe, npes));
    if (!opened.ok()) return 10;
    const ControlChannel channel(arguments.channel);
    const Group group(channel);
    const std::uint64_t all = bytes_per_pe * static_cast<std::uint64_t>(npes);
    const bool common = arguments.file >= 0;
    auto file = common ? std::make_shared<const SharedFile>(arguments.file, all)
                       : std::make_shared<const SharedFile>(bytes_per_pe);
    const std::uint64_t offset = common ? static_cast<std::uint64_t>(arguments.pe) * bytes_per_pe : 0;
    Pe pe(arguments.pe, std::move(opened).value(), std::make_unique<Slice>(std::move(file), offset, bytes_per_pe));
    if (const int wrong = connect_all(pe, group); wrong != 0) return wrong;
    if (!group.barrier()) return 13;
    const int wrote = write_to_all(pe);
    if (!group.barrier()) return 14;
    return wrote != 0 ? wrote : check_own(pe);
}

std::vector<Case> process_cases() { return {{"processes_reach_each_other", 0, processes_reach_each_other}}; }

}  // namespace npushmem::contract
