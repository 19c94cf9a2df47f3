//! From a text to a query.

use std::collections::BTreeSet;

use regex::Regex;

use super::token::{Placed, Token, tokens};
use super::{Case, Column, Expression, Failure, Place, Predicate, Query, Step};

/// The columns of every table.
const COLUMNS: [&str; 16] = [
    "id",
    "name",
    "type",
    "tenantId",
    "kind",
    "location",
    "resourceGroup",
    "subscriptionId",
    "managedBy",
    "sku",
    "plan",
    "properties",
    "tags",
    "identity",
    "zones",
    "extendedLocation",
];

/// Understands a query.
pub(crate) fn parse(query: &str) -> Result<Query, Failure> {
    let mut parser = Parser {
        query,
        tokens: tokens(query)?,
        at: 0,
        columns: COLUMNS.iter().map(|column| (*column).to_owned()).collect(),
    };
    let table = parser.word()?;
    let mut steps = Vec::new();
    let mut ordered = false;
    while !parser.is_at_end() {
        parser.sign("|")?;
        let step = parser.step()?;
        // A part of the rows has no next page.
        ordered = match step {
            Step::Order(_) => true,
            Step::Take(_) => false,
            _ => ordered,
        };
        steps.push(step);
    }
    Ok(Query {
        table,
        steps,
        can_page: ordered && parser.columns.contains("id"),
    })
}

