//! The grammar of queries. What is malformed is refused in the words of InnoDB's parser.
//!
//! A term may be followed by `*`, a text in quotes by `@` and a number; either, and what stands in
//! parentheses, may have one operator in front. With parentheses a list begins anew: what stands
//! before them is done as a whole first, as InnoDB does it. So a list is [`Stage`]s.
use std::fmt;

use crate::lexer::{Mode, Token, next};

/// A query that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SyntaxError(pub(crate) String);

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SyntaxError {}

/// What an operand does to the documents found so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Op {
    /// Adds its own.
    Add,
    /// `+`: keeps those that have it.
    Must,
    /// `-`: takes those away that have it.
    MustNot,
    /// `~`: those that have it fit less well.
    Lower,
    /// `<`: adds its own, which fit less well.
    AddLower,
    /// `>`: adds its own, which fit better.
    AddHigher,
}

/// An operand.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum What<'q> {
    /// What lies between operators: words, mostly one. `begins`: of the last, all that begin so.
    Term {
        text: &'q [u8],
        begins: bool,
    },
    /// Words in a row, or, with a distance, near each other.
    Text {
        text: &'q [u8],
        distance: Option<u64>,
    },
    Sub(Vec<Stage<'q>>),
}

/// Operands that are done together: but for the first of a list, one begins with parentheses.
pub(crate) type Stage<'q> = Vec<(Op, What<'q>)>;

/// Nesting that is read: InnoDB gives up a query of more than 32 levels when it is run.
pub(crate) const DEPTH_MAX: usize = 32;

/// Reads a query.
///
/// # Errors
/// [`SyntaxError`].
pub(crate) fn parse(query: &[u8], mode: Mode) -> Result<Vec<Stage<'_>>, SyntaxError> {
    let mut parser = Parser { rest: query, mode, token: Token::End };
    parser.step();
    parser.list(0)
}

struct Parser<'q> {
    rest: &'q [u8],
    mode: Mode,
    /// The one that is looked at.
    token: Token<'q>,
}

impl<'q> Parser<'q> {
    fn step(&mut self) {
        self.token = next(&mut self.rest, self.mode);
    }

    fn unexpected<T>(&self, expecting: &str) -> Result<T, SyntaxError> {
        let name = self.token.name();
        let expecting = match expecting {
            "" => String::new(),
            what => format!(", expecting {what}"),
        };
        Err(SyntaxError(format!("syntax error, unexpected {name}{expecting}")))
    }

    /// A list, and of one in parentheses the end.
    fn list(&mut self, depth: usize) -> Result<Vec<Stage<'q>>, SyntaxError> {
        let mut stages: Vec<Stage<'q>> = Vec::new();
        loop {
            let op = match self.token {
                Token::End if depth == 0 => return Ok(stages),
                Token::Operator(b')') if depth > 0 => {
                    self.step();
                    return Ok(stages);
                }
                Token::Operator(b')' | b'@') if depth == 0 => return self.unexpected("$end"),
                Token::End | Token::Operator(b'@') => return self.unexpected(""),
                Token::Operator(byte) => of_operator(byte),
                _ => None,
            };
            if op.is_some() {
                self.step();
            }
            let what = self.operand(depth)?;
            let item = (op.unwrap_or(Op::Add), what);
            match stages.last_mut().filter(|_| !matches!(item.1, What::Sub(_))) {
                Some(stage) => stage.push(item),
                None => stages.push(vec![item]),
            }
        }
    }

    fn operand(&mut self, depth: usize) -> Result<What<'q>, SyntaxError> {
        match self.token {
            Token::Operator(b'(') => {
                if depth == DEPTH_MAX {
                    let words = format!("a query of more than {DEPTH_MAX} levels of parentheses");
                    return Err(SyntaxError(words));
                }
                self.step();
                Ok(What::Sub(self.list(depth + 1)?))
            }
            Token::Text(text) => {
                self.step();
                let distance = self.distance()?;
                Ok(What::Text { text, distance })
            }
            Token::Operator(b'*') => {
                while self.token == Token::Operator(b'*') {
                    self.step();
                }
                match self.token {
                    Token::Term(text) | Token::Number(text) => Ok(self.term(text)),
                    _ => self.unexpected("FTS_TERM or FTS_NUMB or '*'"),
                }
            }
            Token::Term(text) | Token::Number(text) => Ok(self.term(text)),
            Token::End | Token::Operator(_) => self.unexpected(""),
        }
    }

    fn term(&mut self, text: &'q [u8]) -> What<'q> {
        self.step();
        let begins = self.token == Token::Operator(b'*');
        if begins {
            self.step();
        }
        What::Term { text, begins }
    }

    fn distance(&mut self) -> Result<Option<u64>, SyntaxError> {
        if self.token != Token::Operator(b'@') {
            return Ok(None);
        }
        self.step();
        let Token::Number(digits) = self.token else { return self.unexpected("FTS_NUMB") };
        self.step();
        let add = |sum: u64, digit: &u8| {
            sum.saturating_mul(10).saturating_add(u64::from(digit.wrapping_sub(b'0')))
        };
        // InnoDB takes no distance for one of 0.
        Ok(Some(digits.iter().fold(0, add)).filter(|&distance| distance > 0))
    }
}

fn of_operator(byte: u8) -> Option<Op> {
    match byte {
        b'+' => Some(Op::Must),
        b'-' => Some(Op::MustNot),
        b'~' => Some(Op::Lower),
        b'<' => Some(Op::AddLower),
        b'>' => Some(Op::AddHigher),
        _ => None,
    }
}
