// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/host_table.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <thread>
#include <utility>

#include "core/base/hash.hpp"

namespace npushmem {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t magic = 0x314254484d48504eULL;  // "NPHMHTB1" as little-endian bytes
constexpr std::uint32_t version = 1;

struct Header {
    std::uint64_t magic;
    std::uint32_t version;
    std::uint32_t row_bytes;
    std::int32_t holder;  // process that holds or last held the lock, for messages
    std::uint32_t reserved;
};
static_assert(sizeof(Header) <= HostTable::header_bytes);

struct StoredRow {
    std::uint64_t check_sum;  // of all following fields; 0 in a free row
    std::int32_t process;
    std::uint32_t reserved;
    std::uint64_t start;
    std::uint64_t group;
    std::array<std::byte, HostTableRow::payload_bytes> payload;
    std::uint64_t padding;
};
static_assert(sizeof(StoredRow) == HostTable::row_bytes);

std::uint64_t check_sum_of(const StoredRow& row) {
    const auto* bytes = reinterpret_cast<const char*>(&row) + sizeof row.check_sum;
    const std::uint64_t sum = hash_bytes({bytes, sizeof row - sizeof row.check_sum});
    return sum == 0 ? 1 : sum;
}

StoredRow stored(const HostTableRow& row) {
    StoredRow out{0, row.owner.pid, 0, row.owner.start, row.group, row.payload, 0};
    out.check_sum = check_sum_of(out);
    return out;
}

bool is_whole(const StoredRow& row) { return row.check_sum != 0 && row.check_sum == check_sum_of(row); }

HostTableRow loaded(const StoredRow& row) { return {{row.process, row.start}, row.group, row.payload}; }

bool counts(const StoredRow& row) { return is_whole(row) && is_alive({row.process, row.start}); }

off_t place_of(std::size_t index) { return static_cast<off_t>(HostTable::header_bytes + index * HostTable::row_bytes); }

// Returns every row in the file, in any state.
std::vector<StoredRow> stored_rows(int file) {
    struct stat facts {};
    if (::fstat(file, &facts) != 0 || facts.st_size <= static_cast<off_t>(HostTable::header_bytes)) return {};
    std::vector<StoredRow> rows((static_cast<std::size_t>(facts.st_size) - HostTable::header_bytes) /
                                HostTable::row_bytes);
    const auto bytes = rows.size() * HostTable::row_bytes;
    const ssize_t got = ::pread(file, rows.data(), bytes, static_cast<off_t>(HostTable::header_bytes));
    rows.resize(got > 0 ? static_cast<std::size_t>(got) / HostTable::row_bytes : 0);
    return rows;
}

bool write_row(int file, std::size_t index, const StoredRow& row) {
    return ::pwrite(file, &row, sizeof row, place_of(index)) == static_cast<ssize_t>(sizeof row);
}

std::optional<Header> header_of(int file) {
    Header header{};
    if (::pread(file, &header, sizeof header, 0) != static_cast<ssize_t>(sizeof header)) return std::nullopt;
    return header;
}

bool is_ours(const Header& header) {
    return header.magic == magic && header.version == version && header.row_bytes == HostTable::row_bytes;
}

// Equal for processes that share a PID namespace.
std::string namespace_text() {
    struct stat facts {};
    return ::stat("/proc/self/ns/pid", &facts) == 0 ? fmt::format("{}", facts.st_ino) : "unknown";
}

std::string common_name(const HostTablePlace& place) {
    return fmt::format("{}.v{}.{}.", place.purpose, version, namespace_text());
}

std::string path_of(const HostTablePlace& place, uid_t user) {
    return fmt::format("{}/{}{}", place.folder, common_name(place), user);
}

Status cannot(std::string_view what, const std::string& path) {
    return {Code::system, fmt::format("cannot {} the host's table \"{}\": {}", what, path, std::strerror(errno))};
}

// Another user may have put a file there to receive this user's writes.
Status check_owner(int file, const std::string& path) {
    struct stat facts {};
    if (::fstat(file, &facts) != 0) return cannot("inspect", path);
    if (S_ISREG(facts.st_mode) && facts.st_uid == ::geteuid()) return {};
    return {Code::system,
            fmt::format("the host's table \"{}\" belongs to user {}, not to this one ({}); have it removed", path,
                        facts.st_uid, ::geteuid())};
}

}  // namespace

HostTable& HostTable::operator=(HostTable&& other) noexcept {
    if (this == &other) return *this;
    close();
    file_ = std::move(other.file_);
    locked_ = other.locked_;
    path_ = std::move(other.path_);
    return *this;
}

HostTable::~HostTable() { close(); }

void HostTable::close() {
    if (file_.valid() && locked_) unlock();
    file_.reset();
}

// Unlocks explicitly: a child that another thread forked meanwhile holds the same open file, so close does not unlock
// it.
void HostTable::unlock() {
    const auto rows = stored_rows(file_.get());
    if (!removed() && std::none_of(rows.begin(), rows.end(), counts)) (void)::unlink(path_.c_str());
    (void)::flock(file_.get(), LOCK_UN);
    locked_ = false;
}

