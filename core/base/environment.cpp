#include "core/base/environment.hpp"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace npushmem {

std::optional<std::string> ProcessEnvironment::get(const std::string& name) const {
    const char* value = std::getenv(name.c_str());
    return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

std::map<std::string, std::string> ProcessEnvironment::npushmem_variables() const {
    std::map<std::string, std::string> found;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string_view text(*entry);
        const auto equals = text.find('=');
        if (text.starts_with("NPUSHMEM_") && equals != std::string_view::npos)
            found.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
    return found;
}

}  // namespace npushmem
