// Puts a tag in front of every line of one PE's stream, whatever pieces the stream arrives in. Only whole lines leave,
// so lines of different PEs never mix.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace npushmem::run {

class LinePrefixer {
public:
    static constexpr std::size_t longest_line = std::size_t{1} << 20;

    // Lines above `limit` bytes are broken into tagged pieces of that size: a PE that never writes a newline must not
    // fill the launcher's memory.
    explicit LinePrefixer(std::string tag, std::size_t limit = longest_line) : tag_(std::move(tag)), limit_(limit) {}

    // Appends the lines completed by `bytes` to `out`, each with its tag and newline.
    void feed(std::string_view bytes, std::string& out);
    // The stream has ended: what was left without a newline leaves with one.
    void finish(std::string& out);

private:
    void emit(std::string& out);

    std::string tag_;
    std::size_t limit_;
    std::string partial_;  // at most limit_ bytes, no newline in it
};

}  // namespace npushmem::run
