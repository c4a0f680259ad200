// SPDX-License-Identifier: BSD-3-Clause
#include "transports/shared/shared_memory_transport.hpp"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>

#include "core/runtime/start_exchange.hpp"
#include "tests/contract/patterns.hpp"
#include "tests/contract/pe.hpp"
#include "transports/self/self_transport.hpp"
#include "transports/shared/memory_handle.hpp"

namespace npushmem {
namespace {

using contract::SharedFile;
using contract::Slice;
using ::testing::HasSubstr;

constexpr std::uint64_t slice_bytes = 64 * 1024;
const npushmem_host_id host{1, 2, -1, 1000};

std::unique_ptr<Transport> open(int pe, npushmem_host_id on = host) {
    npushmem_transport_params params{};
    params.struct_size = sizeof params;
    params.pe = pe;
    params.host = on;
    auto opened = SharedMemoryTransport::open(Host(nullptr, "shared"), params);
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    return std::move(opened).value();
}

Bytes registered(Transport& transport, const Slice& slice) {
    auto memory = transport.register_memory(slice.describe());
    EXPECT_TRUE(memory.ok()) << memory.status().message();
    return memory.value().handle;
}

// Otherwise a start of many PEs would gather them in a round of its own.
TEST(SharedMemory, EndpointsOfAJobOnOneHostFitIntoARow) {
    const Slice slice(std::make_shared<const SharedFile>(slice_bytes), 0, slice_bytes);
    const auto shared = open(0);
    SelfTransport self(0);
    const Bytes packed =
        pack_endpoints(std::vector<EndpointRecord>{{1, self.address().value(), registered(self, slice)},
                                                   {2, shared->address().value(), registered(*shared, slice)}});
    EXPECT_LE(sizeof(std::uint32_t) + packed.size(), endpoint_row_bytes);
}

// The entries are links, which only an administrator may follow.
std::size_t mappings() {
    const std::filesystem::directory_iterator entries("/proc/self/map_files");
    return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

TEST(SharedMemory, APeerInTheOwnMappingIsAtAComputedAddress) {
    const auto file = std::make_shared<const SharedFile>(2 * slice_bytes);
    const Slice own(file, 0, slice_bytes);
    const Slice peer(file, slice_bytes, slice_bytes);  // of another PE, which maps the file for itself
    const auto a = open(0);
    const auto b = open(1);
    (void)registered(*a, own);
    const Bytes handle = registered(*b, peer);
    const std::size_t before = mappings();
    const auto remote = a->import_memory(1, handle);
    ASSERT_TRUE(remote.ok()) << remote.status().message();
    EXPECT_EQ(mappings(), before) << "nothing should have been mapped";
    EXPECT_EQ(a->map(remote.value()).value(), static_cast<void*>(own.bytes().data() + slice_bytes));
}

TEST(SharedMemory, AnotherFileIsMappedOnceAndUnmappedByRelease) {
    const Slice foreign(std::make_shared<const SharedFile>(slice_bytes + 100), 100, slice_bytes);
    const auto a = open(0);
    const auto b = open(1);
    const Bytes handle = registered(*b, foreign);
    const std::size_t before = mappings();
    const auto remote = a->import_memory(1, handle);
    ASSERT_TRUE(remote.ok()) << remote.status().message();
    EXPECT_EQ(mappings(), before + 1);
    auto* view = static_cast<std::byte*>(a->map(remote.value()).value());
    EXPECT_NE(view, foreign.bytes().data());
    foreign.bytes()[7] = std::byte{0x5c};
    EXPECT_EQ(view[7], std::byte{0x5c});
    EXPECT_EQ(a->release_memory(remote.value()), Code::ok);
    EXPECT_EQ(mappings(), before);
}

TEST(SharedMemory, ClosingUnmapsUnreleasedMappings) {
    const Slice foreign(std::make_shared<const SharedFile>(slice_bytes), 0, slice_bytes);
    auto a = open(0);
    const auto b = open(1);
    const std::size_t before = mappings();
    ASSERT_TRUE(a->import_memory(1, registered(*b, foreign)).ok());
    a.reset();
    EXPECT_EQ(mappings(), before);
}

TEST(SharedMemory, ReachReportsTheReason) {
    const auto a = open(0);
    npushmem_peer peer{};
    peer.struct_size = sizeof peer;
    peer.pe = 1;
    peer.host = host;
    EXPECT_TRUE(a->reach(peer).has(NPUSHMEM_CAP_MAP));
    peer.host.emulated = 1;
    EXPECT_FALSE(a->reach(peer).reachable());
    EXPECT_THAT(a->reach(peer).why, HasSubstr("emulated host 1"));
}

TEST(SharedMemory, MemoryOfAnotherHostIsNotImported) {
    const Slice slice(std::make_shared<const SharedFile>(slice_bytes), 0, slice_bytes);
    const auto a = open(0);
    const auto far = open(1, {9, 2, -1, 1000});
    const auto imported = a->import_memory(1, registered(*far, slice));
    EXPECT_EQ(imported.status().code(), Code::unreachable);
    EXPECT_THAT(imported.status().message(), HasSubstr("another machine"));
}

TEST(SharedMemory, MemoryThatCannotBeSharedIsRefusedWithTheReason) {
    const auto a = open(0);
    const Slice slice(std::make_shared<const SharedFile>(slice_bytes), 0, slice_bytes);
    npushmem_memory memory = slice.describe();
    memory.fd = -1;
    EXPECT_THAT(a->register_memory(memory).status().message(), HasSubstr("no file backs the memory"));
    memory.fd = 10'000;
    EXPECT_THAT(a->register_memory(memory).status().message(), HasSubstr("not an open file"));
    memory = slice.describe();
    memory.fd_offset = 4096;
    EXPECT_THAT(a->register_memory(memory).status().message(), HasSubstr("do not lie in the given mapping"));
    memory = slice.describe();
    memory.mapping_bytes = 10;
    EXPECT_FALSE(a->register_memory(memory).ok());
    memory.bytes = 0;
    EXPECT_FALSE(a->register_memory(memory).ok());
}

// A handle of a process that is not the peer.
shared_memory::MemoryHandle handle_in(const Bytes& bytes) { return shared_memory::decode(bytes).value(); }

TEST(SharedMemory, RejectsAHandleOfAClosedFile) {
    const auto a = open(0);
    const auto b = open(1);
    Bytes handle;
    {
        const Slice slice(std::make_shared<const SharedFile>(slice_bytes), 0, slice_bytes);
        handle = registered(*b, slice);
    }
    const auto closed = a->import_memory(1, handle);
    EXPECT_EQ(closed.status().code(), Code::peer_dead);
    EXPECT_THAT(closed.status().message(), HasSubstr("closed the file"));
    // The descriptor number is reused for another file.
    const SharedFile other(slice_bytes);
    shared_memory::MemoryHandle reused = handle_in(handle);
    reused.descriptor = other.descriptor();
    const auto replaced = a->import_memory(1, shared_memory::encode(reused));
    EXPECT_EQ(replaced.status().code(), Code::peer_dead);
    EXPECT_THAT(replaced.status().message(), HasSubstr("now names another file"));
}

TEST(SharedMemory, RejectsAHandleOfAnEndedOrAnotherProcess) {
    const auto a = open(0);
    const auto b = open(1);
    const Slice slice(std::make_shared<const SharedFile>(slice_bytes), 0, slice_bytes);
    shared_memory::MemoryHandle handle = handle_in(registered(*b, slice));
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) ::_exit(0);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    handle.process = child;
    EXPECT_EQ(a->import_memory(1, shared_memory::encode(handle)).status().code(), Code::peer_dead);
    handle.process = 1;
    const auto other = a->import_memory(1, shared_memory::encode(handle));
    EXPECT_EQ(other.status().code(), Code::peer_dead);
    EXPECT_THAT(other.status().message(), HasSubstr("process 1 is not the peer"));
}

TEST(SharedMemory, RejectsAHandleLargerThanItsFile) {
    const auto a = open(0);
    const auto b = open(1);
    const Slice slice(std::make_shared<const SharedFile>(slice_bytes), 0, slice_bytes);
    shared_memory::MemoryHandle handle = handle_in(registered(*b, slice));
    handle.bytes += 1;
    const auto imported = a->import_memory(1, shared_memory::encode(handle));
    EXPECT_EQ(imported.status().code(), Code::range);
    EXPECT_THAT(imported.status().message(), HasSubstr("which has only 65536"));
}

}  // namespace
}  // namespace npushmem
