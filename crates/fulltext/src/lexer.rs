//! A query cut into what its grammar knows, as InnoDB cuts it: of all that could begin at a byte,
//! the longest, and of two that are as long, the first of those listed in [`next`].
//!
//! Queries are UTF-8 or anything whose operators are ASCII and no part of other characters.

/// How a query is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Words, and phrases in quotes.
    Natural,
    /// With operators.
    Boolean,
}

/// A piece of a query.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Token<'q> {
    End,
    /// What stands between quotes.
    Text(&'q [u8]),
    Term(&'q [u8]),
    /// A term of digits alone.
    Number(&'q [u8]),
    Operator(u8),
}

impl Token<'_> {
    /// As errors call it.
    pub(crate) fn name(self) -> String {
        match self {
            Token::End => "$end".into(),
            Token::Text(_) => "FTS_TEXT".into(),
            Token::Term(_) => "FTS_TERM".into(),
            Token::Number(_) => "FTS_NUMB".into(),
            Token::Operator(byte) => format!("'{}'", char::from(byte)),
        }
    }
}

/// Takes the next piece from the front of a query.
pub(crate) fn next<'q>(rest: &mut &'q [u8], mode: Mode) -> Token<'q> {
    while let Some(&first) = rest.first() {
        let blanks = run(rest, |byte| byte == b' ' || byte == b'\t');
        let term = run(rest, |byte| is_of_term(byte, mode));
        let quoted = if first == b'"' { quoted(rest) } else { None };
        let taken = blanks.max(term).max(quoted.map_or(1, |len| len + 2));
        let (piece, behind) = rest.split_at(taken);
        *rest = behind;
        if let Some(len) = quoted {
            return Token::Text(&piece[1..=len]);
        }
        if taken == 1 && is_operator(first, mode) {
            return Token::Operator(first);
        }
        if blanks == taken || term == 0 {
            // Blanks; a line's end, a percent sign, a quote without another: as if they were.
            continue;
        }
        let all_digits = mode == Mode::Boolean && piece.iter().all(u8::is_ascii_digit);
        return if all_digits { Token::Number(piece) } else { Token::Term(piece) };
    }
    Token::End
}

fn run(bytes: &[u8], is_in: impl Fn(u8) -> bool) -> usize {
    bytes.iter().position(|&byte| !is_in(byte)).unwrap_or(bytes.len())
}

/// The length of what stands between the quote that the bytes begin with and the next one.
fn quoted(bytes: &[u8]) -> Option<usize> {
    let len = run(&bytes[1..], |byte| byte != b'"' && byte != b'\n');
    (bytes.get(len + 1) == Some(&b'"')).then_some(len)
}

fn is_operator(byte: u8, mode: Mode) -> bool {
    match mode {
        Mode::Natural => byte == b'*',
        Mode::Boolean => b"*()+-<>~@".contains(&byte),
    }
}

fn is_of_term(byte: u8, mode: Mode) -> bool {
    !matches!(byte, b'"' | b' ' | b'\n' | b'%')
        && (mode == Mode::Natural || !is_operator(byte, mode))
}
