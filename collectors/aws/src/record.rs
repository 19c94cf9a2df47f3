//! From an EC2 record to an instance.

use aws_sdk_ec2::types as ec2;
use gpuwatch_collector_core::{Interner, Scope, TagRules};
use gpuwatch_inventory::{Accelerators, Instance, Kind, Provider, State, Text};
use jiff::{Timestamp, civil::DateTime, tz::TimeZone};

use crate::{billing, tags, text::timestamp};

/// What can be wrong with a record so that it cannot be used; the word it is
/// counted under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// No instance id.
    NoId,
    /// No instance type.
    NoType,
}

impl Unusable {
    /// The word it is counted under.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::NoId => "no_id",
            Self::NoType => "no_type",
        }
    }
}

/// The state of a record; `None` for one that has been terminated: it lingers
/// for an hour, costs nothing and is gone.
fn state(record: &ec2::Instance) -> Option<State> {
    let name = record
        .state()
        .and_then(ec2::InstanceState::name)
        .map(ec2::InstanceStateName::as_str);
    match name {
        Some("terminated") => None,
        Some("running") => Some(State::Running),
        Some("pending") => Some(State::Starting),
        Some("stopping" | "shutting-down") => Some(State::Stopping),
        Some("stopped") => Some(State::Stopped),
        _ => Some(State::Unknown),
    }
}

/// Builds instances of one scope from records.
pub(crate) struct Reader<'a> {
    scope: &'a Scope,
    rules: &'a TagRules,
    interner: Interner,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(scope: &'a Scope, rules: &'a TagRules) -> Self {
        Self {
            scope,
            rules,
            interner: Interner::default(),
        }
    }

    /// The instance of a record, with its accelerators still to be filled in;
    /// `Ok(None)` for one that is gone.
    pub(crate) fn read(&mut self, record: &ec2::Instance) -> Result<Option<Instance>, Unusable> {
        let id = record.instance_id().filter(|id| !id.is_empty()).ok_or(Unusable::NoId)?;
        let Some(state) = state(record) else { return Ok(None) };
        let instance_type = record
            .instance_type()
            .map(ec2::InstanceType::as_str)
            .filter(|name| !name.is_empty());
        let instance_type = instance_type.ok_or(Unusable::NoType)?;

        let tags: Vec<(&str, &str)> = record
            .tags()
            .iter()
            .filter_map(|tag| Some((tag.key()?, tag.value().unwrap_or_default())))
            .collect();
        let tags = tags::read(self.rules, &tags, &mut self.interner);
        let placement = record.placement();
        let zone = placement.and_then(ec2::Placement::availability_zone);
        let tenancy = placement.and_then(ec2::Placement::tenancy).map(ec2::Tenancy::as_str);
        let lifecycle = record.instance_lifecycle().map(ec2::InstanceLifecycleType::as_str);
        // A block is bought as a whole, whatever reservations it holds.
        let block = record
            .capacity_block_id()
            .filter(|_| lifecycle == Some("capacity-block"));
        let reservation = block.or_else(|| record.capacity_reservation_id());
        let mut text = |text: Option<&str>| self.interner.text(text.unwrap_or_default());
        Ok(Some(Instance {
            provider: Provider::Aws,
            account: self.scope.account.id.clone(),
            account_name: self.scope.account.name.clone(),
            region: self.scope.region.clone(),
            id: Text::from(id),
            name: tags.name,
            zone: text(zone),
            instance_type: text(Some(instance_type)),
            kind: Kind::Vm,
            state,
            accelerators: Accelerators::default(),
            launched: record.launch_time().and_then(timestamp),
            expires: None,
            auto_renew: None,
            stopped: record
                .state_transition_reason()
                .filter(|_| state == State::Stopped)
                .and_then(transition_time),
            owner: tags.ownership.owner,
            cluster: tags.ownership.cluster,
            pool: tags.ownership.pool,
            platform: text(platform(record)),
            tenancy: text(tenancy),
            reservation_id: text(reservation),
            private_address: text(record.private_ip_address()),
            private_host: text(record.private_dns_name()),
            tags: tags.ownership.kept,
            billing: billing::from_lifecycle(lifecycle, &mut self.interner),
        }))
    }
}

/// The platform that is billed. `Platform` is only ever Windows, or absent for
/// every other system.
fn platform(record: &ec2::Instance) -> Option<&str> {
    record
        .platform_details()
        .filter(|details| !details.is_empty())
        .or_else(|| {
            record
                .platform()
                .filter(|p| p.as_str().eq_ignore_ascii_case("windows"))
                .map(|_| "Windows")
        })
}

