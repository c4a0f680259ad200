// SPDX-License-Identifier: BSD-3-Clause
// The exchange of data between PEs at start-up: collectives over the bootstrap, and the records that PEs exchange.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "core/base/config.hpp"
#include "core/base/host_facts.hpp"
#include "core/base/liveness.hpp"
#include "core/map/host_layout.hpp"
#include "core/map/transport_map.hpp"
#include "core/runtime/static_variables.hpp"
#include "npushmem/plugin/bootstrap.hpp"
#include "npushmem/plugin/status.hpp"
#include "npushmem/plugin/transport.h"
#include "npushmem/plugin/transport.hpp"

namespace npushmem {

// Gathers one value from every PE, in order of PE. Collective.
template <class Plain>
requires std::is_trivially_copyable_v<Plain> Result<std::vector<Plain>> gather(Bootstrap& bootstrap,
                                                                               const Plain& mine) {
    std::vector<Plain> all(static_cast<std::size_t>(bootstrap.nranks()));
    Status gathered = bootstrap.allgather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
    if (!gathered.ok()) return gathered;
    return all;
}

// Gathers a byte string of any length from every PE. Each has its length before it and is padded to the row of a round.
class GatheredBytes {
public:
    // Gathers the lengths, then all strings in rows of the longest.
    static Result<GatheredBytes> gather(Bootstrap& bootstrap, std::span<const std::byte> mine);
    // The same where all PEs share memory: `rows` has an unused row for each PE. After a barrier all PEs read the
    // strings in place, as long as the memory exists. If one is longer than a row, a round carries all.
    static Result<GatheredBytes> gather_in(std::span<std::byte> rows, Bootstrap& bootstrap,
                                           std::span<const std::byte> mine);
    [[nodiscard]] std::span<const std::byte> of(int pe) const;

    // Keeps a private copy of strings in shared memory.
    void unshare();
    // Returns whether they are in memory that all PEs of the host share.
    [[nodiscard]] bool is_shared() const { return !shared_.empty(); }
    // All strings as they were gathered.
    [[nodiscard]] std::span<const std::byte> view() const { return shared_.empty() ? bytes_ : shared_; }
    // Keeps a copy of view() that outlives this, instead of its own.
    void use_copy(std::span<const std::byte> copy) {
        shared_ = copy;
        bytes_ = Bytes();
    }

private:
    using Length = std::uint32_t;

    // Writes the length and the beginning of a string.
    static void write_row(std::span<std::byte> row, std::span<const std::byte> string);
    // Gathers such rows of `row` bytes.
    Status gather_rows(Bootstrap& bootstrap, std::span<const std::byte> mine, std::size_t row);
    // Gathers all strings if one is longer than a row.
    Status gather_longer(Bootstrap& bootstrap, std::span<const std::byte> mine);
    [[nodiscard]] Length length_of(int pe) const;

    std::size_t stride_ = 0;
    Bytes bytes_;
    std::span<const std::byte> shared_;
};

// The size of a PE's row of endpoints in the memory of a host that runs the whole job. Self and p2p need 144 bytes and
// the length.
constexpr std::size_t endpoint_row_bytes = 160;

// What all PEs must set alike.
struct CommonSettings {
    std::uint64_t symmetric_bytes = 0;
    std::uint64_t tuning = 0;           // hash of the decision file
    std::uint64_t check = 0;            // NPUSHMEM_CHECK
    std::uint64_t survives_deaths = 0;  // NPUSHMEM_ON_PEER_DEATH=survive
    char barrier[40] = {};              // NPUSHMEM_BARRIER_ALGO, truncated
    char coll_library[40] = {};         // NPUSHMEM_COLL_LIBRARY, truncated
};

// What the PEs of a host have in common, unless they are bound to different CPUs.
struct HostFacts {
    static constexpr std::size_t mask_words = 16;  // affinity of up to 1,024 CPUs

    double cpu_quota = 0;
    std::uint64_t cpu_mask[mask_words] = {};
    char host_name[64] = {};

