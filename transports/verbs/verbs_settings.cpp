#include "transports/verbs/verbs_settings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <bit>
#include <cstdlib>
#include <string>

#include "core/base/parse.hpp"
#include "core/base/strings.hpp"

namespace npushmem::verbs {
namespace {

// Reads rows one after the other; the first that is wrong is kept.
class Reader {
public:
    explicit Reader(const Host& host) : host_(host) {}

    template <class Number>
    void integer(const char* name, std::int64_t low, std::int64_t high, Number& into) {
        const auto parsed = parse_integer(text(name, std::to_string(into)), low, high);
        if (!parsed.ok()) return fail(name, parsed.status().message());
        into = static_cast<Number>(parsed.value());
    }
    // One of `words`, any case; its index.
    template <std::size_t count>
    void word(const char* name, const std::array<const char*, count>& words, std::size_t& into) {
        const std::string given = lowercase(text(name, words[into]));
        for (std::size_t i = 0; i < count; ++i)
            if (given == lowercase(words[i])) {
                into = i;
                return;
            }
        fail(name, fmt::format("'{}' is none of {}", given, fmt::join(words, ", ")));
    }
    void boolean(const char* name, bool& into) {
        const auto parsed = parse_bool(text(name, into ? "1" : "0"));
        if (!parsed.ok()) return fail(name, parsed.status().message());
        into = parsed.value();
    }
    void size(const char* name, std::uint64_t low, std::uint64_t& into) {
        const auto parsed = parse_size(text(name, std::to_string(into)));
        if (!parsed.ok()) return fail(name, parsed.status().message());
        if (parsed.value().value < low || !std::has_single_bit(parsed.value().value))
            return fail(name, fmt::format("{} is no power of two of at least {}", format_size(parsed.value().value),
                                          format_size(low)));
        into = parsed.value().value;
    }
    void any_size(const char* name, std::uint64_t& into) {
        const auto parsed = parse_size(text(name, std::to_string(into)));
        if (!parsed.ok()) return fail(name, parsed.status().message());
        into = parsed.value().value;
    }
    // Or 0.
    void size_or_none(const char* name, std::uint64_t low, std::uint64_t& into) {
        const auto parsed = parse_size(text(name, std::to_string(into)));
        if (parsed.ok() && parsed.value().value == 0)
            into = 0;
        else
            size(name, low, into);
    }
    void fail(const char* name, const std::string& why) {
        if (status_.ok()) status_ = {Code::config, fmt::format("NPUSHMEM_{}: {}", name, why)};
    }
    [[nodiscard]] std::string text(const char* name, const std::string& otherwise) const {
        return host_.config(name, otherwise);
    }
    [[nodiscard]] const Status& status() const { return status_; }

private:
    const Host& host_;
    Status status_;
};

void read_pkey(Reader& reader, std::uint16_t& into) {
    const std::string given = reader.text("IB_PKEY", "0");
    char* end = nullptr;
    const unsigned long value = std::strtoul(given.c_str(), &end, 0);
    const bool begins_with_digit = !given.empty() && given.front() >= '0' && given.front() <= '9';
    if (!begins_with_digit || *end != '\0' || value > 0xffff)
        return reader.fail("IB_PKEY", fmt::format("'{}' is no partition key: 0x0001 to 0xffff, or 0 for the port's "
                                                  "first",
                                                  given));
    into = static_cast<std::uint16_t>(value);
}

void read_range(Reader& reader, std::optional<GidRange>& into) {
    const std::string given = reader.text("IB_ADDR_RANGE", "");
    // All addresses of IPv6 is how others write that any will do, of either family.
    if (given.empty() || given == "::/0") return;
    auto parsed = GidRange::parse(given);
    if (!parsed.ok()) return reader.fail("IB_ADDR_RANGE", parsed.status().message());
    into = std::move(parsed).value();
}

void read_mtu(Reader& reader, int& into) {
    reader.integer("IB_MTU", 0, 4096, into);
    if (into != 0 && (into < 256 || !std::has_single_bit(static_cast<unsigned>(into))))
        reader.fail("IB_MTU", fmt::format("{} is none of 0, 256, 512, 1024, 2048, 4096", into));
}

NativeAtomics read_atomics(Reader& reader) {
    bool disabled = false;
    reader.boolean("DISABLE_IB_NATIVE_ATOMICS", disabled);
    std::size_t chosen = 0;
    reader.word("IB_NATIVE_ATOMICS", std::array{"auto", "always"}, chosen);
    if (disabled) return NativeAtomics::never;
    return chosen == 0 ? NativeAtomics::if_coherent : NativeAtomics::always;
}

}  // namespace

Result<VerbsSettings> read_verbs_settings(const Host& host) {
    Reader reader(host);
    VerbsSettings out;
    reader.integer("IB_GID_INDEX", -1, 255, out.gid_index);
    reader.integer("IB_ROCE_VERSION_NUM", 1, 2, out.roce_version);
    std::size_t family = 0;
    reader.word("IB_ADDR_FAMILY", std::array{"AF_INET", "AF_INET6"}, family);
    out.family = family == 0 ? AddressFamily::ipv4 : AddressFamily::ipv6;
    read_range(reader, out.range);
    reader.integer("IB_SL", 0, 15, out.service_level);
    reader.integer("IB_TRAFFIC_CLASS", 0, 255, out.traffic_class);
    read_pkey(reader, out.pkey);
    read_mtu(reader, out.mtu);
    reader.integer("IB_RETRY_COUNT", 0, 7, out.retry_count);
    reader.integer("IB_TIMEOUT", 1, 31, out.timeout);
    reader.integer("QP_DEPTH", 16, 65536, out.queue_depth);
    reader.size("VERBS_REGISTER_CHUNK", 4096, out.chunk_bytes);
    reader.size_or_none("VERBS_STRIPE_BYTES", 4096, out.stripe_bytes);
    reader.any_size("VERBS_REGISTRATION_CACHE", out.cache_bytes);
    out.atomics = read_atomics(reader);
    if (!reader.status().ok()) return reader.status();
    auto rails = parse_nic_rails(host.config("NIC_RAILS", ""));
    if (!rails.ok()) return rails.status();
    out.nic_rails = std::move(rails).value();
    return out;
}

}  // namespace npushmem::verbs
