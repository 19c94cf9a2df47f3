//! Billing platforms: one word for what instances, reserved instances,
//! capacity reservations and savings plans each spell their own way.

/// The platform a rate or reservation applies to, as savings plans and price
/// lists spell it; empty for unknown.
///
/// `(Amazon VPC)` is a suffix of history without a meaning, and Windows with
/// the customer's own licence is billed as Linux.
pub(crate) fn billed_as(platform: &str) -> &str {
    let platform = platform.trim();
    let platform = platform.strip_suffix("(Amazon VPC)").map_or(platform, str::trim_end);
    match platform {
        "Windows BYOL" => "Linux/UNIX",
        other => other,
    }
}

/// The platform an instance is matched by. An answer that leaves the platform
/// out means that it is not Windows (EC2 documents `Platform` as empty for
/// every other system, and endpoints without `PlatformDetails` exist): it is
/// matched as Linux, by far the most likely one. Matches are estimates anyway.
pub(crate) fn of_instance(platform: &str) -> &str {
    match billed_as(platform) {
        "" => "Linux/UNIX",
        known => known,
    }
}

/// The tenancy; the service's default where an answer leaves it out.
pub(crate) fn tenancy(tenancy: &str) -> &str {
    if tenancy.is_empty() { "default" } else { tenancy }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_platform_are_equal() {
        assert_eq!(billed_as("Linux/UNIX (Amazon VPC)"), billed_as("Linux/UNIX"));
        assert_eq!(billed_as("Windows BYOL"), "Linux/UNIX");
        assert_ne!(billed_as("Windows"), billed_as("Linux/UNIX"));
        assert_eq!(of_instance(""), "Linux/UNIX");
        assert_eq!(of_instance("Windows"), "Windows");
    }
}
