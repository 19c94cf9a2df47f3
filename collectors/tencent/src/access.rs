//! Calls on behalf of one account.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use gpuwatch_collector_core::{Call, CollectError, Context, Reason, lock};
use gpuwatch_collector_rest::Renewing;
use gpuwatch_inventory::Text;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    Site, TencentOptions,
    api::{Action, Api, Signer},
    chain::{Chain, RoleRequest, assume_role},
    credentials::Credentials,
    environment::Environment,
    errors, loose,
};

const GET_CALLER_IDENTITY: Action = Action::new(Call::new("sts", "GetCallerIdentity", ""), "2018-08-13");

/// How long a call that a site or region does not have is not made again.
const ABSENT_FOR: Duration = Duration::from_hours(24);

/// The base credentials of a section, and the way to the cloud.
pub(crate) struct Base {
    api: Api,
    chain: Chain,
    options: Arc<TencentOptions>,
}

/// One account of a section.
pub(crate) struct AccountAccess {
    base: Arc<Base>,
    /// Role to assume; `None` for the base credentials' own account.
    role: Option<String>,
    session: Renewing<Credentials>,
    /// Calls that need not exist, by region.
    presence: Mutex<HashMap<(Action, Text), Presence>>,
}

/// What is known about a call that need not exist.
#[derive(Debug, Clone, Copy)]
enum Presence {
    /// It was answered before.
    Present,
    /// It did not exist at this monotonic time.
    AbsentAt(Duration),
}

#[derive(Deserialize)]
struct CallerIdentity {
    #[serde(rename = "AccountId", default, deserialize_with = "loose::text")]
    account_id: Option<String>,
}

impl Base {
    pub(crate) fn new(options: Arc<TencentOptions>, environment: Environment) -> Self {
        Self {
            api: Api::new(&options),
            chain: Chain::new(Arc::clone(&options), environment),
            options,
        }
    }

    /// The account (owner uin) of the base credentials. Proves that they are
    /// accepted by this site.
    ///
    /// # Errors
    /// What is wrong with the credentials, or with the call.
    pub(crate) async fn account(self: &Arc<Self>, cx: &Context) -> Result<Text, CollectError> {
        let access = AccountAccess::new(Arc::clone(self), None);
        let region = self.options.site.home_region();
        let identity: CallerIdentity = access.call(cx, GET_CALLER_IDENTITY, region, &json!({})).await?;
        identity
            .account_id
            .filter(|id| id.bytes().all(|byte| byte.is_ascii_digit()))
            .map(|id| id.as_str().into())
            .ok_or_else(|| errors::decode(GET_CALLER_IDENTITY.call, "no account id"))
    }

    async fn assume(&self, cx: &Context, role: &str) -> Result<Credentials, CollectError> {
        let request = RoleRequest {
            arn: role,
            session_name: &self.options.session_name,
            external_id: self.options.external_id.as_deref(),
        };
        let keys = self.chain.get(cx, &self.api).await?;
        match assume_role(cx, &self.api, &keys, request).await {
            Err(error) if errors::is_refused_credentials(&error) && self.chain.renew(cx, &self.api, &keys).await => {
                let keys = self.chain.get(cx, &self.api).await?;
                assume_role(cx, &self.api, &keys, request).await
            }
            result => result,
        }
    }
}

impl AccountAccess {
    /// Access to an account through a role, or to the own account.
    pub(crate) fn new(base: Arc<Base>, role: Option<String>) -> Self {
        Self {
            base,
            role,
            session: Renewing::default(),
            presence: Mutex::default(),
        }
    }

    pub(crate) fn site(&self) -> Site {
        self.base.options.site
    }

    /// Whether there are credentials for this account.
    ///
    /// # Errors
    /// What is missing, or why the role cannot be assumed.
    pub(crate) async fn check(&self, cx: &Context) -> Result<(), CollectError> {
        Box::pin(self.keys(cx)).await.map(|_| ())
    }

