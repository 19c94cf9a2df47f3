//! Instance types as the simulated `DescribeInstanceTypes` knows them.

use std::sync::LazyLock;

static TYPES: LazyLock<Vec<InstanceTypeFacts>> =
    LazyLock::new(|| include_str!("types.tsv").lines().filter_map(parse).collect());

/// What the type API says about one instance type, and what is true.
#[derive(Debug, Clone, PartialEq)]
pub struct InstanceTypeFacts {
    /// Name, e.g. `ecs.gn7i-c8g1.2xlarge`.
    pub name: String,
    /// Family, e.g. `ecs.gn7i`.
    pub family: String,
    /// Virtual CPUs.
    pub vcpus: u32,
    /// Memory in GiB.
    pub memory_gib: f64,
    /// `GPUAmount`: 0 for a slice of a card.
    pub gpu_amount: u32,
    /// `GPUSpec`; empty without one.
    pub gpu_spec: String,
    /// Memory of one card in GiB.
    pub gpu_memory_gib: Option<f64>,
    /// The cards, or the part of one, that it really has.
    pub cards: Option<f64>,
    /// `X86` or `ARM`.
    pub architecture: String,
}

/// The type API's facts; `None` for a type that it does not know.
#[must_use]
pub fn instance_type(name: &str) -> Option<&'static InstanceTypeFacts> {
    TYPES.iter().find(|facts| facts.name == name)
}

pub(crate) fn all() -> &'static [InstanceTypeFacts] {
    &TYPES
}

/// The family of a type, also of one that no table has.
pub(crate) fn family_of(name: &str) -> String {
    if let Some(facts) = instance_type(name) {
        return facts.family.clone();
    }
    let (family, _) = name.rsplit_once('.').unwrap_or((name, ""));
    family.split('-').next().unwrap_or(family).to_owned()
}

/// Whether gpuwatch must list instances of this type: those with cards, and
/// every size of a GPU family, known or not.
pub(crate) fn is_accelerated(name: &str) -> bool {
    match instance_type(name) {
        Some(facts) => facts.cards.is_some(),
        None => is_gpu_family(name),
    }
}

/// `ecs.`, then perhaps `ebm` or `scc`, perhaps `v` or `s`, then `gn` and a
/// digit. `ecs.g7` has no GPU.
fn is_gpu_family(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("ecs.") else {
        return false;
    };
    let rest = rest
        .strip_prefix("ebm")
        .or_else(|| rest.strip_prefix("scc"))
        .unwrap_or(rest);
    let rest = rest.strip_prefix(['v', 's']).unwrap_or(rest);
    rest.strip_prefix("gn")
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Cards that the type really has; `None` when nobody knows.
pub(crate) fn true_count(name: &str) -> Option<f64> {
    instance_type(name)?.cards
}

fn parse(line: &str) -> Option<InstanceTypeFacts> {
    if line.starts_with('#') {
        return None;
    }
    let mut fields = line.split('\t');
    let mut next = || fields.next();
    let (name, family, vcpus, memory) = (next()?, next()?, next()?, next()?);
    let (amount, spec, gpu_memory, cards, architecture) = (next()?, next()?, next()?, next()?, next()?);
    Some(InstanceTypeFacts {
        name: name.to_owned(),
        family: family.to_owned(),
        vcpus: vcpus.parse().ok()?,
        memory_gib: memory.parse().ok()?,
        gpu_amount: amount.parse().ok()?,
        gpu_spec: if spec == "-" { String::new() } else { spec.to_owned() },
        gpu_memory_gib: gpu_memory.parse().ok(),
        cards: fraction(cards),
        architecture: architecture.to_owned(),
    })
}

/// `8`, `0.5` or `1/12`.
fn fraction(text: &str) -> Option<f64> {
    match text.split_once('/') {
        Some((part, whole)) => Some(part.parse::<f64>().ok()? / whole.parse::<f64>().ok()?),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read() {
        let lines = include_str!("types.tsv")
            .lines()
            .filter(|line| !line.starts_with('#'))
            .count();
        assert_eq!(all().len(), lines);
        assert!(lines > 100);
        assert!(
            all()
                .iter()
                .all(|facts| facts.gpu_spec.is_empty() == facts.cards.is_none())
        );
        assert!(
            all()
                .iter()
                .all(|facts| facts.name.starts_with(&facts.family) || facts.family.ends_with("-vws"))
        );
    }

    #[test]
    fn slices_of_cards_are_fractions_that_the_api_does_not_tell() {
        let slice = instance_type("ecs.sgn7i-vws-m2.xlarge").unwrap();
        assert_eq!((slice.gpu_amount, slice.cards), (0, Some(1.0 / 12.0)));
        assert_eq!(true_count("ecs.gn8v-8x.48xlarge"), Some(8.0));
        assert_eq!(true_count("ecs.gn99.xlarge"), None);
    }

    #[test]
    fn cpu_and_fpga_types_are_not_accelerated() {
        for (name, expected) in [
            ("ecs.g7.xlarge", false),
            ("ecs.ebmg7.32xlarge", false),
            ("ecs.f3-c4f1.xlarge", false),
            ("ecs.g99.xlarge", false),
            ("ecs.gn6i-c4g1.xlarge", true),
            ("ecs.ebmgn7e.32xlarge", true),
            ("ecs.vgn6i-m4-vws.xlarge", true),
            ("ecs.gn99.xlarge", true),
            ("ecs.sccgn8.32xlarge", true),
            ("ecs.gnx.xlarge", false),
        ] {
            assert_eq!(is_accelerated(name), expected, "{name}");
        }
    }
}
