// The process environment as an interface, so that configuration is a function of a value and tests need no setenv.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace npushmem {

class Environment {
public:
    virtual ~Environment() = default;
    [[nodiscard]] virtual std::optional<std::string> get(const std::string& name) const = 0;
    // All variables whose name starts with NPUSHMEM_, full names.
    [[nodiscard]] virtual std::map<std::string, std::string> npushmem_variables() const = 0;
};

// The one place that reads the environment of the process. Not safe against a concurrent setenv, as getenv itself.
class ProcessEnvironment final : public Environment {
public:
    [[nodiscard]] std::optional<std::string> get(const std::string& name) const override;
    [[nodiscard]] std::map<std::string, std::string> npushmem_variables() const override;
};

}  // namespace npushmem
