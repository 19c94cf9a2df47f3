//! Calls on behalf of one account: with the base credentials, or through a
//! role; sessions renewed before they end, and once when they are refused.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex},
};

use gpuwatch_collector_core::{CollectError, Context, Reason, lock};
use gpuwatch_collector_rest::{Answer, Origin, Renewing};
use gpuwatch_inventory::Text;
use serde::{Deserialize, de::DeserializeOwned};

use crate::{
    AliyunOptions,
    client::{Action, Client, Parameters, parameters},
    credentials::{Chain, Environment, Session, TemporaryKeys},
    errors,
    hosts::Product,
    sign::Keys,
};

const ASSUME_ROLE: Action = Action::new(Product::Sts, "AssumeRole", "sts:AssumeRole");
const GET_CALLER_IDENTITY: Action = Action::new(Product::Sts, "GetCallerIdentity", "");

/// How long a session is asked to last, in seconds: what every role allows.
const SESSION_SECONDS: &str = "3600";

/// A role to assume.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Assume<'a> {
    pub role: &'a str,
    pub session_name: &'a str,
    pub external_id: Option<&'a str>,
    /// A policy that takes away from what the role may do.
    pub policy: Option<&'a str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Assumed {
    credentials: TemporaryKeys,
}

impl Assume<'_> {
    /// Assumes it with these keys.
    ///
    /// # Errors
    /// What STS refuses it with.
    pub(crate) async fn with(&self, cx: &Context, client: &Client, keys: &Keys) -> Result<Session, CollectError> {
        let mut parameters = parameters(&[
            ("RoleArn", self.role),
            ("RoleSessionName", self.session_name),
            ("DurationSeconds", SESSION_SECONDS),
        ]);
        if let Some(id) = self.external_id {
            parameters.insert("ExternalId".into(), id.to_owned());
        }
        if let Some(policy) = self.policy {
            parameters.insert("Policy".into(), policy.to_owned());
        }
        let origin = client.origin(Product::Sts, "", None)?;
        let assumed: Assumed = client.call(cx, ASSUME_ROLE, &origin, &parameters, keys).await?;
        Ok(assumed.credentials.into())
    }
}

/// The base credentials of a section.
pub(crate) struct Base {
    options: Arc<AliyunOptions>,
    chain: Chain,
    client: Client,
    session: Renewing<Session>,
}

impl Base {
    pub(crate) fn new(options: Arc<AliyunOptions>, environment: Environment) -> Self {
        Self {
            client: Client::new(&options, &environment),
            chain: Chain::new(&options, environment),
            session: Renewing::default(),
            options,
        }
    }

    async fn session(&self, cx: &Context) -> Result<Arc<Session>, CollectError> {
        // Boxed: rare, and its future is large.
        self.session
            .get(cx.now(), || Box::pin(self.chain.load(cx, &self.client)))
            .await
    }
}

/// One account of a section.
pub(crate) struct Account {
    base: Arc<Base>,
    /// Role to assume; `None` for the base credentials' own account.
    role: Option<String>,
    session: Renewing<Session>,
    /// Endpoints by region, as `DescribeRegions` gave them.
    endpoints: Mutex<HashMap<Text, String>>,
}

impl Account {
    pub(crate) fn new(base: Arc<Base>, role: Option<String>) -> Self {
        Self {
            base,
            role,
            session: Renewing::default(),
            endpoints: Mutex::default(),
        }
    }

    pub(crate) fn role(&self) -> Option<&str> {
        self.role.as_deref()
    }

    /// Notes where regions are served.
    pub(crate) fn set_endpoints(&self, endpoints: HashMap<Text, String>) {
        *lock(&self.endpoints) = endpoints;
    }

    async fn session(&self, cx: &Context) -> Result<Arc<Session>, CollectError> {
        let Some(role) = &self.role else {
            return self.base.session(cx).await;
        };
        self.session.get(cx.now(), || Box::pin(self.assume(cx, role))).await
    }

    async fn assume(&self, cx: &Context, role: &str) -> Result<Session, CollectError> {
        let options = &self.base.options;
        let assume = Assume {
            role,
            session_name: &options.session_name,
            external_id: options.external_id.as_deref(),
            policy: None,
        };
        let base = self.base.session(cx).await?;
        match assume.with(cx, &self.base.client, &base.keys).await {
            Err(error) if errors::is_expired(&error) || errors::is_refused_key(&error) => {
                self.base.session.forget(&base).await;
                let base = self.base.session(cx).await?;
                assume.with(cx, &self.base.client, &base.keys).await
            }
            result => result,
        }
    }

