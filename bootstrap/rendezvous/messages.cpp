// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/rendezvous/messages.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>

#include "bootstrap/rendezvous/settings.hpp"
#include "core/base/bytes.hpp"

namespace npushmem::rendezvous {

namespace {

constexpr std::size_t ranges_shown = 12;

// Returns the end of the run of consecutive ranks that begins at `begin`.
std::size_t run_end(const std::vector<int>& ranks, std::size_t begin) {
    std::size_t end = begin + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    return end;
}

}  // namespace

std::string rank_list(const std::vector<int>& ranks) {
    std::string text = ranks.size() == 1 ? "rank " : "ranks ";
    std::size_t shown = 0;
    for (std::size_t begin = 0; begin < ranks.size(); ++shown) {
        if (shown == ranges_shown) return text + fmt::format(" and {} more", ranks.size() - begin);
        const std::size_t end = run_end(ranks, begin);
        text += fmt::format("{}{}", shown == 0 ? "" : ", ", ranks[begin]);
        if (end - begin == 2) text += fmt::format(", {}", ranks[end - 1]);
        if (end - begin > 2) text += fmt::format("-{}", ranks[end - 1]);
        begin = end;
    }
    return text;
}

namespace {

std::string host_name() {
    std::array<char, limits::host_name_bytes + 1> name{};
    if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown";
    return name.data();
}

void encode_handle(const SegmentHandle& handle, ByteWriter& out) {
    out.integer(handle.process).integer(handle.descriptor);
    out.integer(handle.device).integer(handle.inode).integer(handle.bytes);
}

SegmentHandle decode_handle(ByteReader& in) {
    SegmentHandle made;
    made.process = in.integer<std::int32_t>();
    made.descriptor = in.integer<std::int32_t>();
    made.device = in.integer<std::uint64_t>();
    made.inode = in.integer<std::uint64_t>();
    made.bytes = in.integer<std::uint64_t>();
    return made;
}

template <class Message>
std::optional<Message> if_complete(const ByteReader& in, Message message) {
    if (!in.complete()) return std::nullopt;
    return message;
}

}  // namespace

std::string text_of(const Version& version) {
    return fmt::format("{}.{}.{}", version.major, version.minor, version.patch);
}

Identity Identity::of_this_process(int rank) { return {rank, static_cast<std::int32_t>(::getpid()), host_name()}; }

std::string Identity::text() const { return fmt::format("rank {} (pid {} on host {})", rank, pid, host); }

void Identity::encode(ByteWriter& out) const { out.integer(rank).integer(pid).text(host, limits::host_name_bytes); }

Identity Identity::decode(ByteReader& in) {
    Identity made;
    made.rank = in.integer<std::int32_t>();
    made.pid = in.integer<std::int32_t>();
    made.host = in.text(limits::host_name_bytes);
    return made;
}

Buffer Join::encode() const {
    ByteWriter out;
    who.encode(out);
    out.integer(nranks).integer(version.major).integer(version.minor).integer(version.patch);
    out.integer(static_cast<std::int64_t>(timeout.count()));
    listener.encode(out);
    out.integer(host.machine).integer(host.space).integer(host.emulated).integer(host.user);
    encode_handle(memory, out);
    return out.take();
}

std::optional<Join> Join::decode(std::span<const std::byte> payload) {
    ByteReader in(payload);
    Join made;
    made.who = Identity::decode(in);
    made.nranks = in.integer<std::int32_t>();
    made.version.major = in.integer<std::int32_t>();
    made.version.minor = in.integer<std::int32_t>();
    made.version.patch = in.integer<std::int32_t>();
    made.timeout = Milliseconds{in.integer<std::int64_t>()};
    made.listener = Address::decode(in);
    // npushmem 0.2.0 ends here. The session compares the versions.
    if (in.complete()) return made;
    made.host.machine = in.integer<std::uint64_t>();
    made.host.space = in.integer<std::uint64_t>();
    made.host.emulated = in.integer<std::int32_t>();
    made.host.user = in.integer<std::uint32_t>();
    made.memory = decode_handle(in);
    return if_complete(in, made);
}

Buffer Assign::encode() const {
    ByteWriter out;
    out.integer(session);
    parent.encode(out);
    parent_listener.encode(out);
    encode_handle(memory, out);
    return out.take();
}

std::optional<Assign> Assign::decode(std::span<const std::byte> payload) {
    ByteReader in(payload);
    Assign made;
    made.session = in.integer<std::uint32_t>();
    made.parent = Identity::decode(in);
    made.parent_listener = Address::decode(in);
    made.memory = decode_handle(in);
    return if_complete(in, made);
}

Buffer Link::encode() const {
    ByteWriter out;
    who.encode(out);
    return out.take();
}

std::optional<Link> Link::decode(std::span<const std::byte> payload) {
    ByteReader in(payload);
    Link made{Identity::decode(in)};
    return if_complete(in, made);
}

Buffer Failure::encode() const {
    return ByteWriter()
        .integer(static_cast<std::int32_t>(cause.code()))
        .text(cause.message(), limits::abort_text_bytes)
        .take();
}

std::optional<Failure> Failure::decode(std::span<const std::byte> payload) {
    ByteReader in(payload);
    const auto number = in.integer<std::int32_t>();
    std::string text = in.text(limits::abort_text_bytes);
    // A code that is not a failure must not turn one rank's failure into another's success.
    const Code code = number < 0 ? static_cast<Code>(number) : Code::aborted;
    return if_complete(in, Failure{Status{code, std::move(text)}});
}

}  // namespace npushmem::rendezvous
