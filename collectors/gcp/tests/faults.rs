//! Every call × every kind of fault: the error is counted under the right
//! reason, nothing panics, and what does not depend on the call goes on.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on must fail"
)]

mod support;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use gpuwatch_collector_core::{CollectError, Collected, Covers, Dataset, Reason};
use gpuwatch_fakecloud_core::{FaultKind, FaultRule};
use gpuwatch_fakecloud_gcp::{
    CommitmentSpec, FutureReservationSpec, InstanceSpec, ProjectSpec, ReservationSpec, TpuSpec, World,
};
use gpuwatch_test_kit::{expected, for_each_kind, gpus, reason};
use support::{CENTRAL, PATIENT, PROJECT, Rig, SECOND, WEST, scope, small_world, targets, zone};

/// How long a run may take: a hang lasts until the end, everything else comes
/// to an end by itself, however slow the machine.
fn limit(kind: FaultKind) -> Duration {
    if kind == FaultKind::Hang {
        Duration::from_secs(12)
    } else {
        PATIENT
    }
}

/// The project that a kind of fault is shown in.
fn project_of(kind: FaultKind) -> String {
    format!("p-{}", kind.as_str().replace('_', "-"))
}

/// A healthy project, and one for each kind of fault: one fake and one
/// collector serve all cases of an operation.
fn world(fill: impl Fn(&World, &str)) -> World {
    let world = World::with_regions(&[(CENTRAL, "abc"), (WEST, "ab")]);
    let projects = FaultKind::ALL.iter().map(|kind| project_of(*kind));
    for project in projects.chain([SECOND.to_owned()]) {
        world.add_project(&project, ProjectSpec::default());
        fill(&world, &project);
    }
    world
}

/// Some of everything.
fn full(world: &World, project: &str) {
    for region in [CENTRAL, WEST] {
        let at = zone(region, "a");
        world.add_instances(project, &at, 3, &InstanceSpec::of("g2-standard-4"));
        world.add_tpu(project, &at, TpuSpec::of("v5litepod-8"));
        world.add_tpu(project, &at, TpuSpec::of("v6e-4"));
        for _ in 0..2 {
            world.add_reservation(project, &at, ReservationSpec::of("g2-standard-4", 1));
            world.add_commitment(project, region, CommitmentSpec::default());
        }
    }
}

/// A rig in which the operations fail, in each kind's project, in its way.
async fn spoilt(world: World, operations: &[&str]) -> Arc<Rig> {
    let rig = Rig::new(world, |_| {}).await;
    for kind in FaultKind::ALL {
        for operation in operations {
            let rule = FaultRule::new(*kind).operation(operation);
            rig.fake.faults().add(rule.account(&project_of(*kind)));
        }
    }
    Arc::new(rig)
}

fn rows(collected: &Collected) -> usize {
    match collected {
        Collected::Instances(instances) => instances.len(),
        Collected::Commitments(commitments) => commitments.len(),
        Collected::Usage(usage) => usage.len(),
    }
}

/// What a listing that can be incomplete must end with.
fn expected_of_list(kind: FaultKind) -> Option<Reason> {
    match kind {
        FaultKind::PartialResult => Some(Reason::Other),
        _ => expected(kind, true),
    }
}

/// Checks one case: the reason, or the number of rows.
fn check(title: &str, expected: Option<Reason>, result: &Result<Collected, CollectError>, count: usize) {
    match expected {
        Some(_) => assert_eq!(reason(result), expected, "{title}: {result:?}"),
        None => assert_eq!(result.as_ref().map(rows).ok(), Some(count), "{title}: {result:?}"),
    }
}

/// An operation behind one part of a dataset.
async fn part(operation: &'static str, dataset: Dataset, part: &'static str, count: usize) {
    let rig = spoilt(world(full), &[operation]).await;
    for_each_kind(move |kind| {
        let rig = Arc::clone(&rig);
        async move {
            let (title, project) = (format!("{operation} {kind}"), project_of(kind));
            let (result, cx) = rig.part(&scope(&project, WEST), dataset, part, limit(kind)).await;
            let expected_here = match kind {
                // Without the TPU API there are no nodes.
                FaultKind::OptInRequired if part == "tpu_nodes" => None,
                _ => expected_of_list(kind),
            };
            let expected_rows = if kind == FaultKind::OptInRequired { 0 } else { count };
            check(&title, expected_here, &result, expected_rows);
            assert!(!cx.is_degraded(), "{title}");
            if let Some(reason) = expected(kind, false) {
                assert!(cx.errors(reason) > 0, "{title}: not counted");
            }
            if kind == FaultKind::PartialResult {
                // The zone that is not reached is in the first region by name.
                let (other, _) = rig.part(&scope(&project, CENTRAL), dataset, part, PATIENT).await;
                check(&title, None, &other, count);
                let code = result.err().and_then(|error| error.code);
                assert_eq!(code.as_deref(), Some("UNREACHABLE"), "{title}");
            }
            let (healthy, _) = rig.part(&scope(SECOND, WEST), dataset, part, PATIENT).await;
            check(&title, None, &healthy, count);
        }
    })
    .await;
}

