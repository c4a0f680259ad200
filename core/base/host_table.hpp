// A small table that the processes of one host share, whatever jobs they belong to: rows of plain bytes, each owned by
// a process. It lies in a file of the host's shared memory, one per user, so that it needs no server.
//
// Crashes: the kernel drops the lock of a process that dies, at any moment. A row counts only while its owner runs
// (process number and start time, see ProcessId), and its check sum tells a whole row from a torn one; so whatever a
// process leaves behind is as good as gone. The file is removed by whoever removes its last row.
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

#include "core/base/process_liveness.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem {

// Where the tables of one purpose are. Users have tables of their own, and so have the PID namespaces among which a
// process number means different processes.
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

// The table of this user, locked while the object lives. One thread; must not outlive a fork.
class HostTable {
public:
    static constexpr std::size_t row_bytes = 256;
    static constexpr std::size_t header_bytes = 256;

    // Makes the table if there is none. Waits for the lock as long as `lock_timeout` at most; the failure then names
    // the process that holds it. Other failures (Code::system) name the file and the remedy.
    static Result<HostTable> lock(const HostTablePlace& place, std::chrono::milliseconds lock_timeout);

    // Removes this user's table if it holds nothing of a process that runs: what processes that were killed leave
    // behind. Does nothing when there is none, or when its lock cannot be had at once.
    static void sweep(const HostTablePlace& place);

    HostTable(HostTable&& other) noexcept;
    HostTable& operator=(HostTable&& other) noexcept;
    ~HostTable();

    // Of processes that run, in the table's order.
    [[nodiscard]] std::vector<HostTableRow> rows() const;

    // All rows or none. Rows of dead processes make room.
    Status add(std::span<const HostTableRow> rows);
    void remove(std::uint64_t group);

private:
    HostTable(int file, std::string path) : file_(file), path_(std::move(path)) {}

    static Result<HostTable> open(const std::string& path);
    Result<bool> take_lock();
    Status prepare();
    [[nodiscard]] bool removed() const;
    [[nodiscard]] std::int32_t holder() const;
    void close();
    void unlock();

    int file_ = -1;
    bool locked_ = false;
    std::string path_;
};

// What all users' tables of this place hold now, of processes that run, read without a lock. Tables that cannot be read
// are left out.
std::vector<HostTableRow> peek_host_tables(const HostTablePlace& place);

}  // namespace npushmem
