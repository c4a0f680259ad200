// SPDX-License-Identifier: BSD-3-Clause
// Messages of peers, as they arrive at a network transport that has operations of its own under way.
#include <cstring>

#include "tests/fuzz/targets.hpp"
#include "tests/unit/transports/network/network_world.hpp"

namespace npushmem::fuzz {
namespace {

constexpr std::size_t max_messages = 64;
constexpr std::size_t unsigned_size = 127;

// PE 0 of three. Its registered memory lies between words that no message may change.
class Receiver {
public:
    Receiver() {
        world_.start();
        std::ranges::fill(world_.words[1], outside);
        std::ranges::fill(world_.words[2], outside);
        npushmem_atomic fetch = world_.atomic(1, NPUSHMEM_ATOMIC_FETCH_ADD, 0, 1);
        fetch.result = &fetched_[1];
        std::uint64_t token = 0;
        (void)world_.at(0).atomic(world_.queue[0], fetch, &token);
    }
    // Delivers the message as if PE 1 had sent it, whichever origin it names.
    void deliver_signed(Input message) {
        deliver(message.size() < sizeof(network::MessageHeader) ? Bytes(message.begin(), message.end())
                                                                : world_.signed_message(0, message));
    }
    void deliver(Input message) {
        (void)world_.wires[1]->send({0, 0}, message, {});
        while (world_.network.step()) (void)world_.at(0).progress();
        (void)world_.at(0).progress();
    }
    void check() {
        require(fetched_[0] == outside && fetched_[2] == outside, "an answer exceeds its destination");
        for (const int pe : {1, 2})
            for (const std::uint64_t word : world_.words[static_cast<std::size_t>(pe)])
                require(word == outside, "a message to PE 0 changes memory of another PE");
        npushmem_event event{};
        event.struct_size = sizeof event;
        for (std::size_t i = 0; world_.at(0).poll_event(event) == Code::ok; ++i) {
            require(i <= 2 * max_messages, "more events than messages");
            require(event.message[0] != '\0', "an event has no message");
        }
    }

private:
    static constexpr std::uint64_t outside = 0x5a5a5a5a5a5a5a5a;
    fakes::World world_{network::Delivery::in_order};
    std::array<std::uint64_t, 3> fetched_{outside, outside, outside};
};

}  // namespace

// A sequence of messages: the length of each in one byte, then its bytes. From 128 on: the kind of the message in the
// next byte, which gets a valid header, and 128 bytes fewer behind it. The tag is valid, except in messages of 127
// bytes.
void network_messages(Input input) {
    Receiver receiver;
    Taker in(input);
    for (std::size_t i = 0; i < max_messages && !in.empty(); ++i) {
        std::uint8_t length = in.byte();
        Bytes message;
        if (length >= 128) {
            const auto kind = static_cast<network::MessageKind>(in.byte());
            const auto head = network::make_message<network::MessageHeader>(kind, 1 + length % 2);
            const auto bytes = network::bytes_of(head);
            message.assign(bytes.begin(), bytes.end());
            length -= 128;
        }
        const Input rest = in.bytes(length);
        message.insert(message.end(), rest.begin(), rest.end());
        if (message.size() == unsigned_size)
            receiver.deliver(message);
        else
            receiver.deliver_signed(message);
    }
    receiver.check();
}

}  // namespace npushmem::fuzz
