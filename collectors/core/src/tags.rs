//! Which tags (labels) of an instance are read and kept, in every cloud alike.

use gpuwatch_inventory::{Tag, Text};

use crate::Interner;

/// Tags of one instance as key and value.
pub type Tags<'a> = [(&'a str, &'a str)];

/// Which tags to read, from the configuration.
#[derive(Debug, Clone, Default)]
pub struct TagRules {
    /// Keys that name the owner, strongest first.
    pub owner: Vec<String>,
    /// Further keys to keep.
    pub keep: Vec<String>,
}

impl TagRules {
    /// The value of the first configured owner key that has one; empty when
    /// none has.
    #[must_use]
    pub fn owner<'a>(&self, tags: &Tags<'a>) -> &'a str {
        let mut keys = self.owner.iter();
        keys.find_map(|key| tag_value(tags, key)).unwrap_or_default()
    }

    /// The tags to keep on an instance, sorted by key: the configured ones and
    /// those that `well_known` accepts.
    #[must_use]
    pub fn kept(&self, tags: &Tags<'_>, interner: &mut Interner, well_known: impl Fn(&str) -> bool) -> Vec<Tag> {
        let configured = |key: &str| self.owner.iter().chain(&self.keep).any(|known| known == key);
        let mut kept: Vec<Tag> = tags
            .iter()
            .filter(|(key, _)| configured(key) || well_known(key))
            .map(|(key, value)| Tag {
                key: interner.text(key),
                value: interner.text(value),
            })
            .collect();
        kept.sort_by(|a, b| a.key.cmp(&b.key));
        kept
    }
}

/// The value of a tag, unless it is blank. Keys are case-sensitive.
#[must_use]
pub fn tag_value<'a>(tags: &Tags<'a>, key: &str) -> Option<&'a str> {
    tags.iter()
        .find(|(k, v)| *k == key && !v.trim().is_empty())
        .map(|(_, v)| *v)
}

/// The value of the first of these keys that has one.
#[must_use]
pub fn first_tag<'a>(tags: &Tags<'a>, keys: &[&str]) -> Option<&'a str> {
    keys.iter().find_map(|key| tag_value(tags, key))
}

/// What the tags of one instance say; all empty when nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ownership {
    /// First configured owner tag with a value.
    pub owner: Text,
    /// Cluster.
    pub cluster: Text,
    /// Node pool, group or queue.
    pub pool: Text,
    /// Tags to keep.
    pub kept: Vec<Tag>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> TagRules {
        TagRules {
            owner: vec!["owner".into(), "team".into()],
            keep: vec!["gpuwatch-ignore".into()],
        }
    }

    #[test]
    fn the_owner_is_the_first_configured_key_with_a_value() {
        assert_eq!(rules().owner(&[("team", "视觉组"), ("owner", " ")]), "视觉组");
        assert_eq!(rules().owner(&[("team", "b"), ("owner", "a")]), "a");
        assert_eq!(rules().owner(&[("Owner", "a")]), "", "keys are case-sensitive");
    }

    #[test]
    fn only_known_and_configured_tags_are_kept() {
        let tags = [
            ("secret", "x"),
            ("gpuwatch-ignore", ""),
            ("team", "a"),
            ("cluster", "c"),
        ];
        let kept = rules().kept(&tags, &mut Interner::default(), |key| key == "cluster");
        let keys: Vec<&str> = kept.iter().map(|tag| &*tag.key).collect();
        assert_eq!(keys, ["cluster", "gpuwatch-ignore", "team"]);
    }
}
