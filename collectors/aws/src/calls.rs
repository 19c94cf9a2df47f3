//! Cloud calls on behalf of one account: through the scheduler's context,
//! with errors classified and credentials renewed once when they have ended.

use std::{
    collections::{HashMap, HashSet},
    future::Future,
    sync::{
        Arc, Mutex as PlainMutex,
        atomic::{AtomicU32, Ordering},
    },
};

use aws_config::SdkConfig;
use aws_credential_types::Credentials;
use aws_smithy_runtime_api::client::{http::SharedHttpClient, orchestrator::HttpResponse, result::SdkError};
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use gpuwatch_collector_core::{Call, CollectError, Context, Reason, Scope, lock};
use gpuwatch_inventory::Text;
use tokio::sync::Mutex;

use crate::{
    AwsOptions, Partition,
    errors::{Place, classify, decode, is_expired, is_stale_token},
    options::RoleArn,
    region,
    session::{self, Identity, Session},
};

const GET_CALLER_IDENTITY: Call = Call::new("sts", "GetCallerIdentity", "sts:GetCallerIdentity");
const ASSUME_ROLE: Call = Call::new("sts", "AssumeRole", "sts:AssumeRole");

/// The region of a call to a service that exists once per partition.
pub(crate) const NO_REGION: &str = "";

/// The base credentials of a section, and how to get at its accounts.
pub(crate) struct Base {
    options: Arc<AwsOptions>,
    fixed: Option<Credentials>,
    http: SharedHttpClient,
    /// Region whose STS is asked, once it is known to work.
    sts_region: PlainMutex<Option<String>>,
    session: Mutex<Option<Arc<Session>>>,
}

/// One account of a section.
pub(crate) struct AccountAccess {
    base: Arc<Base>,
    /// Role to assume; `None` for the base credentials' own account.
    role: Option<String>,
    session: Mutex<Option<Arc<Session>>>,
    /// Regions with an inventory, from the last discovery.
    regions: PlainMutex<Vec<Text>>,
}

impl Base {
    pub(crate) fn new(options: Arc<AwsOptions>, fixed: Option<Credentials>, http: SharedHttpClient) -> Self {
        Self {
            options,
            fixed,
            http,
            sts_region: PlainMutex::default(),
            session: Mutex::default(),
        }
    }

    /// The region STS and `DescribeRegions` are asked in.
    pub(crate) fn region(&self, partition: Partition) -> String {
        lock(&self.sts_region)
            .clone()
            .unwrap_or_else(|| partition.home_region().to_owned())
    }

    /// The session of the base credentials; opened at the first use, and again
    /// after a failure.
    pub(crate) async fn session(&self, cx: &Context) -> Result<Arc<Session>, CollectError> {
        let mut slot = self.session.lock().await;
        if let Some(session) = &*slot {
            return Ok(Arc::clone(session));
        }
        // Boxed, here and below: loading credentials is rare and its future large.
        let session = Arc::new(Box::pin(self.open(cx)).await?);
        *slot = Some(Arc::clone(&session));
        Ok(session)
    }

    /// Forgets a session whose credentials are no longer accepted, unless
    /// another task has already replaced it.
    async fn forget(&self, old: &Arc<Session>) {
        let mut slot = self.session.lock().await;
        if slot.as_ref().is_some_and(|current| Arc::ptr_eq(current, old)) {
            *slot = None;
        }
    }

