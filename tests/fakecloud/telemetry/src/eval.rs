//! The part of `PromQL` that gpuwatch and its dashboards' checks speak. What is
//! not supported is refused by name, never answered wrongly.

use std::collections::BTreeMap;

use jiff::Timestamp;
use promql_parser::{
    label::{METRIC_NAME, MatchOp, Matcher},
    parser::{
        AggregateExpr, BinaryExpr, Call, Expr, LabelModifier, MatrixSelector, Offset, SubqueryExpr, VectorSelector,
    },
};

use crate::{
    functions,
    source::Labels,
    storage::{Storage, Stored},
};

/// How far back an instant looks.
const LOOK_BACK_MILLIS: i64 = 5 * 60 * 1000;
/// Step of a subquery that names none.
const DEFAULT_STEP_MILLIS: i64 = 60 * 1000;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// The query is wrong, or says something that is not supported.
    #[error("{0}")]
    BadData(String),
    /// Series that do not fit together.
    #[error("{0}")]
    Execution(&'static str),
    /// More samples than the server takes into memory.
    #[error("query processing would load too many samples into memory in query execution")]
    TooManySamples,
}

/// A value with its labels.
pub type Point = (Labels, f64);

/// What an expression gives at one time.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A number.
    Scalar(f64),
    /// Series with one value each.
    Vector(Vec<Point>),
    /// Series with samples.
    Matrix(Vec<Stored>),
}

/// Evaluates against a storage.
pub struct Evaluation<'a> {
    storage: &'a Storage,
    now: Timestamp,
    /// Ranges hold a sample that is exactly at their beginning: so until
    /// Prometheus 3.
    closed_ranges: bool,
    samples_left: std::cell::Cell<usize>,
}

impl<'a> Evaluation<'a> {
    /// An evaluation that may read so many samples.
    #[must_use]
    pub fn new(storage: &'a Storage, now: Timestamp, closed_ranges: bool, max_samples: usize) -> Self {
        Self {
            storage,
            now,
            closed_ranges,
            samples_left: std::cell::Cell::new(max_samples),
        }
    }

    /// The value of an expression at a time in milliseconds.
    ///
    /// # Errors
    /// When it cannot be evaluated.
    pub fn at(&self, expr: &Expr, time: i64) -> Result<Value, EvalError> {
        match expr {
            Expr::Paren(inner) => self.at(&inner.expr, time),
            Expr::NumberLiteral(number) => Ok(Value::Scalar(number.val)),
            Expr::Unary(inner) => Ok(match self.at(&inner.expr, time)? {
                Value::Scalar(value) => Value::Scalar(-value),
                Value::Vector(points) => {
                    Value::Vector(points.into_iter().map(|(l, v)| (without_name(l), -v)).collect())
                }
                Value::Matrix(_) => return Err(bad("a range has no sign")),
            }),
            Expr::VectorSelector(selector) => self.instant(selector, time).map(Value::Vector),
            Expr::MatrixSelector(selector) => self.range(selector, time).map(Value::Matrix),
            Expr::Subquery(subquery) => self.subquery(subquery, time).map(Value::Matrix),
            Expr::Call(call) => self.call(call, time),
            Expr::Aggregate(aggregate) => self.aggregate(aggregate, time).map(Value::Vector),
            Expr::Binary(binary) => self.binary(binary, time),
            Expr::StringLiteral(_) | Expr::Extension(_) => Err(bad("not a value")),
        }
    }

    fn matchers(selector: &VectorSelector) -> Result<Vec<Matcher>, EvalError> {
        if selector.at.is_some() || !selector.matchers.or_matchers.is_empty() {
            return Err(bad("@ and or between matchers are not supported here"));
        }
        let mut matchers = selector.matchers.matchers.clone();
        if let Some(name) = &selector.name {
            matchers.push(Matcher::new(MatchOp::Equal, METRIC_NAME, name));
        }
        if matchers.iter().all(|matcher| matcher.is_match("")) {
            return Err(bad("vector selector must contain at least one non-empty matcher"));
        }
        Ok(matchers)
    }

    /// Counts what is held in memory at once, as Prometheus does.
    fn hold(&self, samples: usize) -> Result<(), EvalError> {
        let left = self
            .samples_left
            .get()
            .checked_sub(samples)
            .ok_or(EvalError::TooManySamples)?;
        self.samples_left.set(left);
        Ok(())
    }