/// The listing of machines has a second way, by zone; here both fail.
async fn instances() {
    let rig = spoilt(world(full), &["instances.aggregatedList", "instances.list"]).await;
    for_each_kind(move |kind| {
        let rig = Arc::clone(&rig);
        async move {
            let at = scope(&project_of(kind), WEST);
            let (result, cx) = rig.part(&at, Dataset::Inventory, "instances", limit(kind)).await;
            check(kind.as_str(), expected_of_list(kind), &result, 3);
            if let Some(reason) = expected(kind, false) {
                assert!(cx.errors(reason) > 0, "{kind}: not counted");
            }
            let (healthy, _) = rig
                .part(&scope(SECOND, WEST), Dataset::Inventory, "instances", PATIENT)
                .await;
            check(kind.as_str(), None, &healthy, 3);
        }
    })
    .await;
}

/// The list of zones is read when the project cannot be listed as a whole.
async fn zones() {
    let rig = spoilt(world(full), &["zones.list"]).await;
    rig.fault(FaultKind::InternalError, "instances.aggregatedList");
    for_each_kind(move |kind| {
        let rig = Arc::clone(&rig);
        async move {
            let at = scope(&project_of(kind), WEST);
            let (result, _) = rig.part(&at, Dataset::Inventory, "instances", limit(kind)).await;
            match expected_of_list(kind) {
                // What the whole project failed with is what matters: the
                // server's error, or that the time was up before the last try.
                Some(_) => {
                    let reason = reason(&result);
                    let is_first = matches!(reason, Some(Reason::Other | Reason::Timeout));
                    assert!(is_first, "{kind}: {result:?}");
                }
                None => check(kind.as_str(), None, &result, 3),
            }
        }
    })
    .await;
}

/// Without machine types the catalogue answers.
async fn machine_types() {
    let silent = InstanceSpec {
        accelerators: Some(Vec::new()),
        ..InstanceSpec::of("g2-standard-24")
    };
    let fill = |world: &World, project: &str| {
        world.add_instances(project, &zone(WEST, "a"), 3, &silent);
    };
    let rig = spoilt(world(fill), &["machineTypes.aggregatedList"]).await;
    for_each_kind(move |kind| {
        let rig = Arc::clone(&rig);
        async move {
            let at = scope(&project_of(kind), WEST);
            let (result, cx) = rig.part(&at, Dataset::Inventory, "instances", limit(kind)).await;
            let machines = support::instances(result.unwrap_or_else(|error| panic!("{kind}: {error}")));
            assert_eq!(machines.len(), 3, "{kind}");
            let known = machines.iter().all(|machine| gpus(machine) == Some(2.0));
            assert!(known, "{kind}");
            assert_eq!(cx.is_degraded(), expected(kind, true).is_some(), "{kind}");
        }
    })
    .await;
}

/// Without future reservations a reservation lacks its end.
async fn future_reservations() {
    let fill = |world: &World, project: &str| {
        for region in [CENTRAL, WEST] {
            let at = zone(region, "a");
            let reservation = world.add_reservation(project, &at, ReservationSpec::of("g2-standard-4", 1));
            for reservations in [reservation.into_iter().collect(), Vec::new()] {
                let spec = FutureReservationSpec {
                    reservations,
                    ..FutureReservationSpec::default()
                };
                world.add_future_reservation(project, &at, spec);
            }
        }
    };
    let rig = spoilt(world(fill), &["futureReservations.aggregatedList"]).await;
    for_each_kind(move |kind| {
        let rig = Arc::clone(&rig);
        async move {
            let at = scope(&project_of(kind), WEST);
            let (result, cx) = rig.part(&at, Dataset::Commitments, "reservations", limit(kind)).await;
            let found = support::commitments(result.unwrap_or_else(|error| panic!("{kind}: {error}")));
            assert_eq!(found.len(), 1, "{kind}");
            let is_missing = expected_of_list(kind).is_some();
            assert_eq!(cx.is_degraded(), is_missing, "{kind}");
            assert_eq!(found[0].expires.is_none(), is_missing, "{kind}");
        }
    })
    .await;
}

/// The project is asked for its number when the TPU API says to be off in one.
async fn project_number() {
    let fill = |world: &World, project: &str| world.disable_api(project, "tpu.googleapis.com");
    let rig = spoilt(world(fill), &["projects.get"]).await;
    for_each_kind(move |kind| {
        let rig = Arc::clone(&rig);
        async move {
            let at = scope(&project_of(kind), WEST);
            let (result, _) = rig.part(&at, Dataset::Inventory, "tpu_nodes", limit(kind)).await;
            match expected(kind, false) {
                // Nobody knows then in which project it is off.
                Some(_) => assert_eq!(reason(&result), Some(Reason::NotEnabled), "{kind}: {result:?}"),
                None => check(kind.as_str(), None, &result, 0),
            }
        }
    })
    .await;
}

