// SPDX-License-Identifier: BSD-3-Clause
// Frames of the rendezvous: headers, payloads, and streams of frames on a connection.
#include <sys/socket.h>
#include <unistd.h>

#include "bootstrap/rendezvous/channel.hpp"
#include "bootstrap/rendezvous/messages.hpp"
#include "bootstrap/rendezvous/settings.hpp"
#include "tests/fuzz/targets.hpp"

namespace npushmem::fuzz {
namespace {

using namespace rendezvous;

// What decode() accepts, encode() writes in a form that decode() accepts again, as the same value.
template <class Payload>
void check_payload(Input input) {
    const auto first = Payload::decode(input);
    if (!first) return;
    const Buffer written = first->encode();
    const auto second = Payload::decode(written);
    require(second.has_value(), "an encoded payload is rejected");
    require(second->encode() == written, "a payload changes by encoding and decoding");
}

void check_header(Input input) {
    if (input.size() < FrameHeader::bytes) return;
    const auto header = FrameHeader::parse(input.first<FrameHeader::bytes>());
    if (!header.ok()) return require_message(header.status());
    require(header.value().length <= payload_limit(header.value().type), "a frame exceeds the limit of its type");
    const auto encoded = header.value().encode();
    require(std::ranges::equal(encoded, input.first(FrameHeader::signed_bytes)), "a header changes by encoding");
}

void check_stream(Input input) {
    int ends[2];
    require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0, "no socket pair");
    {
        Channel channel(Socket{ends[0]}, 0, limits::introduction_bytes);
        require(::write(ends[1], input.data(), input.size()) == static_cast<ssize_t>(input.size()), "a short write");
        ::shutdown(ends[1], SHUT_WR);
        bool failed = false;
        while (!failed && channel.fill() == Channel::Input::some) {
            for (auto next = channel.next();; next = channel.next()) {
                require_message(next.status());
                failed = !next.ok();
                if (failed || !next.value()) break;
                require(next.value()->payload.size() <= payload_limit(next.value()->type), "a frame is too long");
            }
        }
    }
    ::close(ends[1]);
}

}  // namespace

// The first byte selects the check.
void frames(Input input) {
    Taker in(input);
    switch (in.byte() % 6) {
        case 0: return check_header(in.rest());
        case 1: return check_payload<Join>(in.rest());
        case 2: return check_payload<Assign>(in.rest());
        case 3: return check_payload<Link>(in.rest());
        case 4: return check_payload<Failure>(in.rest());
        default: return check_stream(in.rest());
    }
}

}  // namespace npushmem::fuzz
