#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string>
#include <type_traits>
#include <utility>

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

std::uint64_t checksum(std::span<const std::byte> bytes) {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const std::byte byte : bytes) hash = (hash ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3;
    return hash;
}

class Writer {
public:
    template <class Number>
    void number(Number value) {
        static_assert(std::is_unsigned_v<Number>);
        for (std::size_t i = 0; i < sizeof value; ++i) {
            bytes_.push_back(static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i) & 0xff));
        }
    }
    void length(std::size_t value) { number(static_cast<std::uint32_t>(value)); }
    void text(const std::string& value) {
        length(value.size());
        for (const char c : value) bytes_.push_back(static_cast<std::byte>(c));
    }
    void append(const std::vector<std::byte>& more) { bytes_.insert(bytes_.end(), more.begin(), more.end()); }
    std::vector<std::byte> take() { return std::move(bytes_); }

private:
    std::vector<std::byte> bytes_;
};

// Reads past the end return zeros and set a flag that the caller checks once, at the end.
class Reader {
public:
    explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}

    template <class Number>
    Number number() {
        if (!has(sizeof(Number))) return 0;
        std::uint64_t value = 0;
        for (std::size_t i = 0; i < sizeof(Number); ++i) value |= std::to_integer<std::uint64_t>(rest_[i]) << (8 * i);
        rest_ = rest_.subspan(sizeof(Number));
        return static_cast<Number>(value);
    }
    // A length whose elements, of at least `min_bytes` bytes each, fit into the rest; 0 otherwise.
    std::size_t length(std::size_t min_bytes) {
        const std::size_t count = number<std::uint32_t>();
        return has(count * min_bytes) ? count : 0;
    }
    std::string text() {
        const std::size_t size = length(1);
        std::string value(reinterpret_cast<const char*>(rest_.data()), size);
        rest_ = rest_.subspan(size);
        return value;
    }
    [[nodiscard]] bool clean() const { return !overrun_ && rest_.empty(); }
    void fail() { overrun_ = true; }

private:
    bool has(std::size_t bytes) {
        overrun_ = overrun_ || bytes > rest_.size();
        return !overrun_;
    }

    std::span<const std::byte> rest_;
    bool overrun_ = false;
};

void write(Writer& out, const NicChoice& nic) {
    out.text(nic.nic);
    out.number(nic.port);
    out.number(nic.rail);
    out.number(nic.rail_number);
    out.number(static_cast<std::uint8_t>(nic.distance));
    out.number(nic.bits_per_second);
    out.number(nic.others);
}

void write(Writer& out, const PeAssignment& pe) {
    out.number(pe.pe);
    out.text(pe.device);
    out.length(pe.nics.size());
    for (const auto& nic : pe.nics) write(out, nic);
    out.text(pe.reason);
}

std::vector<std::byte> payload_of(const Assignment& assignment) {
    Writer out;
    out.text(assignment.method);
    out.length(assignment.pes.size());
    for (const auto& pe : assignment.pes) write(out, pe);
    out.length(assignment.notes.size());
    for (const auto& note : assignment.notes) out.text(note);
    return out.take();
}

DistanceClass read_class(Reader& in) {
    const auto value = in.number<std::uint8_t>();
    if (value >= distance_class_count) in.fail();
    return static_cast<DistanceClass>(value);
}

NicChoice read_nic(Reader& in) {
    NicChoice nic;
    nic.nic = in.text();
    nic.port = in.number<std::uint32_t>();
    nic.rail = in.number<std::uint32_t>();
    nic.rail_number = in.number<std::uint32_t>();
    nic.distance = read_class(in);
    nic.bits_per_second = in.number<std::uint64_t>();
    nic.others = in.number<std::uint32_t>();
    return nic;
}

PeAssignment read_pe(Reader& in) {
    PeAssignment pe;
    pe.pe = in.number<std::uint32_t>();
    pe.device = in.text();
    constexpr std::size_t min_nic_bytes = 29;
    for (std::size_t left = in.length(min_nic_bytes); left > 0; --left) pe.nics.push_back(read_nic(in));
    pe.reason = in.text();
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

Assignment read_assignment(Reader& in) {
    Assignment out;
    out.method = in.text();
    constexpr std::size_t min_pe_bytes = 16;
    for (std::size_t left = in.length(min_pe_bytes); left > 0; --left) out.pes.push_back(read_pe(in));
    for (std::size_t left = in.length(4); left > 0; --left) out.notes.push_back(in.text());
    restore_sharing(out);
    return out;
}

Status malformed(const std::string& what) {
    return {Code::protocol, fmt::format("NIC assignment received from the first PE of this host: {}", what)};
}

Status check_header(std::span<const std::byte> bytes) {
    if (bytes.size() < header_bytes) return malformed(fmt::format("{} bytes are fewer than its header", bytes.size()));
    Reader header(bytes.first(header_bytes));
    if (header.number<std::uint32_t>() != assignment_magic) return malformed("its magic number is wrong");
    const auto found = header.number<std::uint32_t>();
    if (found != version) {
        return malformed(fmt::format(
            "it has version {}, but this library has version {}; run one npushmem version in a job", found, version));
    }
    const auto size = header.number<std::uint64_t>();
    if (size != bytes.size() - header_bytes) {
        return malformed(
            fmt::format("its header announces {} bytes, {} are present", size, bytes.size() - header_bytes));
    }
    if (header.number<std::uint64_t>() != checksum(bytes.subspan(header_bytes)))
        return malformed("its checksum is wrong");
    return {};
}

}  // namespace

std::vector<std::byte> to_bytes(const Assignment& assignment) {
    const auto payload = payload_of(assignment);
    Writer out;
    out.number(assignment_magic);
    out.number(version);
    out.number(static_cast<std::uint64_t>(payload.size()));
    out.number(checksum(payload));
    out.append(payload);
    return out.take();
}

Result<Assignment> assignment_from(std::span<const std::byte> bytes) {
    if (auto sound = check_header(bytes); !sound.ok()) return sound;
    Reader in(bytes.subspan(header_bytes));
    auto assignment = read_assignment(in);
    if (!in.clean()) return malformed("its lengths do not fit its size");
    return assignment;
}

}  // namespace npushmem::topology
