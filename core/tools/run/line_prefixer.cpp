#include "core/tools/run/line_prefixer.hpp"

#include <algorithm>

namespace npushmem::run {

void LinePrefixer::feed(std::string_view bytes, std::string& out) {
    while (!bytes.empty()) {
        const auto newline = bytes.find('\n');
        const auto room = limit_ - partial_.size();
        const auto taken = std::min({newline, room, bytes.size()});
        partial_.append(bytes.substr(0, taken));
        bytes.remove_prefix(taken);
        const bool line_ends = taken == newline;
        if (line_ends) bytes.remove_prefix(1);
        if (line_ends || (partial_.size() == limit_ && !bytes.empty() && bytes.front() != '\n')) emit(out);
    }
}

void LinePrefixer::finish(std::string& out) {
    if (!partial_.empty()) emit(out);
}

void LinePrefixer::emit(std::string& out) {
    out.append(tag_).append(partial_).push_back('\n');
    partial_.clear();
}

}  // namespace npushmem::run
