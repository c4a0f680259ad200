#include "topology/request.hpp"

#include "core/base/nic_rails.hpp"
#include "topology/nic_list.hpp"
#include "topology/nic_mapping.hpp"

namespace npushmem::topology {

Result<AssignmentRequest> request_from(const Settings& settings, std::vector<DevicePlace> pes,
                                       std::vector<Rail> rails) {
    const auto policy = parse_policy(settings.nic_policy);
    if (!policy.ok()) return policy.status().within("NPUSHMEM_NIC_POLICY");
    AssignmentRequest request;
    request.pes = std::move(pes);
    request.rails = std::move(rails);
    request.policy = policy.value();
    request.enable_nic_pe_mapping = settings.enable_nic_pe_mapping;
    request.hca_list = settings.hca_list;
    request.hca_pe_mapping = settings.hca_pe_mapping;
    request.nic_rails = settings.nic_rails;
    return request;
}

Status check_nic_variables(const Settings& settings) {
    if (const auto rails = parse_nic_rails(settings.nic_rails); !rails.ok()) return rails.status();
    if (!settings.hca_list.empty()) {
        if (const auto list = parse_nic_list(settings.hca_list); !list.ok()) return list.status();
    }
    if (settings.hca_pe_mapping.empty()) return {};
    return parse_nic_mapping(settings.hca_pe_mapping).status();
}

}  // namespace npushmem::topology
