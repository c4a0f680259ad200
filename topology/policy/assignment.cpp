// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "core/base/bytes.hpp"
#include "core/base/hash.hpp"
#include "core/base/nic_rails.hpp"
#include "topology/policy/assignment.hpp"

namespace npushmem::topology {
namespace {

constexpr std::size_t max_pes_named = 4;

std::string_view where(const NicChoice& nic, const ReasonFacts& facts) {
    return facts.place_known ? path_of(nic.distance) : "at an unknown place, which counts as farthest";
}

std::string why_this_one(const NicChoice& nic, const ReasonFacts& facts) {
    if (!facts.decided_by.empty()) {
        return fmt::format("{}{}, {} ({})", facts.decided_by, name_of(nic), where(nic, facts), name_of(nic.distance));
    }
    if (facts.equally_near == 1) {
        return fmt::format("{} is the nearest, {} ({})", name_of(nic), where(nic, facts), name_of(nic.distance));
    }
    return fmt::format("{} is one of the {} nearest, {} ({})", name_of(nic), facts.equally_near, where(nic, facts),
                       name_of(nic.distance));
}

std::string others_text(std::uint32_t others) {
    return others == 1 ? "1 PE of another job" : fmt::format("{} PEs of other jobs", others);
}

std::string sharing(const NicChoice& nic) {
    if (nic.shared_with.empty() && nic.others == 0) return "not shared";
    if (nic.shared_with.empty()) return fmt::format("shared with {}", others_text(nic.others));
    const auto own = pes_text(nic.shared_with);
    if (nic.others == 0) return fmt::format("shared with {}", own);
    return fmt::format("shared with {}, and with {}", own, others_text(nic.others));
}

std::string besides(const std::vector<NicChoice>& nics) {
    if (nics.size() == 1) return {};
    std::string names;
    for (std::size_t i = 1; i < nics.size(); ++i) {
        names += fmt::format("{}{} ({})", i == 1 ? "" : ", ", name_of(nics[i]), name_of(nics[i].distance));
    }
    return fmt::format("; besides {}, because there are more NICs than PEs", names);
}

}  // namespace

std::string name_of(const NicChoice& nic) { return fmt::format("{}:{}", nic.nic, nic.port); }

std::string pes_text(const std::vector<std::uint32_t>& pes) {
    if (pes.size() == 1) return fmt::format("PE {}", pes.front());
    const std::size_t named = pes.size() > max_pes_named ? max_pes_named : pes.size() - 1;
    const std::vector<std::uint32_t> first(pes.begin(), pes.begin() + static_cast<std::ptrdiff_t>(named));
    if (pes.size() <= max_pes_named) return fmt::format("PEs {} and {}", fmt::join(first, ", "), pes.back());
    return fmt::format("PEs {} and {} more", fmt::join(first, ", "), pes.size() - named);
}

std::string reason_of(const std::vector<NicChoice>& nics, const ReasonFacts& facts) {
    const auto& first = nics.front();
    std::string reason = fmt::format("{}, {}{}", why_this_one(first, facts), sharing(first), besides(nics));
    if (!facts.nearer.empty()) reason += fmt::format("; {} would be nearer", facts.nearer);
    return reason;
}

namespace {

std::vector<RailId> rail_ids(const PeAssignment& pe) {
    std::vector<RailId> out;
    for (const auto& nic : pe.nics) out.push_back({nic.rail_number, false, {}});
    return out;
}

}  // namespace

std::vector<NicPair> pair_nics(const PeAssignment& mine, const PeAssignment& peer) {
    const auto own = rail_ids(mine);
    const auto others = rail_ids(peer);
    std::vector<NicPair> out;
    for (const auto& [i, j] : pair_rails(static_cast<int>(mine.pe), own, static_cast<int>(peer.pe), others))
        out.push_back({mine.nics[i], peer.nics[j], pairing_reason(own[i], others[j])});
    return out;
}

namespace {

constexpr std::uint32_t assignment_magic = 0x4154504e;  // "NPTA" as little-endian bytes
constexpr std::uint32_t version = 4;
constexpr std::size_t header_bytes = 24;

std::uint64_t checksum(std::span<const std::byte> bytes) { return fnv1a<std::uint64_t>(bytes); }

void write_count(ByteWriter& out, std::size_t count) { out.integer(static_cast<std::uint32_t>(count)); }

void write_text(ByteWriter& out, const std::string& value) {
    write_count(out, value.size());
    out.bytes(std::as_bytes(std::span(value)));
}

std::string read_text(ByteReader& in) {
    const auto characters = in.take(in.count(1));
    return {reinterpret_cast<const char*>(characters.data()), characters.size()};
}

void write(ByteWriter& out, const NicChoice& nic) {
    write_text(out, nic.nic);
    out.integer(nic.port);
    out.integer(nic.rail);
    out.integer(nic.rail_number);
    out.integer(static_cast<std::uint8_t>(nic.distance));
    out.integer(nic.bits_per_second);
    out.integer(nic.others);
}

void write(ByteWriter& out, const PeAssignment& pe) {
    out.integer(pe.pe);
    write_text(out, pe.device);
    write_count(out, pe.nics.size());
    for (const auto& nic : pe.nics) write(out, nic);
    write_text(out, pe.reason);
}

std::vector<std::byte> payload_of(const Assignment& assignment) {
    ByteWriter out;
    write_text(out, assignment.method);
    write_count(out, assignment.pes.size());
    for (const auto& pe : assignment.pes) write(out, pe);
    write_count(out, assignment.notes.size());
    for (const auto& note : assignment.notes) write_text(out, note);
    return out.take();
}

DistanceClass read_class(ByteReader& in) {
    const auto value = in.integer<std::uint8_t>();
    if (value >= distance_class_count) in.fail();
    return static_cast<DistanceClass>(value);
}

NicChoice read_nic(ByteReader& in) {
    NicChoice nic;
    nic.nic = read_text(in);
    nic.port = in.integer<std::uint32_t>();
    nic.rail = in.integer<std::uint32_t>();
    nic.rail_number = in.integer<std::uint32_t>();
    nic.distance = read_class(in);
    nic.bits_per_second = in.integer<std::uint64_t>();
    nic.others = in.integer<std::uint32_t>();
    return nic;
}

PeAssignment read_pe(ByteReader& in) {
    PeAssignment pe;
    pe.pe = in.integer<std::uint32_t>();
    pe.device = read_text(in);
    constexpr std::size_t min_nic_bytes = 29;
    for (std::size_t left = in.count(min_nic_bytes); left > 0; --left) pe.nics.push_back(read_nic(in));
    pe.reason = read_text(in);
    return pe;
}

// Recomputes NicChoice::shared_with. The bytes omit it: on a host with many PEs and one NIC it would be the largest
// part.
void restore_sharing(Assignment& assignment) {
    std::map<std::pair<std::string, std::uint32_t>, std::vector<std::uint32_t>> users;
    for (const auto& pe : assignment.pes) {
        for (const auto& nic : pe.nics) users[{nic.nic, nic.port}].push_back(pe.pe);
    }
    for (auto& pe : assignment.pes) {
        for (auto& nic : pe.nics) {
            nic.shared_with = users[{nic.nic, nic.port}];
            std::erase(nic.shared_with, pe.pe);
        }
    }
}

Assignment read_assignment(ByteReader& in) {
    Assignment out;
    out.method = read_text(in);
    constexpr std::size_t min_pe_bytes = 16;
    for (std::size_t left = in.count(min_pe_bytes); left > 0; --left) out.pes.push_back(read_pe(in));
    for (std::size_t left = in.count(4); left > 0; --left) out.notes.push_back(read_text(in));
    restore_sharing(out);
    return out;
}

Status malformed(const std::string& what) {
    return {Code::protocol, fmt::format("NIC assignment received from the first PE of this host: {}", what)};
}

Status check_header(std::span<const std::byte> bytes) {
    if (bytes.size() < header_bytes) return malformed(fmt::format("{} bytes are fewer than its header", bytes.size()));
    ByteReader header(bytes.first(header_bytes));
    if (header.integer<std::uint32_t>() != assignment_magic) return malformed("its magic number is wrong");
    const auto found = header.integer<std::uint32_t>();
    if (found != version) {
        return malformed(fmt::format(
            "it has version {}, but this library has version {}; run one npushmem version in a job", found, version));
    }
    const auto size = header.integer<std::uint64_t>();
    if (size != bytes.size() - header_bytes) {
        return malformed(
            fmt::format("its header announces {} bytes, {} are present", size, bytes.size() - header_bytes));
    }
    if (header.integer<std::uint64_t>() != checksum(bytes.subspan(header_bytes)))
        return malformed("its checksum is wrong");
    return {};
}

}  // namespace

std::vector<std::byte> to_bytes(const Assignment& assignment) {
    const auto payload = payload_of(assignment);
    ByteWriter out;
    out.integer(assignment_magic);
    out.integer(version);
    out.integer(static_cast<std::uint64_t>(payload.size()));
    out.integer(checksum(payload));
    out.bytes(payload);
    return out.take();
}

Result<Assignment> assignment_from(std::span<const std::byte> bytes) {
    if (auto sound = check_header(bytes); !sound.ok()) return sound;
    ByteReader in(bytes.subspan(header_bytes));
    auto assignment = read_assignment(in);
    if (!in.complete()) return malformed("its lengths do not fit its size");
    return assignment;
}

}  // namespace npushmem::topology
