#include "topology/natural_order.hpp"

#include <cstddef>

namespace npushmem::topology {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Takes the leading run of digits off `text`, without its leading zeros.
std::string_view take_number(std::string_view& text) {
    std::size_t length = 0;
    while (length < text.size() && is_digit(text[length])) ++length;
    std::string_view number = text.substr(0, length);
    text.remove_prefix(length);
    while (number.size() > 1 && number.front() == '0') number.remove_prefix(1);
    return number;
}

int compare_numbers(std::string_view a, std::string_view b) {
    if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
    return a.compare(b);
}

}  // namespace

bool natural_less(std::string_view a, std::string_view b) {
    const std::string_view whole_a = a;
    const std::string_view whole_b = b;
    while (!a.empty() && !b.empty()) {
        if (is_digit(a.front()) && is_digit(b.front())) {
            if (const int order = compare_numbers(take_number(a), take_number(b)); order != 0) return order < 0;
        } else {
            if (a.front() != b.front()) return a.front() < b.front();
            a.remove_prefix(1);
            b.remove_prefix(1);
        }
    }
    // "x01" and "x1" count the same; the plain order keeps them apart.
    return a.size() != b.size() ? a.size() < b.size() : whole_a < whole_b;
}

}  // namespace npushmem::topology
