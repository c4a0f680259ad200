// SPDX-License-Identifier: BSD-3-Clause
// Unique ids as bytes and as hex digits, start messages that carry them, and addresses.
#include "bootstrap/rendezvous/unique_id.hpp"

#include "bootstrap/launcher/launched_job.hpp"
#include "core/base/address.hpp"
#include "core/base/bytes.hpp"
#include "tests/fuzz/targets.hpp"

namespace npushmem::fuzz {
namespace {

using namespace rendezvous;

void check_id(const Result<UniqueId>& id) {
    if (!id.ok()) return require_message(id.status());
    const UniqueIdBytes written = id.value().encode();
    const auto again = UniqueId::decode(written);
    require(again.ok(), "an encoded id is rejected");
    require(again.value().encode() == written, "an id changes by encoding and decoding");
}

// Makes an id from the input; the input's last bytes change one byte of it, which decode() must detect.
void check_made_id(Taker& in) {
    const Address service = Address::parse("10.0.0.1", static_cast<std::uint16_t>(1 + in.byte())).value();
    const std::string session = in.line();
    const std::string password = in.line();
    UniqueIdBytes id = UniqueId::from_session(service, session, password).encode();
    require(UniqueId::decode(id).ok(), "a made id is rejected");
    const std::uint8_t at = in.byte() % NPUSHMEM_UNIQUEID_BYTES;
    const std::uint8_t flipped = in.byte();
    id[at] ^= std::byte{flipped};
    if (flipped != 0) require(!UniqueId::decode(id).ok(), "a damaged id is accepted");
}

void check_address(const std::string& text) {
    const auto address = Address::parse(text, 4000);
    if (!address.ok()) return require_message(address.status());
    const auto again = Address::parse(address.value().host_text(), 4000);
    require(again.ok() && again.value() == address.value(), "an address changes by formatting: " + text);
    ByteWriter out;
    address.value().encode(out);
    const Buffer encoded = out.take();
    ByteReader in(encoded);
    require(Address::decode(in) == address.value() && in.complete(), "an address changes by encoding: " + text);
}

void check_interface_choice(Taker& in) {
    const std::string pattern = in.line();
    std::vector<Interface> interfaces;
    for (int i = 0; i < 8 && !in.empty(); ++i) {
        const std::string name = in.line();
        const auto address = Address::parse(in.line(), 0);
        interfaces.push_back({name, address.ok() ? address.value() : Address{}, i % 3 != 2});
    }
    const auto chosen = choose_interface(interfaces, pattern, Family::none, "NPUSHMEM_BOOTSTRAP_UID_SOCK_");
    require_message(chosen.status());
    const auto offered = [&](const Interface& each) { return each.address == chosen.value(); };
    require(!chosen.ok() || std::ranges::any_of(interfaces, offered), "an address of no interface is chosen");
}

}  // namespace

// The first byte selects the check.
void unique_id(Input input) {
    Taker in(input);
    switch (in.byte() % 6) {
        case 0: {
            UniqueIdBytes id{};
            std::ranges::copy(in.bytes(id.size()), id.begin());
            return check_id(UniqueId::decode(id));
        }
        case 1: return check_id(UniqueId::decode_hex(std::string(text_of(in.rest()))));
        case 2: return check_id(launcher::decode_start_message(std::string(text_of(in.rest()))));
        case 3: return check_made_id(in);
        case 4: return check_address(std::string(text_of(in.rest())));
        default: return check_interface_choice(in);
    }
}

}  // namespace npushmem::fuzz
