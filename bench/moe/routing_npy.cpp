// SPDX-License-Identifier: BSD-3-Clause
#include "bench/moe/routing_npy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <string>
#include <vector>

#include "bench/moe/routing_binary.hpp"

namespace npushmem::moe {

namespace {

constexpr std::string_view npy_magic("\x93NUMPY", 6);
constexpr std::size_t max_header_bytes = 65536;

std::uint64_t little_endian(std::string_view bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
    return value;
}

class NpyReader {
public:
    NpyReader(std::string_view bytes, std::string_view name) : bytes_(bytes), name_(name) {}

    Status read_header() {
        if (bytes_.size() < npy_magic.size() + 2) return cut_off("its magic string and version");
        const int version = static_cast<unsigned char>(bytes_[npy_magic.size()]);
        if (version < 1 || version > 3)
            return refuse(fmt::format("it is of version {}, this program reads 1 to 3", version));
        const std::size_t length_at = npy_magic.size() + 2;
        const std::size_t length_bytes = version == 1 ? 2 : 4;
        if (bytes_.size() < length_at + length_bytes) return cut_off("the length of its header");
        const std::uint64_t length = little_endian(bytes_.substr(length_at, length_bytes));
        if (length > max_header_bytes)
            return refuse(fmt::format("its header has {} bytes, at most {} are accepted", length, max_header_bytes));
        const std::size_t data_at = length_at + length_bytes + length;
        if (bytes_.size() < data_at) return cut_off("its header");
        header_ = bytes_.substr(length_at + length_bytes, length);
        data_ = bytes_.substr(data_at);
        if (Status s = read_dictionary(); !s.ok()) return s;
        return check_shape();
    }

    [[nodiscard]] std::int32_t layers() const { return static_cast<std::int32_t>(shape_[1]); }

    Result<Routing> routing(const NpySelection& selection) {
        const auto [tokens, layers, top_k] = shape_;
        if (selection.layer < 0 || static_cast<std::uint64_t>(selection.layer) >= layers)
            return refuse(fmt::format("layer {} is asked for, it has layers 0 to {}", selection.layer, layers - 1));
        if (selection.ranks < 1)
            return refuse(fmt::format("{} ranks are asked for, must be 1 or more", selection.ranks));
        Routing routing;
        routing.model = "npy";
        routing.origin = fmt::format("{}, layer {} of {}", name_, selection.layer, layers);
        routing.top_k = static_cast<std::int32_t>(top_k);
        if (routing.experts = selection.experts; routing.experts == 0) {
            auto experts = largest_number_plus_one();
            if (!experts.ok()) return experts.status();
            routing.experts = experts.value();
        }
        const auto ranks = static_cast<std::uint64_t>(selection.ranks);
        std::uint64_t token = 0;
        for (std::uint64_t rank = 0; rank < ranks; ++rank) {
            const std::uint64_t end = token + tokens / ranks + (rank < tokens % ranks ? 1 : 0);
            auto& ids = routing.expert_ids.emplace_back();
            for (; token < end; ++token) {
                for (std::uint64_t k = 0; k < top_k; ++k) {
                    const std::int64_t id =
                        number((token * layers + static_cast<std::uint64_t>(selection.layer)) * top_k + k);
                    if (id < no_expert || id >= routing.experts) {
                        return refuse(
                            fmt::format("token {}, layer {}, choice {}: is {}, must be from 0 to {}, or -1 for none",
                                        token, selection.layer, k, id, routing.experts - 1));
                    }
                    ids.push_back(static_cast<std::int32_t>(id));
                }
            }
            routing.weights.emplace_back(ids.size(), 1.0F / static_cast<float>(top_k));
        }
        return routing;
    }

private:
    [[nodiscard]] Status refuse(const std::string& problem) const {
        return {Code::argument, fmt::format("routing file '{}', npy: {}", name_, problem)};
    }
    [[nodiscard]] Status cut_off(const char* part) const {
        return refuse(fmt::format("it ends after {} bytes, in {}; was it cut off?", bytes_.size(), part));
    }
    [[nodiscard]] Status refuse_header(const char* expected) const {
        return refuse(fmt::format("byte {} of its header: expected {}", at_, expected));
    }

    // The header is a Python dictionary with the keys descr, fortran_order and shape, in any order.
    Status read_dictionary() {
        std::array<bool, 3> seen{};
        if (!take('{')) return refuse_header("'{'");
        while (!take('}')) {
            const auto key = take_string();
            constexpr std::array<std::string_view, 3> keys{"descr", "fortran_order", "shape"};
            const auto found = std::ranges::find(keys, key);
            if (found == keys.end() || seen[static_cast<std::size_t>(found - keys.begin())])
                return refuse_header("one each of the keys 'descr', 'fortran_order' and 'shape' before it");
            seen[static_cast<std::size_t>(found - keys.begin())] = true;
            if (!take(':')) return refuse_header("':'");
            Status value = key == "descr" ? read_type() : key == "shape" ? read_shape() : read_order();
            if (!value.ok()) return value;
            if (!take(',') && peek() != '}') return refuse_header("',' or '}'");
        }
        if (peek() != '\0' || at_ != header_.size()) return refuse_header("its end");
        return std::ranges::count(seen, true) == 3 ? Status{}
                                                   : refuse_header("all of descr, fortran_order and shape before it");
    }