struct Parser<'q> {
    query: &'q str,
    tokens: Vec<Placed>,
    at: usize,
    /// Those that the rows have where the parser is.
    columns: BTreeSet<String>,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(_, token)| token)
    }

    fn is_at_end(&self) -> bool {
        self.at >= self.tokens.len()
    }

    fn fail(&self) -> Failure {
        let Some((at, token)) = self.tokens.get(self.at) else {
            return Failure::at(self.query, self.query.len(), "");
        };
        let text = match token {
            Token::Word(text) | Token::Text(text) => text.clone(),
            Token::Number(number) => number.to_string(),
            Token::Sign(sign) => (*sign).to_owned(),
        };
        Failure::at(self.query, *at, &text)
    }

    /// Takes a sign if it is next.
    fn takes(&mut self, sign: &str) -> bool {
        let there = matches!(self.peek(), Some(Token::Sign(next)) if *next == sign);
        self.at += usize::from(there);
        there
    }

    /// Takes a keyword if it is next.
    fn takes_word(&mut self, word: &str) -> bool {
        let there = matches!(self.peek(), Some(Token::Word(next)) if next == word);
        self.at += usize::from(there);
        there
    }

    fn sign(&mut self, sign: &str) -> Result<(), Failure> {
        if self.takes(sign) { Ok(()) } else { Err(self.fail()) }
    }

    fn word(&mut self) -> Result<String, Failure> {
        match self.peek() {
            Some(Token::Word(word)) => {
                let word = word.clone();
                self.at += 1;
                Ok(word)
            }
            _ => Err(self.fail()),
        }
    }

    fn text(&mut self) -> Result<String, Failure> {
        match self.peek() {
            Some(Token::Text(text)) => {
                let text = text.clone();
                self.at += 1;
                Ok(text)
            }
            _ => Err(self.fail()),
        }
    }

    fn number(&mut self) -> Result<u64, Failure> {
        match self.peek() {
            Some(Token::Number(number)) => {
                let number = *number;
                self.at += 1;
                Ok(number)
            }
            _ => Err(self.fail()),
        }
    }

    fn step(&mut self) -> Result<Step, Failure> {
        if self.takes_word("where") {
            return Ok(Step::Where(self.either()?));
        }
        if self.takes_word("extend") {
            let columns = self.list(Self::column)?;
            self.columns.extend(columns.iter().map(|column| column.name.clone()));
            return Ok(Step::Extend(columns));
        }
        if self.takes_word("project") {
            let columns = self.list(Self::column)?;
            self.columns = columns.iter().map(|column| column.name.clone()).collect();
            return Ok(Step::Project(columns));
        }
        if self.takes_word("order") || self.takes_word("sort") {
            if !self.takes_word("by") {
                return Err(self.fail());
            }
            return Ok(Step::Order(self.list(Self::order)?));
        }
        if self.takes_word("take") || self.takes_word("limit") {
            return Ok(Step::Take(self.number()?));
        }
        Err(self.fail())
    }

    fn list<T>(&mut self, item: impl Fn(&mut Self) -> Result<T, Failure>) -> Result<Vec<T>, Failure> {
        let mut all = vec![item(self)?];
        while self.takes(",") {
            all.push(item(self)?);
        }
        Ok(all)
    }

    /// `name = value`, or a value that names its column itself.
    fn column(&mut self) -> Result<Column, Failure> {
        if matches!(self.tokens.get(self.at + 1), Some((_, Token::Sign("=")))) {
            let name = self.word()?;
            self.sign("=")?;
            let value = self.expression()?;
            return Ok(Column { name, value });
        }
        match self.expression()? {
            Expression::Path(path) => Ok(Column {
                name: path.join("_"),
                value: Expression::Path(path),
            }),
            _ => Err(self.fail()),
        }
    }

    /// Descending, where nothing else is said.
    fn order(&mut self) -> Result<(Expression, bool), Failure> {
        let key = self.expression()?;
        let ascending = self.takes_word("asc");
        if !ascending {
            self.takes_word("desc");
        }
        Ok((key, !ascending))
    }

    fn either(&mut self) -> Result<Predicate, Failure> {
        let mut all = vec![self.both()?];
        while self.takes_word("or") {
            all.push(self.both()?);
        }
        Ok(Predicate::Or(all))
    }

    fn both(&mut self) -> Result<Predicate, Failure> {
        let mut all = vec![self.one()?];
        while self.takes_word("and") {
            all.push(self.one()?);
        }
        Ok(Predicate::And(all))
    }

    fn one(&mut self) -> Result<Predicate, Failure> {
        if self.takes("(") {
            return self.rest_of_brackets(Self::either);
        }
        if self.takes_word("not") {
            self.sign("(")?;
            let inner = self.rest_of_brackets(Self::either)?;
            return Ok(Predicate::Not(Box::new(inner)));
        }
        for (word, wanted) in [("isempty", true), ("isnotempty", false)] {
            if self.takes_word(word) {
                self.sign("(")?;
                let empty = Predicate::IsEmpty(self.rest_of_brackets(Self::expression)?);
                return Ok(if wanted { empty } else { Predicate::Not(Box::new(empty)) });
            }
        }
        let value = self.expression()?;
        self.comparison(value)
    }

    fn rest_of_brackets<T>(&mut self, inner: impl Fn(&mut Self) -> Result<T, Failure>) -> Result<T, Failure> {
        let found = inner(self)?;
        self.sign(")")?;
        Ok(found)
    }

    fn comparison(&mut self, value: Expression) -> Result<Predicate, Failure> {
        for (sign, case, negated) in [
            ("==", Case::Counts, false),
            ("!=", Case::Counts, true),
            ("=~", Case::Ignored, false),
            ("!~", Case::Ignored, true),
        ] {
            if self.takes(sign) {
                let equal = Predicate::Equals(value, vec![self.expression()?], case);
                return Ok(unless(negated, equal));
            }
        }
        if self.takes_word("matches") {
            if !self.takes_word("regex") {
                return Err(self.fail());
            }
            let pattern = self.text()?;
            let pattern = Regex::new(&pattern).map_err(|_| {
                self.at -= 1;
                self.fail()
            })?;
            return Ok(Predicate::Matches(value, pattern));
        }
        let negated = self.takes("!");
        if self.takes_word("in") {
            let case = if self.takes("~") { Case::Ignored } else { Case::Counts };
            self.sign("(")?;
            let others = self.rest_of_brackets(|parser| parser.list(Self::expression))?;
            return Ok(unless(negated, Predicate::Equals(value, others, case)));
        }
        for (word, place) in [
            ("contains", Place::Anywhere),
            ("startswith", Place::Begin),
            ("endswith", Place::End),
        ] {
            if self.takes_word(word) {
                let part = self.text()?;
                return Ok(unless(negated, Predicate::Has(value, place, part)));
            }
        }
        Err(self.fail())
    }

    fn expression(&mut self) -> Result<Expression, Failure> {
        match self.peek() {
            Some(Token::Text(_)) => return self.text().map(Expression::Text),
            Some(Token::Number(_)) => return self.number().map(Expression::Number),
            _ => {}
        }
        if self.takes_word("tostring") {
            self.sign("(")?;
            let inner = self.rest_of_brackets(Self::expression)?;
            return Ok(Expression::ToText(Box::new(inner)));
        }
        if self.takes_word("tolower") {
            self.sign("(")?;
            let inner = self.rest_of_brackets(Self::expression)?;
            return Ok(Expression::ToLower(Box::new(inner)));
        }
        let unknown = self.fail();
        let column = self.word()?;
        if !self.columns.contains(&column) {
            return Err(unknown);
        }
        let mut path = vec![column];
        loop {
            if self.takes(".") {
                path.push(self.word()?);
            } else if self.takes("[") {
                path.push(self.text()?);
                self.sign("]")?;
            } else {
                return Ok(Expression::Path(path));
            }
        }
    }
}

fn unless(negated: bool, predicate: Predicate) -> Predicate {
    if negated {
        Predicate::Not(Box::new(predicate))
    } else {
        predicate
    }
}
