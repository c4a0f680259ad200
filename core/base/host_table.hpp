// SPDX-License-Identifier: BSD-3-Clause
// A small table shared by the processes of one host, of all jobs. A row is plain bytes, owned by a process. The table
// is a file in the host's shared memory, one per user, so it needs no server.
//
// Crashes: the kernel releases the lock of a process that dies at any moment. A row counts only while its owner runs
// (process number and start time, see ProcessId), and its checksum detects a torn row. So rows of dead processes have
// no effect. The process that removes the last row removes the file.
//
//     | header: magic, version, row bytes, holder | row 0 | row 1 | ...      rows of row_bytes, none crosses a page
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/liveness.hpp"
#include "core/base/poller.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem {

// Where the tables of one purpose are. Each user has a table of its own, and so has each PID namespace, because process
// numbers differ between them.
struct HostTablePlace {
    std::string folder = "/dev/shm";
    std::string purpose;  // first part of the files' names
};

struct HostTableRow {
    static constexpr std::size_t payload_bytes = 216;

    ProcessId owner;
    std::uint64_t group = 0;  // rows that are removed together
    std::array<std::byte, payload_bytes> payload{};

    bool operator==(const HostTableRow&) const = default;
};

// The table of this user, locked while the object lives. For one thread; must not outlive a fork.
class HostTable {
public:
    static constexpr std::size_t row_bytes = 256;
    static constexpr std::size_t header_bytes = 256;

    // Creates the table if there is none. Waits at most `lock_timeout` for the lock; then fails with Code::timeout, and
    // the message names the process that holds it. Other failures (Code::system) name the file and the remedy.
    static Result<HostTable> lock(const HostTablePlace& place, std::chrono::milliseconds lock_timeout);

    // Removes this user's table if no running process has a row in it, for instance after a kill. Does nothing when
    // there is no table or the lock is held.
    static void sweep(const HostTablePlace& place);

    HostTable(HostTable&& other) noexcept = default;
    HostTable& operator=(HostTable&& other) noexcept;
    ~HostTable();

    // Returns the rows of running processes, in the table's order.
    [[nodiscard]] std::vector<HostTableRow> rows() const;

    // Adds all rows or none. Reuses the rows of dead processes.
    Status add(std::span<const HostTableRow> rows);
    void remove(std::uint64_t group);

private:
    HostTable(FileDescriptor file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}

    static Result<HostTable> open(const std::string& path);
    Result<bool> take_lock();
    Status prepare();
    [[nodiscard]] bool removed() const;
    [[nodiscard]] std::int32_t holder() const;
    void close();
    void unlock();

    FileDescriptor file_;
    bool locked_ = false;
    std::string path_;
};

// Returns the rows of running processes in all users' tables of this place, read without a lock. Skips tables that it
// cannot read.
std::vector<HostTableRow> peek_host_tables(const HostTablePlace& place);

}  // namespace npushmem