    Status read_type() {
        const std::string_view type = take_string();
        for (const std::string_view known : {"|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8"}) {
            if (type != known) continue;
            is_signed_ = type[1] == 'i';
            item_bytes_ = static_cast<std::size_t>(type[2] - '0');
            return {};
        }
        return refuse(
            fmt::format("its type is '{}', must be one of |i1, |u1, <i2, <u2, <i4, <u4, <i8: integers, little-endian",
                        type.substr(0, 16)));
    }

    Status read_order() {
        if (take_word("False")) return {};
        if (take_word("True"))
            return refuse("it is in Fortran order; save numpy.ascontiguousarray of the array, which is in C order");
        return refuse_header("True or False");
    }

    Status read_shape() {
        if (!take('(')) return refuse_header("'('");
        std::vector<std::uint64_t> sizes;
        while (!take(')')) {
            (void)peek();
            std::uint64_t size = 0;
            const char* first = header_.data() + at_;
            const auto [end, error] = std::from_chars(first, header_.data() + header_.size(), size);
            if (error != std::errc{}) return refuse_header("a size of 64 bits");
            at_ += static_cast<std::size_t>(end - first);
            sizes.push_back(size);
            if (!take(',') && peek() != ')') return refuse_header("',' or ')'");
        }
        if (sizes.size() != shape_.size())
            return refuse(fmt::format("it has {} dimensions, must have 3: [tokens, layers, choices]", sizes.size()));
        std::ranges::copy(sizes, shape_.begin());
        return {};
    }

    // Compares all sizes with the file's before anything of such a size is allocated. The limits keep token_bytes in 64
    // bits.
    Status check_shape() {
        const auto [tokens, layers, top_k] = shape_;
        if (layers < 1 || layers > static_cast<std::uint64_t>(largest_number) || top_k < 1 ||
            top_k > static_cast<std::uint64_t>(max_file_top_k) ||
            tokens > static_cast<std::uint64_t>(max_file_tokens)) {
            return refuse(fmt::format(
                "its shape is ({}, {}, {}), must be at most {} tokens, from 1 layer, and from 1 to {} choices", tokens,
                layers, top_k, max_file_tokens, max_file_top_k));
        }
        const std::uint64_t token_bytes = layers * top_k * item_bytes_;
        if (tokens == data_.size() / token_bytes && data_.size() % token_bytes == 0) return {};
        return refuse(fmt::format("it has {} bytes of data, must have {} tokens of {} bytes; {}", data_.size(), tokens,
                                  token_bytes,
                                  data_.size() / token_bytes < tokens ? "was it cut off?" : "what is behind its end?"));
    }

    Result<std::int32_t> largest_number_plus_one() const {
        std::int64_t largest = 0;
        for (std::uint64_t i = 0; i < data_.size() / item_bytes_; ++i) largest = std::max(largest, number(i));
        if (largest >= largest_number)
            return refuse(fmt::format("its largest number is {}, which is no expert's", largest));
        return static_cast<std::int32_t>(largest + 1);
    }

    [[nodiscard]] std::int64_t number(std::uint64_t index) const {
        const std::uint64_t bits = little_endian(data_.substr(index * item_bytes_, item_bytes_));
        const auto unused = static_cast<int>(64 - 8 * item_bytes_);
        return is_signed_ ? static_cast<std::int64_t>(bits << unused) >> unused : static_cast<std::int64_t>(bits);
    }

    // The next character that is no space, 0 at the end.
    char peek() {
        while (at_ < header_.size() && std::isspace(static_cast<unsigned char>(header_[at_])) != 0) ++at_;
        return at_ < header_.size() ? header_[at_] : '\0';
    }
    bool take(char wanted) {
        if (peek() != wanted) return false;
        ++at_;
        return true;
    }
    bool take_word(std::string_view word) {
        (void)peek();
        if (!header_.substr(at_).starts_with(word)) return false;
        at_ += word.size();
        return true;
    }
    // Empty if there is no string.
    std::string_view take_string() {
        const char quote = peek();
        if (quote != '\'' && quote != '"') return {};
        const std::size_t end = header_.find(quote, at_ + 1);
        if (end == std::string_view::npos) return {};
        const std::string_view text = header_.substr(at_ + 1, end - at_ - 1);
        at_ = end + 1;
        return text;
    }

    std::string_view bytes_;
    std::string_view name_;
    std::string_view header_;
    std::string_view data_;
    std::size_t at_ = 0;  // in header_
    std::array<std::uint64_t, 3> shape_{};
    std::size_t item_bytes_ = 0;
    bool is_signed_ = false;
};

}  // namespace

bool is_npy(std::string_view bytes) { return bytes.starts_with(npy_magic); }

Result<std::int32_t> npy_layers(std::string_view bytes, std::string_view name) {
    NpyReader reader(bytes, name);
    if (Status s = reader.read_header(); !s.ok()) return s;
    return reader.layers();
}

Result<Routing> parse_routing_npy(std::string_view bytes, std::string_view name, const NpySelection& selection) {
    NpyReader reader(bytes, name);
    if (Status s = reader.read_header(); !s.ok()) return s;
    return reader.routing(selection);
}

}  // namespace npushmem::moe
