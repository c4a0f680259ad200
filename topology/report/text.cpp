#include <fmt/format.h>

#include <algorithm>

#include "topology/report/text.hpp"

namespace npushmem::topology {

std::string render_table(const std::vector<std::vector<std::string>>& rows, std::size_t indent) {
    std::vector<std::size_t> widths;
    for (const auto& row : rows) {
        widths.resize(std::max(widths.size(), row.size()));
        for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    std::string out;
    for (const auto& row : rows) {
        std::string line(indent, ' ');
        for (std::size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
        line.erase(line.find_last_not_of(' ') + 1);
        out += line + '\n';
    }
    return out;
}

std::string counted(std::size_t count, std::string_view one) {
    return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

namespace {

constexpr std::size_t max_pieces = 6;
constexpr std::size_t min_stride = 3;  // minimum members of "0,8..16"

// The number of equally spaced numbers at the beginning.
std::size_t run_length(std::span<const std::uint32_t> pes) {
    std::size_t length = pes.size() < 2 ? pes.size() : 2;
    while (length >= 2 && length < pes.size() && pes[length] - pes[length - 1] == pes[1] - pes[0]) ++length;
    return length;
}

struct Piece {
    std::string text;
    std::size_t length;
};

Piece first_piece(std::span<const std::uint32_t> pes) {
    const std::size_t length = run_length(pes);
    const std::uint32_t last = pes[length - 1];
    if (length >= 2 && pes[1] - pes[0] == 1) return {fmt::format("{}-{}", pes[0], last), length};
    if (length >= min_stride) return {fmt::format("{},{}..{}", pes[0], pes[1], last), length};
    return {fmt::format("{}", pes[0]), 1};
}

}  // namespace

std::string pe_ranges(std::span<const std::uint32_t> pes) {
    std::string text;
    for (std::size_t pieces = 0; !pes.empty() && pieces < max_pieces; ++pieces) {
        const Piece piece = first_piece(pes);
        text += (pieces == 0 ? "" : ",") + piece.text;
        pes = pes.subspan(piece.length);
    }
    if (!pes.empty()) text += fmt::format(" +{} more", pes.size());
    return text;
}

}  // namespace npushmem::topology
