//! Time zones by their IANA names.

use std::{fmt, str::FromStr};

use jiff::tz::{TimeZone, TimeZoneDatabase};

use crate::error::{Invalid, nearest};

/// A time zone of the IANA database, which is compiled in: what is valid does
/// not depend on the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone {
    name: String,
    zone: TimeZone,
}

impl Zone {
    /// The IANA name, such as `Asia/Shanghai`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The zone's rules.
    #[must_use]
    pub fn time_zone(&self) -> &TimeZone {
        &self.zone
    }
}

impl Default for Zone {
    fn default() -> Self {
        Self {
            name: "UTC".to_owned(),
            zone: TimeZone::UTC,
        }
    }
}

impl FromStr for Zone {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let text = text.trim();
        if text.eq_ignore_ascii_case("UTC") {
            return Ok(Self::default());
        }
        let database = TimeZoneDatabase::bundled();
        match database.get(text) {
            Ok(zone) => Ok(Self {
                name: zone.iana_name().unwrap_or(text).to_owned(),
                zone,
            }),
            Err(_) => Err(Invalid::new("not a time zone", suggestion(&database, text))),
        }
    }
}

fn suggestion(database: &TimeZoneDatabase, text: &str) -> String {
    let names: Vec<String> = database.available().map(|name| name.to_string()).collect();
    let same_city = names.iter().find(|name| {
        name.rsplit_once('/')
            .is_some_and(|(_, city)| city.eq_ignore_ascii_case(&text.replace(' ', "_")))
    });
    match same_city
        .map(String::as_str)
        .or_else(|| nearest(text, names.iter().map(String::as_str)))
    {
        Some(name) if text.len() > 3 => format!("did you mean {name}?"),
        _ => "write an IANA name such as Asia/Shanghai, Europe/Berlin or UTC".to_owned(),
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name)
    }
}

super::scalar_type!(Zone, pattern: r"\S", about: "A time zone by its IANA name, such as Asia/Shanghai.");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iana_names_are_known_and_others_get_a_suggestion() {
        assert_eq!("Asia/Shanghai".parse::<Zone>().unwrap().name(), "Asia/Shanghai");
        assert_eq!("utc".parse::<Zone>().unwrap().time_zone(), &TimeZone::UTC);
        for (bad, fix) in [
            ("Shanghai", "did you mean Asia/Shanghai?"),
            ("Asia/Shangai", "did you mean Asia/Shanghai?"),
            ("CST8", "write an IANA name such as Asia/Shanghai, Europe/Berlin or UTC"),
        ] {
            assert_eq!(bad.parse::<Zone>().unwrap_err().fix(), fix, "{bad}");
        }
    }
}