    fn instant(&self, selector: &VectorSelector, time: i64) -> Result<Vec<Point>, EvalError> {
        let to = time - offset(selector.offset.as_ref());
        let matchers = Self::matchers(selector)?;
        let found = self.storage.select(&matchers, to - LOOK_BACK_MILLIS + 1, to, self.now);
        self.hold(found.len())?;
        let newest = |series: Stored| series.samples.last().map(|(_, value)| (series.labels.clone(), *value));
        Ok(found.into_iter().filter_map(newest).collect())
    }

    fn range(&self, selector: &MatrixSelector, time: i64) -> Result<Vec<Stored>, EvalError> {
        let to = time - offset(selector.vs.offset.as_ref());
        let from = to - millis(selector.range) + self.beginning();
        let found = self.storage.select(&Self::matchers(&selector.vs)?, from, to, self.now);
        self.hold(found.iter().map(|series| series.samples.len()).sum())?;
        Ok(found)
    }

    /// Added to the beginning of a range.
    fn beginning(&self) -> i64 {
        i64::from(!self.closed_ranges)
    }

    /// Steps of a subquery are multiples of its step since the epoch.
    fn subquery(&self, subquery: &SubqueryExpr, time: i64) -> Result<Vec<Stored>, EvalError> {
        if subquery.at.is_some() {
            return Err(bad("@ is not supported here"));
        }
        let to = time - offset(subquery.offset.as_ref());
        let from = to - millis(subquery.range) + self.beginning();
        let step = subquery.step.map_or(DEFAULT_STEP_MILLIS, millis).max(1);
        let mut series: BTreeMap<Labels, Vec<(i64, f64)>> = BTreeMap::new();
        let mut at = from.div_euclid(step) * step;
        if at < from {
            at += step;
        }
        while at <= to {
            match self.at(&subquery.expr, at)? {
                Value::Vector(points) => {
                    for (labels, value) in points {
                        series.entry(labels).or_default().push((at, value));
                    }
                }
                Value::Scalar(value) => series.entry(Labels::new()).or_default().push((at, value)),
                Value::Matrix(_) => return Err(bad("a subquery of a range")),
            }
            at += step;
        }
        Ok(series
            .into_iter()
            .map(|(labels, samples)| Stored { labels, samples })
            .collect())
    }

    fn call(&self, call: &Call, time: i64) -> Result<Value, EvalError> {
        let name = call.func.name;
        let arguments: Vec<&Expr> = call.args.args.iter().map(|argument| &**argument).collect();
        match (name, &arguments[..]) {
            #[allow(clippy::cast_precision_loss, reason = "milliseconds fit")]
            ("time", []) => Ok(Value::Scalar(time as f64 / 1000.0)),
            ("vector", [scalar]) => match self.at(scalar, time)? {
                Value::Scalar(value) => Ok(Value::Vector(vec![(Labels::new(), value)])),
                _ => Err(bad("vector wants a scalar")),
            },
            (_, [range]) => {
                let Some(function) = functions::over_range(name) else {
                    return Err(bad(&format!("the function {name} is not supported here")));
                };
                let length = match range {
                    Expr::MatrixSelector(selector) => (millis(selector.range), offset(selector.vs.offset.as_ref())),
                    Expr::Subquery(subquery) => (millis(subquery.range), offset(subquery.offset.as_ref())),
                    _ => return Err(bad(&format!("{name} wants a range"))),
                };
                let Value::Matrix(series) = self.at(range, time)? else {
                    return Err(bad("a range is wanted"));
                };
                let to = time - length.1;
                let keeps_name = name == "last_over_time";
                let points = series.into_iter().filter_map(|series| {
                    let value = function(&series.samples, to - length.0, to)?;
                    let labels = if keeps_name {
                        series.labels
                    } else {
                        without_name(series.labels)
                    };
                    Some((labels, value))
                });
                Ok(Value::Vector(points.collect()))
            }
            _ => Err(bad(&format!("the function {name} is not supported here"))),
        }
    }