    /// Makes one call for this account in a region. Credentials that are no
    /// longer accepted are replaced and the call is made again, once.
    ///
    /// # Errors
    /// The classified error of the last attempt.
    pub(crate) async fn call<T: DeserializeOwned + Send>(
        &self,
        cx: &Context,
        action: Action,
        region: &str,
        body: &Value,
    ) -> Result<T, CollectError> {
        let api = &self.base.api;
        // Boxed: listings are made of calls, and these futures are large.
        let keys = Box::pin(self.keys(cx)).await?;
        match Box::pin(api.send(cx, action, region, Signer::Keys(&keys), body)).await {
            Err(error) if errors::is_refused_credentials(&error) && Box::pin(self.renew(cx, &keys)).await => {
                let keys = Box::pin(self.keys(cx)).await?;
                Box::pin(api.send(cx, action, region, Signer::Keys(&keys), body)).await
            }
            result => result,
        }
    }

    /// The answer of a call that need not exist on every site and in every
    /// region: nothing where it does not, and then it is not made again for a
    /// day. One that was answered before exists, whatever it answers now.
    ///
    /// # Errors
    /// Those of `ask`, when it is not that the call does not exist.
    pub(crate) async fn if_present<T: Default, Fut>(
        &self,
        cx: &Context,
        action: Action,
        region: &Text,
        ask: Fut,
    ) -> Result<T, CollectError>
    where
        Fut: Future<Output = Result<T, CollectError>>,
    {
        let key = (action, region.clone());
        let known = lock(&self.presence).get(&key).copied();
        if matches!(known, Some(Presence::AbsentAt(at)) if cx.monotonic().saturating_sub(at) < ABSENT_FOR) {
            return Ok(T::default());
        }
        match ask.await {
            Err(error) if errors::is_absent(&error) && !matches!(known, Some(Presence::Present)) => {
                tracing::info!(
                    provider = "tencent", account = %cx.scope().account.id, region = &**region,
                    operation = action.call.operation, code = error.code.as_deref(), "no such call here"
                );
                lock(&self.presence).insert(key, Presence::AbsentAt(cx.monotonic()));
                Ok(T::default())
            }
            Ok(answer) => {
                lock(&self.presence).insert(key, Presence::Present);
                Ok(answer)
            }
            Err(error) => Err(error),
        }
    }

    /// One session serves all regions of an account.
    async fn keys(&self, cx: &Context) -> Result<Arc<Credentials>, CollectError> {
        match &self.role {
            Some(role) => self.session.get(cx.now(), || self.base.assume(cx, role)).await,
            None => self.base.chain.get(cx, &self.base.api).await,
        }
    }

    async fn renew(&self, cx: &Context, refused: &Arc<Credentials>) -> bool {
        if self.role.is_none() {
            return self.base.chain.renew(cx, &self.base.api, refused).await;
        }
        self.session.forget(refused).await;
        true
    }
}

/// The accounts of a section that have been discovered, by id.
#[derive(Default)]
pub(crate) struct Accounts(Mutex<HashMap<Text, Arc<AccountAccess>>>);

impl Accounts {
    /// Access to a discovered account.
    ///
    /// # Errors
    /// When the account has not been discovered.
    pub(crate) fn get(&self, id: &str) -> Result<Arc<AccountAccess>, CollectError> {
        lock(&self.0)
            .get(id)
            .cloned()
            .ok_or_else(|| CollectError::new(Reason::Other, format!("account {id} has not been discovered")))
    }

    /// Access to an account, kept from an earlier discovery.
    pub(crate) fn get_or_add(&self, id: &Text, base: &Arc<Base>, role: Option<&str>) -> Arc<AccountAccess> {
        let mut accounts = lock(&self.0);
        if let Some(known) = accounts.get(id).filter(|known| known.role.as_deref() == role) {
            return Arc::clone(known);
        }
        let access = Arc::new(AccountAccess::new(Arc::clone(base), role.map(str::to_owned)));
        accounts.insert(id.clone(), Arc::clone(&access));
        access
    }

    /// Forgets accounts that are no longer polled, and their credentials.
    pub(crate) fn retain(&self, ids: &HashSet<&Text>) {
        lock(&self.0).retain(|id, _| ids.contains(id));
    }
}
