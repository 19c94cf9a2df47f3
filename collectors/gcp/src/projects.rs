//! Which projects there are: all that can be seen, or those below a folder or
//! an organization.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::join_all;
use gpuwatch_collector_core::{Account, Call, CollectError, Context, Progress, Reason};
use gpuwatch_collector_rest::Rows;
use gpuwatch_inventory::Text;
use serde::Deserialize;

use crate::{
    GcpOptions,
    api::{Api, Page, Resource, Service},
    calls::{LIST_FOLDERS, LIST_PROJECTS, SEARCH_PROJECTS},
};

/// Records asked for per page; the service may give fewer.
const PAGE_SIZE: &str = "300";

/// Made by Apps Script, in thousands; they never have machines.
const SCRIPT_PREFIX: &str = "sys-";

/// Folders are nested ten deep at most; more is an answer that goes in circles.
const MAX_DEPTH: usize = 32;

/// Projects by id, and what could not be listed.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub projects: BTreeMap<Text, Account>,
    pub errors: Vec<CollectError>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ProjectsPage {
    #[serde(default)]
    projects: Rows<Project>,
    next_page_token: Option<String>,
}

impl Page for ProjectsPage {
    fn take_next(&mut self) -> Option<String> {
        self.next_page_token.take()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Project {
    #[serde(rename = "projectId")]
    id: Option<String>,
    display_name: Option<String>,
    state: Option<String>,
}

impl Project {
    /// A project that can have machines.
    fn account(self) -> Option<Account> {
        let id = self.id.filter(|id| !id.is_empty() && !id.starts_with(SCRIPT_PREFIX))?;
        let name = self
            .display_name
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| id.clone());
        (self.state.as_deref() == Some("ACTIVE")).then(|| Account {
            id: id.into(),
            name: name.into(),
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FoldersPage {
    #[serde(default)]
    folders: Rows<Folder>,
    next_page_token: Option<String>,
}

impl Page for FoldersPage {
    fn take_next(&mut self) -> Option<String> {
        self.next_page_token.take()
    }
}

#[derive(Deserialize)]
struct Folder {
    name: Option<String>,
    state: Option<String>,
}

/// Finds the projects that the options ask for beyond those they name.
pub(crate) async fn find(cx: &Context, api: &Api, options: &GcpOptions) -> Found {
    let roots: Vec<String> = [("organizations", &options.organization), ("folders", &options.folder)]
        .into_iter()
        .filter_map(|(kind, number)| Some(format!("{kind}/{}", number.as_ref()?)))
        .collect();
    if roots.is_empty() && options.projects.is_empty() {
        return visible(cx, api).await;
    }
    let mut found = Found::default();
    for root in roots {
        let before = found.projects.len();
        below(cx, api, &root, &mut found).await;
        if found.projects.len() == before && found.errors.is_empty() {
            let message = format!("there is no active project below {root}; is the number right?");
            found.errors.push(CollectError::new(Reason::Other, message));
        }
    }
    found
}

/// Every project that the identity can see. One that may see none gets an
/// empty list and no refusal.
async fn visible(cx: &Context, api: &Api) -> Found {
    let query = [("query", "state:ACTIVE"), ("pageSize", PAGE_SIZE)];
    let mut found = Found::default();
    match list(cx, api, SEARCH_PROJECTS, "/v3/projects:search", &query, "projects").await {
        Ok(projects) if projects.is_empty() => {
            let error = CollectError::new(
                Reason::Permission,
                "the identity sees no project: grant it a role with resourcemanager.projects.get (roles/browser) on \
                 its projects, or name them under projects",
            );
            cx.call_failed(SEARCH_PROJECTS, &error);
            found.errors.push(error);
        }
        Ok(projects) => found.projects = projects,
        Err(error) => found.errors.push(error),
    }
    found
}

/// The projects below a folder or organization at any depth, level by level.
/// What cannot be listed hides nothing else.
async fn below(cx: &Context, api: &Api, root: &str, found: &mut Found) {
    let mut seen = BTreeSet::from([root.to_owned()]);
    let mut level = vec![root.to_owned()];
    for _ in 0..MAX_DEPTH {
        let answers = join_all(
            level
                .iter()
                .map(|parent| async move { tokio::join!(projects_of(cx, api, parent), folders_of(cx, api, parent)) }),
        )
        .await;
        level.clear();
        for (projects, folders) in answers {
            match projects {
                Ok(projects) => found.projects.extend(projects),
                Err(error) => found.errors.push(error),
            }
            match folders {
                Ok(folders) => level.extend(folders.into_iter().filter(|folder| seen.insert(folder.clone()))),
                Err(error) => found.errors.push(error),
            }
        }
        if level.is_empty() {
            return;
        }
    }
    let message = format!("{root}: folders do not come to an end");
    found.errors.push(CollectError::new(Reason::Decode, message));
}

async fn projects_of(cx: &Context, api: &Api, parent: &str) -> Result<BTreeMap<Text, Account>, CollectError> {
    let query = [("parent", parent), ("pageSize", PAGE_SIZE)];
    list(cx, api, LIST_PROJECTS, "/v3/projects", &query, parent).await
}

async fn list(
    cx: &Context,
    api: &Api,
    call: Call,
    path: &str,
    query: &[(&str, &str)],
    about: &str,
) -> Result<BTreeMap<Text, Account>, CollectError> {
    let resource = Resource {
        service: Service::ResourceManager,
        call,
        path,
        query,
        about: Some(about),
    };
    api.pages(cx, resource, BTreeMap::new, |projects, page: ProjectsPage| {
        cx.skip("malformed", page.projects.bad);
        let (records, before) = (page.projects.total(), projects.len());
        let mut left_out = 0;
        for project in page.projects.good {
            match project.account() {
                Some(account) => {
                    projects.insert(account.id.clone(), account);
                }
                // Not active, or of no interest: no repeat of another.
                None => left_out += 1,
            }
        }
        Progress {
            records,
            new: projects.len().saturating_sub(before) + left_out,
        }
    })
    .await
}

async fn folders_of(cx: &Context, api: &Api, parent: &str) -> Result<BTreeSet<String>, CollectError> {
    let query = [("parent", parent), ("pageSize", PAGE_SIZE)];
    let resource = Resource {
        service: Service::ResourceManager,
        call: LIST_FOLDERS,
        path: "/v3/folders",
        query: &query,
        about: Some(parent),
    };
    api.pages(cx, resource, BTreeSet::new, |folders, page: FoldersPage| {
        cx.skip("malformed", page.folders.bad);
        let (records, before) = (page.folders.total(), folders.len());
        let active = |folder: &Folder| folder.state.as_deref() != Some("DELETE_REQUESTED");
        let names = page
            .folders
            .good
            .into_iter()
            .filter(active)
            .filter_map(|folder| folder.name);
        folders.extend(names.filter(|name| name.starts_with("folders/")));
        Progress {
            records,
            new: folders.len().saturating_sub(before),
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(json: &str) -> Option<Account> {
        serde_json::from_str::<Project>(json).unwrap().account()
    }

    #[test]
    fn only_active_projects_of_people_are_polled() {
        let found = account(r#"{"projectId": "ml-1", "displayName": "研究院", "state": "ACTIVE"}"#).unwrap();
        assert_eq!((&*found.id, &*found.name), ("ml-1", "研究院"));
        let nameless = account(r#"{"projectId": "ml-1", "state": "ACTIVE"}"#).unwrap();
        assert_eq!(&*nameless.name, "ml-1");
        for json in [
            r#"{"projectId": "ml-1", "state": "DELETE_REQUESTED"}"#,
            r#"{"projectId": "sys-123", "state": "ACTIVE"}"#,
            r#"{"state": "ACTIVE"}"#,
            "{}",
        ] {
            assert_eq!(account(json), None, "{json}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_page_of_projects_or_folders_is_read_or_refused(page in crate::samples::any_json()) {
            if let Ok(page) = serde_json::from_value::<ProjectsPage>(page.clone()) {
                for account in page.projects.good.into_iter().filter_map(Project::account) {
                    proptest::prop_assert!(!account.id.is_empty() && !account.name.is_empty());
                }
            }
            let _ = serde_json::from_value::<FoldersPage>(page);
        }
    }
}
