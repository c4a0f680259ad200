#include "bootstrap/launcher/start_message.hpp"

#include <fmt/format.h>

#include <charconv>

#include "bootstrap/launcher/launcher.hpp"

namespace npushmem::launcher {
namespace {

constexpr char id_mark = 'i';
constexpr char failure_mark = 'f';

std::string hex(std::span<const std::byte> bytes) {
    std::string out;
    for (const std::byte byte : bytes) out += fmt::format("{:02x}", static_cast<unsigned>(byte));
    return out;
}

std::string text_of_hex(std::string_view digits) {
    std::string out;
    for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
        unsigned char value = '?';
        std::from_chars(digits.data() + i, digits.data() + i + 2, value, 16);
        out.push_back(static_cast<char>(value));
    }
    return out;
}

}  // namespace

std::string encode_start_message(const Result<rendezvous::UniqueId>& served) {
    if (served.ok()) return id_mark + hex(served.value().encode());
    const std::string message = served.status().message().substr(0, (start_message_characters - 1) / 2);
    return failure_mark + hex(std::as_bytes(std::span(message)));
}

Result<rendezvous::UniqueId> decode_start_message(const std::string& message) {
    if (message.starts_with(id_mark)) return rendezvous::UniqueId::decode_hex(message.substr(1));
    if (!message.starts_with(failure_mark))
        return Status{Code::protocol,
                      fmt::format("rank 0 gave '{}', which tells nothing that a start of npushmem says; "
                                  "do all ranks run the same program?",
                                  message.substr(0, 64))};
    return Status{Code::aborted,
                  "rank 0 cannot serve the start of the job: " + text_of_hex(std::string_view(message).substr(1))};
}

}  // namespace npushmem::launcher
