// An environment that is a map.
#pragma once

#include <map>
#include <string>

#include "core/base/config.hpp"

namespace npushmem {

class FakeEnvironment final : public Environment {
public:
    FakeEnvironment() = default;
    FakeEnvironment(std::initializer_list<std::pair<const std::string, std::string>> values) : values_(values) {}

    [[nodiscard]] std::optional<std::string> get(const std::string& name) const override {
        const auto found = values_.find(name);
        return found != values_.end() ? std::optional(found->second) : std::nullopt;
    }
    [[nodiscard]] std::map<std::string, std::string> npushmem_variables() const override {
        std::map<std::string, std::string> found;
        for (const auto& [name, value] : values_)
            if (name.starts_with("NPUSHMEM_")) found.emplace(name, value);
        return found;
    }

private:
    std::map<std::string, std::string> values_;
};

}  // namespace npushmem
