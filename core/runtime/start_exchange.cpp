// SPDX-License-Identifier: BSD-3-Clause
#include "core/runtime/start_exchange.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "core/base/hash.hpp"
#include "core/base/host_facts.hpp"
#include "core/base/version.hpp"
#include "core/map/transport_map.hpp"

namespace npushmem {

Result<GatheredBytes> GatheredBytes::gather(Bootstrap& bootstrap, std::span<const std::byte> mine) {
    GatheredBytes all;
    if (Status gathered = all.gather_rows(bootstrap, mine, sizeof(Length)); !gathered.ok()) return gathered;
    if (Status gathered = all.gather_longer(bootstrap, mine); !gathered.ok()) return gathered;
    return all;
}

Result<GatheredBytes> GatheredBytes::gather_in(std::span<std::byte> rows, Bootstrap& bootstrap,
                                               std::span<const std::byte> mine) {
    GatheredBytes all;
    all.stride_ = rows.size() / static_cast<std::size_t>(bootstrap.nranks());
    all.shared_ = rows;
    write_row(rows.subspan(static_cast<std::size_t>(bootstrap.rank()) * all.stride_, all.stride_), mine);
    if (Status written = bootstrap.barrier(); !written.ok()) return written;
    if (Status gathered = all.gather_longer(bootstrap, mine); !gathered.ok()) return gathered;
    return all;
}

void GatheredBytes::write_row(std::span<std::byte> row, std::span<const std::byte> string) {
    const auto length = static_cast<Length>(string.size());
    std::memcpy(row.data(), &length, sizeof length);
    std::ranges::copy(string.first(std::min(string.size(), row.size() - sizeof length)), row.begin() + sizeof length);
}

Status GatheredBytes::gather_longer(Bootstrap& bootstrap, std::span<const std::byte> mine) {
    std::size_t longest = 0;
    for (int pe = 0; pe < bootstrap.nranks(); ++pe) longest = std::max<std::size_t>(longest, length_of(pe));
    const std::size_t row = sizeof(Length) + longest;
    return row <= stride_ ? Status{} : gather_rows(bootstrap, mine, row);
}

Status GatheredBytes::gather_rows(Bootstrap& bootstrap, std::span<const std::byte> mine, std::size_t row) {
    Bytes own(row);
    write_row(own, mine);
    stride_ = row;
    shared_ = {};
    bytes_ = Bytes();  // the rows of the first round
    bytes_.resize(row * static_cast<std::size_t>(bootstrap.nranks()));
    return bootstrap.allgather(own, bytes_);
}

void GatheredBytes::unshare() {
    if (!is_shared()) return;
    bytes_.assign(shared_.begin(), shared_.end());
    shared_ = {};
}

GatheredBytes::Length GatheredBytes::length_of(int pe) const {
    Length length = 0;
    std::memcpy(&length, view().data() + static_cast<std::size_t>(pe) * stride_, sizeof length);
    return length;
}

std::span<const std::byte> GatheredBytes::of(int pe) const {
    const auto row = view().subspan(static_cast<std::size_t>(pe) * stride_, stride_);
    return row.subspan(sizeof(Length), std::min<std::size_t>(length_of(pe), stride_ - sizeof(Length)));
}

namespace {

template <class Plain>
std::uint64_t hash_of(const Plain& plain) {
    static_assert(std::is_trivially_copyable_v<Plain>);
    return hash_bytes({reinterpret_cast<const char*>(&plain), sizeof plain});
}

}  // namespace

Result<OwnRecord> make_pe_record(const Settings& settings, std::uint64_t tuning, const StaticVariablesRecord& statics) {
    auto host = host_identity(static_cast<int>(settings.emulated_host));
    if (!host.ok()) return host.status();
    OwnRecord own;
    CommonRecord& common = own.common;
    common.host = host.value();
    common.process_space = common.host.space;
    common.statics = statics;
    common.npu_check = settings.npu_check ? 1 : 0;
    common.settings.symmetric_bytes = settings.symmetric_size.value;
    common.settings.tuning = tuning;
    common.settings.check = settings.check ? 1 : 0;
    common.settings.survives_deaths = settings.survives_deaths ? 1 : 0;
    (void)settings.barrier_algo.copy(common.settings.barrier, sizeof common.settings.barrier - 1);
    (void)settings.coll_library.copy(common.settings.coll_library, sizeof common.settings.coll_library - 1);
    std::error_code failed;
    common.transports =
        hash_bytes(fmt::format("{}:{}:{}:{}:{}", settings.transports, settings.disable_p2p, settings.remote_transport,
                               settings.plugin_path, std::filesystem::current_path(failed).native()));
    const CpuFacts cpus = read_cpu_facts();
    common.facts.cpu_quota = cpus.quota;
    std::copy_n(cpus.affinity.begin(), std::min(cpus.affinity.size(), HostFacts::mask_words), common.facts.cpu_mask);
    (void)host_name().copy(common.facts.host_name, sizeof common.facts.host_name - 1);
    PeRecord& record = own.record;
    record.version[0] = library_version.major;
    record.version[1] = library_version.minor;
    record.version[2] = library_version.patch;
    record.process = getpid();
    record.process_start = this_process().start;
    record.common_hash = hash_of(common);
    return own;
}

namespace {

std::string version_text(const PeRecord& record) {
    return fmt::format("{}.{}.{}", record.version[0], record.version[1], record.version[2]);
}

std::string where(const PeRecords& all, std::size_t pe) {
    return fmt::format("PE {} (process {} on {})", pe, all.pes[pe].process, all.common_of(pe).facts.host_name);
}

Status check_layouts(std::span<const PeRecord> records, const PeRecord& mine) {
    for (std::size_t pe = 0; pe < records.size(); ++pe)
        if (records[pe].magic != mine.magic || records[pe].bytes != mine.bytes)
            return {Code::mismatch, fmt::format("PE {} runs an incompatible npushmem (record of {} bytes, expected {})",
                                                pe, records[pe].bytes, mine.bytes)};
    return {};
}

// Before anything whose size depends on the version.
Status check_versions(std::span<const PeRecord> records, const PeRecord& mine, int my_pe) {
    for (std::size_t pe = 0; pe < records.size(); ++pe)
        if (!std::ranges::equal(records[pe].version, mine.version))
            return {Code::mismatch,
                    fmt::format("PE {} (process {}) runs npushmem {}, PE {} runs {}; all PEs need the same", pe,
                                records[pe].process, version_text(records[pe]), my_pe, version_text(mine))};
    return {};
}

Status check_settings(const PeRecords& all, int my_pe) {
    const CommonSettings& mine = all.common_of(static_cast<std::size_t>(my_pe)).settings;
    for (std::size_t pe = 0; pe < all.pes.size(); ++pe) {
        const CommonSettings& other = all.common_of(pe).settings;
        if (other.symmetric_bytes != mine.symmetric_bytes)
            return {Code::mismatch,
                    fmt::format("{} has NPUSHMEM_SYMMETRIC_SIZE={}, PE {} has {}; all PEs need the same",
                                where(all, pe), other.symmetric_bytes, my_pe, mine.symmetric_bytes)};
        if (std::string_view(other.barrier) != mine.barrier)
            return {Code::mismatch,
                    fmt::format("{} has NPUSHMEM_BARRIER_ALGO='{}', PE {} has '{}'; all PEs need the same",
                                where(all, pe), other.barrier, my_pe, mine.barrier)};
        if (std::string_view(other.coll_library) != mine.coll_library)
            return {Code::mismatch,
                    fmt::format("{} has NPUSHMEM_COLL_LIBRARY='{}', PE {} has '{}'; all PEs need the same",
                                where(all, pe), other.coll_library, my_pe, mine.coll_library)};
        if (other.check != mine.check)
            return {Code::mismatch, fmt::format("{} has NPUSHMEM_CHECK={}, PE {} has {}; all PEs need the same",
                                                where(all, pe), other.check, my_pe, mine.check)};
        if (other.survives_deaths != mine.survives_deaths)
            return {Code::mismatch, fmt::format("{} has NPUSHMEM_ON_PEER_DEATH={}, PE {} has {}; all PEs need the same",
                                                where(all, pe), other.survives_deaths != 0 ? "survive" : "job", my_pe,
                                                mine.survives_deaths != 0 ? "survive" : "job")};
        if (other.tuning != mine.tuning)
            return {Code::mismatch,
                    fmt::format("{} reads another NPUSHMEM_COLL_TUNING_FILE than PE {}; all PEs need the "
                                "same text",
                                where(all, pe), my_pe)};
    }
    return {};
}

}  // namespace

// All PEs see the same records, so they decide alike whether more follows.
Result<PeRecords> exchange_pe_records(Bootstrap& bootstrap, const OwnRecord& mine) {
    auto pes = gather(bootstrap, mine.record);
    if (!pes.ok()) return pes.status();
    PeRecords all{std::move(pes).value(), {mine.common}};
    if (Status same = check_layouts(all.pes, mine.record); !same.ok()) return same;
    if (Status same = check_versions(all.pes, mine.record, bootstrap.rank()); !same.ok()) return same;
    const auto is_common = [&](const PeRecord& each) { return each.common_hash == mine.record.common_hash; };
    if (std::ranges::all_of(all.pes, is_common)) return all;
    auto common = gather(bootstrap, mine.common);
    if (!common.ok()) return common.status();
    all.common = std::move(common).value();
    const Status same = check_settings(all, bootstrap.rank());
    return same.ok() ? Result<PeRecords>(std::move(all)) : Result<PeRecords>(same);
}

namespace {

// Packed form of an endpoint: this header, then the address, then the handle.
struct EndpointHeader {
    std::uint64_t transport;
    std::uint32_t address_bytes;
    std::uint32_t handle_bytes;
};

void append(Bytes& to, std::span<const std::byte> bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

}  // namespace

Bytes pack_endpoints(std::span<const EndpointRecord> endpoints) {
    Bytes packed;
    for (const auto& endpoint : endpoints) {
        const EndpointHeader head{endpoint.transport, static_cast<std::uint32_t>(endpoint.address.size()),
                                  static_cast<std::uint32_t>(endpoint.handle.size())};
        append(packed, std::as_bytes(std::span(&head, 1)));
        append(packed, endpoint.address);
        append(packed, endpoint.handle);
    }
    return packed;
}

PeerAddressTable::Entry PeerAddressTable::find(std::uint64_t transport, int pe) const {
    if (pe < 0 || pe >= npes_) return {};
    for (auto rest = gathered_.of(pe); rest.size() >= sizeof(EndpointHeader);) {
        EndpointHeader head{};
        std::memcpy(&head, rest.data(), sizeof head);
        rest = rest.subspan(sizeof head);
        const std::uint64_t body = std::uint64_t{head.address_bytes} + head.handle_bytes;
        if (body > rest.size()) return {};
        if (head.transport == transport)
            return {true, rest.first(head.address_bytes), rest.subspan(head.address_bytes, head.handle_bytes)};
        rest = rest.subspan(body);
    }
    return {};
}

std::span<const std::byte> PeerAddressTable::address(std::uint64_t transport, int pe) const {
    return find(transport, pe).address;
}

std::span<const std::byte> PeerAddressTable::handle(std::uint64_t transport, int pe) const {
    return find(transport, pe).handle;
}

namespace {

constexpr std::size_t word_bits = 64;

std::size_t max_local_pes(const HostLayout& layout) {
    int max = 0;
    for (int host = 0; host < layout.hosts(); ++host) max = std::max(max, layout.pes_of(host).count);
    return static_cast<std::size_t>(max);
}

std::uint64_t word_of(const std::vector<bool>& bits, std::size_t word) {
    std::uint64_t value = 0;
    for (std::size_t bit = 0; bit < word_bits && word * word_bits + bit < bits.size(); ++bit)
        value |= std::uint64_t{bits[word * word_bits + bit]} << bit;
    return value;
}

}  // namespace

Result<SharingPes> find_sharing_pes(Bootstrap& bootstrap, const HostLayout& layout, int my_pe,
                                    std::vector<bool> mapped) {
    const auto me = static_cast<std::size_t>(layout.local_index(my_pe));
    mapped[me] = true;
    const auto range = layout.pes_of(layout.host_of(my_pe));
    const std::vector<int> local(range.begin(), range.end());
    // In most jobs this round suffices; the rest grows with the square of the PEs.
    const bool all = std::ranges::count(mapped, false) == 0;
    const auto map_all = gather(bootstrap, static_cast<std::uint64_t>(all));
    if (!map_all.ok()) return map_all.status();
    if (std::ranges::count(map_all.value(), 0U) == 0) return SharingPes{local, layout.hosts() == 1, true};
    MappingMatrix maps(local.size(), std::vector<bool>(local.size()));
    SharingPes sharing_pes{{}, layout.hosts() == 1, false};
    // All hosts need the same number of rounds.
    for (std::size_t word = 0; word * word_bits < max_local_pes(layout); ++word) {
        const auto gathered = gather(bootstrap, word_of(mapped, word));
        if (!gathered.ok()) return gathered.status();
        for (std::size_t a = 0; a < local.size(); ++a)
            for (std::size_t b = word * word_bits; b < std::min(local.size(), (word + 1) * word_bits); ++b)
                maps[a][b] = (gathered.value()[static_cast<std::size_t>(local[a])] >> (b % word_bits) & 1U) != 0;
    }
    for (const auto& row : maps)
        sharing_pes.all_map_all = sharing_pes.all_map_all && std::ranges::count(row, false) == 0;
    for (const int index : sharing_group(static_cast<int>(me), maps))
        sharing_pes.pes.push_back(local[static_cast<std::size_t>(index)]);
    return sharing_pes;
}

}  // namespace npushmem
