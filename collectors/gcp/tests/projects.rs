//! Discovery of projects and regions.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on must fail"
)]

mod support;

use gpuwatch_collector_core::{Covers, Dataset, Reason};
use gpuwatch_fakecloud_core::{FaultKind, FaultRule};
use gpuwatch_fakecloud_gcp::{ProjectSpec, ProjectState, World};
use support::{CENTRAL, PROJECT, Rig, SECOND, WEST, small_world, targets};

fn pair(account: &str, region: &str) -> (String, String) {
    (account.to_owned(), region.to_owned())
}

/// An organization with projects at three depths.
fn organization() -> World {
    let world = World::with_regions(&[(CENTRAL, "a")]);
    let root = world.add_organization("1234567890", "Example");
    let research = world.add_folder("111", &root, "Research");
    let vision = world.add_folder("222", &research, "Vision");
    world.add_project("top", ProjectSpec::named("Top").below(&root));
    world.add_project("mid", ProjectSpec::named("研究院").below(&research));
    world.add_project("deep", ProjectSpec::named("Deep").below(&vision));
    world.add_project("elsewhere", ProjectSpec::named("Elsewhere"));
    world.add_project("sys-123456", ProjectSpec::named("Script").below(&root));
    world.add_project("going", ProjectSpec::named("Going").below(&root));
    world.set_project_state("going", ProjectState::DeleteRequested);
    world
}

#[tokio::test]
async fn configured_projects_are_polled_in_every_region_under_the_section_s_name() {
    let world = small_world();
    world.add_project(SECOND, ProjectSpec::default());
    let rig = Rig::new(world, |options| {
        options.projects = vec![PROJECT.into()];
        options.exclude_regions = vec![WEST.into()];
    })
    .await;
    let found = rig.discover().await;
    assert!(found.failures.is_empty(), "{:?}", found.failures);
    assert_eq!(targets(&found), [pair(PROJECT, CENTRAL)]);
    let target = &found.targets[0];
    assert_eq!(&*target.scope.account.name, "ml");
    assert_eq!(target.datasets, [Dataset::Inventory, Dataset::Commitments]);
    assert_eq!(rig.calls_of("projects.search"), 0);
}

#[tokio::test]
async fn without_a_choice_every_visible_project_is_polled_under_its_own_name() {
    let rig = Rig::new(organization(), |options| {
        options.exclude_projects = vec!["elsewhere".into()];
    })
    .await;
    let found = rig.discover().await;
    assert!(found.failures.is_empty(), "{:?}", found.failures);
    assert_eq!(targets(&found), ["deep", "mid", "top"].map(|id| pair(id, CENTRAL)));
    let names: Vec<&str> = found.targets.iter().map(|target| &*target.scope.account.name).collect();
    assert!(names.contains(&"研究院"), "{names:?}");
}

#[tokio::test]
async fn projects_at_any_depth_of_an_organization_or_folder_are_found() {
    for (organization_number, folder, expected) in [
        (Some("1234567890"), None, vec!["deep", "mid", "top"]),
        (None, Some("111"), vec!["deep", "mid"]),
        (None, Some("222"), vec!["deep"]),
    ] {
        let rig = Rig::new(organization(), |options| {
            options.organization = organization_number.map(str::to_owned);
            options.folder = folder.map(str::to_owned);
        })
        .await;
        let found = rig.discover().await;
        assert!(found.failures.is_empty(), "{:?}", found.failures);
        let expected: Vec<_> = expected.iter().map(|id| pair(id, CENTRAL)).collect();
        assert_eq!(targets(&found), expected);
    }
}

#[tokio::test]
async fn a_folder_that_may_not_be_listed_hides_no_other() {
    let world = organization();
    world.deny("folders/111", "resourcemanager.projects.list");
    let rig = Rig::new(world, |options| {
        options.organization = Some("1234567890".into());
        options.projects = vec!["elsewhere".into()];
    })
    .await;
    let found = rig.discover().await;
    assert_eq!(
        targets(&found),
        ["deep", "elsewhere", "top"].map(|id| pair(id, CENTRAL))
    );
    let [failure] = found.failures.as_slice() else {
        panic!("{:?}", found.failures)
    };
    assert_eq!(
        (failure.covers, failure.error.reason),
        (Covers::Everything, Reason::Permission)
    );
    assert!(
        failure.error.to_string().contains("resourcemanager.projects.list"),
        "{}",
        failure.error
    );
}