    /// Where a region is served: each has a host of its own, and another
    /// region's gives empty or wrong answers.
    fn origin(&self, product: Product, region: &str) -> Result<Origin, CollectError> {
        let stated = lock(&self.endpoints).get(region).cloned();
        self.base.client.origin(product, region, stated.as_deref())
    }

    async fn forget(&self, old: &Arc<Session>) {
        match self.role {
            Some(_) => self.session.forget(old).await,
            None => self.base.session.forget(old).await,
        }
    }

    /// Makes one call in a region (empty for products without regions). Keys
    /// that have ended or were rotated are renewed and the call is made again,
    /// once.
    ///
    /// # Errors
    /// The classified error of the last attempt.
    pub(crate) async fn call<T: DeserializeOwned + Send>(
        &self,
        cx: &Context,
        action: Action,
        region: &str,
        parameters: &Parameters,
    ) -> Result<T, CollectError> {
        self.exchange(cx, action, region, parameters).await?.json(action.call)
    }

    /// As [`Account::call`], with the answer as it came.
    ///
    /// # Errors
    /// As [`Account::call`].
    pub(crate) async fn exchange(
        &self,
        cx: &Context,
        action: Action,
        region: &str,
        parameters: &Parameters,
    ) -> Result<Answer, CollectError> {
        let client = &self.base.client;
        let origin = self.origin(action.product, region)?;
        let session = self.session(cx).await?;
        match client.exchange(cx, action, &origin, parameters, &session.keys).await {
            Err(error) if errors::is_expired(&error) || errors::is_refused_key(&error) => {
                self.forget(&session).await;
                let renewed = self.session(cx).await?;
                if renewed.keys.id == session.keys.id && errors::is_refused_key(&error) {
                    // The same keys again: they were not rotated.
                    return Err(error);
                }
                client.exchange(cx, action, &origin, parameters, &renewed.keys).await
            }
            result => result,
        }
    }

    /// The uid of the account that the session belongs to.
    ///
    /// # Errors
    /// When STS does not accept the credentials.
    pub(crate) async fn identify(&self, cx: &Context) -> Result<Text, CollectError> {
        #[derive(Deserialize)]
        struct Identity {
            #[serde(rename = "AccountId", default)]
            account_id: Option<String>,
        }
        let identity: Identity = self.call(cx, GET_CALLER_IDENTITY, "", &Parameters::new()).await?;
        identity
            .account_id
            .filter(|id| !id.is_empty())
            .map(Text::from)
            .ok_or_else(|| CollectError::new(Reason::Decode, "sts GetCallerIdentity: no account id in the answer"))
    }
}

/// The accounts of a section that have been discovered, by uid.
#[derive(Default)]
pub(crate) struct Accounts(Mutex<HashMap<Text, Arc<Account>>>);

impl Accounts {
    /// A discovered account.
    ///
    /// # Errors
    /// When it has not been discovered.
    pub(crate) fn get(&self, id: &str) -> Result<Arc<Account>, CollectError> {
        lock(&self.0)
            .get(id)
            .cloned()
            .ok_or_else(|| CollectError::new(Reason::Other, format!("account {id} has not been discovered")))
    }

    /// The account of this role, if an earlier discovery has it.
    pub(crate) fn with_role(&self, role: Option<&str>) -> Option<Arc<Account>> {
        lock(&self.0).values().find(|account| account.role() == role).cloned()
    }

    /// Keeps an account.
    pub(crate) fn add(&self, id: &Text, account: Arc<Account>) {
        lock(&self.0).insert(id.clone(), account);
    }

    /// Forgets accounts that are no longer polled, and their credentials.
    pub(crate) fn retain(&self, ids: &HashSet<Text>) {
        lock(&self.0).retain(|id, _| ids.contains(id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_is_asked_at_the_host_that_was_stated_for_it() {
        let base = Base::new(Arc::new(AliyunOptions::named("cn")), Environment::default());
        let account = Account::new(Arc::new(base), None);
        let host = |region: &str| account.origin(Product::Ecs, region).unwrap().host_header();
        assert_eq!(host("cn-new-9"), "ecs.cn-new-9.aliyuncs.com");
        let stated = [
            ("cn-new-9", "ecs-gateway.aliyuncs.com"),
            ("cn-bad-9", "ecs.example.com"),
        ];
        account.set_endpoints(stated.map(|(region, host)| (region.into(), host.to_owned())).into());
        assert_eq!(host("cn-new-9"), "ecs-gateway.aliyuncs.com");
        assert_eq!(host("cn-bad-9"), "ecs.cn-bad-9.aliyuncs.com");
        assert_eq!(host("cn-other-9"), "ecs.cn-other-9.aliyuncs.com");
    }
}