Result<HostTable> HostTable::open(const std::string& path) {
    constexpr mode_t others_may_read = 0644;
    FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, others_may_read));
    if (!file.valid()) return cannot("open", path);
    if (Status owned = check_owner(file.get(), path); !owned.ok()) return owned;
    return HostTable(std::move(file), path);
}

Result<bool> HostTable::take_lock() {
    locked_ = ::flock(file_.get(), LOCK_EX | LOCK_NB) == 0;
    if (locked_) return true;
    if (errno == EWOULDBLOCK || errno == EINTR) return false;
    return cannot("lock", path_);
}

Result<HostTable> HostTable::lock(const HostTablePlace& place, std::chrono::milliseconds lock_timeout) {
    constexpr std::chrono::microseconds pause{500};
    const std::string path = path_of(place, ::geteuid());
    const auto deadline = Clock::now() + lock_timeout;
    auto table = open(path);
    while (table.ok()) {
        const auto locked = table.value().take_lock();
        if (!locked.ok()) return locked.status();
        if (locked.value() && !table.value().removed()) {
            Status ready = table.value().prepare();
            return ready.ok() ? std::move(table) : Result<HostTable>(ready);
        }
        if (locked.value()) {  // the previous holder removed the file; create a new one
            table = open(path);
            continue;
        }
        if (Clock::now() >= deadline)
            return Status{Code::timeout,
                          fmt::format("process {} has held the lock of the host's table \"{}\" for {} ms; is "
                                      "it stopped?",
                                      table.value().holder(), path, lock_timeout.count())};
        std::this_thread::sleep_for(pause);
    }
    return table.status();
}

void HostTable::sweep(const HostTablePlace& place) {
    const std::string path = path_of(place, ::geteuid());
    if (::access(path.c_str(), F_OK) == 0) (void)lock(place, std::chrono::milliseconds(0));
}

// An incomplete header is from a process that died while it created the table: no row is lost.
Status HostTable::prepare() {
    auto header = header_of(file_.get());
    if (!header || header->magic == 0) header = Header{magic, version, row_bytes, 0, 0};
    if (!is_ours(*header))
        return {Code::system, fmt::format("\"{}\" is not a table of this version of npushmem; remove it", path_)};
    header->holder = ::getpid();
    if (::pwrite(file_.get(), &*header, sizeof *header, 0) != static_cast<ssize_t>(sizeof *header))
        return cannot("write to", path_);
    return {};
}

bool HostTable::removed() const {
    struct stat facts {};
    return ::fstat(file_.get(), &facts) == 0 && facts.st_nlink == 0;
}

std::int32_t HostTable::holder() const {
    const auto header = header_of(file_.get());
    return header ? header->holder : 0;
}

std::vector<HostTableRow> HostTable::rows() const {
    std::vector<HostTableRow> out;
    for (const auto& row : stored_rows(file_.get())) {
        if (counts(row)) out.push_back(loaded(row));
    }
    return out;
}

Status HostTable::add(std::span<const HostTableRow> rows) {
    const auto present = stored_rows(file_.get());
    std::vector<std::size_t> written;
    std::size_t index = 0;
    for (const auto& row : rows) {
        while (index < present.size() && counts(present[index])) ++index;
        if (!write_row(file_.get(), index, stored(row))) {
            Status failure = cannot("write to", path_);
            for (const std::size_t undone : written) (void)write_row(file_.get(), undone, StoredRow{});
            return failure;
        }
        written.push_back(index++);
    }
    return {};
}

void HostTable::remove(std::uint64_t group) {
    const auto present = stored_rows(file_.get());
    for (std::size_t i = 0; i < present.size(); ++i) {
        if (is_whole(present[i]) && present[i].group == group) (void)write_row(file_.get(), i, StoredRow{});
    }
}

std::vector<HostTableRow> peek_host_tables(const HostTablePlace& place) {
    std::vector<HostTableRow> out;
    const std::string beginning = common_name(place);
    std::error_code ignored;  // an unreadable folder has no tables
    for (const auto& entry : std::filesystem::directory_iterator(place.folder, ignored)) {
        if (!entry.path().filename().string().starts_with(beginning)) continue;
        const FileDescriptor file(::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
        if (!file.valid()) continue;
        const auto header = header_of(file.get());
        // A table's name contains its owner, so that no user writes rows as another user.
        struct stat facts {};
        const bool genuine = ::fstat(file.get(), &facts) == 0 && entry.path() == path_of(place, facts.st_uid);
        const auto rows = genuine && header && is_ours(*header) ? stored_rows(file.get()) : std::vector<StoredRow>{};
        for (const auto& row : rows) {
            if (counts(row)) out.push_back(loaded(row));
        }
    }
    return out;
}

}  // namespace npushmem
