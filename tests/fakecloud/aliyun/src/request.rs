//! What a request is addressed to.

use gpuwatch_fakecloud_core::Incoming;

use crate::params::Params;

/// The products that are simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Product {
    Ecs,
    Sts,
    Bss,
}

impl Product {
    pub(crate) const ALL: [Self; 3] = [Self::Ecs, Self::Sts, Self::Bss];

    /// Its name in the call log.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ecs => "ecs",
            Self::Sts => "sts",
            Self::Bss => "bssopenapi",
        }
    }

    /// Its name in RAM actions.
    pub(crate) const fn ram_code(self) -> &'static str {
        match self {
            Self::Ecs => "ecs",
            Self::Sts => "sts",
            Self::Bss => "bssapi",
        }
    }

    const fn version(self) -> &'static str {
        match self {
            Self::Ecs => "2014-05-26",
            Self::Sts => "2015-04-01",
            Self::Bss => "2017-12-14",
        }
    }
}

/// The scheme that a call is signed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    /// `ACS3-HMAC-SHA256`, in headers.
    V3,
    /// `HMAC-SHA1`, in parameters.
    V1,
    /// No signature at all.
    Unsigned,
}

/// An RPC call, as it is addressed.
#[derive(Debug)]
pub(crate) struct Address {
    /// `None` for a version of no simulated product.
    pub(crate) product: Option<Product>,
    pub(crate) action: String,
    pub(crate) scheme: Scheme,
    pub(crate) params: Params,
}

impl Address {
    /// `None` for requests of other clouds.
    pub(crate) fn of(request: &Incoming) -> Option<Self> {
        let params = parameters(request);
        let authorization = request.header("authorization").unwrap_or_default();
        let scheme = if authorization.starts_with("ACS3-") {
            Scheme::V3
        } else if authorization.is_empty() && params.get("Signature").is_some() {
            Scheme::V1
        } else {
            Scheme::Unsigned
        };
        let action = request.header("x-acs-action").or_else(|| params.get("Action"));
        let version = request.header("x-acs-version").or_else(|| params.get("Version"));
        let product = Product::ALL
            .into_iter()
            .find(|product| Some(product.version()) == version);
        let in_headers = scheme == Scheme::V3 || request.header("x-acs-action").is_some();
        // Another cloud's query protocols use `Action` and `Version` too.
        let in_parameters = authorization.is_empty()
            && action.is_some()
            && (product.is_some() || params.get("SignatureNonce").is_some() && params.get("AccessKeyId").is_some());
        if !in_headers && !in_parameters {
            return None;
        }
        let action = action.unwrap_or_default().to_owned();
        Some(Self {
            product,
            action,
            scheme,
            params,
        })
    }
}

fn parameters(request: &Incoming) -> Params {
    let is_form = request
        .header("content-type")
        .is_some_and(|kind| kind.starts_with("application/x-www-form-urlencoded"));
    let form: &[u8] = if is_form { &request.body } else { b"" };
    Params::parse(request.uri.query().unwrap_or_default(), form)
}