/// The time in `User initiated (2026-11-30 19:42:36 UTC)`; `GMT` occurs too.
fn transition_time(reason: &str) -> Option<Timestamp> {
    let (_, rest) = reason.rsplit_once('(')?;
    let (inside, _) = rest.split_once(')')?;
    let (time, zone) = inside.trim().rsplit_once(' ')?;
    if !matches!(zone, "UTC" | "GMT") {
        return None;
    }
    let time: DateTime = time.parse().ok()?;
    TimeZone::UTC.to_timestamp(time).ok()
}

#[cfg(test)]
mod tests {
    use aws_sdk_ec2::types::{
        InstanceLifecycleType, InstanceState, InstanceStateName, InstanceType, Placement, Tag, Tenancy,
    };
    use gpuwatch_collector_core::Account;
    use gpuwatch_inventory::BillingMode;

    use super::*;

    fn read(record: &ec2::Instance) -> Result<Option<Instance>, Unusable> {
        let scope = Scope {
            provider: Provider::Aws,
            account: Account {
                id: "111122223333".into(),
                name: "prod".into(),
            },
            region: "us-east-1".into(),
        };
        let rules = TagRules {
            owner: vec!["team".into()],
            keep: vec![],
        };
        Reader::new(&scope, &rules).read(record)
    }

    fn record() -> aws_sdk_ec2::types::builders::InstanceBuilder {
        ec2::Instance::builder()
            .instance_id("i-1")
            .instance_type(InstanceType::from("g6.xlarge"))
    }

    fn in_state(name: &str) -> Option<State> {
        let state = InstanceState::builder().name(InstanceStateName::from(name)).build();
        read(&record().state(state).build())
            .expect("usable")
            .map(|instance| instance.state)
    }

    #[test]
    fn states_map_by_what_they_cost() {
        assert_eq!(in_state("running"), Some(State::Running));
        assert_eq!(in_state("pending"), Some(State::Starting));
        assert_eq!(in_state("stopping"), Some(State::Stopping));
        assert_eq!(in_state("shutting-down"), Some(State::Stopping));
        assert_eq!(in_state("stopped"), Some(State::Stopped));
        assert_eq!(in_state("terminated"), None);
        assert_eq!(in_state("hibernating"), Some(State::Unknown));
    }

    // P48
    #[test]
    fn a_record_without_id_or_type_is_unusable_and_nothing_else_is_needed() {
        assert_eq!(read(&ec2::Instance::builder().build()), Err(Unusable::NoId));
        assert_eq!(
            read(&ec2::Instance::builder().instance_id("i-1").build()),
            Err(Unusable::NoType)
        );
        let bare = read(&record().build()).expect("usable").expect("there");
        assert_eq!((&*bare.id, bare.state, bare.launched), ("i-1", State::Unknown, None));
        assert_eq!(&*bare.platform, "");
    }

    #[test]
    fn facts_of_a_record_are_taken_over() {
        let placement = Placement::builder()
            .availability_zone("us-east-1b")
            .tenancy(Tenancy::Default)
            .build();
        let instance = record()
            .placement(placement)
            .platform_details("Linux/UNIX")
            .private_ip_address("10.0.0.7")
            .private_dns_name("ip-10-0-0-7.ec2.internal")
            .capacity_reservation_id("cr-1")
            .capacity_block_id("cb-1")
            .instance_lifecycle(InstanceLifecycleType::from("capacity-block"))
            .launch_time(aws_smithy_types::DateTime::from_secs(1_790_000_000))
            .tags(Tag::builder().key("team").value("视觉组").build())
            .tags(Tag::builder().key("Name").value("n1").build())
            .build();
        let instance = read(&instance).expect("usable").expect("there");
        assert_eq!(
            (&*instance.zone, &*instance.tenancy, &*instance.reservation_id),
            ("us-east-1b", "default", "cb-1")
        );
        assert_eq!((&*instance.owner, &*instance.name), ("视觉组", "n1"));
        assert_eq!(instance.billing.mode, BillingMode::Reserved);
        assert_eq!(instance.launched.map(Timestamp::as_second), Some(1_790_000_000));
    }

    #[test]
    fn the_time_of_a_stop_is_read_from_its_reason() {
        let expected: Timestamp = "2026-11-30T19:42:36Z".parse().expect("time");
        assert_eq!(
            transition_time("User initiated (2026-11-30 19:42:36 UTC)"),
            Some(expected)
        );
        assert_eq!(
            transition_time("User initiated (2026-11-30 19:42:36 GMT)"),
            Some(expected)
        );
        for other in [
            "",
            "User initiated",
            "x (soon)",
            "x (2026-11-30 19:42:36 CST)",
            "x (2026-13-30 19:42:36 UTC)",
        ] {
            assert_eq!(transition_time(other), None, "{other}");
        }
    }
}