/// One discovery over all projects.
async fn regions() {
    let rig = spoilt(world(|_, _| {}), &["regions.list"]).await;
    let (found, _) = rig.discover_within(PATIENT).await;
    let failures: BTreeMap<&str, _> = found
        .failures
        .iter()
        .map(|failure| (&*failure.account.id, failure))
        .collect();
    let polled = targets(&found);
    for kind in FaultKind::ALL {
        let project = project_of(*kind);
        let failure = failures.get(project.as_str());
        let seen = failure.map(|failure| (failure.covers, failure.error.reason));
        let wanted = expected_of_list(*kind).map(|reason| (Covers::Account, reason));
        assert_eq!(seen, wanted, "{kind}: {failure:?}");
        let regions = polled.iter().filter(|(account, _)| *account == project).count();
        assert_eq!(regions, if wanted.is_some() { 0 } else { 2 }, "{kind}");
    }
    assert!(polled.iter().any(|(account, _)| account == SECOND));
}

/// A listing of projects or folders.
async fn hierarchy(operation: &'static str) {
    for_each_kind(move |kind| async move {
        let world = World::with_regions(&[(CENTRAL, "a")]);
        let root = world.add_organization("1234567890", "Example");
        for (number, name) in [("111", "A"), ("222", "B")] {
            let folder = world.add_folder(number, &root, name);
            world.add_project(&format!("below-{number}"), ProjectSpec::default().below(&folder));
        }
        world.add_project(PROJECT, ProjectSpec::default());
        let rig = Rig::new(world, |options| {
            if operation != "projects.search" {
                options.projects = vec![PROJECT.into()];
                options.organization = Some("1234567890".into());
            }
        })
        .await;
        rig.fault(kind, operation);
        let (found, _) = rig.discover_within(limit(kind)).await;
        let Some(reason) = expected(kind, true) else {
            assert!(found.failures.is_empty(), "{operation} {kind}: {:?}", found.failures);
            assert_eq!(targets(&found).len(), 3, "{operation} {kind}");
            return;
        };
        assert!(!found.failures.is_empty(), "{operation} {kind}");
        for failure in &found.failures {
            let seen = (failure.covers, failure.error.reason);
            let wanted = (Covers::Everything, reason);
            assert_eq!(seen, wanted, "{operation} {kind}: {}", failure.error);
        }
        if operation != "projects.search" {
            let polled = targets(&found);
            assert!(
                polled.iter().any(|(account, _)| account == PROJECT),
                "{operation} {kind}"
            );
        }
    })
    .await;
}

async fn access_token() {
    const ACCOUNT: &str = "gpuwatch@ml-prod.iam.gserviceaccount.com";
    let world = small_world();
    world.require_token(true);
    let key = world.add_service_account(ACCOUNT, PROJECT).unwrap();
    let folder = Arc::new(tempfile::tempdir().unwrap());
    for_each_kind(move |kind| {
        let (world, key, folder) = (world.clone(), key.clone(), Arc::clone(&folder));
        async move {
            let file = folder.path().join(kind.as_str());
            let rig = Rig::with(world, |options, url| {
                std::fs::write(&file, key.json(url).to_string()).unwrap();
                options.anonymous = false;
                options.credentials_file = Some(file.clone());
                options.impersonate_service_account = Some(ACCOUNT.into());
            })
            .await;
            rig.fault(kind, "generateAccessToken");
            let (found, _) = rig.discover_within(limit(kind)).await;
            let failures: Vec<_> = found.failures.iter().map(|f| (f.covers, f.error.reason)).collect();
            match expected(kind, false) {
                Some(reason) => assert_eq!(failures, [(Covers::Everything, reason)], "{kind}: {:?}", found.failures),
                None => assert!(failures.is_empty(), "{kind}: {:?}", found.failures),
            }
            for failure in &found.failures {
                assert!(!failure.error.to_string().contains("ya29"), "{kind}: {}", failure.error);
            }
        }
    })
    .await;
}

/// All at once: nearly all of the time is spent waiting for retries.
#[tokio::test]
async fn every_fault_of_every_call_is_counted_and_contained() {
    tokio::join!(
        instances(),
        zones(),
        machine_types(),
        part("nodes.list", Dataset::Inventory, "tpu_nodes", 2),
        part("reservations.aggregatedList", Dataset::Commitments, "reservations", 2),
        part(
            "regionCommitments.aggregatedList",
            Dataset::Commitments,
            "commitments",
            2
        ),
        regions(),
        hierarchy("projects.search"),
        hierarchy("projects.list"),
        hierarchy("folders.list"),
        access_token(),
        future_reservations(),
        project_number(),
    );
}
