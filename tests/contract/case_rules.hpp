// SPDX-License-Identifier: BSD-3-Clause
// The rule that each case tests, as one sentence for failures and lists. A sentence begins with the paragraph, the
// function or the constant of transport.h or bootstrap.h that states the rule.
#pragma once

#include <string>
#include <string_view>

namespace npushmem::contract {

// Throw std::logic_error if there is no rule for a case of this name.
std::string transport_rule_of(std::string_view case_name);
std::string bootstrap_rule_of(std::string_view case_name);

}  // namespace npushmem::contract
