#include "core/runtime/contact_book.hpp"

#include <cstring>

namespace npushmem {

namespace {

// Packed form of a contact: this head, then the address, then the handle.
struct Head {
    std::uint64_t transport;
    std::uint32_t address_bytes;
    std::uint32_t handle_bytes;
};

void append(Bytes& to, std::span<const std::byte> bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

}  // namespace

Bytes pack_contacts(std::span<const Contact> contacts) {
    Bytes packed;
    for (const auto& contact : contacts) {
        const Head head{contact.transport, static_cast<std::uint32_t>(contact.address.size()),
                        static_cast<std::uint32_t>(contact.handle.size())};
        append(packed, std::as_bytes(std::span(&head, 1)));
        append(packed, contact.address);
        append(packed, contact.handle);
    }
    return packed;
}

ContactBook::Found ContactBook::find(std::uint64_t transport, int pe) const {
    if (pe < 0 || pe >= npes_) return {};
    for (auto rest = gathered_.of(pe); rest.size() >= sizeof(Head);) {
        Head head{};
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

std::span<const std::byte> ContactBook::address(std::uint64_t transport, int pe) const {
    return find(transport, pe).address;
}

std::span<const std::byte> ContactBook::handle(std::uint64_t transport, int pe) const {
    return find(transport, pe).handle;
}

}  // namespace npushmem
