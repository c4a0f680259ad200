#include "core/tools/run/environment_block.hpp"

#include <algorithm>

namespace npushmem::run {

EnvironmentBlock EnvironmentBlock::copy_of(const char* const* environment) {
    EnvironmentBlock block;
    for (; environment != nullptr && *environment != nullptr; ++environment) block.entries_.emplace_back(*environment);
    return block;
}

std::vector<std::string>::const_iterator EnvironmentBlock::find(std::string_view name) const {
    return std::find_if(entries_.begin(), entries_.end(), [name](const std::string& entry) {
        return entry.size() > name.size() && entry[name.size()] == '=' && entry.compare(0, name.size(), name) == 0;
    });
}

void EnvironmentBlock::set(std::string_view name, std::string_view value) {
    std::string entry(name);
    entry.append("=").append(value);
    const auto found = find(name);
    if (found == entries_.end())
        entries_.push_back(std::move(entry));
    else
        entries_[static_cast<std::size_t>(found - entries_.begin())] = std::move(entry);
}

const char* EnvironmentBlock::value(std::string_view name) const {
    const auto found = find(name);
    return found == entries_.end() ? nullptr : found->c_str() + name.size() + 1;
}

void EnvironmentBlock::set_default(std::string_view name, std::string_view value) {
    if (find(name) == entries_.end()) set(name, value);
}

std::vector<char*> EnvironmentBlock::pointers() {
    std::vector<char*> out;
    out.reserve(entries_.size() + 1);
    for (auto& entry : entries_) out.push_back(entry.data());
    out.push_back(nullptr);
    return out;
}

}  // namespace npushmem::run
