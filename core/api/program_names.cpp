#include "core/api/program_names.hpp"

#include <cctype>

namespace npushmem::api {

namespace {

constexpr std::string_view function_prefix = "npushmem_";
constexpr std::string_view constant_prefix = "NPUSHMEM_";
// Beginnings of the constants that the standard has as well. Without them, NPUSHMEM_ begins a variable's name.
constexpr std::string_view families[] = {"TEAM_", "CTX_", "CMP_", "SIGNAL_", "MALLOC_", "THREAD_", "SYNC_"};

// Beginnings of the symbols that plugins export. They have no other name.
constexpr std::string_view plugin_prefixes[] = {"npushmem_transport_", "npushmem_bootstrap_"};

bool belongs_to_a_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The word as OpenSHMEM has it.
std::string translated(std::string_view word) {
    for (const auto prefix : plugin_prefixes)
        if (word.starts_with(prefix)) return std::string(word);
    if (word.starts_with(function_prefix)) return "shmem_" + std::string(word.substr(function_prefix.size()));
    if (!word.starts_with(constant_prefix)) return std::string(word);
    const std::string_view rest = word.substr(constant_prefix.size());
    if (rest.starts_with("SIGNAL_OP_")) return "SHMEM_SIGNAL_" + std::string(rest.substr(10));
    for (const auto family : families)
        if (rest.starts_with(family)) return "SHMEM_" + std::string(rest);
    return std::string(word);
}

}  // namespace

std::string to_openshmem_names(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        std::size_t end = 0;
        while (end < text.size() && belongs_to_a_word(text[end])) ++end;
        if (end > 0) {
            out += translated(text.substr(0, end));
        } else {
            out += text[0];
            end = 1;
        }
        text.remove_prefix(end);
    }
    return out;
}

}  // namespace npushmem::api
