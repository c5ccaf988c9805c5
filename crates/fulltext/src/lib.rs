//! Full-text search: queries, what documents fit them, and how well. Whose words a text has, and
//! where entries of an index lie, is the caller's ([`Index`]); nothing here reads or writes.
#![forbid(unsafe_code)]
mod lexer;
mod matching;
mod query;
mod ranked;
mod search;
mod step;
#[cfg(test)]
mod tests;
mod words;

pub use lexer::Mode;
pub use query::SyntaxError;
pub use ranked::Ranked;
pub use search::{Failure, Index, Posting, Search, search};
pub use words::{Fit, Positions, Word, Words};
