// A connection that speaks frames, without ever waiting: what it cannot send is queued, what has not arrived is not
// there yet. Until secure() is called it carries hello and challenge only; from then on every frame is signed, and one
// that does not verify ends the conversation.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>

#include "bootstrap/rendezvous/frame.hpp"
#include "bootstrap/rendezvous/socket.hpp"

namespace npushmem::rendezvous {

class Channel {
public:
    using Parts = std::initializer_list<std::span<const std::byte>>;
    enum class Input { some, nothing, end };

    // `session` is written into every frame and expected in every frame. `longest_payload` bounds what a peer can make
    // us hold, below the limits of the frame types.
    Channel(Socket socket, std::uint32_t session, std::size_t longest_payload);

    [[nodiscard]] const Socket& socket() const { return socket_; }
    [[nodiscard]] int fd() const { return socket_.fd(); }

    void secure(const SipKey& sending, const SipKey& receiving);
    void allow_payload(std::size_t longest) { longest_payload_ = longest; }

    // Appends one frame to what flush() sends.
    void queue(FrameType type, Parts payload);
    // Sends what the socket takes. What a closed connection does not take is dropped: reading tells why it closed.
    void flush();
    [[nodiscard]] std::size_t queued() const { return out_.size() - sent_; }
    // The peer takes nothing more.
    [[nodiscard]] bool send_closed() const { return send_closed_; }

    // Takes in what has arrived, at most about one frame.
    Input fill();
    // The next whole frame, verified; none when it is not there yet; a failure when the bytes cannot be believed.
    Result<std::optional<Frame>> next();
    // The payload of the next whole frame before its tag was checked: a challenge holds what is needed to check it.
    Result<std::optional<Frame>> peek() const;

    // Sends the rest if that needs no waiting, and ends the stream.
    void finish();

private:
    [[nodiscard]] Result<std::optional<FrameHeader>> header() const;
    [[nodiscard]] Status verify(const FrameHeader& header, std::span<const std::byte> payload) const;
    [[nodiscard]] std::span<const std::byte> unread() const { return std::span(in_).subspan(taken_); }
    [[nodiscard]] std::size_t missing_bytes() const;

    Socket socket_;
    std::uint32_t session_;
    std::size_t longest_payload_;
    std::optional<SipKey> send_key_;
    std::optional<SipKey> receive_key_;
    std::uint64_t send_sequence_ = 0;
    std::uint64_t receive_sequence_ = 0;
    bool send_closed_ = false;
    Buffer out_;
    std::size_t sent_ = 0;  // bytes of out_ that the socket took
    Buffer in_;
    std::size_t taken_ = 0;  // bytes of in_ that next() gave away
};

}  // namespace npushmem::rendezvous