    fn aggregate(&self, aggregate: &AggregateExpr, time: i64) -> Result<Vec<Point>, EvalError> {
        let name = aggregate.op.to_string();
        let Some(fold) = functions::aggregation(&name).filter(|_| aggregate.param.is_none()) else {
            return Err(bad(&format!("the aggregation {name} is not supported here")));
        };
        let Value::Vector(points) = self.at(&aggregate.expr, time)? else {
            return Err(bad("a vector is wanted"));
        };
        let mut groups: BTreeMap<Labels, Vec<f64>> = BTreeMap::new();
        for (labels, value) in points {
            let key = match &aggregate.modifier {
                None => Labels::new(),
                Some(LabelModifier::Include(kept)) => labels
                    .into_iter()
                    .filter(|(name, _)| kept.labels.contains(name))
                    .collect(),
                Some(LabelModifier::Exclude(dropped)) => without_name(labels)
                    .into_iter()
                    .filter(|(name, _)| !dropped.labels.contains(name))
                    .collect(),
            };
            groups.entry(key).or_default().push(value);
        }
        Ok(groups
            .into_iter()
            .map(|(labels, values)| (labels, fold(&values)))
            .collect())
    }

    fn binary(&self, binary: &BinaryExpr, time: i64) -> Result<Value, EvalError> {
        let name = binary.op.to_string();
        let Some(operator) = functions::operator(&name) else {
            return Err(bad(&format!("the operator {name} is not supported here")));
        };
        let is_comparison = functions::is_comparison(&name);
        let to_bool = binary.modifier.as_ref().is_some_and(|modifier| modifier.return_bool);
        // A comparison keeps the left value where it holds.
        let pair = |left: f64, right: f64, kept: f64| {
            let result = operator(left, right);
            if is_comparison && !to_bool {
                (result != 0.0).then_some(kept)
            } else {
                Some(result)
            }
        };
        let label = |labels: Labels| {
            if is_comparison && !to_bool {
                labels
            } else {
                without_name(labels)
            }
        };
        match (self.at(&binary.lhs, time)?, self.at(&binary.rhs, time)?) {
            (Value::Scalar(left), Value::Scalar(right)) => Ok(Value::Scalar(operator(left, right))),
            (Value::Vector(points), Value::Scalar(right)) => {
                let points = points
                    .into_iter()
                    .filter_map(|(l, left)| Some((label(l), pair(left, right, left)?)));
                Ok(Value::Vector(points.collect()))
            }
            (Value::Scalar(left), Value::Vector(points)) => {
                let points = points
                    .into_iter()
                    .filter_map(|(l, right)| Some((label(l), pair(left, right, right)?)));
                Ok(Value::Vector(points.collect()))
            }
            (Value::Vector(left), Value::Vector(right)) => {
                let matching = binary.modifier.as_ref().and_then(|modifier| modifier.matching.as_ref());
                let key = |labels: &Labels| -> Labels {
                    let all = without_name(labels.clone()).into_iter();
                    match matching {
                        None => all.collect(),
                        Some(LabelModifier::Include(kept)) => all.filter(|(n, _)| kept.labels.contains(n)).collect(),
                        Some(LabelModifier::Exclude(out)) => all.filter(|(n, _)| !out.labels.contains(n)).collect(),
                    }
                };
                let mut by_key: BTreeMap<Labels, f64> = BTreeMap::new();
                for (labels, value) in right {
                    if by_key.insert(key(&labels), value).is_some() {
                        return Err(EvalError::Execution("found duplicate series on the right hand-side"));
                    }
                }
                let mut seen = std::collections::BTreeSet::new();
                let mut points = Vec::new();
                for (labels, value) in left {
                    let group = key(&labels);
                    let Some(other) = by_key.get(&group) else { continue };
                    if !seen.insert(group.clone()) {
                        return Err(bad(
                            "multiple matches for labels: many-to-one matching must be explicit",
                        ));
                    }
                    if let Some(result) = pair(value, *other, value) {
                        let kept = if is_comparison && !to_bool { labels } else { group };
                        points.push((kept, result));
                    }
                }
                Ok(Value::Vector(points))
            }
            _ => Err(bad("a range is no operand")),
        }
    }
}

fn bad(what: &str) -> EvalError {
    EvalError::BadData(what.to_owned())
}

fn without_name(mut labels: Labels) -> Labels {
    labels.remove(METRIC_NAME);
    labels
}

fn millis(duration: std::time::Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX / 4)
}

fn offset(offset: Option<&Offset>) -> i64 {
    match offset {
        None => 0,
        Some(Offset::Pos(by)) => millis(*by),
        Some(Offset::Neg(by)) => -millis(*by),
    }
}
