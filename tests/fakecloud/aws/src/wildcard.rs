//! Wildcards of EC2 filter values.

/// Whether `text` matches `pattern`: `*` stands for any text, `?` for one
/// character, and a backslash takes the next character literally. Matching is
/// case-sensitive, as in EC2.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    if !pattern.contains(['*', '?', '\\']) {
        return pattern == text;
    }
    let pattern = parse(pattern);
    let text: Vec<char> = text.chars().collect();
    // Greedy matching with one point to fall back to: the last star.
    let (mut p, mut t) = (0, 0);
    let mut fallback: Option<(usize, usize)> = None;
    while let Some(character) = text.get(t) {
        match pattern.get(p) {
            Some(Part::AnyText) => {
                fallback = Some((p, t));
                p += 1;
            }
            Some(part) if part.takes(*character) => {
                p += 1;
                t += 1;
            }
            _ => {
                let Some((star, taken)) = fallback else { return false };
                p = star + 1;
                t = taken + 1;
                fallback = Some((star, t));
            }
        }
    }
    pattern.iter().skip(p).all(|part| matches!(part, Part::AnyText))
}

enum Part {
    AnyText,
    AnyCharacter,
    Character(char),
}

impl Part {
    fn takes(&self, character: char) -> bool {
        match self {
            Self::AnyText => false,
            Self::AnyCharacter => true,
            Self::Character(wanted) => *wanted == character,
        }
    }
}

fn parse(pattern: &str) -> Vec<Part> {
    let mut parts = Vec::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        parts.push(match character {
            '*' => Part::AnyText,
            '?' => Part::AnyCharacter,
            '\\' => Part::Character(characters.next().unwrap_or('\\')),
            other => Part::Character(other),
        });
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn star_and_question_mark_match_as_in_ec2() {
        for (pattern, text, expected) in [
            ("p*", "p5.48xlarge", true),
            ("p*", "c5p.large", false),
            ("g5.*", "g5.xlarge", true),
            ("g5.*", "g5g.xlarge", false),
            ("g?.xlarge", "g5.xlarge", true),
            ("g?.xlarge", "g5g.xlarge", false),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("*xlarge", "p4d.24xlarge", true),
            ("*.*x*e", "p4d.24xlarge", true),
            ("a*b*c", "a-b-b-d", false),
            ("***", "x", true),
            ("P*", "p5.48xlarge", false),
            ("模型*", "模型训练", true),
            ("a?c", "a汉c", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} on {text}");
        }
    }

    #[test]
    fn backslash_takes_a_wildcard_literally() {
        assert!(matches(r"a\*b", "a*b"));
        assert!(!matches(r"a\*b", "axb"));
        assert!(matches(r"\?", "?"));
        assert!(matches("a\\", "a\\"));
    }
}
