//! Just enough of Rust's lexical grammar to tell code from comments, strings and tests.

/// The text with comments, strings and character literals replaced by blanks; lines stay where they
/// are, so that a position found in the result is a position in the file.
pub fn code_only(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = skip(&chars, at);
        if end == at {
            out.push(chars[at]);
            at += 1;
        } else {
            blank(&chars[at..end], &mut out);
            at = end;
        }
    }
    out
}

fn blank(chars: &[char], out: &mut String) {
    out.extend(chars.iter().map(|&c| if c == '\n' { '\n' } else { ' ' }));
}

/// The end of the comment or literal that starts at `at`; `at` itself if none does.
fn skip(chars: &[char], at: usize) -> usize {
    let next = chars.get(at + 1).copied().unwrap_or(' ');
    match chars[at] {
        '/' if next == '/' => find(chars, at, '\n'),
        '/' if next == '*' => block_comment(chars, at),
        '"' => string(chars, at),
        'r' | 'b' if !follows_word(chars, at) => prefixed_string(chars, at),
        '\'' => character(chars, at),
        _ => at,
    }
}

fn follows_word(chars: &[char], at: usize) -> bool {
    at > 0 && is_word(chars[at - 1])
}

pub fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn find(chars: &[char], from: usize, what: char) -> usize {
    (from..chars.len()).find(|&i| chars[i] == what).unwrap_or(chars.len())
}

fn block_comment(chars: &[char], at: usize) -> usize {
    let (mut depth, mut i) = (0, at);
    while i + 1 < chars.len() {
        match (chars[i], chars[i + 1]) {
            ('/', '*') => (depth, i) = (depth + 1, i + 2),
            ('*', '/') if depth == 1 => return i + 2,
            ('*', '/') => (depth, i) = (depth - 1, i + 2),
            _ => i += 1,
        }
    }
    chars.len()
}

fn string(chars: &[char], at: usize) -> usize {
    let mut i = at + 1;
    while i < chars.len() {
        match chars[i] {
            '\\' => i += 2,
            '"' => return i + 1,
            _ => i += 1,
        }
    }
    chars.len()
}

/// `r"..."`, `r#"..."#`, `b"..."`, `br#"..."#`, `b'.'`; `at` if it is only a word that begins
/// alike.
fn prefixed_string(chars: &[char], at: usize) -> usize {
    let mut i = at;
    if chars[i] == 'b' {
        i += 1;
        match chars.get(i) {
            Some('"') => return string(chars, i),
            Some('\'') => return character(chars, i),
            Some('r') => {}
            _ => return at,
        }
    }
    i += 1;
    let hashes = chars[i.min(chars.len())..].iter().take_while(|&&c| c == '#').count();
    if chars.get(i + hashes) != Some(&'"') {
        return at;
    }
    let mut from = i + hashes + 1;
    loop {
        let quote = find(chars, from, '"');
        if quote == chars.len() {
            return quote;
        }
        let end = quote + 1 + hashes;
        if end <= chars.len() && chars[quote + 1..end].iter().all(|&c| c == '#') {
            return end;
        }
        from = quote + 1;
    }
}

/// A character literal; a lifetime is code and ends where it starts.
fn character(chars: &[char], at: usize) -> usize {
    match (chars.get(at + 1), chars.get(at + 2)) {
        (Some('\\'), _) => (find(chars, at + 3, '\'') + 1).min(chars.len()),
        (Some(_), Some('\'')) => at + 3,
        _ => at,
    }
}

/// Blanks every item under an attribute `#[cfg(test)]`, `#[cfg(all(test, ...))]` or with `loom`.
/// Takes text from [`code_only`].
pub fn without_tests(code: &str) -> String {
    let chars: Vec<char> = code.chars().collect();
    let mut out = String::with_capacity(code.len());
    let mut at = 0;
    while at < chars.len() {
        if is_test_attribute(&chars[at..]) {
            let end = item_end(&chars, at);
            blank(&chars[at..end], &mut out);
            at = end;
        } else {
            out.push(chars[at]);
            at += 1;
        }
    }
    out
}