#[tokio::test]
async fn many_projects_come_on_many_pages() {
    let world = World::with_regions(&[(CENTRAL, "a")]);
    let root = world.add_organization("1234567890", "Example");
    for n in 0..120 {
        world.add_project(&format!("p-{n:03}"), ProjectSpec::default().below(&root));
    }
    world.limit_pages(25);
    let rig = Rig::new(world, |options| options.organization = Some("1234567890".into())).await;
    let found = rig.discover().await;
    assert_eq!((targets(&found).len(), found.failures.len()), (120, 0));
    assert!(rig.calls_of("projects.list") >= 5);
}

#[tokio::test]
async fn an_identity_that_sees_nothing_is_told_what_to_grant() {
    let rig = Rig::new(World::with_regions(&[(CENTRAL, "a")]), |_| {}).await;
    let (found, cx) = rig.discover_within(support::PATIENT).await;
    let [failure] = found.failures.as_slice() else {
        panic!("{:?}", found.failures)
    };
    assert_eq!(
        (failure.covers, failure.error.reason),
        (Covers::Everything, Reason::Permission)
    );
    assert!(
        failure.error.to_string().contains("resourcemanager.projects.get"),
        "{}",
        failure.error
    );
    let calls = cx.calls();
    let search = calls
        .iter()
        .find(|status| status.call.operation == "projects.search")
        .unwrap();
    assert!(search.error.is_some(), "shown as failed");
}

#[tokio::test]
async fn a_project_with_its_api_off_or_gone_is_its_own_failure() {
    let world = small_world();
    for id in [SECOND, "gone"] {
        world.add_project(id, ProjectSpec::default());
    }
    world.disable_api(SECOND, "compute.googleapis.com");
    world.set_project_state("gone", ProjectState::DeleteRequested);
    let rig = Rig::new(world, |options| {
        options.projects = vec![
            PROJECT.into(),
            SECOND.into(),
            "gone".into(),
            "never-was".into(),
            "Not An Id".into(),
        ];
    })
    .await;
    let found = rig.discover().await;
    assert_eq!(targets(&found), [pair(PROJECT, WEST), pair(PROJECT, CENTRAL)]);
    let failures: std::collections::BTreeMap<&str, _> = found
        .failures
        .iter()
        .map(|failure| (&*failure.account.id, failure))
        .collect();
    assert!(failures.values().all(|failure| failure.covers == Covers::Account));
    for (id, reason, words) in [
        (
            SECOND,
            Reason::NotEnabled,
            "gcloud services enable compute.googleapis.com",
        ),
        ("gone", Reason::Other, "gone"),
        ("never-was", Reason::Other, "not found"),
        ("Not An Id", Reason::Other, "not a project id"),
    ] {
        let error = &failures[id].error;
        assert_eq!(error.reason, reason, "{id}: {error}");
        assert!(error.to_string().contains(words), "{id}: {error}");
    }
}

// P47
#[tokio::test]
async fn one_project_without_permission_hides_no_other() {
    let world = small_world();
    world.add_project(SECOND, ProjectSpec::default());
    world.deny(SECOND, "compute.regions.list");
    let rig = Rig::new(world, |_| {}).await;
    let found = rig.discover().await;
    assert_eq!(targets(&found), [pair(PROJECT, WEST), pair(PROJECT, CENTRAL)]);
    let [failure] = found.failures.as_slice() else {
        panic!("{:?}", found.failures)
    };
    assert_eq!(
        (&*failure.account.id, failure.error.reason),
        (SECOND, Reason::Permission)
    );
    assert!(
        failure.error.to_string().contains("compute.regions.list"),
        "{}",
        failure.error
    );
}

#[tokio::test]
async fn a_listing_of_projects_that_fails_keeps_the_configured_ones() {
    let rig = Rig::new(organization(), |options| {
        options.projects = vec!["elsewhere".into()];
        options.folder = Some("111".into());
    })
    .await;
    rig.fake
        .faults()
        .add(FaultRule::new(FaultKind::AccessDenied).service("resourcemanager"));
    let found = rig.discover().await;
    assert_eq!(targets(&found), [pair("elsewhere", CENTRAL)]);
    assert!(
        found
            .failures
            .iter()
            .all(|failure| failure.covers == Covers::Everything)
    );
    assert!(!found.failures.is_empty());
}