    [[nodiscard]] CpuMask affinity() const { return {cpu_mask, cpu_mask + mask_words}; }
};

// What a PE sends that most PEs have in common.
struct CommonRecord {
    // PEs of one machine with equal numbers see each other's processes in /proc. ProcessSpaces may give PEs with
    // different numbers one host.space.
    std::uint64_t process_space = 0;
    npushmem_host_id host{};
    StaticVariablesRecord statics;
    std::uint64_t npu_check = 0;   // NPUSHMEM_NPU_CHECK
    std::uint64_t transports = 0;  // hash of the variables and the folder that select files
    CommonSettings settings;
    HostFacts facts;
};
static_assert(sizeof(CommonRecord) == 3 * sizeof(std::uint64_t) + sizeof(npushmem_host_id) +
                                          sizeof(StaticVariablesRecord) + sizeof(CommonSettings) + sizeof(HostFacts),
              "padding would get into its hash");

// The first record that every PE sends to every other: plain bytes through the bootstrap, with the same layout on all
// PEs. It is small, because every PE of a large job copies those of all. The common records follow only where their
// hashes differ.
struct PeRecord {
    static constexpr std::uint32_t magic_value = 0x4e505232;  // "NPR2"; changes with this layout

    std::uint32_t magic = magic_value;
    std::uint32_t bytes = sizeof(CommonRecord);
    std::int32_t version[3] = {};
    std::int32_t process = 0;
    std::uint64_t process_start = 0;
    std::uint64_t common_hash = 0;  // of the CommonRecord
};
static_assert(sizeof(PeRecord) <= 40);

// All that a PE sends of itself.
struct OwnRecord {
    PeRecord record;
    CommonRecord common;
};

// Returns the records of this process. `tuning` is the hash of its decision file.
Result<OwnRecord> make_pe_record(const Settings& settings, std::uint64_t tuning, const StaticVariablesRecord& statics);

struct PeRecords {
    std::vector<PeRecord> pes;
    std::vector<CommonRecord> common;  // one for each PE, or one that all have in common

    // Returns whether all PEs have one record in common: they run on one host and select the same transports.
    [[nodiscard]] bool are_alike() const { return common.size() == 1; }
    [[nodiscard]] const CommonRecord& common_of(std::size_t pe) const { return common[are_alike() ? 0 : pe]; }
    [[nodiscard]] CommonRecord& common_of(std::size_t pe) { return common[are_alike() ? 0 : pe]; }
};

// Collective: checks that all PEs have the same library version, record layout and settings. The error names the first
// PE that differs and both values.
Result<PeRecords> exchange_pe_records(Bootstrap& bootstrap, const OwnRecord& mine);

// One transport of a PE: its endpoint's address and the handle of the PE's slice of symmetric memory, which is imported
// when the PE is first used.
struct EndpointRecord {
    std::uint64_t transport = 0;  // hash of the transport's name; PEs may have selected different transports
    Bytes address;
    Bytes handle;
};

Bytes pack_endpoints(std::span<const EndpointRecord> endpoints);

class PeerAddressTable {
public:
    PeerAddressTable() = default;
    PeerAddressTable(GatheredBytes gathered, int npes) : gathered_(std::move(gathered)), npes_(npes) {}

    // Returns an empty span without data if the PE does not exist, has not opened a transport of this name, or sent
    // malformed bytes.
    [[nodiscard]] std::span<const std::byte> address(std::uint64_t transport, int pe) const;
    [[nodiscard]] std::span<const std::byte> handle(std::uint64_t transport, int pe) const;
    [[nodiscard]] bool has(std::uint64_t transport, int pe) const { return find(transport, pe).present; }
    [[nodiscard]] GatheredBytes& gathered() { return gathered_; }
    [[nodiscard]] const GatheredBytes& gathered() const { return gathered_; }

private:
    struct Entry {
        bool present = false;
        std::span<const std::byte> address;
        std::span<const std::byte> handle;
    };
    [[nodiscard]] Entry find(std::uint64_t transport, int pe) const;

    GatheredBytes gathered_;
    int npes_ = 0;
};

// The PEs that share memory with this one, found after peers are mapped.
struct SharingPes {
    std::vector<int> pes;      // world PEs that share memory with this one, in order, including itself
    bool all_map_all = false;  // every PE of the job maps every PE
    bool hosts_map = false;    // every PE of the job maps every PE of its host
};

// Collective. `mapped[i]` says whether this PE maps the host's PE of local index i; its own entry is ignored.
Result<SharingPes> find_sharing_pes(Bootstrap& bootstrap, const HostLayout& layout, int my_pe,
                                    std::vector<bool> mapped);

}  // namespace npushmem
