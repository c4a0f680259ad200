#include "topology/assignment_bytes.hpp"

#include <fmt/format.h>

#include <map>
#include <string>
#include <type_traits>
#include <utility>

namespace npushmem::topology {
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

// Reads past the end give zeros and set a flag that the caller asks for once, at the end.
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
    // A length whose elements, of at least `min_bytes` bytes each, fit into what is left; 0 otherwise.
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

// Who shares a NIC follows from who has it, so it is not sent: on a host with many PEs and one NIC it would be the
// most.
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
    if (bytes.size() < header_bytes) return malformed(fmt::format("{} bytes are less than its header", bytes.size()));
    Reader header(bytes.first(header_bytes));
    if (header.number<std::uint32_t>() != assignment_magic) return malformed("these bytes are something else");
    const auto found = header.number<std::uint32_t>();
    if (found != version) {
        return malformed(
            fmt::format("version {} where this library has {}; run one npushmem version in a job", found, version));
    }
    const auto size = header.number<std::uint64_t>();
    if (size != bytes.size() - header_bytes) {
        return malformed(fmt::format("{} bytes announced, {} present", size, bytes.size() - header_bytes));
    }
    if (header.number<std::uint64_t>() != checksum(bytes.subspan(header_bytes)))
        return malformed("its check sum is wrong");
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
