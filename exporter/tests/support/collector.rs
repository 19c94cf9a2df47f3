//! A collector whose answers a test decides.

use std::sync::{Arc, Mutex};

use gpuwatch_collector_core::{
    Account, Call, CollectError, Collected, Collector, Context, Dataset, Discovery, Part, Reason, Scope, Target,
};
use gpuwatch_inventory::{Instance, Provider};

/// One account in one region that answers what it was told last.
pub struct Scripted {
    scope: Scope,
    answer: Mutex<Result<Vec<Instance>, Reason>>,
}

impl Scripted {
    pub fn new(account: &str, instances: Vec<Instance>) -> Arc<Self> {
        let account = Account {
            id: account.into(),
            name: account.into(),
        };
        let scope = Scope {
            provider: Provider::Aws,
            account,
            region: "us-east-1".into(),
        };
        Arc::new(Self {
            scope,
            answer: Mutex::new(Ok(instances)),
        })
    }

    pub fn answer(&self, answer: Result<Vec<Instance>, Reason>) {
        *self.answer.lock().expect("not poisoned") = answer;
    }
}

#[async_trait::async_trait]
impl Collector for Scripted {
    fn provider(&self) -> Provider {
        self.scope.provider
    }

    fn name(&self) -> &str {
        &self.scope.account.name
    }

    async fn discover(&self, _cx: &Context) -> Discovery {
        let target = Target {
            scope: self.scope.clone(),
            datasets: vec![Dataset::Inventory],
        };
        Discovery {
            targets: vec![target],
            failures: Vec::new(),
        }
    }

    fn parts(&self, _scope: &Scope, _dataset: Dataset) -> Vec<Part> {
        vec!["instances"]
    }

    async fn collect(&self, _: &Scope, _: Dataset, _: Part, cx: &Context) -> Result<Collected, CollectError> {
        let call = Call::new("test", "List", "test:List");
        cx.call(call, || async {
            let answer = self.answer.lock().expect("not poisoned").clone();
            answer
                .map(Collected::Instances)
                .map_err(|reason| CollectError::new(reason, "scripted").retryable(false))
        })
        .await
    }
}