fn is_test_attribute(chars: &[char]) -> bool {
    ["#[cfg(test)]", "#[cfg(loom)]", "#[cfg(all(test", "#[cfg(all(loom", "#[cfg(any(test"]
        .iter()
        .any(|attribute| attribute.chars().enumerate().all(|(i, c)| chars.get(i) == Some(&c)))
}

/// The end of the item whose first attribute starts at `at`: its closing brace or its semicolon.
fn item_end(chars: &[char], at: usize) -> usize {
    let (mut braces, mut brackets) = (0_usize, 0_usize);
    for (i, &c) in chars.iter().enumerate().skip(at) {
        match c {
            '{' => braces += 1,
            '}' => {
                braces = braces.saturating_sub(1);
                if braces == 0 {
                    return i + 1;
                }
            }
            '[' | '(' => brackets += 1,
            ']' | ')' => brackets = brackets.saturating_sub(1),
            ';' | ',' if braces == 0 && brackets == 0 => return i + 1,
            _ => {}
        }
    }
    chars.len()
}

/// The 1-based lines on which `word` stands as a whole word (`word` may contain `::`, `.`, `!`,
/// `(`).
pub fn lines_with_word(code: &str, word: &str) -> Vec<usize> {
    let starts_as_word = word.chars().next().is_some_and(is_word);
    let ends_as_word = word.chars().next_back().is_some_and(is_word);
    let mut lines = Vec::new();
    for (number, line) in code.lines().enumerate() {
        for (at, _) in line.match_indices(word) {
            let before = line[..at].chars().next_back();
            let after = line[at + word.len()..].chars().next();
            if starts_as_word && before.is_some_and(is_word) {
                continue;
            }
            if ends_as_word && after.is_some_and(is_word) {
                continue;
            }
            lines.push(number + 1);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_and_code_is_kept() {
        let cases = [
            ("a // unsafe\nb", "a          \nb"),
            ("a /* x /* y */ z */ b", "a                   b"),
            (r#"f("un\"safe") + 1"#, r#"f(          ) + 1"#),
            (r##"r#"a"b"# c"##, "         c"),
            ("b\"x\" br\"y\" b'z' 'q' '\\'' k", "                         k"),
            ("fn f<'a>(x: &'a u8)", "fn f<'a>(x: &'a u8)"),
            ("var = br + r", "var = br + r"),
        ];
        for (text, expected) in cases {
            assert_eq!(code_only(text), expected, "{text}");
        }
    }

    #[test]
    fn unfinished_literals_end_with_the_file() {
        for text in ["\"abc", "r#\"abc", "/* abc", "'", "b'", "r", "b", "\"\\"] {
            assert_eq!(code_only(text).chars().count(), text.chars().count(), "{text}");
        }
    }

    #[test]
    fn test_items_are_blanked_and_what_follows_is_kept() {
        let text = "fn a() { x }\n#[cfg(test)]\nmod tests { fn b() { y } }\nfn c() { z }";
        let left = without_tests(text);
        assert!(left.contains('x') && left.contains('z') && !left.contains('y'), "{left}");
        assert_eq!(left.lines().count(), text.lines().count());
        let declared = without_tests("#[cfg(all(test, not(loom)))]\nmod tests;\nfn c() { z }");
        assert!(declared.contains('z') && !declared.contains("mod"), "{declared}");
    }

    #[test]
    fn words_are_whole() {
        assert_eq!(lines_with_word("unsafe_code\nunsafe {\nnot_unsafe", "unsafe"), [2]);
        assert_eq!(lines_with_word("a.unwrap()\nb.unwrap_or(1)", ".unwrap()"), [1]);
        assert_eq!(lines_with_word("eprintln!(x); println!(y)", "println!"), [1]);
    }
}
