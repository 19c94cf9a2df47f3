//! Currencies, exchange rates and percentages.

use std::{fmt, str::FromStr};

use gpuwatch_inventory::Currency;
use rust_decimal::Decimal;

use crate::error::{Invalid, nearest};

/// The active codes of ISO 4217 that money can be billed in.
const CODES: &str = "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD \
    CAD CDF CHF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD \
    HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD \
    MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG \
    QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD \
    TZS UAH UGX USD UYU UZS VED VES VND VUV WST XAF XCD XCG XOF XPF YER ZAR ZMW ZWG";

/// A currency by its ISO 4217 code.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CurrencyCode(Currency);

impl CurrencyCode {
    /// The currency.
    #[must_use]
    pub fn currency(&self) -> &Currency {
        &self.0
    }
}

impl Default for CurrencyCode {
    fn default() -> Self {
        Self(Currency::usd())
    }
}

impl FromStr for CurrencyCode {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        const MESSAGE: &str = "not a currency code of ISO 4217";
        let upper = text.trim().to_ascii_uppercase();
        if CODES.split_whitespace().any(|code| code == upper) {
            return Currency::new(&upper)
                .map(Self)
                .map_err(|_| Invalid::new(MESSAGE, "write three letters"));
        }
        let fix = match upper.as_str() {
            "RMB" | "CNH" | "YUAN" | "¥" => "the yuan is CNY".to_owned(),
            _ => match nearest(&upper, CODES.split_whitespace()) {
                Some(code) if upper.chars().count() >= 3 => format!("did you mean {code}?"),
                _ => "write three letters, such as USD, CNY or EUR".to_owned(),
            },
        };
        Err(Invalid::new(MESSAGE, fix))
    }
}

impl fmt::Display for CurrencyCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0.as_str())
    }
}

super::scalar_type!(CurrencyCode, pattern: r"^\s*[A-Za-z]{3}\s*$", about: "A currency by its ISO 4217 code, such as USD.");

/// An exchange rate: units of a currency per one unit of the report currency.
/// Exact and positive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate(Decimal);

impl Rate {
    /// The rate.
    #[must_use]
    pub const fn get(self) -> Decimal {
        self.0
    }
}

impl FromStr for Rate {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        match decimal(text) {
            Some(rate) if rate > Decimal::ZERO => Ok(Self(rate)),
            Some(_) => Err(Invalid::new(
                "a rate must be above zero",
                "write units of this currency per one report unit",
            )),
            None => Err(Invalid::new(
                "not a decimal number",
                "write digits with a dot, such as 7.10",
            )),
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A percentage above 0 and at most 100, exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Percent(Decimal);

impl Percent {
    /// The number before the percent sign.
    #[must_use]
    pub const fn get(self) -> Decimal {
        self.0
    }
}

impl FromStr for Percent {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        const FIX: &str = "write a number above 0 and at most 100, such as 12 or 7.5";
        match decimal(text) {
            Some(percent) if percent > Decimal::ZERO && percent <= Decimal::ONE_HUNDRED => Ok(Self(percent)),
            Some(_) => Err(Invalid::new("a percentage out of range", FIX)),
            None => Err(Invalid::new("not a decimal number", FIX)),
        }
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// An amount of money above zero, exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Amount(Decimal);

impl Amount {
    pub(crate) fn whole(units: u32) -> Self {
        Self(units.into())
    }

    /// The amount.
    #[must_use]
    pub const fn get(self) -> Decimal {
        self.0
    }
}

impl FromStr for Amount {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        decimal(text)
            .filter(|amount| *amount > Decimal::ZERO)
            .map(Self)
            .ok_or_else(|| {
                Invalid::new(
                    "not an amount above zero",
                    "write digits with a dot, such as 500 or 99.50",
                )
            })
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Digits with at most one dot: no exponents, no separators, no overflow.
fn decimal(text: &str) -> Option<Decimal> {
    let text = text.trim();
    let is_plain = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-'));
    if is_plain {
        Decimal::from_str_exact(text).ok()
    } else {
        None
    }
}

/// Decimals are written bare in YAML, or quoted to keep every digit.
macro_rules! decimal_type {
    ($type:ident, $about:literal) => {
        super::scalar_type!(@serde $type);
        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "description": $about,
                    "anyOf": [
                        { "type": "number", "exclusiveMinimum": 0 },
                        { "type": "string", "pattern": r"^\s*[0-9]*\.?[0-9]+\s*$" },
                    ],
                })
            }
        }
    };
}
decimal_type!(Rate, "Units of a currency per one unit of the report currency.");
decimal_type!(Amount, "An amount of money above zero.");
decimal_type!(Percent, "A percentage above 0 and at most 100.");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_checked_against_the_standard() {
        assert_eq!("cny".parse::<CurrencyCode>().unwrap().to_string(), "CNY");
        for (bad, fix) in [
            ("RMB", "the yuan is CNY"),
            ("USDD", "did you mean USD?"),
            ("$", "write three letters, such as USD, CNY or EUR"),
        ] {
            assert_eq!(bad.parse::<CurrencyCode>().unwrap_err().fix(), fix, "{bad}");
        }
    }

    #[test]
    fn rates_are_exact_and_positive() {
        assert_eq!("7.10".parse::<Rate>().unwrap().to_string(), "7.10");
        for bad in [
            "0",
            "-1",
            "",
            "7,1",
            "1e3",
            "NaN",
            "seven",
            "1.2.3",
            "99999999999999999999999999999999",
        ] {
            assert!(bad.parse::<Rate>().is_err(), "{bad}");
        }
    }

    #[test]
    fn percentages_stay_in_range() {
        assert!("100".parse::<Percent>().is_ok() && "0.5".parse::<Percent>().is_ok());
        for bad in ["0", "100.1", "-3", "12%"] {
            assert!(bad.parse::<Percent>().is_err(), "{bad}");
        }
    }
}
