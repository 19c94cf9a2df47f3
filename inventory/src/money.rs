//! Decimal money that carries its currency and is added only within one.

use std::fmt;

use rust_decimal::Decimal;
use serde::Serialize;

use crate::Text;

/// An ISO 4217 code as the cloud or the bill states it, upper case.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Currency(Text);

/// What can be wrong with money from outside.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MoneyError {
    /// Not three ASCII letters.
    #[error("not a currency code: {0:?}")]
    BadCurrency(String),
    /// Not a plain decimal number.
    #[error("not an amount of money: {0:?}")]
    BadAmount(String),
    /// Two currencies in one sum.
    #[error("{0} and {1} cannot be added")]
    MixedCurrencies(Currency, Currency),
    /// The sum does not fit a decimal.
    #[error("amount too large")]
    Overflow,
}

impl Currency {
    /// US dollar.
    #[must_use]
    pub fn usd() -> Self {
        Self("USD".into())
    }

    /// Chinese yuan.
    #[must_use]
    pub fn cny() -> Self {
        Self("CNY".into())
    }

    /// Parses a code; case does not matter.
    ///
    /// # Errors
    /// [`MoneyError::BadCurrency`] unless it is three ASCII letters.
    pub fn new(code: &str) -> Result<Self, MoneyError> {
        let code = code.trim();
        if code.len() == 3 && code.bytes().all(|b| b.is_ascii_alphabetic()) {
            Ok(Self(code.to_ascii_uppercase().into()))
        } else {
            Err(MoneyError::BadCurrency(code.to_owned()))
        }
    }

    /// The code.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// An amount in one currency. In documents the amount is a decimal string.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Money {
    /// The amount, exact.
    pub amount: Decimal,
    /// Its currency.
    pub currency: Currency,
}

impl Money {
    /// An amount in a currency.
    #[must_use]
    pub const fn new(amount: Decimal, currency: Currency) -> Self {
        Self { amount, currency }
    }

    /// Parses the decimal strings that clouds print, exponent form included
    /// (Cost Explorer prints small amounts as `1.2E-7`).
    ///
    /// # Errors
    /// [`MoneyError::BadAmount`] when it is not a finite decimal number.
    pub fn parse(amount: &str, currency: Currency) -> Result<Self, MoneyError> {
        let text = amount.trim();
        // The decimal library reads `1_000`, which no cloud prints.
        if text.contains('_') {
            return Err(MoneyError::BadAmount(amount.to_owned()));
        }
        text.parse::<Decimal>()
            .or_else(|_| Decimal::from_scientific(text))
            .map(|amount| Self { amount, currency })
            .map_err(|_| MoneyError::BadAmount(amount.to_owned()))
    }

    /// Adds within one currency.
    ///
    /// # Errors
    /// [`MoneyError::MixedCurrencies`] for two currencies,
    /// [`MoneyError::Overflow`] when the sum does not fit.
    pub fn checked_add(&self, other: &Self) -> Result<Self, MoneyError> {
        if self.currency != other.currency {
            return Err(MoneyError::MixedCurrencies(
                self.currency.clone(),
                other.currency.clone(),
            ));
        }
        self.amount
            .checked_add(other.amount)
            .map(|amount| Self {
                amount,
                currency: self.currency.clone(),
            })
            .ok_or(MoneyError::Overflow)
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.amount, self.currency)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usd(text: &str) -> Money {
        Money::parse(text, Currency::usd()).expect("amount")
    }

    #[test]
    fn amounts_are_exact_and_exponents_are_read() {
        assert_eq!(usd("0.1").checked_add(&usd("0.2")).expect("sum"), usd("0.3"));
        assert_eq!(usd("1.2E-7").amount.to_string(), "0.00000012");
    }

    #[test]
    fn currencies_never_mix() {
        let yuan = Money::parse("1", Currency::cny()).expect("amount");
        assert!(matches!(
            usd("1").checked_add(&yuan),
            Err(MoneyError::MixedCurrencies(..))
        ));
    }

    #[test]
    fn bad_text_is_an_error() {
        for bad in ["", "NaN", "inf", "1,5", "1_000", "ten", "1e999"] {
            assert!(Money::parse(bad, Currency::usd()).is_err(), "{bad}");
        }
        for bad in ["", "US", "U$D", "EURO"] {
            assert!(Currency::new(bad).is_err(), "{bad}");
        }
    }
}