    /// Loads the credentials and asks whose they are. Where nothing tells the
    /// partition, each is tried until one knows the credentials.
    async fn open(&self, cx: &Context) -> Result<Session, CollectError> {
        let known = lock(&self.sts_region).clone();
        let regions = match known {
            Some(region) => vec![region],
            None => {
                region::candidates(
                    &self.options,
                    self.fixed.is_none() && self.options.endpoint_url.is_none(),
                )
                .await
            }
        };
        let mut refused = None;
        for region in regions {
            let config = session::load(&self.options, &region, self.fixed.as_ref(), self.http.clone()).await;
            match self.identify(cx, &config, &region).await {
                Ok(identity) => {
                    *lock(&self.sts_region) = Some(region);
                    return Ok(Session::new(identity, config, None));
                }
                Err(error) if is_expired(&error) => refused = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(refused.unwrap_or_else(|| CollectError::new(Reason::Other, "there is no region to ask for the identity")))
    }

    async fn identify(&self, cx: &Context, config: &SdkConfig, region: &str) -> Result<Identity, CollectError> {
        let client = session::sts(config, region);
        let answer = send(
            cx,
            GET_CALLER_IDENTITY,
            || false,
            || client.get_caller_identity().send(),
        )
        .await;
        let answer = match answer {
            Err(error) if is_region_disabled(&error) => {
                let home = session::sts(config, Partition::of_region(region).home_region());
                send(cx, GET_CALLER_IDENTITY, || false, || home.get_caller_identity().send()).await?
            }
            other => other?,
        };
        let partition = answer
            .arn()
            .and_then(Partition::of_arn)
            .unwrap_or_else(|| Partition::of_region(region));
        let account = answer
            .account()
            .filter(|id| !id.is_empty())
            .ok_or_else(|| decode(GET_CALLER_IDENTITY, "no account id"))?;
        match self.options.partition {
            Some(configured) if configured != partition => Err(CollectError::new(
                Reason::Credentials,
                format!("the credentials belong to partition {partition}, but the configuration says {configured}"),
            )),
            _ => Ok(Identity {
                account: account.into(),
                partition,
            }),
        }
    }

    /// Assumes a role: a session of the role's account.
    async fn assume(&self, cx: &Context, role: &str) -> Result<Session, CollectError> {
        let base = self.session(cx).await?;
        match self.assume_with(cx, &base, role).await {
            Err(error) if is_expired(&error) => {
                self.forget(&base).await;
                let base = self.session(cx).await?;
                self.assume_with(cx, &base, role).await
            }
            result => result,
        }
    }

    async fn assume_with(&self, cx: &Context, base: &Session, role: &str) -> Result<Session, CollectError> {
        let request = |region: String| {
            session::sts(base.config(), &region)
                .assume_role()
                .role_arn(role)
                .role_session_name(&self.options.session_name)
                .set_external_id(self.options.external_id.clone())
        };
        let partition = base.identity.partition;
        let region = self.region(partition);
        let answer = send(cx, ASSUME_ROLE, || false, || request(region.clone()).send()).await;
        let answer = match answer {
            // STS is switched off in this region; the home region's never is.
            Err(error) if is_region_disabled(&error) && region != partition.home_region() => {
                let home = partition.home_region().to_owned();
                let answer = send(cx, ASSUME_ROLE, || false, || request(home.clone()).send()).await?;
                *lock(&self.sts_region) = Some(home);
                answer
            }
            other => other?,
        };
        let credentials = answer
            .credentials()
            .ok_or_else(|| decode(ASSUME_ROLE, "no credentials"))?;
        let account = RoleArn::parse(role)
            .map(|arn| Text::from(arn.account))
            .ok_or_else(|| CollectError::new(Reason::Other, format!("{role} is not the ARN of a role")))?;
        Ok(Session::assumed(
            base.config(),
            Identity { account, partition },
            credentials,
        ))
    }
}

fn is_region_disabled(error: &CollectError) -> bool {
    error.code.as_deref() == Some("RegionDisabledException")
}

impl AccountAccess {
    /// Access to an account through a role, or to the own account.
    pub(crate) fn new(base: Arc<Base>, role: Option<String>) -> Self {
        Self {
            base,
            role,
            session: Mutex::default(),
            regions: PlainMutex::default(),
        }
    }

    /// Notes the regions that have an inventory.
    pub(crate) fn set_regions(&self, regions: impl Iterator<Item = Text>) {
        *lock(&self.regions) = regions.filter(|region| &**region != Scope::GLOBAL).collect();
    }

    /// The regions that have an inventory.
    pub(crate) fn regions(&self) -> Vec<Text> {
        lock(&self.regions).clone()
    }

    /// The role assumed; `None` for the own account.
    pub(crate) fn role(&self) -> Option<&str> {
        self.role.as_deref()
    }

    /// The account's session; shared by all its regions, renewed before its
    /// credentials end.
    pub(crate) async fn session(&self, cx: &Context) -> Result<Arc<Session>, CollectError> {
        let Some(role) = &self.role else {
            return self.base.session(cx).await;
        };
        let mut slot = self.session.lock().await;
        if let Some(session) = slot.as_ref().filter(|session| session.is_fresh(cx.now())) {
            return Ok(Arc::clone(session));
        }
        match Box::pin(self.base.assume(cx, role)).await {
            Ok(session) => {
                let session = Arc::new(session);
                *slot = Some(Arc::clone(&session));
                Ok(session)
            }
            // Credentials that last a few minutes more are better than none.
            Err(error) => match slot.as_ref().filter(|session| session.is_alive(cx.now())) {
                Some(session) => Ok(Arc::clone(session)),
                None => Err(error),
            },
        }
    }

    async fn forget(&self, old: &Arc<Session>) {
        if self.role.is_none() {
            return self.base.forget(old).await;
        }
        let mut slot = self.session.lock().await;
        if slot.as_ref().is_some_and(|current| Arc::ptr_eq(current, old)) {
            *slot = None;
        }
    }

    /// Makes one call for this account in a region ([`NO_REGION`] for services
    /// without). When the credentials turn out to have ended, they are renewed
    /// and the call is made again, once.
    ///
    /// # Errors
    /// The classified error of the last attempt.
    pub(crate) async fn call<T, E, F, Fut>(
        &self,
        cx: &Context,
        call: Call,
        region: &str,
        request: F,
    ) -> Result<T, CollectError>
    where
        T: Send,
        E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
        F: Fn(&Session) -> Fut + Send + Sync,
        Fut: Future<Output = Result<T, SdkError<E, HttpResponse>>> + Send,
    {
        let session = self.session(cx).await?;
        match Self::call_with(cx, call, region, &session, &request).await {
            Err(error) if is_expired(&error) => {
                self.forget(&session).await;
                let renewed = self.session(cx).await?;
                Self::call_with(cx, call, region, &renewed, &request).await
            }
            result => result,
        }
    }

    async fn call_with<T, E, F, Fut>(
        cx: &Context,
        call: Call,
        region: &str,
        session: &Session,
        request: &F,
    ) -> Result<T, CollectError>
    where
        T: Send,
        E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
        F: Fn(&Session) -> Fut + Send + Sync,
        Fut: Future<Output = Result<T, SdkError<E, HttpResponse>>> + Send,
    {
        let regional = region != NO_REGION;
        let answer = send(
            cx,
            call,
            || regional && !session.was_accepted(region),
            || request(session),
        )
        .await?;
        if regional {
            session.note_accepted(region);
        }
        Ok(answer)
    }
}

/// Sends one request through the context. An answer that cannot be understood
/// is asked for once more and no oftener: the next is most likely the same.
async fn send<T, E, F, Fut>(
    cx: &Context,
    call: Call,
    region_may_be_disabled: impl Fn() -> bool + Send + Sync,
    request: F,
) -> Result<T, CollectError>
where
    T: Send,
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
    F: Fn() -> Fut + Send + Sync,
    Fut: Future<Output = Result<T, SdkError<E, HttpResponse>>> + Send,
{
    let garbled = AtomicU32::new(0);
    cx.call(call, || {
        // Boxed: the SDK's futures are tens of kilobytes each.
        let request = Box::pin(request());
        async {
            let error = match request.await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let place = Place {
                region_may_be_disabled: region_may_be_disabled(),
            };
            let error = classify(&error, call, place);
            let again = error.reason != Reason::Decode || garbled.fetch_add(1, Ordering::Relaxed) == 0;
            let retryable = error.retryable && again;
            let error = error.retryable(retryable);
            Err(if is_stale_token(&error) {
                error.stale_token()
            } else {
                error
            })
        }
    })
    .await
}

/// The accounts of a section that have been discovered, by id.
#[derive(Default)]
pub(crate) struct Accounts(PlainMutex<HashMap<Text, Arc<AccountAccess>>>);

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

    /// Access to an account through a role, kept from an earlier discovery.
    pub(crate) fn get_or_add(&self, id: &str, base: &Arc<Base>, role: Option<&str>) -> Arc<AccountAccess> {
        let mut accounts = lock(&self.0);
        if let Some(known) = accounts.get(id).filter(|known| known.role() == role) {
            return Arc::clone(known);
        }
        let access = Arc::new(AccountAccess::new(Arc::clone(base), role.map(str::to_owned)));
        accounts.insert(id.into(), Arc::clone(&access));
        access
    }

    /// Forgets accounts that are no longer polled, and their credentials.
    pub(crate) fn retain(&self, ids: &HashSet<&Text>) {
        lock(&self.0).retain(|id, _| ids.contains(id));
    }
}
